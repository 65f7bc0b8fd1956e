import numpy as np
import pytest

from relocbench.formulations.linearisation import linearise
from relocbench.instances.evaluation import evaluate
from tests.samples import random_home, random_instance, worked_example


def loads(model, home):
    """The storage and compute loads of each server, computed from the coefficients."""
    stored, computed = np.zeros(model.n_servers), np.zeros(model.n_servers)
    for spool, publishers in zip(model.spool, model.publishers, strict=True):
        for server in {home[m] for m in publishers}:
            stored[server] += spool
    np.add.at(computed, home, model.demand)
    return stored, computed


@pytest.mark.parametrize("seed", range(160))
def test_the_coefficients_give_the_cost_and_the_loads_of_every_assignment(seed):
    instance = random_instance(seed)
    model, home = linearise(instance), random_home(instance, seed)
    evaluation = evaluate(instance, home)
    theta = evaluation.theta[home]
    cost = (model.weight * model.client_delay[np.arange(model.n_clients), home]).sum()
    cost += model.detour * (model.publications * (1 - theta)).sum()
    apart = model.server_delay[home[model.sender], home[model.receiver]]
    cost += (model.pair_weight * theta[model.sender] * apart).sum()
    assert cost == pytest.approx(evaluation.objective)
    stored, computed = loads(model, home)
    assert stored == pytest.approx(evaluation.storage_load)
    assert computed == pytest.approx(evaluation.compute_load)


@pytest.mark.parametrize("seed", range(64))
def test_theta_never_exceeds_the_largest_share(seed):
    instance = random_instance(seed)
    model, home = linearise(instance), random_home(instance, seed)
    theta = evaluate(instance, home).theta
    clients = np.arange(model.n_clients)
    assert (theta[home] <= model.largest_share[clients, home] + 1e-12).all()
    assert (theta[model.surely_local] == 1).all()


def test_the_worked_example_has_these_coefficients():
    model = linearise(worked_example())
    assert model.demand.tolist() == [8, 8, 14, 0]
    assert model.publications.tolist() == [1, 1, 2, 0]
    assert model.weight.tolist() == [1, 1, 2, 4]
    assert list(zip(model.sender.tolist(), model.receiver.tolist(), model.pair_weight.tolist(), strict=True)) == [
        (0, 3, 1.0),
        (1, 3, 1.0),
        (2, 3, 2.0),
    ]
    assert model.publishers == ((0, 1, 2), (2,))
    assert model.client_topics == ((0,), (0,), (0, 1), ())
