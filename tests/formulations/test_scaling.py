import math

import numpy as np
import pytest

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.scaling import NOTHING, Negligible, scale
from relocbench.instances.evaluation import evaluate
from tests.extreme_samples import extreme_instance
from tests.samples import random_home, random_instance, scaled_delays


def shares(linear, home):
    """θ of each server; 0 where a client alone makes it negligible."""
    theta = np.ones(linear.n_servers)
    for l in range(linear.n_servers):
        here = np.flatnonzero(np.asarray(home) == l)
        topics = {n for m in here for n in linear.client_topics[m]}
        stored, computed = linear.spool[sorted(topics)].sum(), linear.demand[here].sum()
        if stored > linear.storage_capacity[l]:
            theta[l] = linear.storage_capacity[l] / stored
        if computed > linear.compute_capacity[l]:
            theta[l] = min(theta[l], linear.compute_capacity[l] / computed)
        if (linear.client_share[here, l] == 0).any():
            theta[l] = 0.0
    return theta


def objective(linear, home):
    """The objective of the models, as the docstring of linearisation.py writes it."""
    home = np.asarray(home)
    theta = shares(linear, home)[home]
    cost = (linear.weight * linear.client_delay[np.arange(linear.n_clients), home]).sum()
    cost += linear.detour * (linear.publications * (1 - theta)).sum()
    between = linear.server_delay[home[linear.sender], home[linear.receiver]]
    return float(cost + (linear.pair_weight * theta[linear.sender] * between).sum())


@pytest.mark.parametrize("negligible", [NOTHING, Negligible(1e-7, 0.0), Negligible(1e-7, 1e-3)])
def test_no_assignment_costs_more_in_the_scaled_model_and_good_ones_cost_the_same(negligible):
    good = 0
    for seed in range(150):
        instance = extreme_instance(seed)
        linear = linearise(instance)
        homes = [random_home(instance, number) for number in range(10)]
        costs = [evaluate(instance, home).objective for home in homes]
        known = sorted(costs)[5]
        if known == 0:
            continue
        scaled = scale(linear, known, negligible=negligible)
        for home, cost in zip(homes, costs, strict=True):
            value = scaled.to_cost(objective(scaled.linear, home))
            assert value <= cost * (1 + 1e-9) + scaled.to_cost(scaled.loss), (instance.name, home)
            if scaled.complete and cost <= known:
                assert value == pytest.approx(cost, rel=1e-9, abs=scaled.to_cost(scaled.loss)), (instance.name, home)
                good += cost < known
    assert good > 100


def test_the_loss_is_small_beside_the_cost_unless_a_solver_needs_larger_shares():
    for seed in range(100):
        instance = extreme_instance(seed)
        cost = Incumbent(instance, None, None).cost
        if cost > 0:
            scaled = scale(linearise(instance), cost, negligible=Negligible(1e-7, 0.0))
            assert scaled.to_cost(scaled.loss) <= 1.01e-7 * cost


def test_the_coefficients_of_the_paper_stay_as_they_are():
    instance = random_instance(0, ("tight", "euclid", "far", "same"))
    linear = linearise(instance)
    scaled = scale(linear, evaluate(instance, random_home(instance, 0)).objective)
    assert scaled.unit == 1
    assert scaled.complete
    assert np.array_equal(scaled.linear.client_delay[linear.weight > 0], linear.client_delay[linear.weight > 0])
    assert np.array_equal(scaled.linear.spool, linear.spool)


@pytest.mark.parametrize("factor", [2.0**-60, 2.0**30])
def test_the_scaled_model_does_not_depend_on_the_unit_of_delays_and_loads(factor):
    for seed in range(20):
        instance = random_instance(seed)
        cost = Incumbent(instance, None, None).cost
        if cost == 0:
            continue
        one = scale(linearise(instance), cost)
        other = scale(linearise(scaled_delays(instance, factor)), cost * factor)
        assert other.unit == one.unit * factor
        assert math.log2(other.unit).is_integer()
        assert np.array_equal(one.linear.client_delay, other.linear.client_delay)
        assert np.array_equal(one.linear.server_delay, other.linear.server_delay)
        assert one.linear.detour == other.linear.detour


def test_the_largest_coefficients_are_near_the_cost():
    for seed in range(200):
        instance = extreme_instance(seed)
        cost = Incumbent(instance, None, None).cost
        if cost == 0:
            continue
        scaled = scale(linearise(instance), cost, negligible=Negligible(1e-7, 1e-7))
        linear, known = scaled.linear, scaled.to_model(cost)
        assert (linear.weight[:, None] * linear.client_delay).max() <= 4 * known * (1 + 1e-9)
        assert scaled.magnitude <= 65 * known * (1 + 1e-9)
        assert linear.client_share.max() <= 1
        assert ((linear.client_share == 0) | (linear.client_share >= linear.negligible_share)).all()


def test_a_better_cost_or_a_larger_limit_gives_another_model_and_otherwise_none():
    instance = extreme_instance(1003)  # delays between servers of several hundred beside ordinary ones
    cost = Incumbent(instance, None, None).cost
    first = scale(linearise(instance), cost)
    assert not first.complete
    second = first.refined(cost)
    assert second.complete
    assert second.linear.server_delay.max() * second.unit > first.linear.server_delay.max() * first.unit
    assert second.refined(cost) is None
    assert second.refined(cost / 3).cost == cost / 3
