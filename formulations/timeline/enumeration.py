"""The schedule of least cost by enumeration: the reference for all bounds on timelines.

A dynamic program over the epochs whose states are all assignments of an epoch. With ``c_t(b)`` the least cost of the
epochs up to ``t`` if the homes of epoch ``t`` are ``b``,

    ``c_t(b) = s_t/T·ΣD_t(b) + min over a of ( c_{t-1}(a) + handover price·H(a,b) + spool price·S(a,b) )``.

Handovers and spools are counted here by matrix products, not by the code that evaluates schedules.
"""

import itertools

import numpy as np
import numpy.typing as npt

from relocbench.formulations.timeline.schedule import Schedule
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.timeline import Timeline

# Timelines with more assignments of an epoch, or more pairs of assignments of two successive epochs, are refused.
MOST_ASSIGNMENTS = 1 << 16
MOST_TRANSITIONS = 1 << 28
# Transitions are evaluated in blocks of about this many pairs.
PAIRS_AT_ONCE = 1 << 22

Homes = npt.NDArray[np.int32]


def solve(timeline: Timeline) -> Schedule:
    """Find the schedule of least cost by enumeration.

    Parameters
    ----------
    timeline
        The timeline. An epoch may have at most 2¹⁶ assignments.

    Returns
    -------
    Schedule
        An optimal schedule.

    Raises
    ------
    InputError
        If there are too many assignments.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=2, length=1)
    >>> solve(timeline).status
    'optimal'
    """
    least: FloatArray | None = None
    before: tuple[Epoch, Homes] | None = None
    choices: list[npt.NDArray[np.int64]] = []  # per epoch and assignment, the best assignment of the epoch before
    assignments: list[Homes] = []
    prices = timeline.prices
    for epoch in timeline.epochs():
        homes = _all_homes(epoch.instance)
        rounds = epoch.length / prices.publication_period
        delay = rounds * np.array([evaluate(epoch.instance, home).objective for home in homes])
        if before is None or least is None:
            least = delay
        else:
            if len(homes) * len(before[1]) > MOST_TRANSITIONS:
                problem = f"expected at most {MOST_TRANSITIONS} pairs of assignments of two epochs"
                raise InputError(f"epochs[{epoch.number}]", f"{problem}, got {len(homes) * len(before[1])}")
            best, choice = _best_transitions(*before, epoch, homes, least, prices.handover, prices.spool)
            least = best + delay
            choices.append(choice)
        before = epoch, homes
        assignments.append(homes)
    assert least is not None
    at = int(least.argmin())
    chosen = [at]
    for choice in reversed(choices):
        chosen.append(int(choice[chosen[-1]]))
    schedule = [homes[a] for homes, a in zip(assignments, reversed(chosen), strict=True)]
    return Schedule.of(timeline, schedule, float(least[at]))


def _all_homes(instance: Instance) -> Homes:
    """Return all assignments as rows."""
    servers, clients = instance.n_servers, instance.n_clients
    if servers**clients > MOST_ASSIGNMENTS:
        problem = f"expected at most {MOST_ASSIGNMENTS} assignments of an epoch, got {servers}^{clients}"
        raise InputError("method enumerate", problem)
    return np.array(list(itertools.product(range(servers), repeat=clients)), np.int32).reshape(-1, clients)


def _best_transitions(
    before: Epoch, homes_before: Homes, epoch: Epoch, homes: Homes, least: FloatArray, handover: float, spool: float
) -> tuple[FloatArray, npt.NDArray[np.int64]]:
    """Return for each assignment the least cost up to its beginning, and the assignment before that has it."""
    servers = epoch.instance.n_servers
    _, here, there = np.intersect1d(before.clients, epoch.clients, assume_unique=True, return_indices=True)
    places_before, places = _one_hot(homes_before[:, here], servers), _one_hot(homes[:, there], servers)
    _, here, there = np.intersect1d(before.topics, epoch.topics, assume_unique=True, return_indices=True)
    open_before, open_now = _open(before.instance, homes_before, here), _open(epoch.instance, homes, there)
    # A topic without a publisher was open nowhere, so nothing is copied.
    existed = np.array([len(before.instance.publishers[n]) > 0 for n in here], np.bool_)
    weight = np.repeat(epoch.instance.spool[there] * existed, servers)
    best, choice = np.empty(len(homes)), np.empty(len(homes), np.int64)
    step = max(1, PAIRS_AT_ONCE // len(homes_before))
    for begin in range(0, len(homes), step):
        part = slice(begin, begin + step)
        kept = places[part] @ places_before.T
        copied = (open_now[part] * weight) @ (1 - open_before).T
        cost = least + handover * (places.shape[1] // servers - kept) + spool * copied
        choice[part] = cost.argmin(axis=1)
        best[part] = np.take_along_axis(cost, choice[part, None], axis=1)[:, 0]
    return best, choice


def _one_hot(homes: Homes, servers: int) -> FloatArray:
    flags: FloatArray = (homes[:, :, None] == np.arange(servers)).astype(np.float64).reshape(len(homes), -1)
    return flags


def _open(instance: Instance, homes: Homes, topics: npt.NDArray[np.intp]) -> FloatArray:
    """Return for each assignment, topic and server whether the topic is open there."""
    found = np.zeros((len(homes), len(topics), instance.n_servers))
    for place, n in enumerate(topics.tolist()):
        for publisher in instance.publishers[n].tolist():
            found[np.arange(len(homes)), place, homes[:, publisher]] = 1.0
    return found.reshape(len(homes), -1)
