"""Random regions, their assignments, and partly solved relaxations, for tests."""

import itertools

import numpy as np

from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.instances.evaluation import evaluate


def random_region(instance, rng, splits=3):
    """A random region that is not empty, and the homes of one of its assignments."""
    graph = client_graph(instance)
    region = Region.root(graph, hard=bool(rng.random() < 0.5))
    home = rng.integers(0, instance.n_servers, instance.n_clients)
    theta = evaluate(instance, home).theta
    for _ in range(splits):
        kind, server = rng.random(), int(rng.integers(instance.n_servers))
        if kind < 0.4:
            client = int(rng.integers(instance.n_clients))
            servers = rng.random(instance.n_servers) < 0.5
            parts = region.split_client(client, servers)
            region = parts[0] if servers[home[client]] else parts[1]
        elif kind < 0.7 and len(graph.spool):
            topic = int(rng.integers(len(graph.spool)))
            is_open = bool((home[graph.publishers[topic]] == server).any())
            region = region.split_topic(topic, server)[is_open]
        else:
            share = int(rng.integers(1, 1024)) / 1024
            region = region.split_theta(server, share)[bool(theta[server] > share)]
    return region.propagated(), home


def assignments(region):
    """All assignments with the allowed homes and the open topics of a region."""
    graph = region.graph
    for homes in itertools.product(*(np.flatnonzero(row) for row in region.allowed)):
        home = np.array(homes)
        is_open = np.array(
            [np.isin(np.arange(graph.n_servers), home[publishers]) for publishers in graph.publishers]
        ).reshape(region.opened.shape)
        if not (region.opened & ~is_open).any():
            yield home


def inside(region, theta):
    """Whether the θ of an assignment are in the ranges of the region, up to rounding."""
    return bool((theta >= region.low - 1e-12).all() and (theta <= region.high + 1e-12).all())


def some_relaxation(region, rng, iterations=60):
    """The relaxation of a region after some iterations, with all or some of its homes active."""
    servers = region.allowed
    if rng.random() < 0.5:
        servers = servers & (rng.random(servers.shape) < 0.6)
        servers |= region.allowed & ~servers.any(axis=1, keepdims=True)
    relaxation = Relaxation(region, Labels.of(servers))
    relaxation.iterate(iterations)
    return relaxation
