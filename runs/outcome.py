"""The outcome of a run, with every claim of the method verified by the evaluator."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from relocbench.formulations.incumbent import slack
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, checked_home, evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.solution_file import STATUSES
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray

Point = tuple[float, float, float]
# The error message of a run that was interrupted and whose incumbent was kept.
INTERRUPTED = "interrupted"
# refused: the method does not support the instance or a setting.
# claim: a claim of the method is false.
# raised: the method raised an exception.
# died: the process ended without a result.
# stopped: the process was killed at a limit, or by an interrupt.
Failure = Literal["refused", "claim", "raised", "died", "stopped"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """The verified outcome of one run.

    Attributes
    ----------
    status
        ``optimal``, ``claimed``, ``feasible``, ``time_limit``, ``memory_limit`` or ``error``.
    home
        The best homes known; None if the run ended before it reported any.
    evaluation
        The cost of the homes and the loads of the servers.
    objective
        ``ΣD`` of the homes. Where the run claims a bound, it is the exact value rounded once, because the two are
        compared.
    bound
        The lower bound that the method claims; ``-inf`` without one.
    trace, facts
        As in :class:`instances.solution.Solution`.
    seconds, cpu_seconds
        Time of the method, without loading and compiling.
    peak_memory
        Resident bytes of the process and its children.
    failure, error
        The kind of failure, and one line that describes it; None if the run succeeded.
    """

    status: str
    home: IntArray | None = None
    evaluation: Evaluation | None = None
    objective: float | None = None
    bound: float = -math.inf
    trace: tuple[Point, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    failure: Failure | None = None
    error: str | None = None


def verified(
    instance: Instance,
    *,
    status: str,
    home: Sequence[int] | None,
    bound: float,
    trace: Iterable[Point],
    failure: Failure | None = None,
    error: str | None = None,
    **measured: Any,
) -> Outcome:
    """Verify what a run has reported.

    Parameters
    ----------
    instance
        The problem.
    status, home, bound, trace, failure, error
        What the run reported, as in :class:`Outcome`.
    **measured
        The other fields of :class:`Outcome`.

    Returns
    -------
    Outcome
        The outcome. A false claim turns it into an error that names the two numbers which contradict each other.
    """
    points = tuple(trace)
    evaluation, objective, homes, false_claim = None, None, None, None
    highest = max([bound, *(point[2] for point in points)], key=lambda value: -math.inf if math.isnan(value) else value)
    if bound == -math.inf:
        bound = highest  # a run that was killed has reported its bound only in the progress points
    if home is not None:
        try:
            homes = checked_home(instance, np.asarray(home))
        except InputError as problem:
            false_claim = str(problem)
    if homes is not None:
        evaluation = evaluate(instance, homes)
        has_bound = highest > -math.inf
        objective = float(evaluate_exact(instance, homes).objective) if has_bound else evaluation.objective
        false_claim = _false_claim(status, objective, bound, highest, points)
    elif math.isnan(bound) or bound == math.inf:
        false_claim = f"claims the bound {bound}"
    if status not in STATUSES:
        false_claim = false_claim or f"returned the status {status!r}, expected {', '.join(STATUSES)}"
    if false_claim is not None:
        status, failure = "error", "claim"
        error = false_claim if error is None else f"{false_claim} ({error})"
    return Outcome(
        status=status,
        home=homes,
        evaluation=evaluation,
        objective=objective,
        bound=bound,
        trace=points,
        failure=failure,
        error=error,
        **measured,
    )


def _false_claim(status: str, objective: float, bound: float, highest: float, points: Sequence[Point]) -> str | None:
    """Return the first claim that the objective of the homes refutes; ``highest`` is the highest bound reported."""
    if math.isnan(bound):
        return f"claims the bound {bound!r}, but its own homes cost {objective!r}"
    if highest > objective + slack(objective):
        return f"claims the bound {highest!r}, but its own homes cost {objective!r}"
    if status == "optimal" and bound < objective - slack(objective):
        return f"claims to be optimal with the bound {bound!r}, but its homes cost {objective!r}"
    best = min((point[1] for point in points), default=math.inf)
    if best < objective - slack(objective):
        return f"reported the incumbent {best!r}, but its homes cost {objective!r}"
    return None
