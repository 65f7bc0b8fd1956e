import dataclasses

import numpy as np
import pytest

from relocbench.heuristics.anneal_prices import PARAMS, Prices
from relocbench.instances.evaluation import evaluate
from relocbench.instances.incremental_state import State
from relocbench.instances.nearest_server import nearest_server
from tests.samples import random_instance


def _new_prices(instance, sacrificed=()):
    return Prices(instance, 1.0, 0.2, np.isin(np.arange(instance.n_servers), sacrificed))


def _prices(state):
    server = state.arrays.server
    return server["storage_price"].copy(), server["compute_price"].copy()


def test_prices_rise_where_a_server_is_overloaded_and_fall_to_a_lower_limit_elsewhere():
    instance = random_instance(3)
    state = State(instance, np.zeros(instance.n_clients, np.int32))
    used = state.arrays.server["storage_load"][0], state.arrays.server["compute_load"][0]
    assert min(used) > 0
    tight = dataclasses.replace(
        instance,
        storage_capacity=np.full(instance.n_servers, used[0] / 1.5),
        compute_capacity=np.full(instance.n_servers, used[1] * 2),
    )
    state = State(tight, state.home)
    prices = _new_prices(tight)
    prices.impose(state, 0.0)
    storage, compute = _prices(state)
    prices.impose(state, 0.01)
    storage_next, compute_next = _prices(state)
    assert storage_next[0] > storage[0]
    assert (storage_next[1:] < storage[1:]).all()
    assert (compute_next < compute).all()
    prices.impose(state, 1.0)
    np.testing.assert_allclose(_prices(state)[1], PARAMS.least_price * compute)


def test_the_extra_capacity_shrinks_to_nothing():
    instance = random_instance(3)
    state = State(instance, np.zeros(instance.n_clients, np.int32))
    prices = _new_prices(instance)
    prices.impose(state, 0.0)
    assert (state.arrays.server["storage_capacity"] > instance.storage_capacity).all()
    prices.impose(state, 1.0)
    assert state.arrays.server["storage_capacity"].tolist() == instance.storage_capacity.tolist()


def test_a_server_without_capacity_has_a_price_too():
    instance = dataclasses.replace(random_instance(3), storage_capacity=np.zeros(random_instance(3).n_servers))
    state = State(instance, np.zeros(instance.n_clients, np.int32))
    prices = _new_prices(instance)
    prices.impose(state, 0.5)
    assert np.isfinite(_prices(state)).all()


def test_given_prices_are_the_first_prices_unless_they_are_too_low_to_rise():
    instance = random_instance(0)
    usual = _new_prices(instance)
    storage = np.linspace(0.0, 3.0, instance.n_servers)
    given = Prices(instance, 1.0, 0.2, np.zeros(instance.n_servers, np.bool_), (storage, storage))
    found = State(instance, nearest_server(instance))
    given.impose(found, 0.0)
    np.testing.assert_array_equal(found.arrays.server["storage_price"][1:], storage[1:])
    assert 0 < found.arrays.server["storage_price"][0] < 0.01 * usual._storage[0]


def test_a_sacrificed_server_keeps_its_capacity_and_has_no_price():
    instance = random_instance(3)
    state = State(instance, np.zeros(instance.n_clients, np.int32))
    _new_prices(instance, sacrificed=[0]).impose(state, 0.1)
    for price in _prices(state):
        assert price[0] == 0
        assert (price[1:] > 0).all()
    assert state.arrays.server["storage_capacity"][0] == instance.storage_capacity[0]
    assert (state.arrays.server["storage_capacity"][1:] > instance.storage_capacity[1:]).all()


def test_copied_prices_change_independently():
    instance = random_instance(3)
    state = State(instance, np.zeros(instance.n_clients, np.int32))
    prices = _new_prices(instance)
    copied = prices.copy()
    before = prices.values[1].copy()
    copied.impose(state, 0.5)
    assert prices.values[1].tolist() == before.tolist() != copied.values[1].tolist()


def test_the_value_of_homes_is_their_cost_plus_the_priced_excess_of_the_loads():
    instance = random_instance(3)
    home = nearest_server(instance)
    prices = _new_prices(instance, sacrificed=[0])
    state = State(instance, home)
    prices.impose(state, 1.0)
    now = evaluate(instance, home)
    storage, compute = prices.values
    excess = storage * (now.storage_load - instance.storage_capacity)
    excess += compute * (now.compute_load - instance.compute_capacity)
    assert prices.value(home) == pytest.approx(now.objective + excess[1:].sum())
