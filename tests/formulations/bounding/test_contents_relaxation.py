import numpy as np
import pytest

from relocbench.formulations.bounding.certificate_steps import home_prices_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.contents_relaxation import ContentsRelaxation
from relocbench.formulations.bounding.root_relaxation import RootRelaxation
from relocbench.formulations.certificates.certificate import Certificate
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.instances.nearest_server import nearest_server


@pytest.mark.slow
def test_contents_of_servers_prove_more_than_the_linear_relaxation():
    instance = family("small").cells({"regime": "overloaded", "clients": 70, "servers": 4})[0].build(0)
    graph, home = client_graph(instance), nearest_server(instance)
    root = RootRelaxation(graph, home, overloaded=False)
    root.step()
    relaxation = ContentsRelaxation(graph, home, evaluate(instance, home).objective)
    for _ in range(250):
        relaxation.step()
    estimate = relaxation.estimate()
    value = relaxation.prove(100_000)
    assert relaxation.dual is not None
    assert root.bound.value * 2 < value <= estimate + 1e-3
    claim = int(np.floor(value * (1 - 2e-7) * 2**30))
    proof = (home_prices_to_step(relaxation.dual),)
    certificate = Certificate(instance=instance.hash, home=home, claim=claim, bits=30, proof=proof)
    assert verify(instance, certificate).proved


def test_a_proof_of_too_many_nodes_is_not_kept():
    instance = family("small").cells({"regime": "overloaded", "clients": 20, "servers": 4})[0].build(0)
    relaxation = ContentsRelaxation(client_graph(instance), nearest_server(instance), 100.0)
    for _ in range(10):
        relaxation.step()
    # The first servers use up the nodes, and the others are not searched.
    assert relaxation.prove(1) == -np.inf
    assert relaxation.dual is None
    relaxation.prove(100_000)
    assert relaxation.dual is not None
