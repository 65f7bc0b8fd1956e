"""Policies: functions that decide at the beginning of each epoch whether homes are computed again.

To add a policy, write a function

    policy(history, epoch, *, <parameters with types, ranges and defaults>) -> homes or None

and add it to ``POLICIES``. None keeps the homes as they are; a client that arrives then goes to its nearest server.
:mod:`runs.timeline.policy_selectors` reads the text that names a policy, and refuses parameters that are out of range.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy.typing as npt

from relocbench.heuristics.anneal import relocate as anneal_relocating
from relocbench.instances.evaluation import evaluate
from relocbench.instances.gap import gap as relative_gap
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.settings import Range
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.relocation_state import relocation_to
from relocbench.instances.timeline.schedule_cost import ScheduleCost
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.window import window_instance
from relocbench.runs.certify import certify
from relocbench.runs.timeline.method_runner import MethodRunner, Solved

# A history remembers the costs of this many epochs.
REMEMBERED = 64


@dataclass(frozen=True)
class LastSolve:
    """The last time that homes were computed.

    Attributes
    ----------
    number
        The epoch.
    y
        Mean delay of a publication of that epoch with the new homes.
    clusters
        The number of clusters that RELOC chose; None for other methods.
    """

    number: int
    y: float
    clusters: int | None = None


@dataclass(eq=False)
class History:
    """What a policy knows when an epoch begins.

    Attributes
    ----------
    timeline
        The timeline with its prices. A policy that looks at later epochs knows the future.
    home
        The homes that apply if the policy returns None: those so far, and the nearest server for clients that arrive.
    before
        The epoch before and its homes; None in the first epoch.
    last_solve
        When homes were last computed; None if never.
    costs
        The costs of the last epochs, at most 64 of them, the latest one last.
    seed, time_limit
        Of the method.
    upcoming
        Returns the next epochs, at most as many as are asked for.
    """

    timeline: Timeline
    home: IntArray
    before: tuple[Epoch, IntArray] | None
    last_solve: LastSolve | None
    costs: deque[ScheduleCost]
    seed: int
    time_limit: float
    upcoming: Callable[[int], list[Epoch]]
    _runner: MethodRunner
    _epoch: Epoch
    solved: Solved | None = field(default=None, init=False)

    def solve(self) -> IntArray:
        """Run the method of the replay on the present epoch.

        A method that takes a start begins with the homes so far.

        Returns
        -------
        array
            One server for each client that is present.

        Raises
        ------
        InputError
            If the method does not support the instance.
        RunError
            If the run failed.
        """
        start = None if self.before is None else self.home
        clusters = None if self.last_solve is None else self.last_solve.clusters
        self.solved = self._runner.solve(self._epoch.instance, start, clusters)
        return self.solved.home


PolicyFunction = Callable[..., npt.ArrayLike | None]


def never(history: History, epoch: Epoch) -> IntArray | None:
    """Solve in the first epoch, and never again.

    Parameters
    ----------
    history, epoch
        As for every policy.

    Returns
    -------
    array or None
        New homes in the first epoch only.
    """
    return history.solve() if history.last_solve is None else None


def always(history: History, epoch: Epoch) -> IntArray | None:
    """Solve in every epoch.

    Parameters
    ----------
    history, epoch
        As for every policy.

    Returns
    -------
    array
        New homes.
    """
    return history.solve()


def every(history: History, epoch: Epoch, *, k: Annotated[int, Range(1)] = 10) -> IntArray | None:
    """Solve in every k-th epoch.

    Parameters
    ----------
    history, epoch
        As for every policy.
    k
        The period, in epochs.

    Returns
    -------
    array or None
        New homes, or None to keep them.
    """
    due = history.last_solve is None or epoch.number - history.last_solve.number >= k
    return history.solve() if due else None


def threshold(history: History, epoch: Epoch, *, worse: Annotated[float, Range(0)] = 0.1) -> IntArray | None:
    """Solve when the mean delay ``Y`` has risen too far above that of the last solve.

    Parameters
    ----------
    history, epoch
        As for every policy.
    worse
        The relative rise of ``Y`` that is accepted.

    Returns
    -------
    array or None
        New homes, or None to keep them.
    """
    last = history.last_solve
    if last is None or evaluate(epoch.instance, history.home).y > (1 + worse) * last.y:
        return history.solve()
    return None


def gap(
    history: History,
    epoch: Epoch,
    *,
    above: Annotated[float, Range(0, 1)] = 0.1,
    limit: Annotated[float, Range(0, excludes_low=True)] = 1.0,
) -> IntArray | None:
    """Solve when the certified gap of the present homes in the present epoch is too large.

    The gap is ``(ΣD - bound) / ΣD`` with the bound that ``certify`` proves.

    Parameters
    ----------
    history, epoch
        As for every policy.
    above
        The gap that is accepted.
    limit
        Seconds for the bound. The shorter, the weaker the bound, and the more often the method runs.

    Returns
    -------
    array or None
        New homes, or None to keep them.
    """
    if history.last_solve is None:
        return history.solve()
    bound = certify(epoch.instance, seed=history.seed, time_limit=limit, start=history.home).bound
    found = relative_gap(evaluate(epoch.instance, history.home).objective, bound)
    return history.solve() if found is not None and found > above else None


def relocate(
    history: History,
    epoch: Epoch,
    *,
    ahead: Annotated[int, Range(0)] = 0,
    moves: Annotated[int, Range(1)] = 200_000,
) -> IntArray | None:
    """Improve the homes so far by annealing that counts delay and relocation together.

    In the first epoch it improves the homes of the method.

    Parameters
    ----------
    history, epoch
        As for every policy.
    ahead
        How many later epochs it looks at. The homes minimise what they cost if they stay for all these epochs, with
        the true positions of the clients in them. With 0 it knows the present epoch only.
    moves
        The number of proposals of the annealing.

    Returns
    -------
    array
        New homes.
    """
    start = history.solve() if history.before is None else history.home
    instance, seconds = window_instance([epoch, *history.upcoming(ahead)])
    prices = relocation_to(epoch, history.timeline.prices, seconds, history.before)
    found = anneal_relocating(instance, prices, start, seed=history.seed, time_limit=history.time_limit, moves=moves)
    return found.home


POLICIES: Mapping[str, PolicyFunction] = {
    function.__name__: function for function in (never, always, every, threshold, gap, relocate)
}
