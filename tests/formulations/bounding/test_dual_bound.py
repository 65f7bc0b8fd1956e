import numpy as np
import pytest

from relocbench.formulations.bounding.certificate_steps import dual_to_step
from relocbench.formulations.bounding.client_graph import client_graph
from relocbench.formulations.bounding.dual_bound import Dual, bound_of, dual_of, least_cost_with
from relocbench.formulations.bounding.pdhg import PdhgIterate
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.certificates import region as verifier_region
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.instances.evaluation import evaluate
from tests.formulations.bounding.regions import assignments, inside, random_region, some_relaxation
from tests.samples import KINDS, enumerable_instance, random_instance

SEEDS = range(3 * len(KINDS))


def as_verifier_region(region, instance):
    """The same region in the form of the verifier."""
    opened = np.zeros((instance.n_topics, instance.n_servers), np.bool_)
    opened[region.graph.loading] = region.opened
    low, high = (np.round(1024 * values).astype(np.int64) for values in (region.low, region.high))
    return verifier_region.Region(region.allowed, opened, low, high)


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
        assert (cost.theta >= region.least_theta - 1e-12).all()
        assert (cost.theta[home] <= region.largest_theta[np.arange(len(home)), home] + 1e-12).all()
    assert found


@pytest.mark.parametrize("seed", SEEDS)
def test_the_verifier_finds_the_same_bound(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(seed)
    region, _ = random_region(instance, rng)
    dual = dual_of(some_relaxation(region, rng))
    bound = bound_of(dual, region)
    exact = DualBound(IntegerProblem(instance), as_verifier_region(region, instance), dual_to_step(dual, fix=True))
    size = max(
        1.0,
        abs(bound.value),
        float(np.abs(dual.alpha * instance.storage_capacity + dual.beta * instance.compute_capacity).sum()),
    )
    assert float(exact.value) == pytest.approx(bound.value, abs=1e-7 * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_client_without_an_active_home_has_the_same_bound_as_in_the_verifier(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(seed)
    region = Region.root(client_graph(instance))
    dual = dual_of(some_relaxation(region, rng))
    client = int(rng.integers(instance.n_clients))
    other = ~dual.labels.servers[client]
    if not other.any():
        return
    region, _ = region.split_client(client, other)
    bound = bound_of(dual, region).value
    exact = DualBound(IntegerProblem(instance), as_verifier_region(region, instance), dual_to_step(dual, fix=False))
    size = max(
        1.0,
        abs(bound),
        float(np.abs(dual.alpha * instance.storage_capacity + dual.beta * instance.compute_capacity).sum()),
    )
    assert float(exact.value) == pytest.approx(bound, abs=1e-7 * size)


@pytest.mark.parametrize("seed", SEEDS)
def test_on_a_single_assignment_the_bound_of_the_zero_dual_is_the_cost(seed):
    instance = random_instance(seed)
    graph = client_graph(instance)
    home = np.random.default_rng(seed).integers(0, instance.n_servers, instance.n_clients)
    only = np.zeros((instance.n_clients, instance.n_servers), np.bool_)
    only[np.arange(instance.n_clients), home] = True
    region = Region.root(graph).restricted(only)
    cost = evaluate(instance, home).objective
    assert bound_of(Dual.zero(region), region).value == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_a_warm_start_with_the_same_labels_changes_nothing():
    region = Region.root(client_graph(random_instance(6)))
    one, other = (Relaxation(region, Labels.of(region.allowed)) for _ in range(2))
    one.iterate(50)
    other.warm_start(one)
    for name in PdhgIterate._fields:
        if not name.endswith("extrapolated"):
            assert getattr(other.variables, name) == pytest.approx(getattr(one.variables, name), abs=1e-7)
