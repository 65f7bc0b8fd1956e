"""The client graph: the pairs of clients that exchange messages, with their weights and loads.

All bounds are computed on this graph. The symbols are those of docs/formulations.md. Unlike
:mod:`formulations.linearisation`, this module creates no Python object per pair, so it handles millions of pairs.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, Ragged, offsets

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ClientGraph:
    """An instance as a graph: clients are nodes, pairs that exchange messages are edges.

    Attributes
    ----------
    first, second
        The two clients of each edge: every pair of which at least one sends to the other, with ``first < second``, in
        lexicographic order.
    forward, backward
        ``W[first, second]`` and ``W[second, first]``.
    distance_cost
        ``w_m·dH[m,l]`` (``M×L``).
    detour
        ``2·dC·f_m``: the cost of sending everything of a client through the cloud.
    demand
        ``U``.
    topic_start, topic
        The loading topics (those with a publisher and a spool above 0) that client ``m`` publishes to are
        ``topic[topic_start[m]:topic_start[m+1]]``, ascending, as indices into ``spool``.
    spool
        ``u`` of the loading topics.
    loading
        The index in the instance of each loading topic.
    storage_capacity, compute_capacity
        ``A`` and ``B``.
    server_delay
        ``dS``.
    """

    first: IntArray
    second: IntArray
    forward: FloatArray
    backward: FloatArray
    distance_cost: FloatArray
    detour: FloatArray
    demand: FloatArray
    topic_start: OffsetArray
    topic: IntArray
    spool: FloatArray
    loading: IntArray
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    server_delay: FloatArray

    @property
    def n_clients(self) -> int:
        """``M``."""
        return len(self.demand)

    @property
    def n_servers(self) -> int:
        """``L``."""
        return len(self.storage_capacity)

    @property
    def n_edges(self) -> int:
        """The number of pairs of clients that exchange messages."""
        return len(self.first)

    def same_structure(self, other: "ClientGraph") -> bool:
        """Return whether another graph has the same clients, edges and topics, so that a relaxation can start from it.

        Parameters
        ----------
        other
            The other graph, with the same servers.

        Returns
        -------
        bool
            Whether the two differ in positions, weights and sizes only.
        """
        names = ("first", "second", "topic_start", "topic")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    @cached_property
    def typical_cost(self) -> float:
        """The typical cost when two clients that exchange messages have different homes; a scale for step sizes."""
        apart = self.server_delay[~np.eye(self.n_servers, dtype=np.bool_)]
        between = float((self.forward + self.backward).mean() * apart.mean()) if self.n_edges and len(apart) else 0.0
        return between or float(np.ptp(self.distance_cost, axis=1).mean()) or 1.0

    @cached_property
    def incident_edges(self) -> Ragged:
        """The edges of each client."""
        ends = np.concatenate([self.first, self.second])
        order = np.argsort(ends, kind="stable") % max(self.n_edges, 1)
        return Ragged(offsets(np.bincount(ends, minlength=self.n_clients)), order.astype(np.int32))

    @cached_property
    def topic_owner(self) -> IntArray:
        """The client of each entry of ``topic``."""
        return np.repeat(np.arange(self.n_clients, dtype=np.int32), np.diff(self.topic_start))

    @cached_property
    def publishers(self) -> tuple[IntArray, ...]:
        """The publishers of each loading topic."""
        order = np.argsort(self.topic, kind="stable")
        ends = np.cumsum(np.bincount(self.topic, minlength=len(self.spool)))
        return tuple(np.split(self.topic_owner[order], ends[:-1]))


def client_graph(instance: Instance) -> ClientGraph:
    """Build the graph of an instance.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    ClientGraph
        The graph.
    """
    members = instance.members
    subscribes = (instance.member_role & SUBSCRIBES) > 0
    publishes = (instance.member_role & PUBLISHES) > 0
    subscribers = np.bincount(members.owner()[subscribes], minlength=instance.n_topics)
    pairs = _pairs(members.start, members.item, publishes, subscribes, subscribers)
    first, second, forward, backward = _merged(*pairs, instance.n_clients)

    loading = (instance.publishers.sizes > 0) & (instance.spool > 0)
    index = np.cumsum(loading) - 1
    entry = ((instance.topic_role & PUBLISHES) > 0) & loading[instance.topics.item]
    topic_start = offsets(np.bincount(instance.topics.owner()[entry], minlength=instance.n_clients))

    every_client, every_server = np.arange(instance.n_clients), np.arange(instance.n_servers)
    delay = instance.client_delay(every_client[:, None], every_server[None, :])
    return ClientGraph(
        first=first,
        second=second,
        forward=forward,
        backward=backward,
        distance_cost=np.ascontiguousarray(instance.client_weight[:, None] * delay),
        detour=2 * instance.cloud_delay * instance.client_publications.astype(np.float64),
        demand=np.asarray(instance.client_demand),
        topic_start=topic_start,
        topic=index[instance.topics.item[entry]].astype(np.int32),
        spool=np.asarray(instance.spool[loading]),
        loading=np.flatnonzero(loading).astype(np.int32),
        storage_capacity=np.asarray(instance.storage_capacity),
        compute_capacity=np.asarray(instance.compute_capacity),
        server_delay=np.ascontiguousarray(instance.server_delay),
    )


@compiled
def _pairs(
    start: OffsetArray,
    member: IntArray,
    publishes: Mask,
    subscribes: Mask,
    subscribers: OffsetArray,
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """List the pairs within each topic, smaller client first, with the weight that each sends to the other."""
    capacity = 0
    for n in range(len(start) - 1):
        size = start[n + 1] - start[n]
        capacity += size * (size - 1) // 2
    first, second = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
    forward, backward = np.empty(capacity), np.empty(capacity)
    count = 0
    for n in range(len(start) - 1):
        for e in range(start[n], start[n + 1]):
            receivers = subscribers[n] - subscribes[e]
            weight = 1.0 / receivers if publishes[e] and receivers else 0.0
            for g in range(start[n], e):
                other_receivers = subscribers[n] - subscribes[g]
                other_weight = 1.0 / other_receivers if publishes[g] and other_receivers else 0.0
                sent = weight if subscribes[g] else 0.0
                received = other_weight if subscribes[e] else 0.0
                if sent == 0 and received == 0:
                    continue
                swap = member[e] > member[g]
                first[count] = member[g] if swap else member[e]
                second[count] = member[e] if swap else member[g]
                forward[count] = received if swap else sent
                backward[count] = sent if swap else received
                count += 1
    return first[:count], second[:count], forward[:count], backward[:count]


def _merged(
    first: IntArray, second: IntArray, forward: FloatArray, backward: FloatArray, clients: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Add up the weights of pairs that share several topics."""
    key = first.astype(np.int64) * clients + second
    unique, which = np.unique(key, return_inverse=True)
    return (
        (unique // clients).astype(np.int32),
        (unique % clients).astype(np.int32),
        np.bincount(which, forward, len(unique)).astype(np.float64),
        np.bincount(which, backward, len(unique)).astype(np.float64),
    )
