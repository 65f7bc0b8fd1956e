"""What a run says, held against the evaluator."""

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
# refused: the method does not take such an instance or setting. claim: what it says is not so. raised: an exception.
# died: the process ended without an answer. stopped: it had to be ended at a limit.
Failure = Literal["refused", "claim", "raised", "died", "stopped"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """One run, verified.

    Attributes
    ----------
    status
        ``optimal feasible time_limit memory_limit error``.
    home
        The best homes known; None where the run ended before it told any.
    evaluation, objective
        What they cost; the objective is the exact one, rounded once, where a bound is compared with it.
    bound
        The lower bound claimed; ``-inf`` without one.
    trace, facts
        As in :class:`instances.solution.Solution`.
    seconds, cpu_seconds
        Of the method; loading and compiling do not count.
    peak_memory
        Bytes resident, of the process and its children.
    failure, error
        What kind of failure, and one line that says more; None where all went well.
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
    """Return the outcome of a run; a claim that does not hold makes it an error that names the two numbers."""
    points = tuple(trace)
    evaluation, objective, homes, complaint = None, None, None, None
    # A process that was stopped has told its bound only on the way.
    bound = max([bound, *(point[2] for point in points)], key=lambda value: -math.inf if math.isnan(value) else value)
    if home is not None:
        try:
            homes = checked_home(instance, np.asarray(home))
        except InputError as problem:
            complaint = str(problem)
    if homes is not None:
        evaluation = evaluate(instance, homes)
        proves = bound > -math.inf
        objective = float(evaluate_exact(instance, homes).objective) if proves else evaluation.objective
        complaint = _complaint(status, objective, bound, points)
    elif math.isnan(bound) or bound == math.inf:
        complaint = f"claims the bound {bound}"
    if status not in STATUSES:
        complaint = complaint or f"ended as {status!r}, which is none of {', '.join(STATUSES)}"
    if complaint is not None:
        status, failure = "error", "claim"
        error = complaint if error is None else f"{complaint} ({error})"
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


def _complaint(status: str, objective: float, bound: float, points: Sequence[Point]) -> str | None:
    if math.isnan(bound) or bound > objective + slack(objective):
        return f"claims the bound {bound!r}, its own homes cost {objective!r}"
    if status == "optimal" and bound < objective - slack(objective):
        return f"claims to be optimal with the bound {bound!r}, its homes cost {objective!r}"
    best = min((point[1] for point in points), default=math.inf)
    if best < objective - slack(objective):
        return f"reported the incumbent {best!r}, its homes cost {objective!r}"
    return None


def gap(objective: float | None, bound: float | None) -> float | None:
    """Return ``(objective - bound) / objective``, 0 where both are 0; None where one of them is not known."""
    if objective is None or bound is None:
        return None
    if objective <= bound:
        return 0.0
    return (objective - bound) / objective if objective > 0 else math.inf


def above(cost: float, proved: float) -> float | None:
    """Return ``cost / proved - 1``, how far homes are above what is proved; None where that is 0 and they cost more."""
    if proved > 0:
        return max(0.0, cost / proved - 1)
    return 0.0 if cost == proved else None
