"""The compiled loop of :mod:`heuristics.anneal`: propose a move, compute its exact effect, accept or reject it."""

from typing import NamedTuple

import numpy as np

from relocbench.instances.incremental_state import StateArrays, move_apply, move_delta
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import Words, below, uniform
from relocbench.instances.timeline.relocation_state import Relocation, relocation_delta

# Of every 1024 proposals, how many move one client.
SINGLES = 880
# Of every 1024 proposals, how many move all members of a topic on one server together. The rest exchange two clients.
GROUPS = 104
# A refit tries this many clients to find one that has the server on its list in the neighbourhood.
NEWCOMERS = 16
# A batch ends after this many clients have been moved in groups: otherwise large topics would delay the next reading of
# the clock.
MOST_WORK = 1 << 18


class Neighbourhood(NamedTuple):
    """The moves from which proposals are drawn.

    Attributes
    ----------
    member_start, member
        The members of each topic, as a ragged array.
    moving
        The clients that are proposed for a move.
    near
        For each client the servers that are proposed most often: its nearest servers, or those that a bound suggests.
    near_count
        For each client the number of entries of its row in ``near`` that are used.
    to_topic, to_near
        Of every 1024 proposals, how many go to a server on which the topic is open, and how many to a server in
        ``near``. The rest go to any server.
    refits
        Of every 1024 proposals, how many replace a topic on a server by another one (:func:`refit`), instead of an
        exchange of two clients.
    """

    member_start: OffsetArray
    member: IntArray
    moving: IntArray
    near: IntArray
    near_count: IntArray
    to_topic: int
    to_near: int
    refits: int


class Journal(NamedTuple):
    """The accepted moves of a batch, from which the best assignment of the batch is restored at its end.

    Attributes
    ----------
    client
        The client of each move.
    origin
        The home of that client before the move.
    """

    client: IntArray
    origin: IntArray


@compiled
def anneal_batch(
    s: StateArrays,
    around: Neighbourhood,
    journal: Journal,
    random: Words,
    steps: int,
    hot: float,
    cold: float,
    best: float,
    now: float,
    best_home: IntArray,
    relocation: Relocation | None,
) -> tuple[float, float, int]:
    """Make ``steps`` proposals while the temperature falls from ``hot`` to ``cold``.

    Parameters
    ----------
    s
        The state; the accepted moves are applied to it.
    around
        The moves from which proposals are drawn.
    journal
        Work space for the accepted moves.
    random
        The state of the random number generator.
    steps
        The number of proposals.
    hot, cold
        The first and the last temperature.
    best
        The cost of the incumbent.
    now
        The cost of the current assignment.
    best_home
        The homes of the incumbent; overwritten if a better assignment is found.
    relocation
        The homes that it costs something to leave; None to count ``ΣD`` only, with code that has no trace of it.

    Returns
    -------
    best, now, done
        The cost of the incumbent, the cost of the current assignment, and the number of proposals made. It is below
        ``steps`` if the journal is full or if many clients have been moved in groups.
    """
    clients, servers = len(s.client), len(s.server)
    moved = np.empty(clients, np.int32)
    written = int(np.int64(0))  # for the constant 0, numba would compile refits and moves once more
    mark = -1
    cooling = np.exp(np.log(cold / hot) * 64.0 / max(steps, 64))
    temperature = hot
    done = 0
    work = 0
    # A refit moves at most the members of two topics and one client.
    room = clients + 2 if around.refits == 0 else 2 * clients + 1
    while done < steps and work < MOST_WORK and written + room < len(journal.client):
        if done % 64 == 0 and done > 0:
            temperature *= cooling
        done += 1
        client = around.moving[below(random, len(around.moving))]
        entries = s.client[client].last - s.client[client].first
        if entries == 0 or servers == 1:
            continue
        topic = s.entry[s.client[client].first + below(random, entries)].topic
        origin = s.home[client]
        target = _target(s, around, random, client, topic)
        if target == origin:
            continue
        kind = below(random, 1024)
        if kind < SINGLES:
            change = move_delta(s, client, target)
            if relocation is not None:
                change += relocation_delta(s, relocation, client, target)
            if change <= 0.0 or uniform(random) < np.exp(-change / temperature):
                move_apply(s, client, target)
                journal.client[written] = client
                journal.origin[written] = origin
                written += 1
                now += change
        else:
            first = written
            change = 0.0
            if kind < SINGLES + GROUPS:
                count = 0
                for e in range(around.member_start[topic], around.member_start[topic + 1]):
                    if s.home[around.member[e]] == origin:
                        moved[count] = around.member[e]
                        count += 1
                work += count
                for i in range(count):
                    change += move_delta(s, moved[i], target)
                    if relocation is not None:
                        change += relocation_delta(s, relocation, moved[i], target)
                    move_apply(s, moved[i], target)
                    journal.client[written] = moved[i]
                    journal.origin[written] = origin
                    written += 1
            elif kind >= 1024 - around.refits:
                change, written = refit(s, around, journal, written, random, origin, topic)
                # Every move of a refit compares all servers.
                work += (written - first) * servers
            else:
                other = around.moving[below(random, len(around.moving))]
                target = s.home[other]
                if target == origin:
                    continue
                change = move_delta(s, client, target)
                if relocation is not None:
                    change += relocation_delta(s, relocation, client, target)
                move_apply(s, client, target)
                change += move_delta(s, other, origin)
                if relocation is not None:
                    change += relocation_delta(s, relocation, other, origin)
                move_apply(s, other, origin)
                journal.client[written] = client
                journal.origin[written] = origin
                journal.client[written + 1] = other
                journal.origin[written + 1] = target
                written += 2
            if change <= 0.0 or uniform(random) < np.exp(-change / temperature):
                now += change
            else:
                while written > first:
                    written -= 1
                    move_apply(s, journal.client[written], journal.origin[written])
        if now < best - 1e-12 * abs(best):
            best = now
            mark = written
    if mark >= 0:
        best_home[:] = s.home
        for i in range(written - 1, mark - 1, -1):
            best_home[journal.client[i]] = journal.origin[i]
    return best, now, done


@compiled
def refit(
    s: StateArrays, around: Neighbourhood, journal: Journal, written: int, random: Words, server: int, topic: int
) -> tuple[float, int]:
    """Replace a topic on a server by a topic of another client.

    On a full server a topic can open only after another one has closed. The single moves in between raise the cost by
    more than a cold search accepts. So the whole replacement is one proposal.

    Parameters
    ----------
    s, around, random
        As for :func:`anneal_batch`; the moves are applied to the state.
    journal, written
        The journal, and the number of moves that it contains.
    server
        The server.
    topic
        The topic that leaves the server.

    Returns
    -------
    change, written
        The change of the objective, and the number of moves that the journal contains now.
    """
    change, written = empty(s, around, journal, written, server, topic)
    newcomer = around.moving[below(random, len(around.moving))]
    for _ in range(NEWCOMERS):
        if s.home[newcomer] != server and around.near[newcomer, below(random, around.near_count[newcomer])] == server:
            break
        newcomer = around.moving[below(random, len(around.moving))]
    entries = s.client[newcomer].last - s.client[newcomer].first
    if entries > 0:
        other = s.entry[s.client[newcomer].first + below(random, entries)].topic
        if other != topic:
            more, written = fill(s, around, journal, written, server, other, newcomer)
            change += more
    return change, written


@compiled
def empty(
    s: StateArrays, around: Neighbourhood, journal: Journal, written: int, server: int, topic: int
) -> tuple[float, int]:
    """Move all members of a topic away from a server, each to the server where it raises the objective least.

    Parameters
    ----------
    s, around, journal, written, server
        As for :func:`refit`. There are at least two servers.
    topic
        The topic.

    Returns
    -------
    change, written
        As for :func:`refit`.
    """
    change = 0.0
    for e in range(around.member_start[topic], around.member_start[topic + 1]):
        client = around.member[e]
        if s.home[client] == server:
            least = np.inf
            target = server
            for l in range(len(s.server)):
                if l != server:
                    delta = move_delta(s, client, l)
                    if delta < least:
                        least, target = delta, l
            change += least
            written = _move(s, journal, written, client, target)
    return change, written


@compiled
def fill(
    s: StateArrays, around: Neighbourhood, journal: Journal, written: int, server: int, topic: int, newcomer: int
) -> tuple[float, int]:
    """Move a client to a server, and then every member of a topic that lowers the objective by following it.

    Parameters
    ----------
    s, around, journal, written, server
        As for :func:`refit`.
    topic
        The topic.
    newcomer
        The first client.

    Returns
    -------
    change, written
        As for :func:`refit`.
    """
    change = move_delta(s, newcomer, server)
    written = _move(s, journal, written, newcomer, server)
    for e in range(around.member_start[topic], around.member_start[topic + 1]):
        delta = move_delta(s, around.member[e], server)
        if delta < 0.0:
            change += delta
            written = _move(s, journal, written, around.member[e], server)
    return change, written


@compiled
def _move(s: StateArrays, journal: Journal, written: int, client: int, target: int) -> int:
    """Move a client, write the move into the journal, and return the new length of the journal."""
    journal.client[written] = client
    journal.origin[written] = s.home[client]
    move_apply(s, client, target)
    return written + 1


@compiled
def _target(s: StateArrays, around: Neighbourhood, random: Words, client: int, topic: int) -> int:
    """Draw the server to which a proposal moves a client."""
    kind = below(random, 1024)
    if kind < around.to_topic:
        first = s.topic[topic].first
        return int(s.slot[first + below(random, s.topic[topic].last - first)].server)
    if kind < around.to_topic + around.to_near:
        return int(around.near[client, below(random, around.near_count[client])])
    return below(random, len(s.server))


@compiled
def sample_changes(
    s: StateArrays, around: Neighbourhood, random: Words, count: int, relocation: Relocation | None
) -> FloatArray:
    """Return the changes of the objective that random moves of one client make, without applying them.

    Parameters
    ----------
    s, around, random, relocation
        As for :func:`anneal_batch`.
    count
        The number of moves.

    Returns
    -------
    array
        The change of each move.
    """
    changes = np.zeros(count)
    for i in range(count):
        client = around.moving[below(random, len(around.moving))]
        if s.client[client].last > s.client[client].first:
            topic = s.entry[s.client[client].first].topic
            target = _target(s, around, random, client, topic)
            changes[i] = move_delta(s, client, target)
            if relocation is not None:
                changes[i] += relocation_delta(s, relocation, client, target)
    return changes


@compiled
def nearest_servers(
    x: FloatArray, y: FloatArray, server_x: FloatArray, server_y: FloatArray, delay: FloatArray, count: int
) -> IntArray:
    """Return the nearest servers of each client.

    Parameters
    ----------
    x, y, server_x, server_y
        The positions of clients and servers.
    delay
        The explicit client-server delays, or an empty array; then distances decide.
    count
        How many servers to return for each client.

    Returns
    -------
    array
        ``M×count`` servers, nearest first; ties go to the lowest index.
    """
    near = np.empty((len(x), count), np.int32)
    distance = np.empty(len(server_x))
    for m in range(len(x)):
        for l in range(len(server_x)):
            if delay.shape[0] > 0:
                distance[l] = delay[m, l]
            else:
                distance[l] = (x[m] - server_x[l]) ** 2 + (y[m] - server_y[l]) ** 2
        for i in range(count):
            nearest = int(np.argmin(distance))
            near[m, i] = nearest
            distance[nearest] = np.inf
    return near
