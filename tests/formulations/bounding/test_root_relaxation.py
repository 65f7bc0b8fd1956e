import numpy as np
import pytest

from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.root_relaxation import RootParams, RootRelaxation
from relocbench.formulations.enumeration import solve as enumerate_all
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server


def solved(instance, steps, **params):
    """The root relaxation after some steps."""
    root = RootRelaxation(client_graph(instance), nearest_server(instance), False, RootParams(**params))
    for _ in range(steps):
        root.step()
    return root


def test_with_loose_capacities_the_root_bound_is_close_to_the_optimum():
    gaps = []
    for seed in range(12):
        instance = FAMILIES["tiny"].cells({"regime": "loose", "shape": "plain"})[0].build(seed)
        best = evaluate(instance, enumerate_all(instance, seed=0, time_limit=60).home).objective
        gaps.append((best - solved(instance, 8).bound.value) / best)
    assert np.median(gaps) < 1e-3
    assert min(gaps) > -1e-9


def test_labels_of_negative_reduced_cost_are_added():
    instance = FAMILIES["small"].cells({"regime": "scarce", "clients": 30, "servers": 6})[0].build(0)
    everything = solved(instance, 6)
    few = solved(instance, 12, most_servers=1, nearest=1)
    assert not few.relaxation.labels.servers.all()
    assert few.bound.value == pytest.approx(everything.bound.value, rel=0.01)
