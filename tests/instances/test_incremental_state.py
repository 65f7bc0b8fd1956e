import dataclasses

import numpy as np
import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.incremental_state import State
from relocbench.instances.nearest_server import nearest_server
from tests.samples import KINDS, random_home, random_instance

SUMS = ("storage_load", "compute_load", "sent", "spread", "theta")


def assert_equals_fresh_evaluation(state):
    fresh = evaluate(state.instance, state.home)
    assert state.objective == pytest.approx(fresh.objective, rel=1e-9, abs=1e-9)
    assert state.arrays.distance[0] == pytest.approx(fresh.distance_cost, rel=1e-9, abs=1e-9)
    for name in SUMS:
        np.testing.assert_allclose(state.arrays.server[name], getattr(fresh, name), rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("table", [True, False], ids=["delay table", "delays on the fly"])
@pytest.mark.parametrize("seed", range(3 * len(KINDS)))
def test_delta_equals_the_change_of_the_objective(seed, table, monkeypatch):
    if not table:
        monkeypatch.setattr("relocbench.instances.incremental_state.TABLE_ENTRIES", 0)
    instance = random_instance(seed)
    state = State(instance, random_home(instance, seed))
    rng = np.random.default_rng(seed)
    for _ in range(40):
        client, server = int(rng.integers(instance.n_clients)), int(rng.integers(instance.n_servers))
        before = evaluate(instance, state.home).objective
        predicted = state.delta(client, server)
        state.move(client, server)
        assert predicted == pytest.approx(evaluate(instance, state.home).objective - before, abs=1e-9)
        assert_equals_fresh_evaluation(state)


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_relaxed_capacities_and_prices_enter_the_objective(seed):
    instance = random_instance(seed)
    rng = np.random.default_rng(seed)
    room = float(rng.uniform(0, 0.5))
    storage_price, compute_price = rng.uniform(0, 3, (2, instance.n_servers))
    larger = dataclasses.replace(
        instance,
        storage_capacity=(1 + room) * instance.storage_capacity,
        compute_capacity=(1 + room) * instance.compute_capacity,
    )

    def cost(home):
        now = evaluate(larger, home)
        return now.objective + float(storage_price @ now.storage_load + compute_price @ now.compute_load)

    state = State(instance, random_home(instance, seed))
    state.relax_capacities(room, storage_price, compute_price)
    for _ in range(20):
        client, server = int(rng.integers(instance.n_clients)), int(rng.integers(instance.n_servers))
        before = cost(state.home)
        predicted = state.delta(client, server)
        state.move(client, server)
        assert predicted == pytest.approx(cost(state.home) - before, abs=1e-9)
        assert state.objective == pytest.approx(cost(state.home))
    state.refresh()
    assert state.objective == pytest.approx(cost(state.home))
    assert state.cost == pytest.approx(evaluate(instance, state.home).objective)
    state.restore_capacities()
    assert_equals_fresh_evaluation(state)


@pytest.mark.parametrize("sigma", [1, 20])
def test_rounding_errors_stay_small_over_a_hundred_thousand_moves(sigma, monkeypatch):
    monkeypatch.setattr("relocbench.instances.incremental_state.MOVES_BETWEEN_REFRESHES", 1 << 40)
    instance = FAMILIES["paper"].cells({"sigma": sigma})[0].build(0)
    state = State(instance, nearest_server(instance))
    rng = np.random.default_rng(0)
    moves = zip(
        rng.integers(instance.n_clients, size=100_000).tolist(),
        rng.integers(instance.n_servers, size=100_000).tolist(),
        strict=True,
    )
    for client, server in moves:
        state.move(client, server)
    assert_equals_fresh_evaluation(state)


def test_running_sums_are_refreshed_in_long_searches(monkeypatch):
    monkeypatch.setattr("relocbench.instances.incremental_state.MOVES_BETWEEN_REFRESHES", 3)
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(1)
    state = State(instance, nearest_server(instance))
    state.arrays.server["spread"] += 1.0
    for client in range(2):
        state.move(client, 3)
    assert state.arrays.server["spread"].sum() > evaluate(instance, state.home).spread.sum() + 1
    state.move(2, 3)
    assert_equals_fresh_evaluation(state)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_undo_reverts_moves_in_reverse_order(seed):
    instance = random_instance(seed)
    state = State(instance, random_home(instance, seed))
    rng = np.random.default_rng(seed)
    homes, objectives = [], []
    for _ in range(30):
        homes.append(state.home)
        objectives.append(state.objective)
        state.move(int(rng.integers(instance.n_clients)), int(rng.integers(instance.n_servers)))
    for home, objective in zip(reversed(homes), reversed(objectives), strict=True):
        state.undo()
        assert state.home.tolist() == home.tolist()
        assert state.objective == pytest.approx(objective, rel=1e-12, abs=1e-12)
    assert_equals_fresh_evaluation(state)
    with pytest.raises(IndexError, match="no move to undo"):
        state.undo()


def test_a_move_to_the_same_home_changes_nothing():
    instance = random_instance(3)
    state = State(instance, random_home(instance, 3))
    for client, server in enumerate(state.home):
        assert state.delta(client, int(server)) == 0.0


def test_the_initial_homes_are_not_modified():
    instance = random_instance(5)
    home = random_home(instance, 5).astype(np.int32)
    kept = home.copy()
    state = State(instance, home)
    for client in range(instance.n_clients):
        state.move(client, instance.n_servers - 1)
    assert home.tolist() == kept.tolist()


def test_moves_of_unknown_clients_or_servers_are_rejected():
    instance = random_instance(7)
    state = State(instance, random_home(instance, 7))
    for client, server in ((-1, 0), (instance.n_clients, 0), (0, -1), (0, instance.n_servers)):
        for method in (state.delta, state.move):
            with pytest.raises(IndexError, match="expected a"):
                method(client, server)


def test_memory_is_proportional_to_memberships():
    instance = FAMILIES["paper"].cells({"sigma": 5, "topics": 2000, "servers": 1024})[0].build(0)
    state = State(instance, nearest_server(instance))
    assert len(state.arrays.slot) <= len(instance.members.item)
    assert state.arrays.client_delay.size == 0
    for client in range(50):
        before = state.objective
        predicted = state.delta(client, client)
        state.move(client, client)
        assert state.objective - before == pytest.approx(predicted, abs=1e-6)
    assert_equals_fresh_evaluation(state)
