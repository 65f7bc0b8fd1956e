"""Run a method on an instance and let the evaluator say what came out."""

import math
import time
from dataclasses import dataclass

from instances.evaluation import Evaluation, evaluate
from instances.instance import Instance
from instances.solution import Solution
from instances.solution_file import StoredSolution
from relocbench.methods import Selector, select

# A bound may exceed a verified cost by rounding, never by more.
ROUNDING = 1e-9


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


def solve(instance: Instance, method: str | Selector, *, seed: int = 0, time_limit: float = 60.0) -> Result:
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
        Seconds a method may take; methods that need no time ignore it.

    Raises
    ------
    InputError
        If there is no such method, or what it returned is no assignment.
    ArithmeticError
        If the method claims a bound above the cost of its own assignment.
    """
    selector = select(method) if isinstance(method, str) else method
    function = selector.method.load()
    begin = time.perf_counter()
    solution = function(instance, seed=seed, time_limit=time_limit, **selector.settings)
    seconds = time.perf_counter() - begin
    evaluation = evaluate(instance, solution.home)
    if solution.bound > evaluation.objective * (1 + ROUNDING):
        raise ArithmeticError(f"{selector} claims the bound {solution.bound}, its own cost is {evaluation.objective}")
    return Result(instance, selector, seed, solution, evaluation, seconds)
