"""The compiled loops of :mod:`heuristics.adaptive`: steps of RELOC that are made only if they lower the objective.

:func:`improve_clients` visits clients and moves each one to the best of a few servers: its nearest server and the
servers around it (locality), and the servers that are homes of members of its topics (relation).
:func:`improve_topics` moves all members of a topic away from an overloaded server together (cooperation).

The change of the objective is exact. It is computed for all servers of one client at once, from the state *without* the
client. With ``o_k = Σ 1/|R|·s_k`` over the topics that the client publishes to (``s_k`` subscribers at ``k``), ``p_k =
Σ 1/|R|`` over the publications homed at ``k`` that the client receives, and everything else as in
:mod:`instances.incremental_state`, the client costs at server ``l``

    ``w·dH[l] + Σ_k θ_k·p_k·dS[k,l] + Δ( 2·dC·F_l·(1-θ_l) + θ_l·Q_l )``,

where the client adds ``f`` to ``F_l``, ``Σ_k o_k·dS[l,k]`` to ``Q_l``, and its demand to the loads. The sums are over
the few servers with members of its topics, so that one more server to compare costs little.
"""

from typing import NamedTuple

import numpy as np

from relocbench.instances.incremental_state import (
    StateArrays,
    delay_to_server,
    local_theta,
    move_apply,
    move_delta,
    server_cost,
)
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray


class Surroundings(NamedTuple):
    """What does not change while homes are improved.

    Attributes
    ----------
    member_start, member
        The members of each topic, as a ragged array.
    nearest
        The nearest server of each client.
    around
        For each server the servers with the least delay from it, nearest first, without itself.
    """

    member_start: OffsetArray
    member: IntArray
    nearest: IntArray
    around: IntArray


class Workspace(NamedTuple):
    """The servers that are compared for one client, with what the client would find there.

    Attributes
    ----------
    place
        The position of each server in the list, -1 if it is not listed.
    server
        The list of servers: the home of the client, other servers with members of its topics, and further ones.
    outgoing, received
        ``o_k`` and ``p_k`` of each listed server, without the client itself.
    stored
        The spool of the topics that the client publishes to and that others keep open on the listed server.
    incoming
        ``θ_k·p_k`` of each listed server, where ``θ`` is that of the state without the client.
    """

    place: IntArray
    server: IntArray
    outgoing: FloatArray
    received: FloatArray
    stored: FloatArray
    incoming: FloatArray


class Diary(NamedTuple):
    """When clients were visited and topics changed. A client waits for a visit if one of its topics changed later.

    Attributes
    ----------
    now
        One number: the time, which is the number of visits so far.
    visited
        The time of the last visit to each client.
    changed
        The time of the last change of each topic: the last move of one of its members.
    """

    now: OffsetArray
    visited: OffsetArray
    changed: OffsetArray


def make_diary(clients: int, topics: int) -> Diary:
    """Return a diary in which all clients wait.

    Parameters
    ----------
    clients, topics
        The numbers of clients and topics of the instance.

    Returns
    -------
    Diary
        The diary.
    """
    return Diary(np.zeros(1, np.int64), np.full(clients, -1, np.int64), np.zeros(topics, np.int64))


def make_workspace(servers: int) -> Workspace:
    """Return an empty workspace.

    Parameters
    ----------
    servers
        The number of servers of the instance.

    Returns
    -------
    Workspace
        The workspace.
    """
    return Workspace(
        np.full(servers, -1, np.int32), np.empty(servers, np.int32), *(np.zeros(servers) for _ in range(4))
    )


@compiled
def improve_clients(
    s: StateArrays, area: Surroundings, work: Workspace, diary: Diary, least: float, once: bool, first: int, visits: int
) -> tuple[int, int]:
    """Visit the waiting clients, topic by topic, and move each one to the best server if this lowers ``ΣD``.

    The order is that of lines 20 and 21 of Algorithm 1.

    Parameters
    ----------
    s
        The state; the moves are applied to it.
    area
        The surroundings of clients and servers.
    work
        Work space.
    diary
        The diary, which says who waits.
    least
        A move must lower the objective by more than this.
    once
        Whether a client is visited with its first topic only. Otherwise it may be visited again with each of its
        topics, as with ``revisit=true`` of RELOC.
    first
        The topic with which to begin.
    visits
        The number of visits after which no further topic begins.

    Returns
    -------
    visited, next
        The number of visits, and the topic with which to continue: the number of topics if there is none.
    """
    visited = 0
    for n in range(first, len(s.topic)):
        if visited >= visits:
            return visited, n
        for e in range(area.member_start[n], area.member_start[n + 1]):
            client = area.member[e]
            if not _waits(s, diary, client) or (once and s.entry[s.client[client].first].topic != n):
                continue
            visited += 1
            diary.now[0] += 1
            diary.visited[client] = diary.now[0]
            server, change = best_server(s, area, work, client)
            if change < -least:
                move_apply(s, client, server)
                _note_move(s, diary, client)
    return visited, len(s.topic)


@compiled
def _waits(s: StateArrays, diary: Diary, client: int) -> bool:
    """Return whether a topic of the client has changed since its last visit."""
    for e in range(s.client[client].first, s.client[client].last):
        if diary.changed[s.entry[e].topic] > diary.visited[client]:
            return True
    return False


@compiled
def _note_move(s: StateArrays, diary: Diary, client: int) -> None:
    """Note that the topics of a client have changed."""
    for e in range(s.client[client].first, s.client[client].last):
        diary.changed[s.entry[e].topic] = diary.now[0]


@compiled
def best_server(s: StateArrays, area: Surroundings, work: Workspace, client: int) -> tuple[int, float]:
    """Return the listed server that is best for a client, and the exact change of the objective if it moves there.

    Parameters
    ----------
    s, area
        As for :func:`improve_clients`.
    work
        Work space.
    client
        The client, which has a topic.

    Returns
    -------
    server, change
        The server and the change. They are the home and 0 if no listed server is better.
    """
    home = s.home[client]
    used, closing = _list_topic_servers(s, work, client, area.nearest[client])
    count = _list_near_servers(area, work, client, home, used)
    here = s.server[home]
    demand = s.client[client].demand
    sent = s.client[client].publications
    # The home without the client. A server without topics has exactly no load.
    empty = here.open == closing
    storage_home = 0.0 if empty else here.storage_load - (demand - work.stored[0])
    compute_home = 0.0 if empty else here.compute_load - demand
    theta_home = local_theta(here.storage_capacity, here.compute_capacity, storage_home, compute_home)
    spread_home = here.spread
    now = 0.0
    for i in range(used):
        spread_home -= work.outgoing[i] * s.delay_out[home, work.server[i]]
        work.incoming[i] = work.received[i] * (theta_home if i == 0 else s.server[work.server[i]].theta)
    best = 0
    least = 0.0
    for i in range(count):
        l = work.server[i]
        there = s.server[l]
        if i == 0:
            storage, compute, theta = storage_home, compute_home, theta_home
            others, spread = here.sent - sent, spread_home
        else:
            storage, compute, theta = there.storage_load, there.compute_load, there.theta
            # Without the client, nothing is sent from here to its old home.
            others, spread = there.sent, there.spread - work.received[i] * s.delay_out[l, home]
        opened = demand - work.stored[i]
        theta_after = local_theta(there.storage_capacity, there.compute_capacity, storage + opened, compute + demand)
        cost = (
            s.client[client].weight * delay_to_server(s, client, l)
            + there.storage_price * opened
            + there.compute_price * demand
            + server_cost(s.detour, theta_after, others + sent, spread)
            - server_cost(s.detour, theta, others, spread)
        )
        for j in range(used):
            k = work.server[j]
            cost += theta_after * work.outgoing[j] * s.delay_out[l, k] + work.incoming[j] * s.delay_in[l, k]
            if i > 0 and cost >= least:
                break
        if i == 0:
            least = cost
            now = cost
        elif cost < least:
            least = cost
            best = i
    for i in range(count):
        work.place[work.server[i]] = -1
    return int(work.server[best]), least - now


@compiled
def _list_topic_servers(s: StateArrays, work: Workspace, client: int, nearest: int) -> tuple[int, int]:
    """List the servers with members of the client's topics.

    Return their number, and the number of topics that only this client keeps open at its home.
    """
    home = s.home[client]
    _list(work, home, 0)
    used = 1
    # The nearest server comes early: it is often good, and then most of the others are soon known to be worse.
    if nearest != home:
        _list(work, nearest, 1)
        used = 2
    closing = 0
    for e in range(s.client[client].first, s.client[client].last):
        n = s.entry[e].topic
        share = s.entry[e].share
        publishes = 1 if s.entry[e].role & PUBLISHES else 0
        subscribes = 1 if s.entry[e].role & SUBSCRIBES else 0
        spool = s.topic[n].spool
        for j in range(s.topic[n].first, s.topic[n].last):
            k = s.slot[j].server
            i = work.place[k]
            if i < 0:
                i = used
                _list(work, k, used)
                used += 1
            subscribers = s.slot[j].subscribers
            sending = s.slot[j].sending
            publishers = s.slot[j].only + s.slot[j].both
            if k == home:
                subscribers -= subscribes
                sending -= share
                publishers -= publishes
                if publishes and publishers == 0 and spool > 0.0:
                    closing += 1
            work.outgoing[i] += share * subscribers
            if subscribes:
                work.received[i] += sending
            if publishes and publishers > 0:
                work.stored[i] += spool
    return used, closing


@compiled
def _list_near_servers(area: Surroundings, work: Workspace, client: int, home: int, used: int) -> int:
    """List the nearest server of the client, and the servers around that one and around its home."""
    count = used
    for i in range(area.around.shape[1]):
        for l in (area.around[area.nearest[client], i], area.around[home, i]):
            if work.place[l] < 0:
                _list(work, l, count)
                count += 1
    return count


@compiled
def _list(work: Workspace, l: int, position: int) -> None:
    work.place[l] = position
    work.server[position] = l
    work.outgoing[position] = 0.0
    work.received[position] = 0.0
    work.stored[position] = 0.0


@compiled
def improve_topics(
    s: StateArrays,
    area: Surroundings,
    diary: Diary,
    least: float,
    everywhere: bool,
    visits: int,
) -> tuple[int, int]:
    """Move all members of a topic on one server to another server together, where this lowers ``ΣD``.

    One client alone often gains nothing: it opens the topic on another server, and the topic stays open on the first.

    Parameters
    ----------
    s, area, diary, least
        As for :func:`improve_clients`.
    everywhere
        Whether topics leave any server. Otherwise they leave overloaded servers only.
    visits
        The number of clients moved in trials after which no further trial begins.

    Returns
    -------
    visited, moved
        The number of clients that were moved in trials, and the number of topics that left a server.
    """
    visited = 0
    moved = 0
    group = np.empty(len(s.client), np.int32)
    origins = np.empty(len(s.server), np.int32)
    targets = np.empty(len(s.server), np.int32)
    for n in range(len(s.topic)):
        slots = s.topic[n].last - s.topic[n].first
        for a in range(slots):
            origins[a] = s.slot[s.topic[n].first + a].server
        for a in range(slots):
            origin = origins[a]
            if visited >= visits:
                return visited, moved
            if not everywhere and s.server[origin].theta == 1.0:
                continue
            size = 0
            for i in range(area.member_start[n], area.member_start[n + 1]):
                if s.home[area.member[i]] == origin:
                    group[size] = area.member[i]
                    size += 1
            # A topic with a single client here has been tried by improve_clients.
            if size < 2:
                continue
            count = 0
            for j in range(s.topic[n].first, s.topic[n].last):
                if s.slot[j].server != origin:
                    targets[count] = s.slot[j].server
                    count += 1
            for i in range(area.around.shape[1]):
                if not (targets[:count] == area.around[origin, i]).any():
                    targets[count] = area.around[origin, i]
                    count += 1
            best = -least
            chosen = origin
            for t in range(count):
                if visited >= visits:
                    break
                change = 0.0
                for i in range(size):
                    change += move_delta(s, group[i], targets[t])
                    move_apply(s, group[i], targets[t])
                for i in range(size):
                    move_apply(s, group[i], origin)
                visited += size
                if change < best:
                    best = change
                    chosen = targets[t]
            if chosen != origin:
                moved += 1
                diary.now[0] += 1
                for i in range(size):
                    move_apply(s, group[i], chosen)
                    _note_move(s, diary, group[i])
    return visited, moved
