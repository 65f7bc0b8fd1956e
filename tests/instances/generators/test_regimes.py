import dataclasses
import itertools

import numpy as np
import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.generators.regimes import classify
from relocbench.instances.nearest_server import nearest_server
from tests.samples import random_instance, worked_example


def least_theta_of_every_assignment(instance):
    homes = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    return [evaluate(instance, home).theta.min() for home in homes]


ENUMERABLE = [seed for seed in range(160) if random_instance(seed).n_servers ** random_instance(seed).n_clients <= 5000]


@pytest.mark.parametrize("seed", ENUMERABLE)
def test_the_regime_holds_for_all_assignments(seed):
    instance = random_instance(seed)
    regime = classify(instance)
    least = least_theta_of_every_assignment(instance)
    if regime.kind == "loose":
        assert min(least) == 1
    elif regime.kind == "overloaded":
        assert max(least) < 1
    elif regime.kind in ("ample", "scarce"):
        assert max(least) == 1
        assert evaluate(instance, regime.witness).theta.min() == 1
    else:
        assert regime.kind == "undecided"


def test_every_regime_occurs():
    kinds = {classify(random_instance(seed)).kind for seed in range(200)}
    assert {"loose", "ample", "scarce", "overloaded"} <= kinds


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"compute_capacity": [14.0, 15.0]}, "total compute 30 exceeds the servers' 29"),
        ({"storage_capacity": [6.0, 7.0]}, "the topics' spools, 14, exceed the servers' storage 13"),
        ({"storage_capacity": [10.0, 13.0]}, "client 2 needs 14 by itself, no server has more than 13"),
    ],
)
def test_overload_is_proved_by_a_total_or_by_one_client(change, reason):
    regime = classify(dataclasses.replace(worked_example(), **change))
    assert (regime.kind, regime.reason) == ("overloaded", reason)


@pytest.mark.parametrize("seed", range(150))
def test_regimes_hold_for_fractional_spools(seed):
    # Sums of tenths are rounded; the regime must be true for the rounded sums of the evaluator.
    rng = np.random.default_rng(seed)
    instance = random_instance(seed, ("tight", "euclid", "far", "same"))
    spool = rng.integers(1, 9, instance.n_topics) / 10
    load = float((instance.publishers.sizes * spool).sum())
    capacities = [np.round(load * rng.uniform(0.3, 1.0, instance.n_servers), 1) for _ in range(2)]
    instance = dataclasses.replace(
        instance, spool=spool, storage_capacity=capacities[0], compute_capacity=capacities[1]
    )
    regime = classify(instance)
    if regime.witness is not None:
        assert evaluate(instance, regime.witness).theta.min() == 1
    if regime.kind == "loose":
        for server in range(instance.n_servers):
            assert evaluate(instance, np.full(instance.n_clients, server)).theta.min() == 1


@pytest.mark.parametrize("family", ["tiny", "small"])
def test_instances_of_families_have_the_stated_regime(family):
    for cell in FAMILIES[family].cells():
        for seed in range(3):
            instance = cell.build(seed)
            assert classify(instance).kind == cell.varied["regime"], instance.name


def test_tiny_regimes_hold_for_every_assignment():
    for cell in FAMILIES["tiny"].cells():
        instance = cell.build(0)
        least = least_theta_of_every_assignment(instance)
        feasible = [theta == 1 for theta in least]
        holds = {
            "loose": all(feasible),
            "scarce": any(feasible) and not all(feasible),
            "overloaded": not any(feasible),
        }
        assert holds[cell.varied["regime"]], instance.name


def test_in_scarce_instances_an_assignment_without_overload_beats_the_nearest_servers():
    for cell in FAMILIES["small"].cells({"regime": "scarce"}):
        instance = cell.build(1)
        regime = classify(instance)
        nearest = evaluate(instance, nearest_server(instance))
        assert evaluate(instance, regime.witness).objective < nearest.objective
