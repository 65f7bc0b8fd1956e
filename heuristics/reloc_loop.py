"""The loop of Algorithm 1 on one cluster: place each client, and cooperate when its server is overloaded.

A server's state depends on clients of its own cluster only, so whoever runs this for every cluster has run RELOC;
nothing here knows of any other cluster. OTOS is the same loop on a single cluster, each client with a preferred server.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

NOWHERE = -1


class ClusterTask(NamedTuple):
    """One cluster with its own numbering of clients, servers and topics.

    The *entries* are the cluster's clients in their topics, in the order in which Algorithm 1 meets them.
    """

    entry_client: IntArray
    entry_topic: IntArray
    entry_publishes: npt.NDArray[np.bool_]
    client_start: OffsetArray  # client -> its entries in client_entry, in order
    client_entry: OffsetArray
    spool: FloatArray
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    client_x: FloatArray
    client_y: FloatArray
    server_x: FloatArray
    server_y: FloatArray
    delay: FloatArray  # explicit client-server delays, or empty: then γ times the distance
    delay_per_km: float
    preferred: IntArray  # where each client wants to be, or empty: then the nearest server with room
    related_start: OffsetArray
    related: IntArray


class _Loads(NamedTuple):
    """What has been counted so far; a topic's slots are the servers that hold publishers of it."""

    home: IntArray
    storage_load: FloatArray
    compute_load: FloatArray
    open: OffsetArray  # topics on each server: none means no load, exactly
    slot_first: OffsetArray
    slot_last: OffsetArray
    slot_server: IntArray
    slot_count: IntArray


@compiled
def place(task: ClusterTask, cooperate: bool, whole_topic: bool, revisit: bool) -> IntArray:
    """Return the home of each client of the cluster.

    Parameters
    ----------
    task
        The cluster.
    cooperate
        Whether an overloaded server passes clients on (RELOC's third step).
    whole_topic
        Whether cooperation moves all publishers of the topic on that server, rather than the one client.
    revisit
        Whether a client met again in a later topic is placed anew.
    """
    loads = _no_loads(task)
    for e in range(len(task.entry_client)):
        client = task.entry_client[e]
        if loads.home[client] == NOWHERE:
            loads.home[client] = _choose(task, loads, client)
        elif revisit:
            _move(task, loads, client, _choose(task, loads, client), e - 1)
        if not task.entry_publishes[e]:
            continue
        server = loads.home[client]
        _count(task, loads, task.entry_topic[e], server, 1)
        if cooperate and not _has_room(task, loads, server):
            other = _least_used(task, loads)
            if other != server:
                if whole_topic:
                    topic = task.entry_topic[e]
                    first = e
                    while first > 0 and task.entry_topic[first - 1] == topic:
                        first -= 1
                    for i in range(first, e + 1):
                        if task.entry_publishes[i] and loads.home[task.entry_client[i]] == server:
                            _move(task, loads, task.entry_client[i], other, e)
                else:
                    _move(task, loads, client, other, e)
    return loads.home


@compiled
def _no_loads(task: ClusterTask) -> _Loads:
    topics = len(task.spool)
    publishers = np.zeros(topics, np.int64)
    for e in range(len(task.entry_topic)):
        if task.entry_publishes[e]:
            publishers[task.entry_topic[e]] += 1
    first = np.zeros(topics, np.int64)
    total = 0
    for n in range(topics):
        first[n] = total
        total += min(publishers[n], len(task.storage_capacity))
    return _Loads(
        np.full(len(task.client_start) - 1, NOWHERE, np.int32),
        np.zeros(len(task.storage_capacity)),
        np.zeros(len(task.storage_capacity)),
        np.zeros(len(task.storage_capacity), np.int64),
        first,
        first.copy(),
        np.empty(total, np.int32),
        np.zeros(total, np.int32),
    )


@compiled
def _choose(task: ClusterTask, loads: _Loads, client: int) -> int:
    """Return the server of the strongest related client whose server has room, else the initial server."""
    for i in range(task.related_start[client], task.related_start[client + 1]):
        server = loads.home[task.related[i]]
        if server != NOWHERE and _has_room(task, loads, server):
            return int(server)
    if len(task.preferred) > 0:
        return int(task.preferred[client])
    return _nearest_with_room(task, loads, client)


@compiled
def _nearest_with_room(task: ClusterTask, loads: _Loads, client: int) -> int:
    nearest = NOWHERE
    best = np.inf
    for l in range(len(task.storage_capacity)):
        if not _has_room(task, loads, l):
            continue
        if task.delay.shape[0] > 0:
            delay = task.delay[client, l]
        else:
            dx = task.client_x[client] - task.server_x[l]
            dy = task.client_y[client] - task.server_y[l]
            delay = euclidean_delay(dx, dy, task.delay_per_km)
        if delay < best:
            best = delay
            nearest = l
    return nearest if nearest != NOWHERE else _least_used(task, loads)


@compiled
def _least_used(task: ClusterTask, loads: _Loads) -> int:
    least = 0
    best = np.inf
    for l in range(len(task.storage_capacity)):
        use = max(
            _use(loads.storage_load[l], task.storage_capacity[l]), _use(loads.compute_load[l], task.compute_capacity[l])
        )
        if use < best:
            best = use
            least = l
    return least


@compiled
def _use(load: float, capacity: float) -> float:
    if load == 0.0:
        return 0.0
    return float(load / capacity) if capacity > 0.0 else np.inf


@compiled
def _has_room(task: ClusterTask, loads: _Loads, l: int) -> bool:
    """Tell whether ``θ_l = 1``."""
    return bool(loads.storage_load[l] <= task.storage_capacity[l] and loads.compute_load[l] <= task.compute_capacity[l])


@compiled
def _move(task: ClusterTask, loads: _Loads, client: int, server: int, upto: int) -> None:
    """Move a client with every topic it publishes to that has been counted, that is up to entry ``upto``."""
    old = loads.home[client]
    if old == server:
        return
    for i in range(task.client_start[client], task.client_start[client + 1]):
        e = task.client_entry[i]
        if e > upto:
            break
        if task.entry_publishes[e]:
            _count(task, loads, task.entry_topic[e], old, -1)
            _count(task, loads, task.entry_topic[e], server, 1)
    loads.home[client] = server


@compiled
def _count(task: ClusterTask, loads: _Loads, topic: int, server: int, by: int) -> None:
    """Count one publisher of a topic more or less on a server; the first opens the topic, the last closes it."""
    loads.compute_load[server] += by * task.spool[topic]
    last = loads.slot_last[topic]
    for j in range(loads.slot_first[topic], last):
        if loads.slot_server[j] == server:
            loads.slot_count[j] += by
            if loads.slot_count[j] == 0:
                loads.storage_load[server] -= task.spool[topic]
                loads.slot_server[j] = loads.slot_server[last - 1]
                loads.slot_count[j] = loads.slot_count[last - 1]
                loads.slot_last[topic] = last - 1
                loads.open[server] -= 1
                if loads.open[server] == 0:
                    # Not the rounding error of many differences: with a capacity of 0 that would matter.
                    loads.storage_load[server] = 0.0
                    loads.compute_load[server] = 0.0
            return
    loads.slot_server[last] = server
    loads.slot_count[last] = 1
    loads.slot_last[topic] = last + 1
    loads.open[server] += 1
    loads.storage_load[server] += task.spool[topic]
