"""A part of all assignments: homes that are still possible, and topics known to be somewhere."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Region:
    """All assignments with allowed homes that have the opened topics open.

    Attributes
    ----------
    graph
        The instance.
    allowed
        The homes each client may have (``M×L``).
    opened
        For each loading topic, the servers known to be home to one of its publishers (``N×L``).
    low, high
        What is known of ``θ``, per server.
    hard
        The servers whose loads are limited as such, to capacity over the least ``θ``; at the others only the share of
        the load that is processed there is limited, to the capacity itself.
    """

    graph: ClientGraph
    allowed: Mask
    opened: Mask
    low: FloatArray
    high: FloatArray
    hard: Mask

    @classmethod
    def whole(cls, graph: ClientGraph, hard: bool = False) -> "Region":
        """Return the region of all assignments."""
        clients, servers = graph.n_clients, graph.n_servers
        everywhere = np.ones((clients, servers), np.bool_)
        nowhere = np.zeros((len(graph.spool), servers), np.bool_)
        region = cls(graph, everywhere, nowhere, np.zeros(servers), np.ones(servers), np.zeros(servers, np.bool_))
        return replace(region, hard=region.least_share > 0) if hard else region

    @property
    def empty(self) -> bool:
        """Whether a client has no home left."""
        return not bool(self.allowed.any(axis=1).all())

    def limited(self, allowed: Mask) -> "Region":
        """Return the part with some of the homes."""
        return replace(self, allowed=self.allowed & allowed)

    def split_client(self, client: int, servers: Mask) -> tuple["Region", "Region"]:
        """Return the parts where a client's home is one of the given servers, and where it is not."""
        inside, outside = self.allowed.copy(), self.allowed.copy()
        inside[client] &= servers
        outside[client] &= ~servers
        return replace(self, allowed=inside), replace(self, allowed=outside)

    def split_topic(self, topic: int, server: int) -> tuple["Region", "Region"]:
        """Return the parts where no publisher of a topic is at a server, and where one is."""
        publishers = self.graph.publishers[topic]
        without, with_one = self.allowed.copy(), self.allowed
        without[publishers, server] = False
        candidates = publishers[self.allowed[publishers, server]]
        if len(candidates) == 1:
            with_one = with_one.copy()
            with_one[candidates[0]] = False
            with_one[candidates[0], server] = True
        opened = self.opened.copy()
        opened[topic, server] = True
        return replace(self, allowed=without), replace(self, allowed=with_one, opened=opened)

    def split_share(self, server: int, share: float) -> tuple["Region", "Region"]:
        """Return the parts where a server processes at most a share of its messages, and where at least that."""
        low, high, hard = self.low.copy(), self.high.copy(), self.hard.copy()
        low[server] = high[server] = share
        hard[server] = True
        return replace(self, high=high), replace(self, low=low, hard=hard)

    def settled(self) -> "Region":
        """Return the same without homes that nobody can have: at which ``θ`` would be too small."""
        region = self
        while region.low.any() or (region.high < 1).any():
            impossible = region.allowed & (region.largest_share < region.least_share[None, :] * (1 - 1e-12))
            if not impossible.any():
                break
            region = region.limited(~impossible)
        return region

    @property
    def storage_limit(self) -> FloatArray:
        """What the storage rows are held to, per server."""
        return self.graph.storage_capacity / np.where(self.hard, self.least_share, 1.0)

    @property
    def compute_limit(self) -> FloatArray:
        """What the compute rows are held to, per server."""
        return self.graph.compute_capacity / np.where(self.hard, self.least_share, 1.0)

    @cached_property
    def possible(self) -> Mask:
        """Which topics may be open on which servers (``N×L``)."""
        return self._topics_of(self.allowed)

    @cached_property
    def certain(self) -> Mask:
        """Which topics are open on which servers in every assignment of the region."""
        return self.opened | self._topics_of(self._settled)

    @property
    def _settled(self) -> Mask:
        """The homes that clients have who have no choice (``M×L``)."""
        settled: Mask = self.allowed & (self.allowed.sum(axis=1) == 1)[:, None]
        return settled

    def _topics_of(self, homes: Mask) -> Mask:
        graph = self.graph
        found = np.zeros((len(graph.spool), graph.n_servers), np.bool_)
        np.logical_or.at(found, graph.topic, homes[graph.topic_owner])
        return found

    @cached_property
    def least_share(self) -> FloatArray:
        """The least that ``θ`` can be, per server."""
        graph = self.graph
        stored = (self.possible * graph.spool[:, None]).sum(axis=0)
        computed = (self.allowed * graph.demand[:, None]).sum(axis=0)
        return np.maximum(self.low, _share(graph.storage_capacity, stored, graph.compute_capacity, computed))

    @cached_property
    def largest_share(self) -> FloatArray:
        """The largest that ``θ`` can be at a server with a client there (``M×L``)."""
        graph, settled = self.graph, self._settled
        spool = graph.spool[:, None]
        stored = np.broadcast_to((self.certain * spool).sum(axis=0), self.allowed.shape).copy()
        np.add.at(stored, graph.topic_owner, (~self.certain * spool)[graph.topic])
        computed = (settled * graph.demand[:, None]).sum(axis=0) + ~settled * graph.demand[:, None]
        return np.minimum(self.high[None, :], _share(graph.storage_capacity, stored, graph.compute_capacity, computed))

    @cached_property
    def delegation_cost(self) -> FloatArray:
        """What delegating everything of a client costs at least, against processing it at a server (``M×L``)."""
        graph = self.graph
        cost = np.repeat(graph.detour[:, None], graph.n_servers, axis=1)
        _subtract_sent(cost, self.allowed, graph.server_delay, graph.first, graph.second, graph.there, graph.back)
        return cost


def _share(
    storage_capacity: FloatArray, stored: FloatArray, compute_capacity: FloatArray, computed: FloatArray
) -> FloatArray:
    share = np.ones_like(stored)
    for room, load in ((storage_capacity, stored), (compute_capacity, computed)):
        full = np.broadcast_to(room, load.shape) < load
        share = np.minimum(share, np.divide(room, load, out=np.ones_like(load), where=full))
    return share


@compiled
def _subtract_sent(
    cost: FloatArray,
    allowed: Mask,
    delay: FloatArray,
    first: IntArray,
    second: IntArray,
    there: FloatArray,
    back: FloatArray,
) -> None:
    """Subtract the most that a client's messages can cost on their way from a server to the receivers' homes."""
    clients, servers = allowed.shape
    farthest = np.zeros((clients, servers))
    for m in range(clients):
        for k in range(servers):
            if allowed[m, k]:
                for l in range(servers):
                    farthest[m, l] = max(farthest[m, l], delay[l, k])
    for e in range(len(first)):
        i, j = first[e], second[e]
        for l in range(servers):
            cost[i, l] -= there[e] * farthest[j, l]
            cost[j, l] -= back[e] * farthest[i, l]
