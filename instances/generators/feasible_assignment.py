"""Search for a feasible assignment, that is, one that overloads no server.

Such an assignment is the witness that scarce capacities are sufficient.
"""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.incremental_state import State, StateArrays, move_apply, move_delta, state_objective
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import Words, below, random_words, uniform
from relocbench.instances.nearest_server import nearest_server


@dataclass(frozen=True)
class SearchLimits:
    """Limits of the search, which keep it to seconds on instances of any size.

    Attributes
    ----------
    restarts
        Number of annealing runs, each from the nearest-server assignment. A run of ``most_steps`` is not repeated.
    steps_per_client
        Annealing steps of a run, per client.
    most_steps
        Largest number of annealing steps of a run.
    most_evaluations
        Largest number of moves that the final descent evaluates.
    """

    restarts: int = 4
    steps_per_client: int = 2000
    most_steps: int = 4_000_000
    most_evaluations: int = 20_000_000


LIMITS = SearchLimits()


def find_feasible_assignment(instance: Instance, seed: int = 0) -> IntArray | None:
    """Search for an assignment with ``θ = 1`` at every server.

    Simulated annealing removes the overload, then a descent lowers the cost. The question is a bin-packing problem, so
    a search without success proves nothing.

    Parameters
    ----------
    instance
        The problem.
    seed
        Seed of the annealing.

    Returns
    -------
    array or None
        One server per client; None if the search found no such assignment.
    """
    steps = min(LIMITS.steps_per_client * instance.n_clients, LIMITS.most_steps)
    for attempt in range(LIMITS.restarts if steps < LIMITS.most_steps else 1):
        state = State(instance, nearest_server(instance))
        random = random_words(seed * LIMITS.restarts + attempt)
        if _remove_overload(state.arrays, instance.publishers.start, instance.publishers.item, steps, random):
            state.refresh()
            _descend(state.arrays, LIMITS.most_evaluations)
            return state.home
    return None


@compiled
def _remove_overload(s: StateArrays, start: OffsetArray, publisher: IntArray, steps: int, random: Words) -> bool:
    """Minimise the total relative overload by simulated annealing. Return whether it became 0."""
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
        # The move takes one client, or all publishers of one of its topics at its server. The second kind is needed
        # because a server's storage load decreases only when a topic leaves it completely.
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
        # Acceptance uses a random threshold instead of exp(), whose last bits differ between machines.
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
    """Return the overload of a server, as the sum of its shares of the two capacities."""
    over = 0.0
    if s.server[l].storage_load > s.server[l].storage_capacity:
        over += (s.server[l].storage_load - s.server[l].storage_capacity) / (s.server[l].storage_capacity + 1e-9)
    if s.server[l].compute_load > s.server[l].compute_capacity:
        over += (s.server[l].compute_load - s.server[l].compute_capacity) / (s.server[l].compute_capacity + 1e-9)
    return float(over)


@compiled
def _descend(s: StateArrays, evaluations: int) -> None:
    """Move single clients while this lowers the cost without overload, for at most so many evaluated moves."""
    # A smaller gain may be a rounding error, and the search would not terminate.
    rounding = max(1e-9, 1e-12 * state_objective(s))
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
