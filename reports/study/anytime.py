"""Progress over time: the excess of the incumbent at each moment of a run, and the time to reach a target."""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.instances.gap import excess
from relocbench.reports.study.excess import Measurement
from relocbench.runs.run_store import Row

# The largest excesses for which the time to reach them is reported.
TARGETS = (0.05, 0.01, 0.001)
# A curve has at most this many steps; with more, a page would become large and look the same.
MOST_STEPS = 300
# A logarithmic axis of time begins here; the clock of a run is not more exact.
SHORTEST = 1e-4


@dataclass(frozen=True)
class Course:
    """The excess of the incumbent of one run over time.

    Attributes
    ----------
    group, selector, seed, hash
        The run: its group, method, seed and the hash of its instance.
    seconds, excess
        The moments at which the incumbent changes, and its excess from then on. The last entry is the end of the run
        with the excess of the homes that it returned. Before the first entry the run has no homes. A run without homes
        has no entry, and reaches no target.
    reported
        Whether the method reported progress. Otherwise the only entry is the end of the run.
    """

    group: str
    selector: str
    seed: int
    hash: str
    seconds: tuple[float, ...]
    excess: tuple[float, ...]
    reported: bool

    def time_to(self, target: float) -> float:
        """Return when the excess first is at most a target.

        Parameters
        ----------
        target
            The excess to reach.

        Returns
        -------
        float
            The seconds since the start; infinite if the run does not reach the target.
        """
        reached = (at for at, value in zip(self.seconds, self.excess, strict=True) if value <= target)
        return next(reached, math.inf)


def courses(measurements: Sequence[Measurement], rows: Sequence[Row]) -> list[Course]:
    """Return the progress of runs.

    Parameters
    ----------
    measurements
        The excess of each run.
    rows
        The same runs in the same order, with their traces.

    Returns
    -------
    list of Course
        One for each run on an instance with a reference; without entries for a run without homes.
    """
    return [_course(one, row) for one, row in zip(measurements, rows, strict=True) if one.reference]


def incumbents(row: Row) -> Iterator[tuple[float, float]]:
    """Return the incumbents that a method reported during a run.

    Parameters
    ----------
    row
        The run, which has homes.

    Yields
    ------
    tuple
        The seconds since the start, within the run, and the cost. The evaluator has verified the final objective alone.
        A method that reports a better incumbent than it returns gets no credit for it, and neither for a clock that
        runs past the end.
    """
    assert row.objective is not None
    for at, incumbent, _ in row.trace:
        if math.isfinite(incumbent) and math.isfinite(at):
            yield min(max(at, 0.0), row.seconds), max(incumbent, row.objective)


def _course(one: Measurement, row: Row) -> Course:
    assert one.reference is not None
    if one.excess is None or one.objective is None:
        return Course(one.group, one.selector, one.seed, one.hash, (), (), False)
    steps: list[tuple[float, float]] = []
    reported = False
    for at, cost in incumbents(row):
        reported = True
        value = excess(cost, one.reference)
        if value is not None and (not steps or value < steps[-1][1]):
            steps.append((at, value))
    steps.append((row.seconds, one.excess))
    seconds, values = zip(*steps, strict=True)
    # A clock that goes backwards would give a curve that does.
    forward = np.maximum.accumulate(seconds).tolist()
    return Course(one.group, one.selector, one.seed, one.hash, tuple(forward), values, reported)


@dataclass(frozen=True)
class Curve:
    """The mean excess of the incumbents of one method over time.

    Attributes
    ----------
    selector
        The method.
    seconds, excess
        The moments, and the mean excess from each of them on. The first moment is when all runs have homes.
    runs
        The number of runs.
    reported
        Whether the method reported progress; otherwise there is one point, at the median time of a run.
    """

    selector: str
    seconds: list[float]
    excess: list[float]
    runs: int
    reported: bool


def curves(found: Sequence[Course]) -> list[Curve]:
    """Return the curve of each method.

    Parameters
    ----------
    found
        The runs of one group.

    Returns
    -------
    list of Curve
        One for each method, in the order in which methods first appear. As in the tables, the seeds of an instance are
        averaged first. A run that has ended keeps its last excess. Runs without homes are left out.
    """
    by_method: dict[str, list[Course]] = {}
    for one in found:
        if one.seconds:
            by_method.setdefault(one.selector, []).append(one)
    return [_curve(selector, runs) for selector, runs in by_method.items()]


def _curve(selector: str, runs: Sequence[Course]) -> Curve:
    if not all(run.reported for run in runs):
        mean = float(_mean_over_instances(runs, np.array([[run.excess[-1]] for run in runs]))[0])
        return Curve(selector, [statistics.median(run.seconds[-1] for run in runs)], [mean], len(runs), False)
    begin = max(run.seconds[0] for run in runs)
    times = np.unique([begin, *(at for run in runs for at in run.seconds if at > begin)])
    if len(times) > MOST_STEPS:
        wanted = np.geomspace(max(times[0], SHORTEST), times[-1], MOST_STEPS)
        times = np.unique([times[0], *times[np.minimum(np.searchsorted(times, wanted), len(times) - 1)]])
    values = np.array(
        [np.array(run.excess)[np.searchsorted(run.seconds, times, side="right") - 1] for run in runs], dtype=float
    )
    return Curve(selector, times.tolist(), _mean_over_instances(runs, values).tolist(), len(runs), True)


def _mean_over_instances(runs: Sequence[Course], values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the mean over instances of the mean over the seeds of an instance; ``values`` has one row for each run."""
    rows: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        rows.setdefault(run.hash, []).append(number)
    mean: npt.NDArray[np.float64] = np.mean([values[numbers].mean(axis=0) for numbers in rows.values()], axis=0)
    return mean


@dataclass(frozen=True)
class TimeToTarget:
    """How often and how fast one method reaches a target.

    Attributes
    ----------
    group, selector
        The group and the method.
    target
        The excess to reach.
    runs, reached
        The number of runs, and of those that reach the target.
    seconds
        The median time to reach it, where a run that does not reach it counts as longer than all others; None if at
        most half of the runs reach it.
    """

    group: str
    selector: str
    target: float
    runs: int
    reached: int
    seconds: float | None


def times_to_targets(found: Iterable[Course], targets: Sequence[float] = TARGETS) -> list[TimeToTarget]:
    """Return how often and how fast each method reaches each target.

    Parameters
    ----------
    found
        The runs.
    targets
        The excesses to reach.

    Returns
    -------
    list of TimeToTarget
        For each group and method, one for each target.
    """
    groups: dict[str, dict[str, list[Course]]] = {}
    for one in found:
        groups.setdefault(one.group, {}).setdefault(one.selector, []).append(one)
    return [
        _time_to(group, selector, runs, target)
        for group, methods in groups.items()
        for selector, runs in methods.items()
        for target in targets
    ]


def _time_to(group: str, selector: str, runs: Sequence[Course], target: float) -> TimeToTarget:
    times = [run.time_to(target) for run in runs]
    reached, median = sum(map(math.isfinite, times)), statistics.median(times)
    return TimeToTarget(group, selector, target, len(runs), reached, median if math.isfinite(median) else None)
