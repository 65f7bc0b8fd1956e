import dataclasses

import numpy as np
import pytest

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from tests.samples import worked_example


def by_table(instance):
    clients, servers = np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :]
    return instance.client_delay(clients, servers).argmin(axis=1).tolist()


@pytest.mark.parametrize("servers", [1, 2, 7, 16, 49, 100, 333, 1024])
@pytest.mark.parametrize("servers_at", ["auto", "random"])
def test_the_search_finds_the_nearest_of_all_servers(servers, servers_at):
    settings = {"sigma": 10, "servers": servers, "servers_at": servers_at, "topics": 200}
    instance = FAMILIES["paper"].cells(settings)[0].build(0)
    assert nearest_server(instance).tolist() == by_table(instance)


@pytest.mark.parametrize("seed", range(30))
def test_the_search_handles_crowded_distant_and_tied_servers(seed):
    rng = np.random.default_rng(seed)
    servers = int(rng.integers(1, 200))
    # Integer coordinates produce ties. Some servers are crowded in a corner, and some clients are far outside.
    x = rng.integers(0, 30, servers).astype(float)
    y = rng.integers(0, 3 if seed % 3 else 30, servers).astype(float)
    x[: servers // 2] = np.round(x[: servers // 2] / 20)
    base = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    instance = dataclasses.replace(
        base,
        server_x=x,
        server_y=y,
        storage_capacity=np.ones(servers),
        compute_capacity=np.ones(servers),
        client_x=np.round(base.client_x * 4 - 30),
        client_y=np.round(base.client_y * 4 - 30),
        delay_per_km=0.0 if seed == 0 else 0.1,
    )
    assert nearest_server(instance).tolist() == by_table(instance)


def test_ties_are_broken_by_the_lowest_index():
    instance = dataclasses.replace(worked_example(), client_x=[5.0, 5.0, 4.0, 6.0])
    assert nearest_server(instance).tolist() == [0, 0, 0, 1]
    explicit = dataclasses.replace(instance, client_server_delay=[[1, 1], [2, 1], [0, 0], [1, 2]])
    assert nearest_server(explicit).tolist() == [0, 1, 0, 0]
