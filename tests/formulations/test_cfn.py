import time

import numpy as np
import pytest

from relocbench.formulations.cfn import process
from relocbench.formulations.cfn import solve as cfn
from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.cfn.process import Event, StuckError
from relocbench.formulations.cfn.solve import solve
from relocbench.formulations.linearisation import linearise
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.runs.solve import solve_here as run
from tests.formulations.test_cpsat import assert_optimal, enumerable
from tests.samples import KINDS, random_home, random_instance, worked_example

pytest.importorskip("pytoulbar2")


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_finds_the_optimum_of_every_kind(kind):
    instance = enumerable(kind)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))


@pytest.mark.parametrize("levels", [1, 2, 9])
def test_finds_the_optimum_whatever_the_levels_it_starts_from(levels):
    instance = family("tiny").cells({"regime": "overloaded", "shape": "near-cloud"})[0].build(2)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30, levels=levels))


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_levels_contain_the_shares_of_all_homes(kind):
    """For any homes, each server has a level that contains its loads and the share that the evaluator computes."""
    instance = random_instance(7, kind)
    linear = linearise(instance)
    levels = Levels(linear, 3)
    for seed in range(20):
        home = random_home(instance, seed)
        evaluation = evaluate(instance, home)
        for l in range(instance.n_servers):
            stored = sum(
                int(spool)
                for spool, publishers in zip(levels.spool, linear.publishers, strict=True)
                if any(home[list(publishers)] == l)
            )
            computed = int(levels.demand[home == l].sum())
            holding = next(x for x in levels.of(l) if stored <= x.holds[0] and computed <= x.holds[1])
            assert stored >= holding.reached[0] or computed >= holding.reached[1]
            share = evaluation.theta[l]
            assert holding.lo * (1 - levels.rounding) * (1 - 1e-9) <= share <= holding.hi * (1 + 1e-9)


def test_levels_split_at_homes_are_exact_for_them():
    instance = random_instance(4, ("overloaded", "euclid", "near", "same"))
    levels, home = Levels(linearise(instance), 2), random_home(instance, 1)
    assert levels.split(home)
    assert not levels.split(home)
    for l, share in enumerate(evaluate(instance, home).theta):
        assert any(abs(x.hi - share) < 1e-6 and abs(x.lo - share) < 1e-6 for x in levels.of(l))


def test_paper_sized_instance_without_scarcity_is_proved_in_seconds():
    instance = family("paper").cells({"sigma": 10, "storage": 1e6, "compute": 1e6})[0].build(0)
    solution = solve(instance, seed=0, time_limit=30)
    assert solution.status == "optimal"
    assert solution.facts["rounds"] == 1


def test_time_limit_is_kept_and_the_bound_so_far_reported():
    instance = family("small").cells({"regime": "overloaded", "clients": 39, "servers": 9})[0].build(0)
    run(worked_example(), "cfn")  # compiles the kernels before the clock starts
    begin = time.perf_counter()
    solution = solve(instance, seed=0, time_limit=2.5)
    assert time.perf_counter() - begin < 5
    assert solution.status == "time_limit"
    assert 0 < solution.bound < evaluate(instance, solution.home).objective


def test_without_time_homes_are_returned():
    instance = family("tiny").cells({"regime": "scarce"})[0].build(0)
    start = random_home(instance, 3)
    solution = solve(instance, seed=0, time_limit=0.0, start=start)
    assert evaluate(instance, solution.home).objective <= evaluate(instance, start).objective
    assert solution.status == "time_limit"


def test_start_that_is_optimal_is_proved_and_kept():
    instance = enumerable(("tight", "euclid", "far", "same"))
    best = run(instance, "enumerate").solution.home
    solution = solve(instance, seed=0, time_limit=30, start=best)
    assert_optimal(instance, solution)
    assert len({cost for _, cost, _ in solution.trace}) == 1


def test_network_that_rounds_too_much_excludes_homes_until_proved(monkeypatch):
    monkeypatch.setattr(cfn, "MOST_BITS", 9)
    instance = enumerable(("tight", "explicit", "far", "same"), most=100)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))


def test_search_that_does_not_terminate_is_repeated_with_less_propagation(monkeypatch):
    tried = []

    def stuck_the_first_time(task, deadline, log):
        tried.append(task["options"])
        if len(tried) == 1:
            raise StuckError("the propagation of toulbar2 does not terminate")
        yield from process.search(task, deadline, log)

    monkeypatch.setattr(cfn, "search", stuck_the_first_time)
    instance = enumerable(("tight", "euclid", "far", "same"))
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))
    assert tried[0] == {}
    assert all(options == {"LcLevel": 1} for options in tried[1:])


def test_crash_of_the_process_is_an_error_with_a_message():
    with pytest.raises(StuckError, match="without a result"):
        list(process.search({"limit": 1}, time.perf_counter() + 20, log=False))


def test_the_last_event_has_the_minimum_or_no_values():
    table = np.array([[4, 9], [-1, 3]])
    task = {"domains": [2, 2], "functions": [((0, 1), table)], "rows": [], "limit": 50, "seed": 0, "options": {}}
    *_, last = process.search(task, time.perf_counter() + 20, log=False)
    assert (last.bound, last.values, last.finished) == (3, [1, 1], True)
    *_, last = process.search(task | {"limit": 3}, time.perf_counter() + 20, log=False)
    assert last == Event(finished=True, nodes=last.nodes)


def test_nothing_is_printed_without_log(capfd):
    solve(worked_example(), seed=0, time_limit=10)
    assert capfd.readouterr() == ("", "")
    solve(worked_example(), seed=0, time_limit=10, log=True)
    assert "Optimum" in capfd.readouterr().out
