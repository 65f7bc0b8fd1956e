import dataclasses

import pytest

from relocbench.instances.library.library import Library
from relocbench.reports.gate.primal_integral import primal_integral, reports_progress
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import row_of
from relocbench.runs.selectors import as_selector
from relocbench.runs.sweep import Limits, Task

INSTANCE = Library().read("tiny-loose-plain-0")
ROW = row_of(INSTANCE, Task(INSTANCE, as_selector("nearest")).run(Limits(60.0)), Outcome("feasible"), None)
# The gaps to 80 are 1 until 1 s, 0.2 until 3 s and then 0.
TRACE = [(1.0, 100.0, float("-inf")), (3.0, 80.0, float("-inf"))]


def row(**changes):
    usual = {"objective": 80.0, "seconds": 4.0, "cpu_seconds": 4.0, "trace": TRACE}
    return dataclasses.replace(ROW, **(usual | changes))


@pytest.mark.parametrize(
    ("changes", "reference", "horizon", "integral"),
    [
        ({}, 80.0, 10.0, 1 + 2 * 0.2),
        ({}, 80.0, 2.0, 1 + 0.2),
        ({}, 40.0, 10.0, 1 + 2 * 0.6 + 7 * 0.5),  # the last gap counts until the horizon
        ({"trace": []}, 80.0, 10.0, 4.0),
        ({"trace": []}, 80.0, 3.0, 3.0),
        ({"cpu_seconds": 2.0}, 80.0, 10.0, 0.5 + 0.2),  # half of the wall-clock time was that of others
        # No credit for an incumbent that the homes do not have, or for one that became worse.
        ({"trace": [(1.0, 10.0, 0.0), (2.0, 500.0, 0.0)]}, 40.0, 4.0, 1 + 3 * 0.5),
        ({"trace": [(9.0, 80.0, 0.0)]}, 80.0, 10.0, 4.0),  # a clock that runs past the end
    ],
)
def test_the_integral_of_the_gap(changes, reference, horizon, integral):
    assert primal_integral(row(**changes), reference, horizon) == pytest.approx(integral)


def test_a_method_without_progress_points_is_known():
    assert reports_progress(row())
    assert not reports_progress(row(trace=[]))
