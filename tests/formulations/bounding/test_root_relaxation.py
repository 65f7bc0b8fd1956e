import numpy as np
import pytest

from relocbench.formulations.bounding import root_relaxation
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.root_relaxation import Root
from relocbench.formulations.enumeration import solve as enumerate_all
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server


def rise(instance, steps):
    found = Root(client_graph(instance), nearest_server(instance), overloaded=False)
    for _ in range(steps):
        found.step()
    return found


def test_with_loose_capacities_the_root_is_nearly_the_optimum():
    gaps = []
    for seed in range(12):
        instance = FAMILIES["tiny"].cells({"regime": "loose", "shape": "plain"})[0].build(seed)
        best = evaluate(instance, enumerate_all(instance, seed=0, time_limit=60).home).objective
        gaps.append((best - rise(instance, 8).bound.value) / best)
    assert np.median(gaps) < 1e-3
    assert min(gaps) > -1e-9


def test_labels_that_pay_are_taken_in(monkeypatch):
    instance = FAMILIES["small"].cells({"regime": "scarce", "clients": 30, "servers": 6})[0].build(0)
    everything = rise(instance, 6)
    monkeypatch.setattr(root_relaxation, "ALL_SERVERS", 1)
    monkeypatch.setattr(root_relaxation, "NEAREST", 1)
    few = rise(instance, 12)
    assert not few.relaxation.labels.servers.all()
    assert few.bound.value == pytest.approx(everything.bound.value, rel=0.01)
