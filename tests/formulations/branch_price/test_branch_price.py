import dataclasses

import numpy as np
import pytest

from relocbench.formulations.branch_price import solve as branch_price
from relocbench.formulations.branch_price.master import Master
from relocbench.formulations.branch_price.pricing import price_columns
from relocbench.formulations.incumbent import OutOfTimeError
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.local_search import descend
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged
from relocbench.runs.solve import solve_here as solve
from tests.samples import KINDS, enumerable_instance, random_home, random_instance, scaled_delays

pytest.importorskip("highspy")


def small(regime, clients, seed):
    return FAMILIES["small"].cells({"regime": regime, "clients": clients})[0].build(seed)


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_columns_of_one_assignment_cost_as_much_as_the_assignment(seed):
    instance = random_instance(seed)
    home = random_home(instance, seed)
    master = Master(linearise(instance), grouped=False)
    for l in range(instance.n_servers):
        assert master.add(l, home == l)
        assert not master.add(l, home == l)
    allowed = np.zeros((instance.n_clients, instance.n_servers), np.bool_)
    allowed[np.arange(instance.n_clients), home] = True
    solution = master.solve(allowed, 60)
    assert solution.value == pytest.approx(evaluate(instance, home).objective)
    assert solution.shares == pytest.approx(allowed.astype(float))


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_groups_of_messages_do_not_change_the_cost_of_an_assignment(seed):
    """Nothing is fixed here: only the columns say where the messages of a group end."""
    instance = random_instance(seed)
    for draw in range(3):
        home = random_home(instance, 10 * seed + draw)
        master = Master(linearise(instance), grouped=True)
        for l in range(instance.n_servers):
            master.add(l, home == l)
        solution = master.solve(np.ones((instance.n_clients, instance.n_servers), np.bool_), 60)
        assert solution.value == pytest.approx(evaluate(instance, home).objective)


def test_messages_to_one_receiver_about_the_same_topics_share_their_rows():
    model = linearise(small("overloaded", 30, 0))
    topics = [set(own) for own in model.client_topics]
    groups = {(r, *sorted(topics[m] & topics[r])) for m, r in zip(model.sender, model.receiver, strict=True)}
    assert 2 * len(groups) < len(model.sender)
    for grouped, flows in ((True, len(groups)), (False, len(model.sender))):
        _, rows = Master(model, grouped=grouped).size
        assert rows == model.n_clients + model.n_servers + 2 * flows * model.n_servers


@pytest.mark.parametrize("gain", [0.0, 1e9])
def test_the_root_is_refined_where_pairs_raise_the_bound(gain, monkeypatch):
    """With the gain 0 the messages are always distinguished by pairs, with a large gain never."""
    monkeypatch.setattr(branch_price, "PARAMS", dataclasses.replace(branch_price.PARAMS, refinement_gain=gain))
    instance = small("overloaded", 20, 0)
    result = solve(instance, "branch-price", time_limit=600)
    model = linearise(instance)
    assert result.solution.status == "optimal"
    _, rows = Master(model, grouped=gain > 0).size
    assert result.solution.facts["constraints"] == rows


@pytest.mark.parametrize("seed", range(2 * len(KINDS)))
def test_any_dual_variables_give_a_bound(seed):
    """The formula in the docstring of the master problem, at random dual variables, is below the optimum."""
    instance = enumerable_instance(seed)
    rng = np.random.default_rng(seed)
    model = linearise(instance)
    master = Master(model, grouped=bool(seed % 2))
    for l in range(model.n_servers):
        master.add(l, np.full(model.n_clients, l == 0))
    everywhere = np.ones((model.n_clients, model.n_servers), np.bool_)
    solution = master.solve(everywhere, 60)._replace(
        client_dual=rng.uniform(-1, 5, model.n_clients),
        receiver_dual=-rng.exponential(0.3, (len(model.sender), model.n_servers)),
    )
    none = np.zeros(model.n_clients, np.bool_)
    bound = solution.client_dual.sum()
    for l in range(model.n_servers):
        problem = master.pricing_problem(solution, everywhere, l)
        bound += price_columns(problem, none, none, limit=np.inf, most=1, most_nodes=10**6).least
    assert bound <= solve(instance, "enumerate").evaluation.objective + 1e-9


def test_overloaded_instances_out_of_reach_of_the_linear_models_are_proved():
    """Five nodes are enough. HiGHS with the strong model does not finish in a minute."""
    result = solve(small("overloaded", 20, 0), "branch-price", time_limit=600)
    assert result.solution.status == "optimal"
    assert result.solution.facts["nodes"] > 1
    assert result.solution.facts["root_bound"] > 0.995 * result.evaluation.objective


def test_the_time_limit_leaves_a_bound_between_the_trivial_one_and_the_cost():
    instance = small("overloaded", 26, 0)
    result = solve(instance, "branch-price", time_limit=2.0)
    assert result.solution.status in ("time_limit", "optimal")
    model = linearise(instance)
    trivial = (model.weight[:, None] * model.client_delay).min(axis=1).sum()
    assert trivial <= result.solution.bound <= result.evaluation.objective


def test_bound_and_incumbent_never_get_worse():
    trace = solve(small("scarce", 20, 1), "branch-price", time_limit=600).solution.trace
    seconds, incumbents, bounds = np.array(trace).T
    assert (np.diff(seconds) >= 0).all()
    assert (np.diff(incumbents) <= 0).all()
    assert bounds.tolist() == sorted(bounds)
    assert len(trace) > 3


def test_a_search_that_ends_too_early_is_repeated_while_there_is_time(monkeypatch):
    """At a start the speed may be measured far too low, because the process had to wait."""
    params = dataclasses.replace(branch_price.PARAMS, nodes_per_second=1e-3, measured_nodes=10, spare_nodes=20)
    monkeypatch.setattr(branch_price, "PARAMS", params)
    result = solve(small("overloaded", 15, 0), "branch-price", time_limit=60)
    assert result.solution.status == "optimal"


def test_the_master_problem_starts_with_local_optima(monkeypatch):
    instance = small("overloaded", 15, 0)
    begun = []
    monkeypatch.setattr(branch_price._Search, "_explore", lambda self, node: begun.append(self) or ())
    branch_price.solve(instance, seed=0, time_limit=60)
    columns, _ = begun[0].master.size
    monkeypatch.setattr(branch_price, "PARAMS", dataclasses.replace(branch_price.PARAMS, local_optima=0))
    branch_price.solve(instance, seed=0, time_limit=60)
    assert columns > begun[1].master.size[0] + 2 * instance.n_servers


def test_the_log_is_printed_only_if_requested(capfd):
    instance = small("scarce", 10, 0)
    branch_price.solve(instance, seed=0, time_limit=60)
    assert capfd.readouterr() == ("", "")
    branch_price.solve(instance, seed=0, time_limit=60, log=True)
    assert "node 1" in capfd.readouterr().out


@pytest.mark.slow
def test_the_bound_holds_whenever_the_time_ends(monkeypatch):
    """The time limit is placed at many of the clock readings. Incumbents are poor, so that there are many branches."""
    readings = {"made": 0, "most": 10**9}

    def time_left(self):
        readings["made"] += 1
        if readings["made"] > readings["most"]:
            raise OutOfTimeError
        return 60.0

    monkeypatch.setattr(branch_price._Search, "_time_left", time_left)
    monkeypatch.setattr(branch_price._Search, "_round", lambda self, solution, allowed: None)
    monkeypatch.setattr(branch_price, "descend", lambda instance, home: np.asarray(home))
    instance = random_instance(4)
    least = solve(instance, "enumerate").evaluation.objective
    complete = branch_price.solve(instance, seed=0, time_limit=60)
    assert complete.facts["nodes"] > 2
    total = readings["made"]
    for most in range(1, total, max(1, total // 60)):
        readings.update(made=0, most=most)
        assert branch_price.solve(instance, seed=0, time_limit=60).bound <= least + 1e-6


def test_a_set_that_fills_a_server_exactly_is_found():
    """The capacities are sums of the spools; the search adds the spools in another order."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        clients = int(rng.integers(3, 6))
        spool = rng.integers(1, 12, clients) / 10
        topics = Ragged.of([[m] for m in range(clients)])
        instance = Instance(
            cloud_delay=5.0,
            delay_per_km=0.1,
            server_x=[0.0, 10.0],
            server_y=[0.0, 0.0],
            storage_capacity=[spool.sum(), 0.1],
            compute_capacity=[spool.sum(), 0.1],
            client_x=rng.uniform(0, 10, clients),
            client_y=np.zeros(clients),
            spool=spool,
            publishers=topics,
            subscribers=Ragged.of([[(m + 1) % clients] for m in range(clients)]),
        )
        result = solve(instance, "branch-price")
        assert result.evaluation.objective == pytest.approx(solve(instance, "enumerate").evaluation.objective)
        assert result.solution.status == "optimal"


def test_the_local_search_ends_with_large_delays():
    slow = scaled_delays(random_instance(27), 1e7)
    for seed in range(20):
        home = descend(slow, random_home(slow, seed))
        assert evaluate(slow, home).objective <= evaluate(slow, random_home(slow, seed)).objective
