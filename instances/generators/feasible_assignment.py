"""Search for an assignment that overloads no server: the witness that capacities, though scarce, suffice."""

import numpy as np

from relocbench.instances.incremental_state import State, StateArrays, move_apply, move_delta, state_objective
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import Words, below, random_words, uniform
from relocbench.instances.nearest_server import nearest_server

RESTARTS = 4
STEPS_PER_CLIENT = 2000
# What keeps the search to seconds on instances of any size.
MOST_STEPS = 4_000_000
MOST_EVALUATIONS = 20_000_000


def fitting_assignment(instance: Instance, seed: int = 0) -> IntArray | None:
    """Return an assignment with ``θ = 1`` everywhere, made cheap by simple descent; None if the search finds none.

    None proves nothing: the question is a bin-packing problem.
    """
    steps = min(STEPS_PER_CLIENT * instance.n_clients, MOST_STEPS)
    for attempt in range(RESTARTS if steps < MOST_STEPS else 1):
        state = State(instance, nearest_server(instance))
        random = random_words(seed * RESTARTS + attempt)
        if _unload(state.arrays, instance.publishers.start, instance.publishers.item, steps, random):
            state.refresh()
            _descend(state.arrays, MOST_EVALUATIONS)
            return state.home
    return None


@compiled
def _unload(s: StateArrays, start: OffsetArray, publisher: IntArray, steps: int, random: Words) -> bool:
    """Anneal the relative overload down to nothing; tell whether that worked."""
    clients = len(s.client)
    moved = np.empty(clients, np.int32)
    origin = np.empty(clients, np.int32)
    total = _total_overload(s)
    for step in range(steps):
        if total <= 1e-12:
            break
        temperature = 0.5 * (1.0 - step / steps) + 1e-3
        client = below(random, clients)
        old = s.home[client]
        server = below(random, len(s.server))
        if server == old or s.client[client].first == s.client[client].last:
            continue
        # A client alone, or everybody at its server who shares one of its topics: storage is freed by whole topics.
        count = 1
        moved[0] = client
        if uniform(random) < 0.3:
            entries = s.client[client].last - s.client[client].first
            topic = s.entry[s.client[client].first + below(random, entries)].topic
            count = 0
            for i in range(start[topic], start[topic + 1]):
                if s.home[publisher[i]] == old:
                    moved[count] = publisher[i]
                    count += 1
        before = _overload(s, old) + _overload(s, server)
        for i in range(count):
            origin[i] = s.home[moved[i]]
            move_apply(s, moved[i], server)
        change = _overload(s, old) + _overload(s, server) - before
        # A random threshold rather than exp(): every machine's arithmetic agrees on it, so all find the same.
        if change > temperature * uniform(random):
            for i in range(count):
                move_apply(s, moved[i], origin[i])
        else:
            total += change
    return _total_overload(s) == 0.0


@compiled
def _total_overload(s: StateArrays) -> float:
    total = 0.0
    for l in range(len(s.server)):
        total += _overload(s, l)
    return total


@compiled
def _overload(s: StateArrays, l: int) -> float:
    """Return by what share of its capacities a server is overloaded."""
    over = 0.0
    if s.server[l].storage_load > s.server[l].storage_capacity:
        over += (s.server[l].storage_load - s.server[l].storage_capacity) / (s.server[l].storage_capacity + 1e-9)
    if s.server[l].compute_load > s.server[l].compute_capacity:
        over += (s.server[l].compute_load - s.server[l].compute_capacity) / (s.server[l].compute_capacity + 1e-9)
    return float(over)


@compiled
def _descend(s: StateArrays, evaluations: int) -> None:
    """Move single clients while that lowers the cost and overloads nothing, within a number of evaluated moves."""
    rounding = max(1e-9, 1e-12 * state_objective(s))  # a gain below this may be none, and the search go round for ever
    improved = True
    while improved:
        improved = False
        for client in range(len(s.client)):
            evaluations -= len(s.server)
            if evaluations < 0:
                return
            for server in range(len(s.server)):
                old = s.home[client]
                if server != old and move_delta(s, client, server) < -rounding:
                    move_apply(s, client, server)
                    if _overload(s, server) > 0.0:
                        move_apply(s, client, old)
                    else:
                        improved = True
