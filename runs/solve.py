"""Run a method on an instance and let the evaluator say what came out."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, evaluate
from relocbench.instances.files.solution_file import STATUSES, StoredSolution
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress, Solution
from relocbench.runs.selectors import Selector, select

# A bound may exceed a verified cost by rounding, never by more.
ROUNDING = 1e-9
# Which methods, with which settings, have been run in this process.
_WARM: set[str] = set()


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
    log: bool = False,
    on_ready: Callable[[], None] | None = None,
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
    log
        Whether solvers may print what they do.
    on_ready
        Called when everything is loaded and compiled, and the clock starts.

    Raises
    ------
    InputError
        If there is no such method, it is not available here, or what it returned is no assignment.
    ArithmeticError
        If the method claims a bound above the cost of its own assignment.
    """
    selector = select(method) if isinstance(method, str) else method
    function = selector.method.load()
    if reason := selector.method.unavailable():
        raise InputError(f"method {selector.method.name}", reason)
    warm_up(selector)
    if on_ready is not None:
        on_ready()
    begin = time.perf_counter()
    more: dict[str, Any] = dict(selector.settings)
    if selector.start is not None:
        more["start"] = solve(instance, selector.start, seed=seed, time_limit=time_limit / 2).solution.home
    if on_progress is not None and selector.method.takes("on_progress"):
        more["on_progress"] = on_progress
    if log and selector.method.takes("log"):
        more["log"] = True
    left = max(0.0, time_limit - (time.perf_counter() - begin))
    solution = function(instance, seed=seed, time_limit=left, **more)
    seconds = time.perf_counter() - begin
    evaluation = evaluate(instance, solution.home)
    if solution.status not in STATUSES:
        raise ArithmeticError(f"{selector} ended as {solution.status!r}, which is none of {', '.join(STATUSES)}")
    if exceeds(solution.bound, evaluation.objective):
        raise ArithmeticError(f"{selector} claims the bound {solution.bound}, its own cost is {evaluation.objective}")
    return Result(instance, selector, seed, solution, evaluation, seconds)


def warm_up(selector: str | Selector) -> None:
    """Run a method on a toy, so that what it loads and compiles is there before the clock runs."""
    chosen = select(selector) if isinstance(selector, str) else selector
    if (key := f"{chosen.method.where} {chosen}") in _WARM:
        return
    if chosen.start is not None:
        warm_up(chosen.start)
    if chosen.method.proves == "nothing":
        toy, seconds = family("preliminary").cells({"storage": 7.0})[0].build(0), 0.01
    else:
        # One that is solved before anybody notices, to the end, so that no kernel is left out.
        toy, seconds = family("tiny").cells({"regime": "scarce", "clients": 3, "servers": 2})[0].build(0), 60.0
    try:
        chosen.method.load()(toy, seed=0, time_limit=seconds, **chosen.settings)
    except Exception:
        # Somebody else's method need not like our toy; what is wrong with it shows in the run itself.
        if chosen.method.ours:
            raise
    _WARM.add(key)
