"""Run a method on an instance and let the evaluator say what came out."""

import functools
import math
import time
from dataclasses import dataclass
from typing import Any

from instances.evaluation import Evaluation, evaluate
from instances.families import family
from instances.instance import Instance
from instances.solution import Progress, Solution
from instances.solution_file import STATUSES, StoredSolution
from relocbench.methods import Selector, select

# A bound may exceed a verified cost by rounding, never by more.
ROUNDING = 1e-9


def exceeds(claim: float, cost: float) -> bool:
    """Tell whether a claimed value is above a computed cost by more than rounding."""
    return claim > cost + ROUNDING * max(1.0, abs(cost))


@dataclass(frozen=True, eq=False)
class Result:
    """A solution, verified.

    Attributes
    ----------
    selector, seed
        What made it.
    solution
        What the method returned.
    evaluation
        What it costs, by the one evaluator.
    seconds
        Wall-clock time of the method.
    """

    instance: Instance
    selector: Selector
    seed: int
    solution: Solution
    evaluation: Evaluation
    seconds: float

    def stored(self) -> StoredSolution:
        """Return what goes into a solution file."""
        return StoredSolution(
            instance=self.instance.hash,
            method=str(self.selector),
            seed=self.seed,
            status=self.solution.status,
            home=self.solution.home,
            objective=self.evaluation.objective,
            bound=self.solution.bound if math.isfinite(self.solution.bound) else None,
        )


def solve(
    instance: Instance,
    method: str | Selector,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    on_progress: Progress | None = None,
) -> Result:
    """Find homes with a method.

    Parameters
    ----------
    instance
        The problem.
    method
        A selector, such as ``nearest``.
    seed
        The same seed gives the same homes.
    time_limit
        Seconds a method may take; methods that need no time ignore it. A start gets up to half of them. Loading and
        compiling, once in a process, do not count.
    on_progress
        Called with (seconds, incumbent, bound) whenever a method that searches gets better.

    Raises
    ------
    InputError
        If there is no such method, or what it returned is no assignment.
    ArithmeticError
        If the method claims a bound above the cost of its own assignment.
    """
    selector = select(method) if isinstance(method, str) else method
    function = selector.method.load()
    _warm_up(str(selector))
    begin = time.perf_counter()
    more: dict[str, Any] = dict(selector.settings)
    if selector.start is not None:
        more["start"] = solve(instance, selector.start, seed=seed, time_limit=time_limit / 2).solution.home
    if on_progress is not None and selector.method.takes("on_progress"):
        more["on_progress"] = on_progress
    left = max(0.0, time_limit - (time.perf_counter() - begin))
    solution = function(instance, seed=seed, time_limit=left, **more)
    seconds = time.perf_counter() - begin
    evaluation = evaluate(instance, solution.home)
    if solution.status not in STATUSES:
        raise ArithmeticError(f"{selector} ended as {solution.status!r}, which is none of {', '.join(STATUSES)}")
    if exceeds(solution.bound, evaluation.objective):
        raise ArithmeticError(f"{selector} claims the bound {solution.bound}, its own cost is {evaluation.objective}")
    return Result(instance, selector, seed, solution, evaluation, seconds)


@functools.cache
def _warm_up(selector: str) -> None:
    """Run a method on a toy, so that what it loads and compiles is there before the clock runs."""
    chosen = select(selector)
    if chosen.start is not None:
        _warm_up(str(chosen.start))
    toy = family("preliminary").cells({"storage": 7.0})[0].build(0)
    chosen.method.load()(toy, seed=0, time_limit=0.01, **chosen.settings)
