"""The primal integral of a run: how much gap it had, for how long."""

import itertools

from relocbench.instances.gap import gap
from relocbench.reports.study.anytime import incumbents
from relocbench.runs.run_store import Row

# The integrals of a baseline end at this multiple of its longest time, so that a slower version is seen to be slower.
HORIZON = 2.0


def primal_integral(row: Row, reference: float, horizon: float) -> float:
    """Return the integral of the gap of the incumbent over the processor time of a run.

    Before the first incumbent the gap counts as 1, after the end of the run as that of its homes. Progress points have
    wall-clock times. They are scaled to the processor time of the run, so that other load on the machine matters
    little.

    Parameters
    ----------
    row
        The run, which has homes.
    reference
        The cost that the gap is measured to. Costs below it have the gap 0.
    horizon
        Where the integral ends, in processor seconds.

    Returns
    -------
    float
        Processor seconds.
    """
    assert row.objective is not None
    scale = row.cpu_seconds / row.seconds if row.seconds > 0 else 0.0
    points = [(0.0, 1.0)]
    for at, cost in [*incumbents(row), (row.seconds, row.objective)]:
        # A clock that goes backwards, and an incumbent that is worse than an earlier one, count as no progress.
        last_at, least = points[-1]
        points.append((max(last_at, at * scale), min(least, gap(cost, reference) or 0.0)))
    points.append((max(horizon, points[-1][0]), points[-1][1]))
    return sum(
        value * (min(end, horizon) - min(begin, horizon)) for (begin, value), (end, _) in itertools.pairwise(points)
    )


def reports_progress(row: Row) -> bool:
    """Return whether a method reported an incumbent before the end of its run.

    Parameters
    ----------
    row
        The run.

    Returns
    -------
    bool
        Whether it did.
    """
    return row.objective is not None and next(incumbents(row), None) is not None
