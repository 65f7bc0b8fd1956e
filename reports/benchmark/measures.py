"""The measures of a benchmark: shifted geometric means, profiles, and integrals over time."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.reports.benchmark.assessment import AssessedRun, Problem
from relocbench.runs.run_store import Row

# The shift of geometric means of times, in seconds.
SHIFT = 10.0
# Shorter times, in seconds, count as this: their differences are noise of the machine.
SHORTEST = 0.01

# The ascending x values and the y values of a curve.
Curve = tuple[list[float], list[float]]


def solved_by_all(runs: Sequence[AssessedRun], methods: Sequence[str]) -> set[Problem]:
    """Return the problems that every method has proved.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.

    Returns
    -------
    set
        The problems.
    """
    proved = [{run.problem for run in runs if run.row.selector == method and run.proved} for method in methods]
    return set.intersection(*proved) if proved else set()


def performance_profile(runs: Sequence[AssessedRun], methods: Sequence[str]) -> dict[str, Curve]:
    """Return the performance profile of each method (Dolan and Moré, 2002).

    Parameters
    ----------
    runs
        The runs. Every problem counts, also those that no method proved.
    methods
        The selectors of the methods.

    Returns
    -------
    dict
        For each method, the share of problems proved within a multiple of the fastest proof.
    """
    seconds = {
        method: {
            run.problem: max(run.row.seconds, SHORTEST) for run in runs if run.row.selector == method and run.proved
        }
        for method in methods
    }
    problems = {run.problem for run in runs}
    fastest = {
        problem: min(times)
        for problem in problems
        if (times := [taken[problem] for taken in seconds.values() if problem in taken])
    }
    return {
        method: _shares([time / fastest[problem] for problem, time in taken.items()], len(problems))
        for method, taken in seconds.items()
    }


def excess_profile(runs: Sequence[AssessedRun], methods: Sequence[str]) -> dict[str, Curve]:
    """Return the excess profile of each method.

    Parameters
    ----------
    runs
        The runs.
    methods
        The selectors of the methods.

    Returns
    -------
    dict
        For each method, the share of problems with at most a given excess over the best known objective.
    """
    problems = {run.problem for run in runs}
    return {
        method: _shares(
            [run.excess for run in runs if run.row.selector == method and run.excess is not None], len(problems)
        )
        for method in methods
    }


def _shares(values: Sequence[float], total: int) -> Curve:
    ordered = sorted(value for value in values if math.isfinite(value))
    return ordered, [(number + 1) / total for number in range(len(ordered))]


def primal_dual_gap(incumbent: float, bound: float) -> float:
    """Return the primal–dual gap, which is defined at every moment of a run.

    Parameters
    ----------
    incumbent
        The objective of the incumbent; infinite if there is none.
    bound
        The lower bound; ``-inf`` if there is none.

    Returns
    -------
    float
        ``(incumbent - bound) / max(|incumbent|, |bound|)``, which equals :func:`instances.gap.gap` for non-negative
        numbers, and 1 while one of the two is missing.
    """
    if not (math.isfinite(incumbent) and math.isfinite(bound)):
        return 1.0
    if incumbent <= bound:
        return 0.0
    if incumbent * bound < 0:
        return 1.0
    return (incumbent - bound) / max(abs(incumbent), abs(bound))


@dataclass(frozen=True)
class Trajectory:
    """The incumbent and the bound of a run over time, as step functions.

    Attributes
    ----------
    seconds
        Ascending times.
    incumbent, bound
        The objective of the incumbent and the lower bound from each of these times on.
    """

    seconds: list[float]
    incumbent: list[float]
    bound: list[float]

    def gaps(self, gap: Callable[[float, float], float]) -> Curve:
        """Return a gap over time.

        Parameters
        ----------
        gap
            A function of the incumbent and the bound.

        Returns
        -------
        Curve
            A step function that starts with 1 at 0 s.
        """
        found = [gap(objective, bound) for objective, bound in zip(self.incumbent, self.bound, strict=True)]
        return [0.0, *self.seconds], [1.0, *found]


def trajectory(row: Row) -> Trajectory:
    """Return the incumbents and bounds of a run over time.

    Parameters
    ----------
    row
        The run.

    Returns
    -------
    Trajectory
        Both never get worse over time. It ends with the verified result, at the time limit at the latest.
    """
    last = (row.seconds, _or(row.objective, math.inf), _or(row.bound, -math.inf))
    points = sorted([*row.trace, last], key=lambda point: point[0])
    seconds, incumbents, bounds = [], [], []
    incumbent, bound = math.inf, -math.inf
    for second, objective, claimed in points:
        # Comparisons with nan are false, so nan is skipped.
        incumbent = objective if objective < incumbent else incumbent
        bound = claimed if claimed > bound else bound
        seconds.append(min(max(second, 0.0), row.time_limit))
        incumbents.append(incumbent)
        bounds.append(bound)
    return Trajectory(seconds, incumbents, bounds)


def integral(curve: Curve, horizon: float) -> float:
    """Return the integral of a step function.

    Parameters
    ----------
    curve
        The step function; its first time is 0.
    horizon
        The end of the integral.

    Returns
    -------
    float
        The integral from 0 to the horizon.
    """
    seconds, values = curve
    ends = [*seconds[1:], horizon]
    return math.fsum(
        value * (min(end, horizon) - min(begin, horizon))
        for begin, end, value in zip(seconds, ends, values, strict=True)
    )


def gap_curve(run: AssessedRun) -> Curve:
    """Return the primal–dual gap of a run over time.

    Parameters
    ----------
    run
        The run.

    Returns
    -------
    Curve
        A step function. It is 1 throughout for wrong answers, errors and refusals.
    """
    if run.outcome in ("wrong", "error", "refused"):
        return [0.0], [1.0]
    return trajectory(run.row).gaps(primal_dual_gap)


def primal_dual_integral(run: AssessedRun) -> float:
    """Return the primal–dual integral of a run.

    Parameters
    ----------
    run
        The run.

    Returns
    -------
    float
        The integral of the primal–dual gap over the time limit, in seconds.
    """
    return integral(gap_curve(run), run.row.time_limit)


def primal_integral(run: AssessedRun) -> float | None:
    """Return the primal integral of a run.

    Parameters
    ----------
    run
        The run.

    Returns
    -------
    float or None
        The integral of the gap between incumbent and best known objective over the time limit, in seconds; None if no
        homes are known.
    """
    if run.best is None:
        return None
    best = run.best
    gaps = trajectory(run.row).gaps(lambda objective, _: primal_dual_gap(objective, best))
    return integral(gaps, run.row.time_limit)


def mean_curve(curves: Sequence[Curve], horizon: float, points: int = 160) -> Curve:
    """Return the mean of step functions.

    Parameters
    ----------
    curves
        The step functions.
    horizon
        The last time.
    points
        The number of times, evenly spaced on a logarithmic scale.

    Returns
    -------
    Curve
        The times and the mean values.
    """
    times = np.geomspace(SHORTEST, max(horizon, 2 * SHORTEST), points)
    total = np.zeros(points)
    for seconds, values in curves:
        total += np.array(values)[np.searchsorted(seconds, times, side="right") - 1]
    return times.tolist(), (total / max(len(curves), 1)).tolist()


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the finite values.

    Parameters
    ----------
    values
        Values, some of which may be missing or infinite.

    Returns
    -------
    float or None
        The mean; None if there is no finite value.
    """
    found = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(found) / len(found) if found else None


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are not missing.

    Parameters
    ----------
    values
        Values, some of which may be missing.

    Returns
    -------
    float or None
        The median; None if all values are missing.
    """
    found = [value for value in values if value is not None]
    return float(np.median(found)) if found else None


def outcome_counts(runs: Sequence[AssessedRun]) -> Mapping[str, int]:
    """Count the outcomes of runs.

    Parameters
    ----------
    runs
        The runs.

    Returns
    -------
    Mapping
        The number of runs for each outcome that occurs.
    """
    found: dict[str, int] = {}
    for run in runs:
        found[run.outcome] = found.get(run.outcome, 0) + 1
    return found


def _or(value: float | None, default: float) -> float:
    return default if value is None else value
