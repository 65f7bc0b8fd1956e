"""Exact methods for tiny timelines, by name."""

from relocbench.formulations.timeline import enumeration, milp
from relocbench.formulations.timeline.schedule import Schedule
from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError, shown
from relocbench.instances.timeline.timeline import Timeline

METHODS = ("enumerate", "milp-strong")


def solve_timeline(
    timeline: Timeline, method: str = "enumerate", *, seed: int = 0, time_limit: float = 60.0
) -> Schedule:
    """Find the schedule of least cost of a tiny timeline.

    Parameters
    ----------
    timeline
        The timeline.
    method
        ``enumerate``: a dynamic program over all assignments of each epoch, at most 2¹⁶ of them. ``milp-strong``: a
        mixed-integer linear model over time, solved by HiGHS.
    seed, time_limit
        Of the solver of ``milp-strong``. If it does not finish, the best schedule so far is returned with its bound.

    Returns
    -------
    Schedule
        The homes of each epoch, their cost and a lower bound.

    Raises
    ------
    InputError
        If there is no such method, or the timeline is too large for it.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=3, length=1)
    >>> relocbench.solve_timeline(timeline)
    <Schedule optimal: cost 23.259456, bound 23.259456>
    """
    if not isinstance(timeline, Timeline):
        raise InputError("timeline", f"expected a Timeline, got {shown(timeline)}; read_timeline reads one from a file")
    if method not in METHODS:
        raise InputError("method", f"expected {' or '.join(METHODS)}, got {shown(method)}")
    if method == "enumerate":
        return enumeration.solve(timeline)
    return milp.solve(timeline, seed=checked_seed(seed), time_limit=checked_time_limit(time_limit))
