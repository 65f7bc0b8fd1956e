"""Tiny instances whose delays, spools and capacities differ by many orders of magnitude, and their exact optima."""

import functools
import itertools

import numpy as np

from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

# Which data are multiplied by a power of ten between 1e-12 and 1e12, each for a random subset of its entries.
MIXED = ("client delays", "server delays", "cloud delay", "spools", "storage capacities", "compute capacities")
MOST_ASSIGNMENTS = 300


def extreme_instance(seed: int) -> Instance:
    """Return a tiny random instance with mixed magnitudes.

    The seed also decides the shape: one client, one server, topics with one member, publishers that are not
    subscribers, capacities of 0, asymmetric matrices, a near cloud.
    """
    rng = np.random.default_rng([seed, 15])
    while True:
        clients, servers, topics = int(rng.integers(1, 7)), int(rng.integers(1, 5)), int(rng.integers(1, 5))
        if servers**clients <= MOST_ASSIGNMENTS and (min(clients, servers) > 1 or rng.random() < 0.1):
            break
    publishers, subscribers = [], []
    same = rng.random() < 0.4
    for _ in range(topics):
        members = rng.permutation(clients)[: rng.integers(1, clients + 1)]
        role = np.full(len(members), 3) if same else rng.integers(1, 4, len(members))
        publishers.append([int(m) for m, r in zip(members, role, strict=True) if r & 1])
        subscribers.append([int(m) for m, r in zip(members, role, strict=True) if r & 2])
    spool = rng.integers(1, 9, topics).astype(float) if rng.random() < 0.5 else rng.uniform(0.5, 9, topics)
    load = float(sum(u * len(p) for u, p in zip(spool, publishers, strict=True))) + 1.0
    data = {
        "client delays": rng.uniform(0.0, 3.0, (clients, servers)),
        "server delays": rng.uniform(0.0, 3.0, (servers, servers)),
        "cloud delay": np.array([rng.uniform(0.0, 1.0) if rng.random() < 0.35 else 5.0]),
        "spools": spool,
        "storage capacities": load * rng.uniform(0.05, 1.2, servers),
        "compute capacities": load * rng.uniform(0.05, 1.2, servers),
    }
    if rng.random() < 0.5:
        data["server delays"] = (data["server delays"] + data["server delays"].T) / 2
    for name in rng.permutation(MIXED)[: rng.integers(1, 4)]:
        values = data[name]
        # Factors of three to seven orders of magnitude are the hardest: too large for tolerances, too small to ignore.
        factor = 10.0 ** (rng.uniform(-12, 12) if rng.random() < 0.5 else rng.choice([-1, 1]) * rng.uniform(3, 7))
        chosen = rng.random(values.shape) < rng.choice([0.2, 0.5, 1.0])
        values[chosen] = np.minimum(values[chosen] * factor, 1e12)
    if rng.random() < 0.15:
        data["storage capacities"][rng.integers(servers)] = 0.0
    np.fill_diagonal(data["server delays"], 0.0)
    return Instance(
        name=f"extreme-{seed}",
        cloud_delay=float(data["cloud delay"][0]),
        delay_per_km=0.1,
        server_x=np.zeros(servers),
        server_y=np.zeros(servers),
        storage_capacity=data["storage capacities"],
        compute_capacity=data["compute capacities"],
        client_x=np.zeros(clients),
        client_y=np.zeros(clients),
        spool=data["spools"],
        publishers=Ragged.of(publishers),
        subscribers=Ragged.of(subscribers),
        client_server_delay=data["client delays"],
        server_server_delay=data["server delays"],
    )


@functools.cache
def exact_optimum(seed: int):
    """Return the least cost of all assignments of an extreme instance, as a rational number."""
    instance = extreme_instance(seed)
    every = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    return min(evaluate_exact(instance, home).objective for home in every)
