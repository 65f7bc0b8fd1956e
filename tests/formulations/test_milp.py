import os

import numpy as np
import pytest

from relocbench.formulations import milp_strong
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.milp_basic import BasicModel
from relocbench.formulations.milp_strong import StrongModel
from relocbench.formulations.solvers.pulp_model import Arrays
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.runs.solve import solve_here as solve
from tests.samples import random_home, random_instance

pytest.importorskip("pulp")
SOLVERS = {"highs": "highspy", "scip": "pyscipopt", "cbc": "pulp"}
MODELS = {
    "basic": BasicModel,
    "together": lambda coefficients: StrongModel(coefficients, "together"),
    "everywhere": lambda coefficients: StrongModel(coefficients, "everywhere"),
}


@pytest.fixture(params=SOLVERS)
def solver(request):
    pytest.importorskip(SOLVERS[request.param])
    return request.param


def small(regime="overloaded", clients=10, servers=3, seed=0):
    return family("small").cells({"regime": regime, "clients": clients, "servers": servers})[0].build(seed)


def enumerable(count, first=0):
    seeds = (seed for seed in range(first, first + 1000))
    found = (made for seed in seeds if (made := random_instance(seed)).n_servers ** made.n_clients <= 2000)
    return [next(found) for _ in range(count)]


def violation(arrays, values):
    row = np.repeat(np.arange(len(arrays.low)), np.diff(arrays.start))
    activity = np.bincount(row, arrays.value * values[arrays.index], len(arrays.low))
    return max(np.max(arrays.low - activity, initial=0.0), np.max(activity - arrays.high, initial=0.0))


@pytest.mark.parametrize("name", MODELS)
def test_every_assignment_is_feasible_and_has_its_true_cost(name):
    for seed in range(64):
        instance = random_instance(seed)
        model = MODELS[name](linearise(instance))
        arrays = Arrays.of(model)
        for home in (random_home(instance, seed), np.zeros(instance.n_clients, int)):
            evaluation = evaluate(instance, home)
            values = model.values(home, evaluation.theta)
            assert values.min(initial=0.0) >= 0
            assert values.max(initial=0.0) <= 1
            assert violation(arrays, values) < 1e-9
            assert arrays.offset + arrays.cost @ values == pytest.approx(evaluation.objective)


@pytest.mark.parametrize("near", [False, True])
def test_theta_is_bounded_from_above_and_from_below_only_if_the_cloud_is_near(near):
    shape = "near-cloud" if near else "plain"
    instance = family("tiny").cells({"regime": "overloaded", "shape": shape})[0].build(0)
    model = BasicModel(linearise(instance))
    arrays = Arrays.of(model)
    home = np.zeros(instance.n_clients, int)
    theta = evaluate(instance, home).theta
    assert theta[0] < 0.9
    changed = theta.copy()
    changed[0] = theta[0] + 0.05
    assert violation(arrays, model.values(home, changed)) > 1e-3
    changed[0] = theta[0] - 0.05
    assert (violation(arrays, model.values(home, changed)) > 1e-3) == near


@pytest.mark.parametrize("method", ["milp-basic", "milp-strong", "milp-strong[condition=together]"])
def test_the_optimum_equals_that_of_enumeration(method):
    for instance in enumerable(24):
        best = solve(instance, "enumerate").evaluation.objective
        result = solve(instance, method)
        assert result.solution.status == "optimal"
        assert result.evaluation.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_all_solvers_find_the_optimum_of_all_kinds(solver):
    for instance in enumerable(6, first=40):
        best = solve(instance, "enumerate").evaluation.objective
        result = solve(instance, f"milp-strong[solver={solver}]")
        assert result.solution.status == "optimal"
        assert result.evaluation.objective == pytest.approx(best, rel=1e-6, abs=1e-6)


def test_an_optimal_start_is_kept_and_proved(solver):
    instance = small("scarce")
    best = solve(instance, "anneal[moves=100000]")
    solution = milp_strong.solve(instance, seed=0, time_limit=60, start=best.solution.home, solver=solver)
    assert solution.status == "optimal"
    assert solution.trace[0][1] == pytest.approx(best.evaluation.objective)
    assert solution.bound == pytest.approx(best.evaluation.objective, rel=1e-6)


def test_the_time_limit_leaves_the_start_or_better_without_a_proof(solver):
    instance = small("overloaded", 20, 4)
    start = solve(instance, "otos")
    result = solve(instance, f"milp-basic[solver={solver},start=otos]", time_limit=0.7)
    assert result.solution.status == "time_limit"
    assert result.seconds < 3
    assert result.solution.trace[0][1] == start.evaluation.objective
    assert result.evaluation.objective <= start.evaluation.objective
    assert result.solution.bound < result.evaluation.objective * 0.99


def test_without_time_an_assignment_without_a_bound_is_returned():
    solution = milp_strong.solve(small(), seed=0, time_limit=0.0)
    assert solution.status == "time_limit"
    assert solution.bound == -np.inf


def test_relaxations_of_all_solvers_agree_and_stay_below_the_optimum(solver):
    instance = small("scarce")
    best = solve(instance, "milp-strong").evaluation.objective
    for method in ("milp-basic", "milp-strong"):
        bound = solve(instance, f"{method}[relax=true,solver={solver}]").solution.bound
        assert bound == pytest.approx(solve(instance, f"{method}[relax=true]").solution.bound, rel=1e-6)
        assert bound <= best * (1 + 1e-12)


@pytest.mark.parametrize(("regime", "clients", "servers", "seed"), [("scarce", 15, 4, 0), ("overloaded", 15, 4, 0)])
def test_the_strong_relaxation_closes_most_of_the_gap(regime, clients, servers, seed):
    instance = small(regime, clients, servers, seed)
    best = solve(instance, "branch-price", time_limit=600).evaluation.objective
    basic, together, everywhere = (
        solve(instance, f"{name}relax=true]").solution.bound
        for name in ("milp-basic[", "milp-strong[condition=together,", "milp-strong[")
    )
    assert basic < together < everywhere <= best * (1 + 1e-9)
    assert everywhere - basic > 0.8 * (best - basic)


def test_any_multipliers_prove_a_valid_bound():
    instance = enumerable(1, first=5)[0]
    best = solve(instance, "enumerate").evaluation.objective
    arrays = Arrays.of(StrongModel(linearise(instance)))
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 0.1, 10.0):
        assert arrays.dual_bound(size * rng.normal(size=len(arrays.low))) <= best


def test_facts_contain_the_size_of_the_model_and_of_the_tree(solver):
    instance = small("scarce")
    facts = solve(instance, f"milp-strong[solver={solver}]").solution.facts
    assert facts["binaries"] == instance.n_clients * instance.n_servers
    assert facts["variables"] > facts["binaries"]
    assert facts["constraints"] > 0
    assert facts["nodes"] >= 0


def test_solvers_print_nothing_without_log_and_leave_no_files(solver, capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    instance = small("scarce")
    milp_strong.solve(instance, seed=0, time_limit=30, solver=solver)
    milp_strong.solve(instance, seed=0, time_limit=30, solver=solver, relax=True)
    assert capfd.readouterr() == ("", "")
    milp_strong.solve(instance, seed=0, time_limit=30, solver=solver, log=True)
    assert capfd.readouterr().out
    assert os.listdir(tmp_path) == []


def test_a_server_with_room_for_every_load_has_no_capacity_rows():
    model = StrongModel(linearise(random_instance(3, ("loose", "euclid", "near", "same"))))
    assert not model.limited
    assert not model.theta
    assert {variable.name.split("_")[0] for variable in model.columns} == {"x", "z"}
