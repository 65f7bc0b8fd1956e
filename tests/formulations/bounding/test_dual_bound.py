import numpy as np
import pytest

from relocbench.formulations.bounding.certificate_steps import _step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.dual_bound import Dual, bound_of, dual_of, least_cost_with
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import WholeProblem
from relocbench.formulations.certificates.region import State
from relocbench.instances.evaluation import evaluate
from tests.formulations.bounding.regions import assignments, inside, random_region, some_relaxation
from tests.samples import KINDS, enumerable_instance, random_instance

SEEDS = range(3 * len(KINDS))


def state_of(region, instance):
    opened = np.zeros((instance.n_topics, instance.n_servers), np.bool_)
    opened[region.graph.loading] = region.opened
    low, high = (np.round(1024 * values).astype(np.int64) for values in (region.low, region.high))
    return State(region.allowed, opened, low, high)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_assignment_of_a_region_costs_less_than_its_bound(seed):
    rng = np.random.default_rng(seed)
    instance = enumerable_instance(seed, 300)
    region, known = random_region(instance, rng)
    dual = dual_of(some_relaxation(region, rng))
    bound = bound_of(dual, region)
    least = least_cost_with(dual, bound, region)
    found = False
    for home in assignments(region):
        cost = evaluate(instance, home)
        if not inside(region, cost.theta):
            continue
        found = found or home.tolist() == known.tolist()
        rounding = 1e-9 * max(1.0, cost.objective)
        assert bound.value <= cost.objective + rounding
        assert (least[np.arange(len(home)), home] <= cost.objective + rounding).all()
        assert (cost.theta >= region.least_share - 1e-12).all()
        assert (cost.theta[home] <= region.largest_share[np.arange(len(home)), home] + 1e-12).all()
    assert found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_verifier_finds_the_same_bound(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(seed)
    region, _ = random_region(instance, rng)
    dual = dual_of(some_relaxation(region, rng))
    bound = bound_of(dual, region)
    exact = DualBound(WholeProblem(instance), state_of(region, instance), _step(dual, fix=True))
    size = max(
        1.0,
        abs(bound.value),
        float(np.abs(dual.alpha * instance.storage_capacity + dual.beta * instance.compute_capacity).sum()),
    )
    assert float(exact.value) == pytest.approx(bound.value, abs=1e-7 * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_without_an_active_home_is_bounded_as_the_verifier_does(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(seed)
    region = Region.whole(client_graph(instance))
    dual = dual_of(some_relaxation(region, rng))
    client = int(rng.integers(instance.n_clients))
    other = ~dual.labels.servers[client]
    if not other.any():
        return
    region, _ = region.split_client(client, other)
    bound = bound_of(dual, region).value
    exact = DualBound(WholeProblem(instance), state_of(region, instance), _step(dual, fix=False))
    size = max(
        1.0,
        abs(bound),
        float(np.abs(dual.alpha * instance.storage_capacity + dual.beta * instance.compute_capacity).sum()),
    )
    assert float(exact.value) == pytest.approx(bound, abs=1e-7 * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_a_single_assignment_the_zero_dual_proves_the_cost(seed):
    instance = random_instance(seed)
    graph = client_graph(instance)
    home = np.random.default_rng(seed).integers(0, instance.n_servers, instance.n_clients)
    only = np.zeros((instance.n_clients, instance.n_servers), np.bool_)
    only[np.arange(instance.n_clients), home] = True
    region = Region.whole(graph).limited(only)
    cost = evaluate(instance, home).objective
    assert bound_of(Dual.nothing(region), region).value == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_going_on_with_the_same_labels_changes_nothing():
    region = Region.whole(client_graph(random_instance(6)))
    one, other = (Relaxation(region, Labels.of(region.allowed)) for _ in range(2))
    one.iterate(50)
    other.follow(one)
    for mine, its in zip(other.moving, one.moving, strict=True):
        if mine is not other.moving.ahead and mine is not other.moving.y_ahead:
            assert mine == pytest.approx(its, abs=1e-7)
