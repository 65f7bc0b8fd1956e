"""An easier instance costs at most as much for every assignment, and every difference that breaks this is found."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from relocbench.instances.easier import is_easier
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.generators.generate import generate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged
from tests.samples import KINDS, enumerable_instance


def harder_by_chance(instance, seed):
    """Return the instance with some larger spools and some smaller capacities."""
    rng = np.random.default_rng(seed)

    def some(numbers, low, high):
        return numbers * np.where(rng.random(len(numbers)) < 0.5, rng.uniform(low, high, len(numbers)), 1.0)

    return dataclasses.replace(
        instance,
        spool=some(instance.spool, 1.0, 3.0) + rng.integers(0, 2, instance.n_topics),
        storage_capacity=some(instance.storage_capacity, 0.0, 1.0),
        compute_capacity=some(instance.compute_capacity, 0.0, 1.0),
        name="harder",
        parameters={"seed": seed},
    )


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_no_assignment_costs_more_in_an_easier_instance(seed):
    easy = enumerable_instance(seed, most=100)
    hard = harder_by_chance(easy, seed)
    assert is_easier(easy, hard) == easy.cloud_is_far
    if easy.cloud_is_far:
        for home in itertools.product(range(easy.n_servers), repeat=easy.n_clients):
            assert evaluate_exact(easy, home).objective <= evaluate_exact(hard, home).objective


def test_easier_is_not_symmetric_and_carries_over():
    low, middle, high = (generate("paper-spooler", 0, spool_per_member=p) for p in (1, 3, 6))
    assert is_easier(low, middle)
    assert is_easier(middle, high)
    assert is_easier(low, high)
    assert is_easier(low, low)
    assert not is_easier(middle, low)
    assert not is_easier(generate("paper-spooler", 1, spool_per_member=1), middle)


@pytest.fixture
def pair():
    """Two servers on a line, one topic, and a server without capacity."""
    return Instance.of(
        servers=[(0, 0, 1, 1), (10, 0, 5, 5)],
        clients=[(1, 0), (9, 0), (5, 5)],
        topics=[{"publishers": [0, 1], "subscribers": [1, 2], "spool": 2.0}, {"members": [0, 2], "spool": 1.0}],
    )


def matrices(instance):
    """Return the delays as explicit matrices."""
    clients, servers = np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :]
    return {
        "client_server_delay": instance.client_delay(clients, servers),
        "server_server_delay": instance.server_delay,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"spool": [2.0, math.nextafter(1.0, 0.0)]},
        {"spool": [3.0, 0.5]},
        {"storage_capacity": [math.nextafter(1.0, 2.0), 5.0]},
        {"compute_capacity": [0.5, 6.0]},
        {"cloud_delay": math.nextafter(5.0, 6.0)},
        {"cloud_delay": math.nextafter(5.0, 4.0)},
        {"delay_per_km": math.nextafter(0.1, 1.0)},
        {"server_x": [0.0, math.nextafter(10.0, 11.0)]},
        {"server_y": [0.0, 1e-9]},
        {"client_x": [1.0, 9.0, math.nextafter(5.0, 6.0)]},
        {"client_y": [0.0, 0.0, math.nextafter(5.0, 6.0)]},
        {"publishers": Ragged.of([[0, 2], [0, 2]])},
        {"publishers": Ragged.of([[0], [0, 2]])},
        {"subscribers": Ragged.of([[1, 2], [0]])},
        {"subscribers": Ragged.of([[0, 2], [0, 2]])},
        {"publishers": Ragged.of([[0, 1]]), "subscribers": Ragged.of([[1, 2]]), "spool": [2.0]},
        {"server_x": [0.0] * 3, "server_y": [0.0] * 3, "storage_capacity": [0.0] * 3, "compute_capacity": [0.0] * 3},
        {"client_x": [1.0, 9.0, 5.0, 5.0], "client_y": [0.0, 0.0, 5.0, 5.0]},
    ],
)
def test_any_other_difference_is_found(pair, change):
    assert is_easier(pair, pair)
    changed = dataclasses.replace(pair, **{name: _value(value) for name, value in change.items()})
    assert not is_easier(pair, changed)


def _value(value):
    return np.array(value) if isinstance(value, list) else value


def test_explicit_delays_must_be_equal(pair):
    explicit = dataclasses.replace(pair, **matrices(pair))
    assert is_easier(explicit, dataclasses.replace(explicit, spool=pair.spool + 1))
    for name, matrix in matrices(pair).items():
        changed = np.array(matrix)
        changed[0, 1] = math.nextafter(changed[0, 1], 0.0)
        assert not is_easier(explicit, dataclasses.replace(explicit, **{name: changed}))
        assert not is_easier(explicit, dataclasses.replace(explicit, **{name: None}))
        assert not is_easier(dataclasses.replace(explicit, **{name: None}), explicit)


def test_a_larger_spool_can_lower_the_cost_if_the_cloud_is_near(pair):
    near = dataclasses.replace(pair, cloud_delay=math.nextafter(0.5, 0.0))  # the servers are 1 ms apart
    assert is_easier(dataclasses.replace(near, cloud_delay=0.5), dataclasses.replace(pair, cloud_delay=0.5))
    hard = dataclasses.replace(near, spool=10 * near.spool)
    assert not is_easier(near, hard)
    nearer = dataclasses.replace(near, cloud_delay=0.1)
    hard = dataclasses.replace(nearer, spool=10 * nearer.spool)
    assert evaluate_exact(hard, [0, 1, 1]).objective < evaluate_exact(nearer, [0, 1, 1]).objective
