"""Instances for tests: random instances of every kind, and the worked example of the paper."""

import dataclasses
import itertools

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

CAPACITIES = ("loose", "tight", "overloaded", "none")
DELAYS = ("euclid", "explicit")
CLOUDS = ("far", "near")
ROLES = ("same", "mixed")
KINDS = list(itertools.product(CAPACITIES, DELAYS, CLOUDS, ROLES))


def random_instance(seed: int, kind: tuple[str, str, str, str] | None = None) -> Instance:
    """Return a small random instance; without a kind, the seed also selects the kind."""
    rng = np.random.default_rng(seed)
    capacities, delays, cloud, roles = kind or KINDS[seed % len(KINDS)]
    clients, servers, topics = int(rng.integers(1, 13)), int(rng.integers(1, 6)), int(rng.integers(1, 8))
    publishers, subscribers = [], []
    for _ in range(topics):
        # Topics with one member must not be rare, so all sizes are equally likely.
        members = rng.permutation(clients)[: rng.integers(1, clients + 1)].tolist()
        if roles == "same":
            publishers.append(members)
            subscribers.append(members)
            continue
        role = rng.integers(1, 4, size=len(members))
        publishers.append([m for m, r in zip(members, role, strict=True) if r & 1])
        subscribers.append(rng.permutation([m for m, r in zip(members, role, strict=True) if r & 2]).tolist())
    spool = rng.uniform(0.5, 9, topics) if rng.random() < 0.5 else rng.integers(0, 9, topics).astype(float)
    load = sum(u * len(p) for u, p in zip(spool, publishers, strict=True))
    level = {"loose": (2.0, 3.0), "tight": (0.2, 1.0), "overloaded": (0.01, 0.2), "none": (0.0, 0.0)}[capacities]
    explicit = delays == "explicit"
    between = rng.uniform(0, 3, (servers, servers))
    np.fill_diagonal(between, 0.0)
    return Instance(
        name=f"random-{seed}",
        cloud_delay=float(rng.uniform(0, 0.5)) if cloud == "near" else 5.0,
        delay_per_km=0.1,
        server_x=rng.uniform(0, 25, servers),
        server_y=rng.uniform(0, 25, servers),
        storage_capacity=load * rng.uniform(*level, servers),
        compute_capacity=load * rng.uniform(*level, servers),
        client_x=rng.uniform(0, 25, clients),
        client_y=rng.uniform(0, 25, clients),
        spool=spool,
        publishers=Ragged.of(publishers),
        subscribers=Ragged.of(subscribers),
        client_server_delay=rng.uniform(0, 3, (clients, servers)) if explicit else None,
        server_server_delay=between if explicit else None,
    )


def enumerable_instance(seed: int, most: int = 700, least_servers: int = 1) -> Instance:
    """Return a random instance of the seed's kind with at most ``most`` assignments and at least so many servers."""
    while True:
        instance = random_instance(seed)
        if instance.n_servers >= least_servers and instance.n_servers**instance.n_clients <= most:
            return instance
        seed += len(KINDS)


def scaled_delays(instance: Instance, factor: float) -> Instance:
    """Return the same problem with every delay multiplied by a factor."""

    def scaled(matrix):
        return None if matrix is None else factor * matrix

    return dataclasses.replace(
        instance,
        cloud_delay=factor * instance.cloud_delay,
        delay_per_km=factor * instance.delay_per_km,
        client_server_delay=scaled(instance.client_server_delay),
        server_server_delay=scaled(instance.server_server_delay),
    )


def random_home(instance: Instance, seed: int) -> np.ndarray:
    """Return a random assignment."""
    return np.random.default_rng(seed).integers(instance.n_servers, size=instance.n_clients)


def worked_example() -> Instance:
    """Return the instance of the paper's Figure 'System representation', with the corrected C_2 = {c3, c4}."""
    return Instance(
        name="worked-example",
        cloud_delay=5.0,
        delay_per_km=0.1,
        server_x=[0.0, 10.0],
        server_y=[0.0, 0.0],
        storage_capacity=[10.0, 10.0],
        compute_capacity=[20.0, 20.0],
        client_x=[1.0, 2.0, 9.0, 11.0],
        client_y=[0.0, 0.0, 0.0, 0.0],
        spool=[8.0, 6.0],
        publishers=Ragged.of([[0, 1, 2], [2]]),
        subscribers=Ragged.of([[3], [3]]),
    )


def relabelled(instance: Instance, client_to: np.ndarray, server_to: np.ndarray) -> Instance:
    """Return the same problem with client ``m`` renumbered ``client_to[m]`` and server ``l`` ``server_to[l]``."""
    client_from, server_from = np.argsort(client_to), np.argsort(server_to)

    def matrix(values, rows, columns):
        return None if values is None else values[np.ix_(rows, columns)]

    return Instance(
        cloud_delay=instance.cloud_delay,
        delay_per_km=instance.delay_per_km,
        server_x=instance.server_x[server_from],
        server_y=instance.server_y[server_from],
        storage_capacity=instance.storage_capacity[server_from],
        compute_capacity=instance.compute_capacity[server_from],
        client_x=instance.client_x[client_from],
        client_y=instance.client_y[client_from],
        spool=instance.spool,
        publishers=Ragged.of([client_to[topic].tolist() for topic in instance.publishers]),
        subscribers=Ragged.of([client_to[topic].tolist() for topic in instance.subscribers]),
        client_server_delay=matrix(instance.client_server_delay, client_from, server_from),
        server_server_delay=matrix(instance.server_server_delay, server_from, server_from),
    )
