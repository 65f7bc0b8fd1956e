"""The clients as a graph: who sends to whom, how much, and who loads which topic. What bounds are computed on.

The letters are those of docs/formulations.md; unlike :mod:`formulations.linearisation` nothing here is a Python object
per pair, so that a million pairs are no burden.
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
    """An instance as pairs of clients, their own costs, and loads.

    Attributes
    ----------
    first, second
        The two clients of each edge, ``first < second``, in lexicographic order: every pair of which one sends to the
        other.
    there, back
        ``W[first, second]`` and ``W[second, first]``.
    own
        ``w_m·dH[m,l]`` (``M×L``).
    detour
        ``2·dC·f_m``: what sending everything of a client by way of the cloud costs.
    demand
        ``U``.
    topic_start, topic
        For each client the loading topics (a publisher and a spool above 0) that it publishes to, ascending, as indices
        into ``spool``: those of client ``m`` are ``topic[topic_start[m]:topic_start[m+1]]``.
    spool
        ``u`` of the loading topics.
    loading
        Which topics of the instance these are.
    storage, compute
        ``A`` and ``B``.
    server_delay
        ``dS``.
    """

    first: IntArray
    second: IntArray
    there: FloatArray
    back: FloatArray
    own: FloatArray
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
        """How many pairs of clients exchange messages."""
        return len(self.first)

    @cached_property
    def typical_cost(self) -> float:
        """About what it costs when two clients that exchange messages have different homes."""
        apart = self.server_delay[~np.eye(self.n_servers, dtype=np.bool_)]
        between = float((self.there + self.back).mean() * apart.mean()) if self.n_edges and len(apart) else 0.0
        return between or float(np.ptp(self.own, axis=1).mean()) or 1.0

    @cached_property
    def near(self) -> Ragged:
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
    """Compute the graph of an instance."""
    members = instance.members
    subscribes = (instance.member_role & SUBSCRIBES) > 0
    publishes = (instance.member_role & PUBLISHES) > 0
    subscribers = np.bincount(members.owner()[subscribes], minlength=instance.n_topics)
    first, second, there, back = _pairs(members.start, members.item, publishes, subscribes, subscribers)
    first, second, there, back = _merged(first, second, there, back, instance.n_clients)

    spools = (instance.publishers.sizes > 0) & (instance.spool > 0)
    index = np.cumsum(spools) - 1
    entry = ((instance.topic_role & PUBLISHES) > 0) & spools[instance.topics.item]
    topic_start = offsets(np.bincount(instance.topics.owner()[entry], minlength=instance.n_clients))

    every_client, every_server = np.arange(instance.n_clients), np.arange(instance.n_servers)
    delay = instance.client_delay(every_client[:, None], every_server[None, :])
    return ClientGraph(
        first=first,
        second=second,
        there=there,
        back=back,
        own=np.ascontiguousarray(instance.client_weight[:, None] * delay),
        detour=2 * instance.cloud_delay * instance.client_publications.astype(np.float64),
        demand=np.asarray(instance.client_demand),
        topic_start=topic_start,
        topic=index[instance.topics.item[entry]].astype(np.int32),
        spool=np.asarray(instance.spool[spools]),
        loading=np.flatnonzero(spools).astype(np.int32),
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
    """List the pairs within each topic, smaller client first, with what each sends to the other."""
    room = 0
    for n in range(len(start) - 1):
        size = start[n + 1] - start[n]
        room += size * (size - 1) // 2
    first, second = np.empty(room, np.int32), np.empty(room, np.int32)
    there, back = np.empty(room), np.empty(room)
    count = 0
    for n in range(len(start) - 1):
        for e in range(start[n], start[n + 1]):
            reached = subscribers[n] - subscribes[e]
            sends = 1.0 / reached if publishes[e] and reached else 0.0
            for g in range(start[n], e):
                other_reached = subscribers[n] - subscribes[g]
                other_sends = 1.0 / other_reached if publishes[g] and other_reached else 0.0
                out = sends if subscribes[g] else 0.0
                home = other_sends if subscribes[e] else 0.0
                if out == 0 and home == 0:
                    continue
                swap = member[e] > member[g]
                first[count] = member[g] if swap else member[e]
                second[count] = member[e] if swap else member[g]
                there[count] = home if swap else out
                back[count] = out if swap else home
                count += 1
    return first[:count], second[:count], there[:count], back[:count]


def _merged(
    first: IntArray, second: IntArray, there: FloatArray, back: FloatArray, clients: int
) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Add up what the same two clients exchange in several topics."""
    key = first.astype(np.int64) * clients + second
    unique, which = np.unique(key, return_inverse=True)
    return (
        (unique // clients).astype(np.int32),
        (unique % clients).astype(np.int32),
        np.bincount(which, there, len(unique)).astype(np.float64),
        np.bincount(which, back, len(unique)).astype(np.float64),
    )
