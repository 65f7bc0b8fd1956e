import math

import numpy as np
import pytest
from scipy import stats

from relocbench.reports.gate.comparison import Pairs, Rule, compare

# As many instances and seeds as the gate has by default.
NAMES = [
    f"{group}-{i}" for group, count in (("tiny", 15), ("small", 18), ("paper", 24), ("large", 6)) for i in range(count)
]
SEEDS = 5
REPEATS = 200


def costs(rng, noise, worse=lambda cost: cost, method="m"):
    """Costs of one method, before and now, with noise between seeds that differs from instance to instance."""
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


def alone(findings, scope, name):
    [found] = [finding for finding in findings if (finding.scope, finding.name) == (scope, name)]
    return found


@pytest.mark.parametrize(("by", "noise"), [(0.01, 0.0), (0.01, 0.01), (0.03, 0.05), (0.1, 0.1)])
def test_what_the_docs_say_is_caught_is_caught(by, noise):
    assert failures(1, noise, lambda cost, rng: cost * (1 + by)) >= 0.95 * REPEATS


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.1])
def test_a_method_that_is_the_same_rarely_fails(noise):
    # At the rate of 5 % that the rule allows, more than 18 of 200 would be a chance of 1 in 100.
    assert failures(2, noise, lambda cost, rng: cost) <= 18


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_a_method_that_is_merely_noisier_rarely_fails(spread):
    assert failures(3, 0.01, lambda cost, rng: cost * np.exp(spread * rng.standard_normal(SEEDS))) <= 18


def test_a_method_that_is_merely_different_rarely_fails():
    assert failures(4, 0.0, lambda cost, rng: cost * np.exp(0.05 * rng.standard_normal())) <= 18


def test_less_than_the_least_effect_never_fails_however_significant():
    found = compare(costs(np.random.default_rng(0), 0.0, lambda cost: cost * 1.004))
    assert alone(found, "all", "all").p == 0.0
    assert alone(found, "all", "all").change == pytest.approx(0.004)
    assert not any(finding.worse for finding in found)
    stricter = compare(costs(np.random.default_rng(0), 0.0, lambda cost: cost * 1.004), Rule(effect=0.004))
    assert alone(stricter, "all", "all").worse


def test_better_never_fails():
    found = compare(costs(np.random.default_rng(0), 0.01, lambda cost: cost * 0.8))
    assert alone(found, "all", "all").change == pytest.approx(-0.2, abs=0.01)
    assert not any(finding.worse for finding in found)


def test_one_group_alone_fails():
    rng = np.random.default_rng(0)
    before = costs(rng, 0.01)["m"]
    now = {
        name: Pairs(pair.before, [cost * (1.05 if name.startswith("large") else 1.0) for cost in pair.now])
        for name, pair in before.items()
    }
    found = compare({"m": now})
    assert alone(found, "group", "large").worse
    assert not alone(found, "group", "paper").worse


def test_one_instance_alone_fails_only_if_it_is_much_worse():
    rng = np.random.default_rng(0)
    for factor, fails in ((1.2, False), (2.0, True)):
        before = costs(rng, 0.01)["m"]
        pair = before["paper-3"]
        found = compare({"m": before | {"paper-3": Pairs(pair.before, [cost * factor for cost in pair.now])}})
        assert alone(found, "instance", "paper-3").worse is fails
        assert sum(finding.worse for finding in found) == fails


def test_the_p_value_is_that_of_a_t_test_and_holm_corrects_it():
    rng = np.random.default_rng(7)
    pairs = {f"g-{i}": Pairs([1.0] * 3, list(np.exp(rng.normal(0.01, 0.02, 3)))) for i in range(10)}
    found = compare({"a": pairs})
    means = [np.mean(pair.changes) for pair in pairs.values()]
    # Three seeds are too few to ask of single instances, one group is all: a single question is left.
    assert alone(found, "all", "all").p == pytest.approx(stats.ttest_1samp(means, 0, alternative="greater").pvalue)
    assert all(finding.p is None for finding in found if finding.scope == "instance")
    worse = {name: Pairs(pair.before, [cost * 1.5 for cost in pair.now]) for name, pair in pairs.items()}
    both = compare({"a": pairs, "b": worse})
    first, second = (finding for finding in both if finding.scope == "all")
    assert first.p == alone(found, "all", "all").p  # the largest of all is not corrected
    raw = stats.ttest_1samp([np.mean(pair.changes) for pair in worse.values()], 0, alternative="greater").pvalue
    assert second.p == pytest.approx(2 * raw)


def test_what_has_not_changed_is_not_asked():
    same = {name: Pairs([5.0] * SEEDS, [5.0 * (1 + 1e-12)] * SEEDS) for name in NAMES}
    found = compare({"same": same})
    assert {finding.p for finding in found} == {None}
    assert {finding.change for finding in found} == {0.0}
    changed = costs(np.random.default_rng(0), 0.01, method="changed")
    with_it = [finding for finding in compare({"same": same} | changed) if finding.method == "changed"]
    assert with_it == compare(changed)


def test_costs_of_zero_are_no_problem():
    found = compare({"m": {f"i-{i}": Pairs([0.0] * 5, [0.0] * 4 + [1.0]) for i in range(6)}})
    assert alone(found, "all", "all").worse
    assert math.isfinite(alone(found, "all", "all").change)
    assert not any(f.worse for f in compare({"m": {f"i-{i}": Pairs([0.0] * 5, [0.0] * 5) for i in range(6)}}))


def test_without_costs_there_is_nothing_to_compare():
    assert compare({"m": {}}) == []
