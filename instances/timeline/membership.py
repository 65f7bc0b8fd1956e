"""Who is a member of which topic over a whole timeline, and the epoch that results when some clients are present."""

import dataclasses
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged, offsets
from relocbench.instances.timeline.epoch import Epoch


@dataclass(frozen=True, eq=False)
class Membership:
    """The members of all topics of a timeline, present or not.

    Attributes
    ----------
    n_clients
        The number of clients of the timeline.
    publishers, subscribers
        For each topic of the timeline the numbers of its clients.
    spool
        For each topic its spool; NaN if it is ``spool_per_member`` for each member that is present, as in the paper.
    spool_per_member
        ``p``.
    topic_number
        For each topic its number in the timeline; None if the topics are numbered from 0 in their order.
    """

    n_clients: int
    publishers: Ragged
    subscribers: Ragged
    spool: FloatArray
    spool_per_member: float = 2.0
    topic_number: IntArray | None = None

    def epoch(
        self,
        network: Instance,
        number: int,
        times: tuple[float, float],
        clients: IntArray,
        at: FloatArray,
    ) -> Epoch | None:
        """Return the epoch with the given clients. Topics without a member that is present are left out.

        Parameters
        ----------
        network
            The servers.
        number, times
            The number of the epoch, its start and its length.
        clients
            The numbers of the clients that are present.
        at
            Their positions in km (``n×2``).

        Returns
        -------
        Epoch or None
            The epoch; None if no topic has a member that is present.
        """
        position = np.full(self.n_clients, -1, np.int32)
        position[clients] = np.arange(len(clients), dtype=np.int32)
        lists = [_present(groups, position) for groups in (self.publishers, self.subscribers)]
        kept = (lists[0].sizes > 0) | (lists[1].sizes > 0)
        used = np.flatnonzero(kept).astype(np.int32)
        if not len(used):
            return None
        publishers, subscribers = (_chosen(groups, kept) for groups in lists)
        base = dataclasses.replace(
            network,
            client_x=at[:, 0],
            client_y=at[:, 1],
            spool=np.zeros(len(used)),
            publishers=publishers,
            subscribers=subscribers,
        )
        spool = np.where(np.isnan(self.spool[used]), self.spool_per_member * base.members.sizes, self.spool[used])
        numbers = used if self.topic_number is None else self.topic_number[used]
        return Epoch(number, *times, clients, numbers, dataclasses.replace(base, spool=spool))


def _present(groups: Ragged, position: IntArray) -> Ragged:
    """Return the members that are present, by their position among these."""
    where = position[groups.item]
    there = where >= 0
    sizes = np.bincount(groups.owner()[there], minlength=len(groups))
    return Ragged(offsets(sizes), where[there])


def _chosen(groups: Ragged, kept: npt.NDArray[np.bool_]) -> Ragged:
    return Ragged(offsets(groups.sizes[kept]), groups.item[kept[groups.owner()]])
