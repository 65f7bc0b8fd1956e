"""Good and bad heuristics for the tests of the gate."""

import os
import time

import numpy as np

from relocbench.instances.incremental_state import State
from relocbench.instances.nearest_server import nearest_server


def worsened(instance, *, seed, time_limit, by: float = 0.0, spread: float = 0.0):
    """Worsen the nearest servers by random moves: to a cost 5 % higher, plus ``by``, with noise of size ``spread``."""
    rng = np.random.default_rng([seed, instance.n_clients, instance.n_topics])
    state = State(instance, nearest_server(instance))
    target = 1.05 * state.objective * (1 + by) * np.exp(spread * rng.standard_normal())
    for _ in range(200 + 4 * instance.n_clients):
        client, server = int(rng.integers(instance.n_clients)), int(rng.integers(instance.n_servers))
        cost = state.objective
        if abs(cost - target) < 1e-4 * target:
            break
        if abs(cost + state.delta(client, server) - target) < abs(cost - target):
            state.move(client, server)
    return state.home


def nearest(instance, *, seed, time_limit):
    return nearest_server(instance).tolist()


def bad_for_crowds(instance, *, seed, time_limit):
    """Return the nearest servers, but the last server for all clients if a topic has four members or more."""
    if instance.members.sizes.max() >= 4:
        return np.full(instance.n_clients, instance.n_servers - 1)
    return nearest_server(instance)


def forgets_one(instance, *, seed, time_limit):
    return nearest_server(instance)[: -1 if instance.n_clients >= 6 else None]


def dies(instance, *, seed, time_limit):
    if instance.n_clients >= 6 and seed == 1:
        os._exit(3)
    return nearest_server(instance)


def raises(instance, *, seed, time_limit):
    raise RuntimeError("always")


def hangs(instance, *, seed, time_limit):
    while True:
        time.sleep(1)
