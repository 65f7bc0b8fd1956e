"""The inner loop of annealing: propose a move, know its exact effect, accept or reject it. Compiled."""

from typing import NamedTuple

import numpy as np

from relocbench.instances.incremental_state import StateArrays, move_apply, move_delta
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import Words, below, uniform

# What is proposed, of every 1024 proposals: one client, a topic's members on a server together; else two clients change
# places.
SINGLES = 880
GROUPS = 104
# Clients moved in groups after which a batch ends, so that large topics cannot keep it from looking at the clock.
MOST_WORK = 1 << 18


class Neighbourhood(NamedTuple):
    """What proposals are drawn from."""

    member_start: OffsetArray
    member: IntArray
    moving: IntArray  # the clients that are moved
    near: IntArray  # client × servers it is likely to be at: its nearest, or what a bound suggests
    near_count: IntArray  # how many of these count, for each client
    to_topic: int  # of every 1024, how often to a server where the topic is
    to_near: int  # and how often to a likely one; else to any


class Journal(NamedTuple):
    """The accepted moves of a batch, so that the best assignment on the way can be recovered without copying it."""

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
) -> tuple[float, float, int]:
    """Make ``steps`` proposals while the temperature falls from ``hot`` to ``cold``.

    Returns
    -------
    best, now, done
        The least cost met (its homes are in ``best_home`` if it is below the one given), the current cost, and how many
        proposals were made: fewer than asked if the journal is full or groups have been large.
    """
    clients, servers = len(s.client), len(s.server)
    moved = np.empty(clients, np.int32)
    written = 0
    mark = -1
    cooling = np.exp(np.log(cold / hot) * 64.0 / max(steps, 64))
    temperature = hot
    done = 0
    work = 0
    while done < steps and work < MOST_WORK and written + clients + 2 < len(journal.client):
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
                    move_apply(s, moved[i], target)
                    journal.client[written] = moved[i]
                    journal.origin[written] = origin
                    written += 1
            else:
                other = around.moving[below(random, len(around.moving))]
                target = s.home[other]
                if target == origin:
                    continue
                change = move_delta(s, client, target)
                move_apply(s, client, target)
                change += move_delta(s, other, origin)
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
def _target(s: StateArrays, around: Neighbourhood, random: Words, client: int, topic: int) -> int:
    kind = below(random, 1024)
    if kind < around.to_topic:
        first = s.topic[topic].first
        return int(s.slot[first + below(random, s.topic[topic].last - first)].server)
    if kind < around.to_topic + around.to_near:
        return int(around.near[client, below(random, around.near_count[client])])
    return below(random, len(s.server))


@compiled
def sample_changes(s: StateArrays, around: Neighbourhood, random: Words, count: int) -> FloatArray:
    """Return the changes of some single proposals, to learn what a temperature means on this instance."""
    changes = np.zeros(count)
    for i in range(count):
        client = around.moving[below(random, len(around.moving))]
        if s.client[client].last > s.client[client].first:
            topic = s.entry[s.client[client].first].topic
            changes[i] = move_delta(s, client, _target(s, around, random, client, topic))
    return changes


@compiled
def nearest_servers(
    x: FloatArray, y: FloatArray, server_x: FloatArray, server_y: FloatArray, delay: FloatArray, count: int
) -> IntArray:
    """Return for each client its ``count`` nearest servers, by explicit delay where there is one."""
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
