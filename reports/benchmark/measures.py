"""What benchmarks are summed up by: shifted means, profiles, integrals over time."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.reports.benchmark.assessment import Judged, Problem
from relocbench.runs.run_store import Row

SHIFT = 10.0
# Differences between shorter times are the machine's.
SHORTEST = 0.01

Curve = tuple[list[float], list[float]]


def shifted_geometric_mean(values: Iterable[float], shift: float = SHIFT) -> float | None:
    """Return ``exp(mean(log(value + shift))) - shift``; None of nothing."""
    shifted = np.log(np.array(list(values)) + shift)
    return None if not len(shifted) else max(0.0, float(np.exp(shifted.mean())) - shift)


def solved_by_all(runs: Sequence[Judged], methods: Sequence[str]) -> set[Problem]:
    """Return the problems that each of the methods has proved."""
    proved = [{run.problem for run in runs if run.row.selector == method and run.proved} for method in methods]
    return set.intersection(*proved) if proved else set()


def performance_profile(runs: Sequence[Judged], methods: Sequence[str]) -> dict[str, Curve]:
    """Return for each method the share of problems it proved within a multiple of the fastest proof.

    Every problem counts, also those that nobody proved (Dolan and Moré, 2002).
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


def cost_profile(runs: Sequence[Judged], methods: Sequence[str]) -> dict[str, Curve]:
    """Return for each method the share of problems whose best known cost it came as close to as this."""
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
    """Return ``(incumbent - bound) / max(|incumbent|, |bound|)`` between 0 and 1; 1 while one of them is missing."""
    if not (math.isfinite(incumbent) and math.isfinite(bound)):
        return 1.0
    if incumbent <= bound:
        return 0.0
    if incumbent * bound < 0:
        return 1.0
    return (incumbent - bound) / max(abs(incumbent), abs(bound))


@dataclass(frozen=True)
class Course:
    """How a run went: from each of the ascending ``seconds`` on, the incumbent and the bound it had."""

    seconds: list[float]
    incumbent: list[float]
    bound: list[float]

    def gaps(self, gap: Callable[[float, float], float]) -> Curve:
        """Return a gap of incumbent and bound as a step function that begins with 1 at 0 s."""
        found = [gap(cost, bound) for cost, bound in zip(self.incumbent, self.bound, strict=True)]
        return [0.0, *self.seconds], [1.0, *found]


def course(row: Row) -> Course:
    """Return the incumbents and bounds of a run over time, each only ever better, up to the time limit."""
    last = (row.seconds, _or(row.objective, math.inf), _or(row.bound, -math.inf))
    points = sorted([*row.trace, last], key=lambda point: point[0])
    seconds, incumbents, bounds = [], [], []
    incumbent, bound = math.inf, -math.inf
    for second, cost, claimed in points:
        # Nan compares false: it is passed over.
        incumbent = cost if cost < incumbent else incumbent
        bound = claimed if claimed > bound else bound
        seconds.append(min(max(second, 0.0), row.time_limit))
        incumbents.append(incumbent)
        bounds.append(bound)
    return Course(seconds, incumbents, bounds)


def integral(curve: Curve, horizon: float) -> float:
    """Return the integral of a step function from 0 to the horizon."""
    seconds, values = curve
    ends = [*seconds[1:], horizon]
    return math.fsum(
        value * (min(end, horizon) - min(begin, horizon))
        for begin, end, value in zip(seconds, ends, values, strict=True)
    )


def gap_curve(run: Judged) -> Curve:
    """Return the primal–dual gap of a run over time; 1 throughout where its answer is wrong or an error."""
    if run.outcome in ("wrong", "error", "refused"):
        return [0.0], [1.0]
    return course(run.row).gaps(primal_dual_gap)


def primal_dual_integral(run: Judged) -> float:
    """Return the integral of the primal–dual gap over the time limit, in seconds."""
    return integral(gap_curve(run), run.row.time_limit)


def primal_integral(run: Judged) -> float | None:
    """Return the integral of the incumbent's gap to the best cost known over the time limit, in seconds."""
    if run.best is None:
        return None
    best = run.best
    return integral(course(run.row).gaps(lambda cost, _: primal_dual_gap(cost, best)), run.row.time_limit)


def mean_curve(curves: Sequence[Curve], horizon: float, points: int = 160) -> Curve:
    """Return the mean of step functions, at moments that lie evenly on a logarithmic scale up to the horizon."""
    moments = np.geomspace(SHORTEST, max(horizon, 2 * SHORTEST), points)
    total = np.zeros(points)
    for seconds, values in curves:
        total += np.array(values)[np.searchsorted(seconds, moments, side="right") - 1]
    return moments.tolist(), (total / max(len(curves), 1)).tolist()


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is there."""
    found = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(found) / len(found) if found else None


def median(values: Iterable[float | None]) -> float | None:
    """Return the median of what is there."""
    found = [value for value in values if value is not None]
    return float(np.median(found)) if found else None


def counts(runs: Sequence[Judged]) -> Mapping[str, int]:
    """Return how many runs ended how."""
    found: dict[str, int] = {}
    for run in runs:
        found[run.outcome] = found.get(run.outcome, 0) + 1
    return found


def _or(value: float | None, instead: float) -> float:
    return instead if value is None else value
