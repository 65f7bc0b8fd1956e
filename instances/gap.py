"""The two relative distances of an assignment: the gap to a lower bound and the excess over a reference cost."""

import math


def gap(objective: float | None, bound: float | None) -> float | None:
    """Return the relative optimality gap ``(objective - bound) / objective``.

    Parameters
    ----------
    objective
        The objective ``ΣD`` of an assignment; None if no assignment is known.
    bound
        A lower bound on the objective of every assignment; None if no bound is known.

    Returns
    -------
    float or None
        The gap. It is 0 where the bound reaches the objective, infinite where the bound lies below an objective of 0,
        and None where one of the two numbers is not known.
    """
    if objective is None or bound is None:
        return None
    if objective <= bound:
        return 0.0
    return (objective - bound) / objective if objective > 0 else math.inf


def excess(objective: float, reference: float) -> float | None:
    """Return the relative excess ``objective / reference - 1`` of an assignment over a reference cost.

    Parameters
    ----------
    objective
        The objective ``ΣD`` of the assignment.
    reference
        The cost to compare with, usually a proved lower bound or the best objective known.

    Returns
    -------
    float or None
        The excess, 0 where the objective does not exceed the reference. None where the reference is 0 (or negative) and
        the objective differs from it, because the ratio is then undefined.
    """
    if reference > 0:
        return max(0.0, objective / reference - 1)
    return 0.0 if objective == reference else None
