"""The times and primal integrals of a method: those that a baseline stores, and their comparison with later runs."""

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.reports.gate.baseline import Record, Times
from relocbench.reports.gate.comparison import Criterion, Pairs, Timed
from relocbench.reports.gate.judged_instances import JudgedInstance
from relocbench.reports.gate.machine_speed import SpeedChange, speed_change
from relocbench.reports.gate.measurement import MethodRuns
from relocbench.reports.gate.primal_integral import HORIZON, primal_integral
from relocbench.runs.run_store import Row

# Times of instances that took less processor time than this in the baseline are not compared: the work around a method
# is then a large part of them.
LEAST_SECONDS = 0.005
CRITERIA: tuple[Criterion, ...] = ("cost", "time", "integral")


def checked_criteria(names: Sequence[str]) -> tuple[Criterion, ...]:
    """Return the criteria beyond the cost.

    Parameters
    ----------
    names
        The names that a user gave.

    Returns
    -------
    tuple of str
        ``time``, ``integral``, both or neither.

    Raises
    ------
    InputError
        If there is no such criterion.
    """
    for name in names:
        if name not in CRITERIA:
            raise InputError("criterion", f"expected cost, time or integral, got {name!r}")
    return tuple(criterion for criterion in CRITERIA[1:] if criterion in names)


def require_times(record: Record, criteria: Sequence[Criterion], path: Path) -> None:
    """Check that a record has what the criteria need, before the runs.

    Parameters
    ----------
    record
        The record.
    criteria
        The criteria.
    path
        The file of the baseline.

    Raises
    ------
    InputError
        If something is missing.
    """
    for criterion in criteria:
        if not record.is_timed:
            problem = f"has no times of {record.method}; --update-baseline --criterion {criterion} adds them"
            raise InputError(str(path), problem)
        if criterion == "integral" and not all(line.times and line.times.integrals for line in record.lines.values()):
            problem = f"has no primal integrals of {record.method}, because it reports no progress (on_progress)"
            raise InputError(str(path), problem)


def times_of(rows: Sequence[Row], judged: JudgedInstance, *, with_integrals: bool) -> Times:
    """Return what a baseline stores about the times of a method on one instance.

    Parameters
    ----------
    rows
        The runs, one for each seed; all have homes.
    judged
        The instance. Without a bound, gaps are measured to the least cost of the runs.
    with_integrals
        Whether the method reports progress, so that primal integrals say something about it.

    Returns
    -------
    Times
        The times.
    """
    least = min(row.objective for row in rows if row.objective is not None)
    reference = least if judged.bound is None else judged.bound
    seconds = tuple(row.cpu_seconds for row in rows)
    horizon = HORIZON * max(seconds)
    integrals = tuple(primal_integral(row, reference, horizon) for row in rows) if with_integrals else ()
    return Times(seconds, integrals, horizon, reference)


def timed_comparisons(
    method: str, record: Record, measured: MethodRuns, seconds: Mapping[str, float], criteria: Sequence[Criterion]
) -> list[Timed]:
    """Pair the times and integrals of a record with those of the current runs.

    Parameters
    ----------
    method
        The selector of the current runs.
    record
        The record.
    measured
        The current runs. Instances with a failed run are left out.
    seconds
        The processor time of the reference computations during these runs.
    criteria
        The criteria.

    Returns
    -------
    list of Timed
        One for each criterion.
    """
    if not criteria:
        return []
    speed = speed_change(record.reference_seconds, seconds)
    return [Timed(method, name, _pairs(record, measured, speed, name), speed) for name in criteria]


def _pairs(record: Record, measured: MethodRuns, speed: SpeedChange, criterion: Criterion) -> dict[str, Pairs]:
    pairs = {}
    for name, rows in measured.complete.items():
        times = record.lines[name].times
        if times is None or statistics.fmean(times.seconds) < LEAST_SECONDS:
            continue
        if criterion == "time":
            before, now = times.seconds, [row.cpu_seconds for row in rows]
        else:
            horizon = times.horizon * math.exp(speed.log)
            before, now = times.integrals, [primal_integral(row, times.reference, horizon) for row in rows]
        if any(before) and any(now):
            pairs[name] = Pairs(before, now)
    return pairs
