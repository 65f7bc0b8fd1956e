import dataclasses
import math
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.rational_cost import cost, least_cost
from benchmarks.trials.solves import judged, selectors
from relocbench.runs.methods import METHODS
from relocbench.runs.outcome import Outcome

CASE = odd_case(0, 15)[2]
LEAST, BEST = least_cost(CASE)
OPTIMAL = Outcome(
    status="optimal", home=np.array(BEST), objective=float(LEAST), bound=float(LEAST) * (1 - 1e-9), failure=None
)
WORSE = [(server + 1) % len(CASE["servers"]["x"]) for server in BEST]


def changed(**values):
    return dataclasses.replace(OPTIMAL, **values)


def of_homes(home, **values):
    return changed(home=np.array(home), objective=float(cost(CASE, home)), **values)


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (OPTIMAL, "right"),
        (changed(status="claimed"), "claimed"),
        (changed(status="time_limit", bound=-math.inf), "open"),
        (changed(status="time_limit", home=None, objective=None), "open"),
        (changed(home=None, objective=None), "crashed"),
        (changed(failure="refused", error="the coefficients are too large"), "refused"),
        (changed(failure="refused", error=None), "crashed"),
        (changed(status="error", failure="raised", error="ValueError"), "crashed"),
        (changed(status="error", failure="died", error="SIGFPE"), "crashed"),
        (changed(status="time_limit", failure="stopped", error="killed"), "hung"),
        (changed(bound=float(LEAST) * (1 + 2e-6)), "wrong"),
        (changed(status="time_limit", bound=float(LEAST) * (1 + 2e-6)), "wrong"),
        (changed(status="claimed", bound=float(LEAST) * (1 + 2e-6)), "wrong"),
        (changed(bound=math.nan), "wrong"),
        (changed(bound=math.inf), "wrong"),
        (changed(objective=float(LEAST) * (1 + 1e-6)), "wrong"),
        (of_homes(WORSE), "wrong"),
        (of_homes(WORSE, status="claimed"), "claimed wrong"),
        (of_homes(WORSE, status="time_limit"), "open"),
    ],
)
def test_an_outcome_is_judged_by_the_exact_optimum(outcome, verdict):
    assert cost(CASE, WORSE) > LEAST * (1 + 1e-5)
    assert judged(CASE, LEAST, outcome)[0] == verdict


def test_a_wrong_evaluation_is_seen():
    evaluation = SimpleNamespace(objective=float(LEAST) * 1.001)
    assert judged(CASE, LEAST, changed(evaluation=evaluation))[0] == "wrong"


def test_every_exact_method_and_every_solver_is_tried():
    found = selectors()
    for name, method in METHODS.items():
        assert (name in found) == (method.proves != "nothing" and not method.unavailable())
    assert {"milp-basic[solver=scip]", "milp-strong[solver=cbc]", "pyomo-gdp[transform=hull]"} <= set(found)
    assert len(set(found)) == len(found)
