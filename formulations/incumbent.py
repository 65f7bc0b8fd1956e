"""What a run of a solver has shown: the one place where claims of solvers become claims of ours."""

import math
import time
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution

# Solvers compute with tolerances around 1e-7. A bound this close below a verified cost (relative, from 1 up) proves
# optimality; a bound further than this above one is an error of the model or of the solver.
TOLERANCE = 1e-6


class OutOfTimeError(Exception):
    """The deadline came before what was to be done was done."""


def slack(cost: float, tolerance: float = TOLERANCE) -> float:
    """Return by how much a solver's number may be off a cost."""
    return tolerance * max(1.0, abs(cost))


def report(on_progress: Progress | None, home: IntArray, point: tuple[float, float, float]) -> None:
    """Tell whoever watches of (seconds, incumbent, bound).

    Who watches from another process wants the homes as well, in case this one does not live to return them.
    """
    if on_progress is None:
        return
    keep = getattr(on_progress, "keep", None)
    if keep is not None:
        keep(home)
    on_progress(*point)


class Incumbent:
    """The best homes seen and the best bound claimed, with the clock running since construction.

    Every assignment is costed by the evaluator; what the solver believes it costs is not asked.

    Parameters
    ----------
    instance
        The problem.
    start
        Homes to start from; without them the nearest servers stand in until the solver has found something.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the two gets better.
    """

    def __init__(self, instance: Instance, start: npt.ArrayLike | None, on_progress: Progress | None) -> None:
        self.instance = instance
        self.begin = time.perf_counter()
        self.bound = -math.inf
        self.trace: list[tuple[float, float, float]] = []
        self._on_progress = on_progress
        self.home: IntArray = nearest_server(instance) if start is None else checked_home(instance, start)
        self.cost = evaluate(instance, self.home).objective
        self._record()

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.perf_counter() - self.begin

    @property
    def cutoff(self) -> float:
        """A value that no assignment worth finding exceeds; a little above the best cost, as solvers round."""
        return self.cost + slack(self.cost)

    def offer(self, home: npt.ArrayLike) -> float:
        """Take note of an assignment and return its cost."""
        homes = checked_home(self.instance, home)
        cost = evaluate(self.instance, homes).objective
        if cost < self.cost:
            self.home, self.cost = homes, cost
            self._record()
        return cost

    def offer_shares(self, shares: npt.ArrayLike) -> float:
        """Take note of the assignment nearest to a solver's ``x`` (``M×L``, perhaps not quite integral)."""
        return self.offer(np.asarray(shares).argmax(axis=1))

    @property
    def proved(self) -> bool:
        """Whether the bound shows that nothing is better than the best homes."""
        return self.closes(self.bound)

    def closes(self, bound: float) -> bool:
        """Tell whether nothing that costs at least this much is better than the best homes."""
        return bound >= self.cost - slack(self.cost)

    def raise_bound_of_better(self, bound: float) -> None:
        """Take note of a lower bound on all assignments better than the best homes; the others cost as much."""
        self.raise_bound(min(bound, self.cost))

    def raise_bound(self, bound: float) -> None:
        """Take note of a lower bound that the solver claims; weaker ones and nonsense (nan, inf) are passed over."""
        if math.isfinite(bound) and bound > self.bound:
            self.bound = bound
            self._record()

    def solution(self, finished: bool, facts: Mapping[str, float] | None = None) -> Solution:
        """Return what was shown.

        Parameters
        ----------
        finished
            Whether the solver says it has looked at everything (or just ran out of time).
        facts
            Size of the model and the like, by name.

        Raises
        ------
        ArithmeticError
            If the claimed bound is above the exact cost of an assignment, or the solver says it is finished though its
            bound is not at the best cost: one of them is wrong.
        """
        cost = float(evaluate_exact(self.instance, self.home).objective)
        if self.bound > cost + slack(cost):
            raise ArithmeticError(f"the bound {self.bound!r} is above the cost {cost!r} of an assignment")
        optimal = self.bound >= cost - slack(cost)
        if finished and not optimal:
            raise ArithmeticError(f"said to be optimal with the cost {cost!r} and the bound {self.bound!r}")
        return Solution(
            self.home,
            bound=min(self.bound, cost),
            status="optimal" if optimal else "time_limit",
            trace=tuple(self.trace),
            facts=dict(facts or {}),
        )

    def _record(self) -> None:
        point = (self.seconds, self.cost, min(self.bound, self.cost))
        self.trace.append(point)
        report(self._on_progress, self.home, point)
