import math

import pytest

from relocbench.reports.benchmark.assessment import assess, proving_methods
from relocbench.reports.benchmark.measures import (
    excess_profile,
    integral,
    mean_curve,
    outcome_counts,
    performance_profile,
    primal_dual_gap,
    primal_dual_integral,
    primal_integral,
    solved_by_all,
    trajectory,
)
from relocbench.runs.cross_check import wrong_answers
from tests.reports.benchmark.samples import LIMIT, race, row


def assessed(*rows):
    return assess(rows, wrong_answers(rows))


def test_a_profile_counts_every_problem_also_unproved_ones():
    runs = assessed(*race())
    profile = performance_profile(runs, ["milp-strong", "cfn"])
    assert profile["milp-strong"] == ([1.0, 16.0], [pytest.approx(1 / 3), pytest.approx(2 / 3)])
    assert profile["cfn"] == ([1.0, 2.0], [pytest.approx(1 / 3), pytest.approx(2 / 3)])
    assert excess_profile(runs, ["nearest"])["nearest"] == ([0.0, 0.0, pytest.approx(0.2)], [1 / 3, 2 / 3, 1.0])


def test_only_proving_methods_decide_which_problems_all_have_solved():
    runs = assessed(*race())
    assert proving_methods(runs) == ["milp-strong", "cfn"]
    assert solved_by_all(runs, proving_methods(runs)) == {runs[0].problem, runs[3].problem}


def test_an_unregistered_method_that_claims_a_bound_is_a_proving_method():
    runs = assessed(row("mine.py:best", status="time_limit", bound=3.0), row("mine.py:fast", status="feasible"))
    assert proving_methods(runs) == ["mine.py:best"]


def test_outcomes_are_counted_separately():
    rows = [
        row("cfn"),
        row("cpsat", status="time_limit", bound=9.0),
        row("milp-basic", status="memory_limit", objective=None),
        row("milp-strong", status="error", objective=None, failure="died", error="SIGSEGV"),
        row("enumerate", status="error", objective=None, failure="refused", error="too large"),
        row("branch-price", status="error", failure="claim", bound=11.0, error="claims the bound 11.0"),
        row("reloc", status="feasible"),
    ]
    assert outcome_counts(assessed(*rows)) == {
        "optimal": 1,
        "time_limit": 1,
        "memory_limit": 1,
        "error": 1,
        "refused": 1,
        "wrong": 1,
        "feasible": 1,
    }


@pytest.mark.parametrize(
    ("incumbent", "bound", "gap"),
    [(10.0, 8.0, 0.2), (10.0, 10.0, 0.0), (10.0, -math.inf, 1.0), (math.inf, 3.0, 1.0), (10.0, -5.0, 1.0), (0, 0, 0)],
)
def test_the_gap_is_one_while_incumbent_or_bound_is_missing(incumbent, bound, gap):
    assert primal_dual_gap(incumbent, bound) == pytest.approx(gap)


def test_the_integral_covers_the_time_limit():
    proved = assessed(row("cfn", seconds=2.0, trace=[(1.0, 10.0, 5.0)]))[0]
    assert primal_dual_integral(proved) == pytest.approx(1.0 + 0.5)
    assert primal_integral(proved) == pytest.approx(1.0)
    stopped = assessed(row("cfn", status="time_limit", bound=5.0, seconds=11.0, trace=[(4.0, 10.0, 5.0)]))[0]
    assert primal_dual_integral(stopped) == pytest.approx(4.0 + 6 * 0.5)
    failed = assessed(row("cfn", status="error", bound=5.0, trace=[(1.0, 10.0, 5.0)], failure="died", error="x"))[0]
    assert primal_dual_integral(failed) == LIMIT


def test_a_trajectory_never_gets_worse_and_ends_with_the_verified_result():
    found = trajectory(row("cfn", seconds=4.0, trace=[(1.0, 20.0, 3.0), (2.0, 30.0, 2.0), (3.0, math.nan, math.nan)]))
    assert found.seconds == [1.0, 2.0, 3.0, 4.0]
    assert found.incumbent == [20.0, 20.0, 20.0, 10.0]
    assert found.bound == [3.0, 3.0, 3.0, 10.0]


def test_a_step_function_is_constant_until_the_next_step():
    assert integral(([0.0, 2.0], [1.0, 0.25]), 10.0) == pytest.approx(2 + 8 * 0.25)
    assert integral(([0.0, 20.0], [1.0, 0.0]), 10.0) == pytest.approx(10.0)
    moments, values = mean_curve([([0.0, 1.0], [1.0, 0.0]), ([0.0], [1.0])], 10.0)
    assert moments[-1] == pytest.approx(10.0)
    assert (values[0], values[-1]) == (1.0, 0.5)
