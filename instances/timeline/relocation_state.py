"""The incremental evaluator of relocation: what a move of one client changes in handovers and copied spools.

A search for the homes of an epoch minimises ``ΣD`` plus the cost of relocation from the homes before. The cost of
relocation is

    ``handover price · #{m: before_m known, home_m ≠ before_m}  +  Σ copy price_n over (n, l) that open anew``,

where topic ``n`` opens anew on ``l`` if it is open there, and was not open there before. :func:`relocation_delta` adds
to :func:`instances.incremental_state.move_delta`; the time of a move stays ``O(deg·min(L, |C_n|))``.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.incremental_state import State, StateArrays
from relocbench.instances.instance import PUBLISHES, Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.schedule_cost import carried_homes, open_topics


class Relocation(NamedTuple):
    """The homes before an epoch, and the prices of leaving them, in units of ``ΣD``.

    Attributes
    ----------
    before
        For each client of the epoch its home before; -1 if it was not there.
    handover_price
        The price of another home.
    copy_price
        For each topic the price of opening it on a server where it was not open; 0 if it was open nowhere.
    open_start, open_server
        For each topic the servers on which it was open before, as a ragged array.
    """

    before: IntArray
    handover_price: float
    copy_price: FloatArray
    open_start: OffsetArray
    open_server: IntArray


def relocation_to(epoch: Epoch, prices: Prices, seconds: float, before: tuple[Epoch, IntArray] | None) -> Relocation:
    """Return the prices of relocation from the homes of one epoch to the next.

    Parameters
    ----------
    epoch
        The epoch whose homes are searched.
    prices
        The prices of the timeline.
    seconds
        How long the new homes will be in force. The longer, the less a relocation counts beside ``ΣD``.
    before
        The epoch before and its homes; None at the beginning, when nothing can be relocated.

    Returns
    -------
    Relocation
        The prices, divided by the number of rounds of publications in ``seconds``.
    """
    instance = epoch.instance
    per_round = prices.publication_period / seconds
    home = np.full(instance.n_clients, -1, np.int32)
    open_before = np.empty(0, np.int64)
    if before is not None:
        home = carried_homes(*before, epoch)
        open_before = open_topics(*before)
    topic_before, server = np.divmod(open_before, instance.n_servers)
    first = np.searchsorted(topic_before, epoch.topics, side="left")
    sizes = np.searchsorted(topic_before, epoch.topics, side="right") - first
    start = offsets(sizes)
    entries = np.arange(start[-1]) + np.repeat(first - start[:-1], sizes)
    copy_price = np.where(sizes > 0, prices.spool * per_round * instance.spool, 0.0)
    return Relocation(home, prices.handover * per_round, copy_price, start, server[entries].astype(np.int32))


class RelocatingState(State):
    """An assignment whose objective is ``ΣD`` plus the cost of relocation.

    Parameters
    ----------
    instance, home
        As for :class:`instances.incremental_state.State`.
    relocation
        The homes before, and the prices.
    """

    def __init__(self, instance: Instance, home: npt.ArrayLike, relocation: Relocation) -> None:
        self.relocation = relocation
        super().__init__(instance, home)

    @property
    def objective(self) -> float:
        """``ΣD`` of the current assignment plus the cost of relocation, plus the priced loads if prices are set."""
        return super().objective + float(relocation_cost(self.arrays, self.relocation))

    def delta(self, client: int, server: int) -> float:
        """Return the change of the objective if a client moved; the state stays the same.

        Parameters
        ----------
        client
            The client.
        server
            Its new home.

        Returns
        -------
        float
            The objective after the move minus the objective before it.

        Raises
        ------
        IndexError
            If there is no such client or server.
        """
        return super().delta(client, server) + float(relocation_delta(self.arrays, self.relocation, client, server))

    def refresh(self) -> None:
        """Compute all running sums again from the homes, which removes accumulated rounding errors."""
        super().refresh()
        self.cost += float(relocation_cost(self.arrays, self.relocation))


@compiled
def relocation_delta(s: StateArrays, relocation: Relocation, client: int, server: int) -> float:
    """Return the change of the cost of relocation if a client moves; the state stays the same.

    Parameters
    ----------
    s
        The arrays of the state.
    relocation
        The homes before, and the prices.
    client
        The client.
    server
        Its new home.

    Returns
    -------
    float
        The cost of relocation after the move minus the cost before it.
    """
    old = s.home[client]
    if old == server:
        return 0.0
    change = 0.0
    before = relocation.before[client]
    if before == old:
        change += relocation.handover_price
    elif before == server:
        change -= relocation.handover_price
    for e in range(s.client[client].first, s.client[client].last):
        n = s.entry[e].topic
        if not s.entry[e].role & PUBLISHES or relocation.copy_price[n] == 0.0:
            continue
        publishers_old = 0
        publishers_new = 0
        for j in range(s.topic[n].first, s.topic[n].last):
            if s.slot[j].server == old:
                publishers_old = s.slot[j].only + s.slot[j].both
            elif s.slot[j].server == server:
                publishers_new = s.slot[j].only + s.slot[j].both
        if publishers_old == 1 and not _was_open(relocation, n, old):
            change -= relocation.copy_price[n]
        if publishers_new == 0 and not _was_open(relocation, n, server):
            change += relocation.copy_price[n]
    return float(change)


@compiled
def relocation_cost(s: StateArrays, relocation: Relocation) -> float:
    """Return the cost of relocation of the current assignment.

    Parameters
    ----------
    s
        The arrays of the state.
    relocation
        The homes before, and the prices.

    Returns
    -------
    float
        The cost in units of ``ΣD``.
    """
    handovers = 0
    for client in range(len(s.home)):
        if relocation.before[client] >= 0 and relocation.before[client] != s.home[client]:
            handovers += 1
    total = handovers * relocation.handover_price
    for n in range(len(s.topic)):
        for j in range(s.topic[n].first, s.topic[n].last):
            is_open = s.slot[j].only + s.slot[j].both > 0
            if is_open and relocation.copy_price[n] > 0.0 and not _was_open(relocation, n, s.slot[j].server):
                total += relocation.copy_price[n]
    return float(total)


@compiled
def _was_open(relocation: Relocation, n: int, server: int) -> bool:
    for i in range(relocation.open_start[n], relocation.open_start[n + 1]):
        if relocation.open_server[i] == server:
            return True
    return False
