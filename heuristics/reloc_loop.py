"""The main loop of Algorithm 1 (lines 20 to 45, and COOPERATION, lines 1 to 14) on one cluster. Compiled.

Line numbers are those of Algorithm 1 in the paper, where the lines that end a loop or a condition are counted as well:

======== ======================================================================= =========================
lines    Algorithm 1                                                             here
======== ======================================================================= =========================
20, 21   for each topic ``t_n``, for each client ``c_m`` in ``C_n``              :func:`place`
22       the ``M′`` clients with the strongest relation to ``c_m``               ``ClusterTask.related``
23       the initial home: a server of the cluster with ``θ = 1``                :func:`_nearest_with_room`
24 - 31  the home of the first related client in the cluster that has ``θ = 1``  :func:`_choose_server`
32       ``x[m,l] = 1``                                                          :func:`place`
33 - 35  a publisher: add ``t_n`` and ``c_m`` to the server, update ``θ_l``       :func:`_count_publisher`
36, 37   if ``θ_l < 1``: remember the previous home                              :func:`place`
38       the server of the cluster with the minimum resource usage               :func:`_least_used`
39 - 41  change the home and call COOPERATION                                    :func:`_move`
1 - 14   COOPERATION: move the topics of ``c_m`` to its new home                 :func:`_move`
======== ======================================================================= =========================

The state of a server depends on the clients of its own cluster only. Running this loop on every cluster is therefore
the same as running it on the whole instance. OTOS uses the same loop on a single cluster, with a preferred server for
each client. docs/reading.md explains every point that the paper leaves open.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# The home of a client that has not been assigned yet.
NOWHERE = -1
# Who comes first among equally related clients: the first in the list, the one whose home is the nearest server with
# room, or the one whose home is the most loaded server with room.
FIRST_IN_LIST, NEAREST_HOME, MOST_LOADED_HOME = 0, 1, 2


class ClusterTask(NamedTuple):
    """One cluster with its own numbering of clients, servers and topics.

    An *entry* is one membership of a client in a topic. The entries are in the order of lines 20 and 21 of Algorithm 1:
    topic by topic, and within a topic client by client.

    Attributes
    ----------
    entry_client, entry_topic, entry_publishes
        The client and the topic of each entry, and whether the client publishes to the topic.
    client_start, client_entry
        The entries of each client in ascending order, as a ragged array.
    spool
        ``u_n`` of each topic.
    storage_capacity, compute_capacity
        ``A_l`` and ``B_l`` of each server.
    client_x, client_y, server_x, server_y
        The positions of clients and servers.
    delay
        The explicit client-server delays, or an empty array; then delays are ``γ`` times the distance.
    delay_per_km
        ``γ``.
    preferred
        The initial server of each client (OTOS). If empty, it is the nearest server with ``θ = 1`` (RELOC).
    related_start, related
        The related clients of each client, strongest first, as a ragged array (``C′`` in line 22).
    related_level
        The level of each related client: equal for equal scores. It is not used with ``FIRST_IN_LIST``.
    """

    entry_client: IntArray
    entry_topic: IntArray
    entry_publishes: npt.NDArray[np.bool_]
    client_start: OffsetArray
    client_entry: OffsetArray
    spool: FloatArray
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    client_x: FloatArray
    client_y: FloatArray
    server_x: FloatArray
    server_y: FloatArray
    delay: FloatArray
    delay_per_km: float
    preferred: IntArray
    related_start: OffsetArray
    related: IntArray
    related_level: IntArray


class Rules(NamedTuple):
    """The reading of lines 20 to 45 of Algorithm 1.

    Attributes
    ----------
    cooperate
        Whether a client leaves a server that it overloads (lines 36 to 42).
    whole_topic
        Whether all publishers of the topic leave the server, as in the prose of the paper, rather than the one client,
        as in Algorithm 1.
    revisit
        Whether a client gets a new home in each of its topics. Otherwise it keeps the home of its first topic.
    ties
        ``FIRST_IN_LIST``, ``NEAREST_HOME`` or ``MOST_LOADED_HOME`` (lines 24 to 31).
    least_used_first
        Whether the initial server is the least used one (line 23). Otherwise it is the nearest with ``θ = 1``.
    at_once
        Whether a topic is placed with all its members at once (OTOS): :func:`place_whole_topics`, not :func:`place`.
    """

    cooperate: bool
    whole_topic: bool = False
    revisit: bool = False
    ties: int = FIRST_IN_LIST
    least_used_first: bool = False
    at_once: bool = False


class _Loads(NamedTuple):
    """The homes and the loads of the servers so far. A slot is a pair of a topic and a server on which it is open.

    Attributes
    ----------
    home
        The home of each client (``X`` in Algorithm 1).
    storage_load, compute_load
        ``a_l`` and ``v_l`` of each server.
    usage
        ``max(a_l/A_l, v_l/B_l)`` of each server.
    open
        The number of topics open on each server (the size of ``T_l``).
    slot_first, slot_last
        The first slot of each topic, and the end of its slots.
    slot_server, slot_count
        The server of each slot, and its number of publishers (the size of ``C^P_{n,l}``).
    """

    home: IntArray
    storage_load: FloatArray
    compute_load: FloatArray
    usage: FloatArray
    open: OffsetArray
    slot_first: OffsetArray
    slot_last: OffsetArray
    slot_server: IntArray
    slot_count: IntArray


@compiled
def place(task: ClusterTask, rules: Rules) -> IntArray:
    """Run lines 20 to 45 of Algorithm 1 on one cluster.

    Parameters
    ----------
    task
        The cluster.
    rules
        The reading of these lines.

    Returns
    -------
    array
        The home of each client, ``NOWHERE`` for a client without a topic.
    """
    loads = _no_loads(task)  # line 16
    for e in range(len(task.entry_client)):  # lines 20 and 21
        client = task.entry_client[e]
        if loads.home[client] == NOWHERE:
            loads.home[client] = _choose_server(task, rules, loads, client)  # lines 22 to 32
        elif rules.revisit:
            _move(task, loads, client, _choose_server(task, rules, loads, client), e - 1)
        if not task.entry_publishes[e]:  # line 33
            continue
        server = loads.home[client]
        _count_publisher(task, loads, task.entry_topic[e], server, 1)  # lines 34 and 35
        if rules.cooperate and not _has_room(task, loads, server):  # lines 36 and 37
            other = _least_used(loads)  # line 38
            if other != server:
                if rules.whole_topic:
                    topic = task.entry_topic[e]
                    first = e
                    while first > 0 and task.entry_topic[first - 1] == topic:
                        first -= 1
                    for i in range(first, e + 1):
                        if task.entry_publishes[i] and loads.home[task.entry_client[i]] == server:
                            _move(task, loads, task.entry_client[i], other, e)
                else:
                    _move(task, loads, client, other, e)  # lines 39 to 41
    return loads.home


@compiled
def place_whole_topics(task: ClusterTask) -> IntArray:
    """Place topic by topic, each with all its members at once, for OTOS.

    The members of a topic that have no home yet get their preferred server, which is the same for all of them. If this
    overloads the server, all members of the topic on it go to the least used server.

    Parameters
    ----------
    task
        The cluster, with a preferred server for each client: that of its first topic.

    Returns
    -------
    array
        The home of each client, ``NOWHERE`` for a client without a topic.
    """
    loads = _no_loads(task)
    first = 0
    while first < len(task.entry_client):
        end = first
        server = NOWHERE
        while end < len(task.entry_client) and task.entry_topic[end] == task.entry_topic[first]:
            client = task.entry_client[end]
            if loads.home[client] == NOWHERE:
                server = task.preferred[client]
                loads.home[client] = server
            if task.entry_publishes[end]:
                _count_publisher(task, loads, task.entry_topic[end], loads.home[client], 1)
            end += 1
        if server != NOWHERE and not _has_room(task, loads, server):
            other = _least_used(loads)
            for e in range(first, end):
                if loads.home[task.entry_client[e]] == server:
                    _move(task, loads, task.entry_client[e], other, end - 1)
        first = end
    return loads.home


@compiled
def _no_loads(task: ClusterTask) -> _Loads:
    """Return empty servers and clients without a home (line 16)."""
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
        np.zeros(len(task.storage_capacity)),
        np.zeros(len(task.storage_capacity), np.int64),
        first,
        first.copy(),
        np.empty(total, np.int32),
        np.zeros(total, np.int32),
    )


@compiled
def _choose_server(task: ClusterTask, rules: Rules, loads: _Loads, client: int) -> int:
    """Return the home of the most strongly related client whose home has ``θ = 1`` (lines 24 to 31).

    If there is none, return the initial server (line 23). All clients of a task are in one cluster, so that the
    condition of line 25 holds.
    """
    if rules.ties == FIRST_IN_LIST:
        for i in range(task.related_start[client], task.related_start[client + 1]):
            server = loads.home[task.related[i]]
            if server != NOWHERE and _has_room(task, loads, server):
                return int(server)
    else:
        related = _best_related_home(task, rules, loads, client)
        if related != NOWHERE:
            return related
    if len(task.preferred) > 0:
        return int(task.preferred[client])
    return _least_used(loads) if rules.least_used_first else _nearest_with_room(task, loads, client)


@compiled
def _best_related_home(task: ClusterTask, rules: Rules, loads: _Loads, client: int) -> int:
    """Return the best home with ``θ = 1`` among the most strongly related clients that have one (lines 24 to 31).

    The best home is the nearest or the most loaded one; ties go to the client with the lowest index.
    """
    best = np.inf
    chosen = NOWHERE
    for i in range(task.related_start[client], task.related_start[client + 1]):
        if chosen != NOWHERE and task.related_level[i] != task.related_level[i - 1]:
            break
        server = loads.home[task.related[i]]
        if server == NOWHERE or not _has_room(task, loads, server):
            continue
        cost = _delay(task, client, server) if rules.ties == NEAREST_HOME else -loads.usage[server]
        if chosen == NOWHERE or cost < best:
            best = cost
            chosen = int(server)
    return chosen


@compiled
def _nearest_with_room(task: ClusterTask, loads: _Loads, client: int) -> int:
    """Return the nearest server of the cluster with ``θ = 1``; if there is none, the least used server (line 23)."""
    nearest = NOWHERE
    best = np.inf
    for l in range(len(task.storage_capacity)):
        if not _has_room(task, loads, l):
            continue
        delay = _delay(task, client, l)
        if delay < best:
            best = delay
            nearest = l
    return nearest if nearest != NOWHERE else _least_used(loads)


@compiled
def _delay(task: ClusterTask, client: int, l: int) -> float:
    """Return ``dH`` of a client and a server."""
    if task.delay.shape[0] > 0:
        return float(task.delay[client, l])
    dx = task.client_x[client] - task.server_x[l]
    dy = task.client_y[client] - task.server_y[l]
    return float(euclidean_delay(dx, dy, task.delay_per_km))


@compiled
def _least_used(loads: _Loads) -> int:
    """Return the server with the least ``max(a_l/A_l, v_l/B_l)``; ties go to the lowest index (lines 23 and 38)."""
    least = 0
    best = np.inf
    for l in range(len(loads.usage)):
        if loads.usage[l] < best:
            best = loads.usage[l]
            least = l
    return least


@compiled
def _renew_usage(task: ClusterTask, loads: _Loads, l: int) -> None:
    """Compute ``max(a_l/A_l, v_l/B_l)`` after a change of the loads."""
    storage = _usage(loads.storage_load[l], task.storage_capacity[l])
    loads.usage[l] = max(storage, _usage(loads.compute_load[l], task.compute_capacity[l]))


@compiled
def _usage(load: float, capacity: float) -> float:
    """Return the used share of a capacity: 0 without load, infinite if there is a load but no capacity."""
    if load == 0.0:
        return 0.0
    return float(load / capacity) if capacity > 0.0 else np.inf


@compiled
def _has_room(task: ClusterTask, loads: _Loads, l: int) -> bool:
    """Return whether ``θ_l = 1`` (lines 23, 26 and 36)."""
    return bool(loads.storage_load[l] <= task.storage_capacity[l] and loads.compute_load[l] <= task.compute_capacity[l])


@compiled
def _move(task: ClusterTask, loads: _Loads, client: int, server: int, upto: int) -> None:
    """Change the home of a client and move its loads (COOPERATION, lines 1 to 14, and line 39).

    ``T′`` of line 40 consists of the topics that the client publishes to and that have been counted so far: those up to
    entry ``upto``.
    """
    old = loads.home[client]
    if old == server:
        return
    for i in range(task.client_start[client], task.client_start[client + 1]):
        e = task.client_entry[i]
        if e > upto:
            break
        if task.entry_publishes[e]:
            _count_publisher(task, loads, task.entry_topic[e], old, -1)  # lines 7 and 9 to 13
            _count_publisher(task, loads, task.entry_topic[e], server, 1)  # lines 3 to 6
    loads.home[client] = server


@compiled
def _count_publisher(task: ClusterTask, loads: _Loads, topic: int, server: int, by: int) -> None:
    """Add (``by = 1``) or remove (``by = -1``) one publisher of a topic on a server, and update the loads.

    The first publisher opens the topic on the server (lines 3 to 6, 34 and 35). The last one that leaves closes it
    (lines 7 and 10 to 12).
    """
    loads.compute_load[server] += by * task.spool[topic]
    last = loads.slot_last[topic]
    slot = loads.slot_first[topic]
    while slot < last and loads.slot_server[slot] != server:
        slot += 1
    if slot == last:
        loads.slot_server[last] = server
        loads.slot_count[last] = 0
        loads.slot_last[topic] = last + 1
        loads.open[server] += 1
        loads.storage_load[server] += task.spool[topic]
    loads.slot_count[slot] += by
    if loads.slot_count[slot] == 0:
        loads.storage_load[server] -= task.spool[topic]
        loads.slot_server[slot] = loads.slot_server[last - 1]
        loads.slot_count[slot] = loads.slot_count[last - 1]
        loads.slot_last[topic] = last - 1
        loads.open[server] -= 1
        if loads.open[server] == 0:
            # An empty server has no load at all. A rounding error would count as overload if a capacity is 0.
            loads.storage_load[server] = 0.0
            loads.compute_load[server] = 0.0
    _renew_usage(task, loads, server)
