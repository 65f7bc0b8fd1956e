"""Search for an assignment that overloads no server: the witness that capacities, though scarce, suffice."""

import numpy as np

from instances.compiled import compiled
from instances.groups import IntArray
from instances.instance import PUBLISHES, Instance
from instances.nearest import nearest_server
from instances.state import State, StateArrays, move_apply, move_delta

RESTARTS = 4
STEPS_PER_CLIENT = 2000


def fitting_assignment(instance: Instance, seed: int = 0) -> IntArray | None:
    """Return an assignment with ``θ = 1`` everywhere, made cheap by simple descent; None if the search finds none.

    None proves nothing: the question is a bin-packing problem.
    """
    steps = STEPS_PER_CLIENT * instance.n_clients
    for attempt in range(RESTARTS):
        state = State(instance, nearest_server(instance))
        if _unload(state.arrays, steps, seed * RESTARTS + attempt):
            state.refresh()
            _descend(state.arrays)
            return state.home
    return None


@compiled
def _unload(s: StateArrays, steps: int, seed: int) -> bool:
    """Anneal the relative overload down to nothing; tell whether that worked."""
    np.random.seed(seed)  # noqa: NPY002 - the compiled generator, private to compiled code
    clients = len(s.client)
    moved = np.empty(clients, np.int32)
    origin = np.empty(clients, np.int32)
    total = 0.0
    for l in range(len(s.server)):
        total += _overload(s, l)
    for step in range(steps):
        if total <= 1e-12:
            break
        temperature = 0.5 * (1.0 - step / steps) + 1e-3
        client = np.random.randint(clients)  # noqa: NPY002
        old = s.home[client]
        server = np.random.randint(len(s.server))  # noqa: NPY002
        if server == old or s.client[client].first == s.client[client].last:
            continue
        # A client alone, or everybody at its server who shares one of its topics: storage is freed by whole topics.
        count = 1
        moved[0] = client
        if np.random.random() < 0.3:  # noqa: NPY002
            pick = np.random.randint(s.client[client].first, s.client[client].last)  # noqa: NPY002
            count = _gather(s, s.entry[pick].topic, old, moved)
        before = _overload(s, old) + _overload(s, server)
        for i in range(count):
            origin[i] = s.home[moved[i]]
            move_apply(s, moved[i], server)
        change = _overload(s, old) + _overload(s, server) - before
        # A random threshold rather than exp(): every machine's arithmetic agrees on it, so all find the same.
        if change > temperature * np.random.random():  # noqa: NPY002
            for i in range(count):
                move_apply(s, moved[i], origin[i])
        else:
            total += change
    total = 0.0
    for l in range(len(s.server)):
        total += _overload(s, l)
    return bool(total == 0.0)


@compiled
def _gather(s: StateArrays, topic: int, server: int, found: IntArray) -> int:
    """Collect the publishers of a topic that are at a server."""
    count = 0
    for client in range(len(s.client)):
        if s.home[client] == server:
            for e in range(s.client[client].first, s.client[client].last):
                if s.entry[e].topic == topic and s.entry[e].role & PUBLISHES:
                    found[count] = client
                    count += 1
    return count


@compiled
def _overload(s: StateArrays, l: int) -> float:
    """Return by what share of its capacities a server is overloaded."""
    over = 0.0
    if s.server[l].storage > s.server[l].capacity:
        over += (s.server[l].storage - s.server[l].capacity) / (s.server[l].capacity + 1e-9)
    if s.server[l].compute > s.server[l].power:
        over += (s.server[l].compute - s.server[l].power) / (s.server[l].power + 1e-9)
    return float(over)


@compiled
def _descend(s: StateArrays) -> None:
    """Move single clients while that lowers the cost and overloads nothing."""
    improved = True
    while improved:
        improved = False
        for client in range(len(s.client)):
            for server in range(len(s.server)):
                old = s.home[client]
                if server != old and move_delta(s, client, server) < -1e-9:
                    move_apply(s, client, server)
                    if _overload(s, server) > 0.0:
                        move_apply(s, client, old)
                    else:
                        improved = True
