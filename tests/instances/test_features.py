import dataclasses
import math

import numpy as np
import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.features import FEATURES, LARGEST, features_of
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.generators.generate import generate
from relocbench.instances.instance import Instance
from relocbench.instances.load import load_of, with_load
from relocbench.instances.nearest_server import nearest_server


def permuted(instance, order):
    """Return the same instance with its clients in another order."""
    place = np.argsort(order)
    return dataclasses.replace(
        instance,
        client_x=instance.client_x[order],
        client_y=instance.client_y[order],
        publishers=type(instance.publishers).of([place[one].tolist() for one in instance.publishers]),
        subscribers=type(instance.subscribers).of([place[one].tolist() for one in instance.subscribers]),
    )


def test_every_instance_of_every_family_has_finite_features_under_the_documented_names():
    for family in FAMILIES.values():
        found = features_of(family.cells({})[0].build(0))
        assert list(found) == list(FEATURES)
        assert all(math.isfinite(value) for value in found.values())


def test_loads_are_those_of_describe():
    instance = with_load(generate("paper", seed=1, sigma=10), 0.7)
    found, load = features_of(instance), load_of(instance)
    assert found["storage_load"] == pytest.approx(load.storage)
    assert found["storage_once"] == load.storage_once
    assert found["compute_load"] == pytest.approx(load.compute)
    assert max(found["storage_load"], found["compute_load"]) == pytest.approx(0.7)


def test_features_do_not_depend_on_the_order_of_clients():
    instance = generate("small", regime="scarce", clients=20)
    shuffled = permuted(instance, np.random.default_rng(0).permutation(instance.n_clients))
    assert features_of(shuffled) == pytest.approx(features_of(instance))


def test_locality_falls_as_topics_spread():
    values = [features_of(generate("paper", seed=0, sigma=sigma))["locality"] for sigma in (1, 5, 20)]
    assert values == sorted(values, reverse=True)
    assert values[0] > 0.3 > 0.1 > values[2]


def test_locality_is_1_minus_the_delay_within_topics_over_that_of_random_clients():
    instance = generate("tiny", regime="scarce", shape="asymmetric")
    home = nearest_server(instance)
    delay = instance.server_delay
    random = np.mean([[delay[one, other] for other in home] for one in home])
    within = []
    for publishers, subscribers in zip(instance.publishers, instance.subscribers, strict=True):
        for client in publishers:
            others = [other for other in subscribers if other != client]
            within += [np.mean([delay[home[client], home[other]] for other in others])] if others else []
    assert features_of(instance)["locality"] == pytest.approx(1 - np.mean(within) / random)


def test_a_server_without_capacity_and_a_single_server_have_features():
    instance = Instance.of(
        servers={"x": [0.0], "y": [0.0], "storage": [0.0], "compute": [0.0]},
        clients={"x": [1.0, 2.0], "y": [0.0, 0.0]},
        topics=[[0, 1]],
    )
    found = features_of(instance)
    assert found["storage_load"] == found["fullest_server"] == LARGEST
    assert found["locality"] == 0.0
    assert found["client_delay_share"] == 1.0
    assert evaluate(instance, [0, 0]).theta[0] == 0.0
