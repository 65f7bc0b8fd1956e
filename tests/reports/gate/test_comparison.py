import math

import numpy as np
import pytest
from scipy import stats

from relocbench.reports.gate.comparison import Pairs, Rule, Timed, compare
from relocbench.reports.gate.machine_speed import COMPUTATIONS, speed_change

# About as many instances and seeds as the gate has by default.
NAMES = [
    f"{group}-{i}" for group, count in (("tiny", 15), ("small", 18), ("paper", 24), ("large", 6)) for i in range(count)
]
SEEDS = 5
REPEATS = 200


def costs(rng, noise, worse=lambda cost: cost, method="m"):
    """Return costs of one method, before and now; the noise between seeds differs from instance to instance."""
    level = {name: 10 ** rng.uniform(0, 5) for name in NAMES}
    size = {name: noise * rng.uniform(0.2, 1.8) for name in NAMES}

    def runs(name):
        return level[name] * np.exp(size[name] * rng.standard_normal(SEEDS))

    return {method: {name: Pairs(list(runs(name)), list(worse(runs(name)))) for name in NAMES}}


def failures(seed, noise, worse, rule=None):
    rng = np.random.default_rng(seed)
    return sum(
        any(finding.worse for finding in compare(costs(rng, noise, lambda cost: worse(cost, rng)), rule))
        for _ in range(REPEATS)
    )


def only(findings, scope, name):
    [found] = [finding for finding in findings if (finding.scope, finding.name) == (scope, name)]
    return found


@pytest.mark.parametrize(("by", "noise"), [(0.01, 0.0), (0.01, 0.01), (0.03, 0.05), (0.1, 0.1)])
def test_regressions_of_the_documented_size_are_detected(by, noise):
    assert failures(1, noise, lambda cost, rng: cost * (1 + by)) >= 0.95 * REPEATS


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
def test_a_method_that_is_the_same_rarely_fails(noise):
    # At the allowed rate of 5 %, more than 18 failures of 200 would have a probability of 1 %.
    assert failures(2, noise, lambda cost, rng: cost) <= 18


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_a_method_that_is_merely_noisier_rarely_fails(spread):
    assert failures(3, 0.01, lambda cost, rng: cost * np.exp(spread * rng.standard_normal(SEEDS))) <= 18


@pytest.mark.filterwarnings("error")
def test_a_single_value_is_never_tested():
    [whole, single] = compare({"m": {"tiny-0": Pairs([1.0], [2.0])}}, Rule(fewest=1))
    assert (whole.p, single.p) == (None, None)
    assert not whole.worse


def test_a_method_that_is_merely_different_rarely_fails():
    assert failures(4, 0.0, lambda cost, rng: cost * np.exp(0.05 * rng.standard_normal())) <= 18


def test_a_significant_change_below_the_least_effect_passes():
    found = compare(costs(np.random.default_rng(0), 0.0, lambda cost: cost * 1.004))
    assert only(found, "all", "all").p == 0.0
    assert only(found, "all", "all").change == pytest.approx(0.004)
    assert not any(finding.worse for finding in found)
    stricter = compare(costs(np.random.default_rng(0), 0.0, lambda cost: cost * 1.004), Rule(effect=0.004))
    assert only(stricter, "all", "all").worse


def test_an_improvement_passes():
    found = compare(costs(np.random.default_rng(0), 0.01, lambda cost: cost * 0.8))
    assert only(found, "all", "all").change == pytest.approx(-0.2, abs=0.01)
    assert not any(finding.worse for finding in found)


def test_a_regression_of_one_group_fails():
    rng = np.random.default_rng(0)
    before = costs(rng, 0.01)["m"]
    now = {
        name: Pairs(pair.before, [cost * (1.05 if name.startswith("large") else 1.0) for cost in pair.now])
        for name, pair in before.items()
    }
    found = compare({"m": now})
    assert only(found, "group", "large").worse
    assert not only(found, "group", "paper").worse


def test_a_regression_of_one_instance_fails_only_if_it_is_large():
    rng = np.random.default_rng(0)
    for factor, fails in ((1.2, False), (2.0, True)):
        before = costs(rng, 0.01)["m"]
        pair = before["paper-3"]
        found = compare({"m": before | {"paper-3": Pairs(pair.before, [cost * factor for cost in pair.now])}})
        assert only(found, "instance", "paper-3").worse is fails
        assert sum(finding.worse for finding in found) == fails


def test_the_p_value_is_that_of_a_t_test_and_holm_corrects_it():
    rng = np.random.default_rng(7)
    pairs = {f"g-{i}": Pairs([1.0] * 3, list(np.exp(rng.normal(0.01, 0.02, 3)))) for i in range(10)}
    found = compare({"a": pairs})
    means = [np.mean(pair.changes) for pair in pairs.values()]
    # Three seeds are too few to test single instances, and there is only one group. So one test remains.
    assert only(found, "all", "all").p == pytest.approx(stats.ttest_1samp(means, 0, alternative="greater").pvalue)
    assert all(finding.p is None for finding in found if finding.scope == "instance")
    worse = {name: Pairs(pair.before, [cost * 1.5 for cost in pair.now]) for name, pair in pairs.items()}
    both = compare({"a": pairs, "b": worse})
    first, second = (finding for finding in both if finding.scope == "all")
    assert first.p == only(found, "all", "all").p  # Holm does not correct the largest p-value.
    raw = stats.ttest_1samp([np.mean(pair.changes) for pair in worse.values()], 0, alternative="greater").pvalue
    assert second.p == pytest.approx(2 * raw)


def test_unchanged_costs_are_not_tested():
    same = {name: Pairs([5.0] * SEEDS, [5.0 * (1 + 1e-12)] * SEEDS) for name in NAMES}
    found = compare({"same": same})
    assert {finding.p for finding in found} == {None}
    assert {finding.change for finding in found} == {0.0}
    changed = costs(np.random.default_rng(0), 0.01, method="changed")
    with_it = [finding for finding in compare({"same": same} | changed) if finding.method == "changed"]
    assert with_it == compare(changed)


def test_costs_of_zero_are_allowed():
    found = compare({"m": {f"i-{i}": Pairs([0.0] * 5, [0.0] * 4 + [1.0]) for i in range(6)}})
    assert only(found, "all", "all").worse
    assert math.isfinite(only(found, "all", "all").change)
    assert not any(f.worse for f in compare({"m": {f"i-{i}": Pairs([0.0] * 5, [0.0] * 5) for i in range(6)}}))


def test_without_costs_there_are_no_findings():
    assert compare({"m": {}}) == []


@pytest.mark.parametrize("factor", [1e-12, 1.0, 1e12])
def test_changes_do_not_depend_on_the_unit_of_delays(factor):
    pairs = Pairs([factor * cost for cost in (1.0, 2.0, 0.0, 0.0)], [factor * cost for cost in (1.0, 3.0, 0.0, 5.0)])
    same, worse, nothing, infinite = pairs.changes
    assert (same, nothing) == (0.0, 0.0)
    assert worse == pytest.approx(math.log(1.5))
    assert infinite == pytest.approx(math.log(1e9))


def time_failures(seed, factor, *, noise=0.1, machine=0.0, rule=None):
    """Return how often a method fails whose times are multiplied, on a machine that is 1.5 times as slow.

    The changes of speed of the method and of each reference computation differ by ``machine``.
    """
    rng, failed = np.random.default_rng(seed), 0
    names = [name for name in NAMES if name.startswith(("small", "paper", "large"))]
    for _ in range(REPEATS):
        own, *kernels = 1.5 * np.exp(machine * rng.standard_normal(1 + len(COMPUTATIONS)))
        before = dict.fromkeys(COMPUTATIONS, 0.01)
        now = dict(zip(COMPUTATIONS, 0.01 * np.array(kernels) * np.exp(0.02 * rng.standard_normal()), strict=True))
        level = {name: 10 ** rng.uniform(-2, 1) for name in names}

        def times(name, by=1.0, level=level):
            return list(by * level[name] * np.exp(noise * rng.standard_normal(SEEDS)))

        pairs = {name: Pairs(times(name), times(name, own * factor)) for name in names}
        found = compare({}, rule, timed=[Timed("m", "time", pairs, speed_change(before, now))])
        assert {finding.criterion for finding in found} == {"time"}
        assert {finding.scope for finding in found} == {"all", "group"}
        failed += any(finding.worse for finding in found)
    return failed


@pytest.mark.parametrize("machine", [0.0, 0.05, 0.15])
def test_an_unchanged_method_on_a_slower_machine_rarely_fails(machine):
    assert time_failures(5, 1.0, machine=machine) <= 18
    # Without a least effect, only the significance of the change decides.
    assert time_failures(5, 1.0, machine=machine, rule=Rule(time_effect=-1.0)) <= 18


def test_a_small_slowdown_passes_and_a_large_one_fails():
    assert time_failures(6, 1.1) <= 18
    assert time_failures(7, 1.5) >= 0.95 * REPEATS


def test_on_a_machine_of_another_kind_the_test_of_times_is_more_careful():
    """The reference computations disagree there, and nobody knows which of them the method resembles."""
    assert time_failures(8, 1.5, machine=0.15) < time_failures(8, 1.5, machine=0.02)
    assert time_failures(9, 3.0, machine=0.15) >= 0.9 * REPEATS
