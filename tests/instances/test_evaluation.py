import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.evaluation_literal import evaluate_literal
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.nearest_server import nearest_server
from tests.samples import KINDS, random_home, random_instance, relabelled, scaled_delays, worked_example

COLUMNS = ("theta", "storage_load", "compute_load", "sent", "spread")


def test_worked_example_of_the_model():
    instance = worked_example()
    cost = evaluate(instance, [0, 0, 1, 1])
    assert cost.storage_load.tolist() == [8, 14]
    assert cost.compute_load.tolist() == [16, 14]
    assert cost.theta.tolist() == [1, 10 / 14]
    assert cost.n_publications == 4
    # Calculated by hand: c1 and c2 publish to c4 from s1 (θ = 1), c3 publishes twice from s2 (θ = 10/14).
    receiver = 0.1 * 1
    at_first = (0.1 + 1.0 + receiver) + (0.2 + 1.0 + receiver)
    at_second = 2 * (0.1 + 10 * (1 - 10 / 14) + receiver)
    assert cost.objective == pytest.approx(at_first + at_second, rel=1e-12)
    assert evaluate_exact(instance, [0, 0, 1, 1]).theta == (1, Fraction(5, 7))


@pytest.mark.parametrize("seed", range(40 * len(KINDS)))
def test_three_evaluators_agree(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    fast, literal, exact = (f(instance, home) for f in (evaluate, evaluate_literal, evaluate_exact))
    assert fast.n_publications == literal.n_publications == exact.n_publications
    for name in ("objective", "distance_cost", "processing_cost", *COLUMNS):
        exact_value = getattr(exact, name)
        expected = [float(value) for value in exact_value] if name in COLUMNS else float(exact_value)
        for result in (fast, literal):
            np.testing.assert_allclose(getattr(result, name), expected, rtol=1e-12, atol=1e-12, err_msg=name)
    assert fast.y == pytest.approx(fast.y1 + fast.y2, rel=1e-15)
    assert fast.y * max(fast.n_publications, 1) == pytest.approx(fast.objective, rel=1e-12)


def test_random_instances_cover_all_special_cases():
    seen = set()
    for seed in range(40 * len(KINDS)):
        instance = random_instance(seed)
        cost = evaluate(instance, random_home(instance, seed))
        seen.add("overload" if cost.theta.min() < 1 else "no overload")
        seen.add("far cloud" if instance.cloud_is_far else "near cloud")
        seen |= {"single member"} if (instance.members.sizes == 1).any() else set()
        seen |= {"nothing published"} if instance.n_publications == 0 else set()
        seen |= {"zero capacity"} if (instance.storage_capacity == 0).all() else set()
        seen |= {"asymmetric"} if not np.allclose(instance.server_delay, instance.server_delay.T) else set()
        seen |= {"idle client"} if (instance.topics.sizes == 0).any() else set()
        seen |= {"no receiver"} if (instance.subscribers.sizes == 0).any() else set()
    assert seen == {
        "overload", "no overload", "far cloud", "near cloud", "single member", "nothing published", "zero capacity",
        "asymmetric", "idle client", "no receiver",
    }  # fmt: skip


@pytest.mark.parametrize("family", ["paper", "preliminary", "tiny", "small"])
def test_evaluators_agree_on_families(family):
    for cell in FAMILIES[family].cells():
        instance = cell.build(0)
        for home in (nearest_server(instance), random_home(instance, 1)):
            cost = evaluate(instance, home)
            assert cost.objective == pytest.approx(float(evaluate_exact(instance, home).objective), rel=1e-12)
            assert cost.objective == pytest.approx(evaluate_literal(instance, home).objective, rel=1e-12)


@pytest.mark.parametrize("seed", range(48))
def test_relabelling_clients_and_servers_does_not_change_the_cost(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    rng = np.random.default_rng(seed)
    client_to, server_to = rng.permutation(instance.n_clients), rng.permutation(instance.n_servers)
    renamed_home = np.empty_like(home)
    renamed_home[client_to] = server_to[home]
    renamed = relabelled(instance, client_to, server_to)
    assert evaluate_exact(renamed, renamed_home).objective == evaluate_exact(instance, home).objective
    cost, again = evaluate(instance, home), evaluate(renamed, renamed_home)
    assert again.objective == pytest.approx(cost.objective, rel=1e-12)
    np.testing.assert_allclose(again.theta[server_to], cost.theta, rtol=1e-12)


@pytest.mark.parametrize("seed", range(48))
def test_scaling_all_delays_scales_the_cost(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    larger = scaled_delays(instance, 4)
    # A multiplication by a power of two is exact, so the rational costs scale exactly.
    assert evaluate_exact(larger, home).objective == 4 * evaluate_exact(instance, home).objective
    assert evaluate(larger, home).theta.tolist() == evaluate(instance, home).theta.tolist()


@pytest.mark.parametrize("seed", range(48))
def test_scaling_spools_and_capacities_together_does_not_change_the_cost(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    doubled = dataclasses.replace(
        instance,
        spool=2 * instance.spool,
        storage_capacity=2 * instance.storage_capacity,
        compute_capacity=2 * instance.compute_capacity,
    )
    assert evaluate_exact(doubled, home).objective == evaluate_exact(instance, home).objective


@pytest.mark.parametrize("seed", range(48))
def test_the_order_of_topics_and_members_does_not_change_the_cost(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(instance.n_topics)
    shuffled = dataclasses.replace(
        instance,
        spool=instance.spool[order],
        publishers=Ragged.of([rng.permutation(instance.publishers[n].tolist()).tolist() for n in order.tolist()]),
        subscribers=Ragged.of([rng.permutation(instance.subscribers[n].tolist()).tolist() for n in order.tolist()]),
    )
    assert evaluate_exact(shuffled, home).objective == evaluate_exact(instance, home).objective


@pytest.mark.parametrize("seed", range(48))
def test_with_a_far_cloud_more_capacity_never_raises_the_cost(seed):
    instance = random_instance(seed, ("tight", "explicit", "far", "mixed"))
    assert instance.cloud_is_far
    home = random_home(instance, seed)
    richer = dataclasses.replace(
        instance, storage_capacity=1.5 * instance.storage_capacity, compute_capacity=1.5 * instance.compute_capacity
    )
    assert evaluate_exact(richer, home).objective <= evaluate_exact(instance, home).objective


def test_with_a_near_cloud_more_capacity_can_raise_the_cost():
    instance = dataclasses.replace(worked_example(), cloud_delay=0.1)
    assert not instance.cloud_is_far
    poorer = dataclasses.replace(instance, storage_capacity=[1.0, 1.0])
    assert evaluate(poorer, [0, 0, 1, 1]).objective < evaluate(instance, [0, 0, 1, 1]).objective


@pytest.mark.parametrize(
    ("home", "problem"),
    [
        ([0, 0, 1], "home: expected 4 servers, one per client, got 3"),
        ([0, 0, 1, 2], "home[3]: expected a server from 0 to 1, got 2"),
        ([0, -1, 1, 1], "home[1]: expected a server from 0 to 1, got -1"),
        ([0.0, 0.5, 1.0, 1.0], "home[1]: expected a whole number, got 0.5"),
        (["a", "b", "a", "b"], "home: expected whole numbers, got ['a', 'b', 'a', 'b']"),
        ([[0, 0], [1, 1]], "home: expected 4 servers, one per client, got shape (2, 2)"),
        ([[0], [1, 1]], "home: expected a list of servers, got [[0], [1, 1]]"),
    ],
)
def test_invalid_assignments_are_rejected(home, problem):
    with pytest.raises(InputError) as caught:
        evaluate(worked_example(), home)
    assert str(caught.value) == problem


def test_homes_may_be_whole_numbers_in_floats():
    instance = worked_example()
    assert evaluate(instance, [0.0, 0.0, 1.0, 1.0]).objective == evaluate(instance, [0, 0, 1, 1]).objective


def test_labels_of_homes_are_the_ids_of_clients():
    pd = pytest.importorskip("pandas")
    clients = [{"id": name, "x": x, "y": 0} for name, x in (("ann", 0), ("bob", 5), ("cid", 9))]
    made = Instance.of(
        servers=[(0, 0), (9, 0)], clients=clients, topics={"t": ["ann", "bob", "cid"]}, storage=9, compute=99
    )
    wanted = evaluate(made, [0, 1, 1]).objective
    for labels, homes in ((["cid", "ann", "bob"], [1, 0, 1]), ([0, 1, 2], [0, 1, 1]), ([2, 0, 1], [1, 0, 1])):
        assert evaluate(made, pd.Series(homes, index=labels)).objective == wanted
    with pytest.raises(InputError, match="expected labels that are the ids of the clients"):
        evaluate(made, pd.Series([0, 1, 1], index=["x", "y", "z"]))


@pytest.mark.parametrize(("wrong", "found"), [(None, "None"), ({0: 1}, "{0: 1}"), ("homes.csv", "'homes.csv'")])
def test_what_is_no_list_of_homes_is_named(wrong, found):
    with pytest.raises(InputError, match=f"one per client, got {found}"):
        evaluate(worked_example(), wrong)
    with pytest.raises(
        InputError, match=r"instance: expected an Instance, got 'inst\.json'; relocbench\.read reads one"
    ):
        evaluate("inst.json", [0])
