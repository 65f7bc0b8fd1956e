"""The incumbent and the lower bound of a run: the one place where the claims of a solver are checked.

A new exact method creates an :class:`Incumbent`, passes the assignments and the lower bounds of its solver to it, and
returns the result of :meth:`Incumbent.solution`.
"""

import math
import time
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from relocbench.formulations.linearisation import linearise
from relocbench.formulations.scaling import NOTHING, Negligible, ScaledModel, scale
from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Progress, Solution, report

# A lower bound within this distance below a verified cost, relative to the cost, proves optimality. A lower bound
# further than this above a verified cost is an error of the model or of the solver.
TOLERANCE = 1e-6
# A solver cannot reliably tell a coefficient from 0 that is below this multiple of its tolerance. With coefficients of
# 4·10⁻⁷ and a tolerance of 10⁻⁹, HiGHS has reported a false optimum.
LEAST_COEFFICIENT = 1000.0
# Where the tolerances of a solver do not support a proof, its bounds are reduced by this multiple of its error. The
# error is an estimate, and presolve may enlarge it.
ERROR_MARGIN = 100.0


class OutOfTimeError(Exception):
    """The time limit was reached before a model was built or a step was complete."""


def slack(cost: float, tolerance: float = TOLERANCE) -> float:
    """Return the largest difference between a cost and a solver's value that counts as equal.

    Parameters
    ----------
    cost
        The cost.
    tolerance
        The tolerance, relative to the cost.

    Returns
    -------
    float
        The difference; 0 for a cost of 0.
    """
    return tolerance * abs(cost)


class Incumbent:
    """The best homes found (the incumbent) and the best lower bound claimed, with a clock that starts at construction.

    The evaluator computes the cost of every assignment. The objective value that a solver reports is not used.

    Parameters
    ----------
    instance
        The problem.
    start
        The initial homes; None starts from the nearest servers.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the last two improves.

    Attributes
    ----------
    model
        The scaled model that is being solved. :meth:`scaled_models` sets it.
    error
        What the tolerances of the solver can do to a bound of this model, in the unit of the instance. A method with a
        floating-point solver sets it.
    """

    def __init__(self, instance: Instance, start: npt.ArrayLike | None, on_progress: Progress | None) -> None:
        self.instance = instance
        self.begin = time.perf_counter()
        self.bound = -math.inf
        self.model: ScaledModel | None = None
        self.error = 0.0
        self.trace: list[tuple[float, float, float]] = []
        self._on_progress = on_progress
        self.home: IntArray = nearest_server(instance) if start is None else checked_home(instance, start)
        self.cost = evaluate(instance, self.home).objective
        self._record()

    @property
    def seconds(self) -> float:
        """The seconds since the start."""
        return time.perf_counter() - self.begin

    @property
    def cutoff(self) -> float:
        """An upper limit on the cost of improving assignments; slightly above the best cost, because solvers round."""
        return self.cost + slack(self.cost)

    def scaled_models(self, negligible: Negligible = NOTHING) -> Iterator[ScaledModel]:
        """Yield the models to solve, one after the other, until the incumbent is proved optimal.

        A further model is yielded only after a complete search that did not prove the incumbent optimal, if it can
        prove more. A method that stops at its time limit leaves the loop. An incumbent of cost 0 needs no model.

        Parameters
        ----------
        negligible
            Which shares ``θ`` count as 0.

        Yields
        ------
        ScaledModel
            The scaled coefficients of the instance.
        """
        model = None
        if self.cost > 0:
            model = scale(linearise(self.instance), self.cost, negligible=negligible)
        while model is not None:
            self.model = model  # the error stays that of the bound so far, until the method sets the new one
            yield model
            model = None if self.proved else model.refined(self.cost)

    @property
    def model_cutoff(self) -> float:
        """The cut-off in units of the scaled model; no improving assignment has a larger objective there."""
        assert self.model is not None
        return self.model.to_model(self.cutoff) + self.model.loss

    def raise_model_bound(self, bound: float) -> None:
        """Record a lower bound on the objective of the scaled model.

        Parameters
        ----------
        bound
            The lower bound in units of the model. It is reduced by what the scaling may have lost and by the error of
            the solver, and by a multiple of this error where it is not negligible beside the cost.
        """
        self.raise_bound(self._bound_of(bound))

    def raise_model_bound_of_better(self, bound: float) -> None:
        """Record a lower bound, in units of the model, that holds for all assignments better than the incumbent.

        Parameters
        ----------
        bound
            The lower bound, as for :meth:`raise_bound_of_better`.
        """
        self.raise_bound_of_better(self._bound_of(bound))

    @property
    def _reduction(self) -> float:
        """How far the bound of an exact solver may be below the optimum, because of the scaling and the error."""
        if self.model is None:
            return 0.0
        exact = self.supported and self.model.complete
        return self.model.to_cost(self.model.loss) + self.error if exact else math.inf

    def _bound_of(self, bound: float) -> float:
        assert self.model is not None
        return self.model.to_cost(bound - self.model.loss) - self.error * (1.0 if self.supported else ERROR_MARGIN)

    @property
    def supported(self) -> bool:
        """Whether the tolerances of the solver are small enough, beside the cost, to support a proof."""
        return self.error <= slack(self.cost)

    def check_coefficients(self, coefficients: npt.ArrayLike, tolerance: float) -> None:
        """Do not trust the bounds of a model with a coefficient that the solver cannot reliably tell from 0.

        Solvers multiply rows in presolve and in cuts, and remove small coefficients without a word. A limit that such a
        coefficient expresses is then lost.

        Parameters
        ----------
        coefficients
            The coefficients of the constraints.
        tolerance
            The tolerance of the solver.
        """
        sizes = np.abs(np.asarray(coefficients, np.float64))
        if sizes[sizes > 0].min(initial=1.0) < LEAST_COEFFICIENT * tolerance:
            self.error = math.inf

    def offer(self, home: npt.ArrayLike) -> float:
        """Evaluate an assignment, and make it the incumbent if it is better.

        Parameters
        ----------
        home
            The assignment.

        Returns
        -------
        float
            Its cost.
        """
        homes = checked_home(self.instance, home)
        cost = evaluate(self.instance, homes).objective
        if cost < self.cost:
            self.home, self.cost = homes, cost
            self._record()
        return cost

    def offer_shares(self, shares: npt.ArrayLike) -> float:
        """Round a solver's ``x`` to an assignment, and offer it.

        Parameters
        ----------
        shares
            ``x`` as an ``M×L`` array. It need not be integral: the largest entry of a row is the home.

        Returns
        -------
        float
            The cost of the assignment.
        """
        return self.offer(np.asarray(shares).argmax(axis=1))

    @property
    def proved(self) -> bool:
        """Whether the lower bound proves that the incumbent is optimal."""
        return self.closes(self.bound)

    def closes(self, bound: float) -> bool:
        """Return whether a lower bound excludes every assignment better than the incumbent.

        Parameters
        ----------
        bound
            The lower bound, for example of a node.

        Returns
        -------
        bool
            Whether the bound is within the tolerance of the cost of the incumbent, or above it.
        """
        return self.cost == 0 or bound >= self.cost - slack(self.cost)

    def raise_bound_of_better(self, bound: float) -> None:
        """Record a lower bound that holds for all assignments better than the incumbent.

        Parameters
        ----------
        bound
            The lower bound. The other assignments cost at least as much as the incumbent, so that the smaller of the
            two is a lower bound for all assignments.
        """
        self.raise_bound(min(bound, self.cost))

    def raise_bound(self, bound: float) -> None:
        """Record a lower bound that the solver claims.

        Parameters
        ----------
        bound
            The lower bound. It is ignored if it is weaker than the present one or not finite.
        """
        if math.isfinite(bound) and bound > self.bound:
            self.bound = bound
            self._record()

    def solution(
        self, finished: bool, facts: Mapping[str, float] | None = None, unfinished: str = "time_limit"
    ) -> Solution:
        """Check the lower bound against the exact cost, and return the result of the run.

        Parameters
        ----------
        finished
            Whether the solver reports that its search is complete, rather than stopped by the time limit.
        facts
            The size of the model and similar numbers, by name.
        unfinished
            The status of a search that is not complete: ``time_limit``, or ``feasible`` if the solver gave up.

        Returns
        -------
        Solution
            The incumbent with its lower bound. It is ``optimal`` if the two agree within the tolerance and the
            tolerances of the solver support this, ``claimed`` if the search is complete but the proof is not supported,
            and ``unfinished`` otherwise.

        Raises
        ------
        ArithmeticError
            If the lower bound is above the exact cost of the incumbent, or if the solver reports a complete search
            although its lower bound is below that cost, where the tolerances of the solver do not explain this.
        """
        cost = float(evaluate_exact(self.instance, self.home).objective)
        if cost == 0:
            self.bound = 0.0  # no delay is negative, so no assignment costs less
        elif self.bound > cost + slack(cost):
            raise ArithmeticError(f"the lower bound {self.bound!r} is above the cost {cost!r} of an assignment")
        closed = self.bound >= cost - slack(cost)
        if finished and not closed and self.bound + self._reduction < cost - slack(cost):
            raise ArithmeticError(
                f"the solver reports an optimum, but the cost is {cost!r} and the lower bound {self.bound!r}"
            )
        proved = closed and (self.supported or cost == 0)
        return Solution(
            self.home,
            bound=min(self.bound, cost),
            status="optimal" if proved else "claimed" if finished or closed else unfinished,
            trace=tuple(self.trace),
            facts=dict(facts or {}),
        )

    def _record(self) -> None:
        point = (self.seconds, self.cost, min(self.bound, self.cost))
        self.trace.append(point)
        report(self._on_progress, self.home, point)
