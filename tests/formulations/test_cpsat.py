import dataclasses
import math

import numpy as np
import pytest

from relocbench.formulations.cpsat import solve as cpsat
from relocbench.formulations.cpsat.model import build, choose_scales
from relocbench.formulations.cpsat.solve import solve
from relocbench.formulations.incumbent import slack
from relocbench.formulations.integer_scaling import lower_bound
from relocbench.formulations.linearisation import linearise
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged
from relocbench.instances.solution import Solution
from relocbench.runs.solve import solve_here as run
from tests.samples import KINDS, random_home, random_instance, worked_example

pytest.importorskip("ortools")


def enumerable(kind, most=800):
    """The first random instance of a kind that has few enough assignments for enumeration."""
    drawn = (random_instance(seed, kind) for seed in range(100, 200))
    return next(i for i in drawn if i.n_servers > 1 and i.n_clients > 2 and i.n_servers**i.n_clients <= most)


def optimum(instance):
    return run(instance, "enumerate").evaluation.objective


def assert_optimal(instance, solution: Solution):
    least = optimum(instance)
    assert solution.status == "optimal"
    assert evaluate(instance, solution.home).objective == pytest.approx(least, rel=1e-6, abs=1e-6)
    assert solution.bound <= least + 1e-9 * max(1, least)


@pytest.mark.parametrize("kind", KINDS, ids="-".join)
def test_finds_the_optimum_of_every_kind(kind):
    instance = enumerable(kind)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))


@pytest.mark.parametrize("settings", [{"conditioned": False}, {"presolve": False}, {"threads": 2}])
def test_finds_the_optimum_with_every_setting(settings):
    instance = family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(1)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30, **settings))


@pytest.mark.parametrize("kind", [("tight", "explicit", "far", "mixed"), ("tight", "explicit", "near", "same")])
@pytest.mark.parametrize("error", [1.0, 1e-2])
def test_minimum_on_a_coarse_scale_is_a_bound_within_the_error(kind, error):
    from ortools.sat.python import cp_model

    drawn = enumerable(kind)
    instance = dataclasses.replace(drawn, spool=np.ceil(drawn.spool))  # integer loads are not rounded
    linear, least = linearise(instance), optimum(instance)
    scales = choose_scales(linear, least, error)
    model = build(linear, scales, 1 << 60, conditioned=True, deadline=math.inf)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    assert solver.solve(model.model) == cp_model.OPTIMAL
    bound = lower_bound(solver.best_objective_bound, scales.objective)
    assert least - error <= bound <= least


def test_homes_are_excluded_where_the_scale_is_too_coarse_for_a_proof(monkeypatch):
    """Even the finest scale is coarse here, so that homes of nearly equal cost are excluded one by one."""
    monkeypatch.setattr(cpsat, "choose_scales", lambda linear, cost, error: choose_scales(linear, cost, 0.1))
    monkeypatch.setattr(cpsat, "ROUNDS", 2)
    instance = enumerable(("tight", "explicit", "far", "same"), most=100)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))


def test_scales_stay_within_64_bits_for_extreme_numbers():
    instance = enumerable(("tight", "euclid", "far", "same"), most=100)
    large = dataclasses.replace(
        instance, spool=instance.spool * 1e9, cloud_delay=1e7, storage_capacity=instance.storage_capacity * 1e9
    )
    assert_optimal(large, solve(large, seed=0, time_limit=30))


def test_start_that_is_optimal_is_proved_and_kept():
    instance = enumerable(("tight", "euclid", "far", "same"))
    best = run(instance, "enumerate").solution.home
    solution = solve(instance, seed=0, time_limit=30, start=best)
    assert_optimal(instance, solution)
    assert len({cost for _, cost, _ in solution.trace}) == 1


def test_without_time_the_start_is_returned_with_status_time_limit():
    instance = family("small").cells({"regime": "scarce", "clients": 39, "servers": 9})[0].build(0)
    start = random_home(instance, 0)
    solution = solve(instance, seed=0, time_limit=0.0, start=start)
    assert solution.status == "time_limit"
    assert np.array_equal(solution.home, start)


def test_trace_improves_monotonically_and_ends_at_the_result():
    points = []
    instance = family("tiny").cells({"regime": "overloaded", "shape": "plain"})[0].build(0)
    solution = solve(instance, seed=0, time_limit=30, on_progress=lambda *point: points.append(point))
    assert points == list(solution.trace)
    costs, bounds = [c for _, c, _ in points], [b for _, _, b in points]
    assert costs == sorted(costs, reverse=True)
    assert bounds == sorted(bounds)
    assert costs[-1] - bounds[-1] <= slack(costs[-1])


def test_nothing_is_printed_without_log(capfd):
    solve(worked_example(), seed=0, time_limit=10)
    assert capfd.readouterr() == ("", "")
    solve(worked_example(), seed=0, time_limit=10, log=True)
    assert "CpSolverResponse" in capfd.readouterr().out


def test_facts_contain_the_size_of_the_model():
    facts = solve(worked_example(), seed=0, time_limit=10).facts
    assert facts["variables"] > facts["binaries"] >= 8
    assert facts["constraints"] > 4


@pytest.mark.parametrize("spool", [4000.0, 20000.0])
def test_a_load_that_is_rounded_to_0_does_not_limit_a_share(spool):
    """The spool of the second topic is rounded to 0, because the first is so large. It must still fit into a server."""
    instance = Instance(
        cloud_delay=5.0,
        delay_per_km=0.1,
        server_x=np.zeros(2),
        server_y=np.zeros(2),
        storage_capacity=[1.5, 1.5],
        compute_capacity=[1e6, 1e6],
        client_x=np.zeros(3),
        client_y=np.zeros(3),
        spool=[spool, 1.0],
        publishers=Ragged.of([[0, 1], [2]]),
        subscribers=Ragged.of([[0, 1], [0]]),
        client_server_delay=[[0, 1], [1, 0], [0, 1.2]],
        server_server_delay=[[0, 1], [1, 0]],
    )
    result = run(instance, "cpsat")
    assert result.solution.status == "optimal"
    assert result.evaluation.objective == pytest.approx(run(instance, "enumerate").evaluation.objective)


@pytest.mark.parametrize(("delays", "cloud"), [(0.01, 1.0), (1.0, 60.0), (1.0, 1000.0)])
def test_a_distant_cloud_does_not_overflow(delays, cloud):
    instance = family("tiny").cells({"regime": "overloaded", "shape": "plain"})[0].build(2)
    far = dataclasses.replace(
        instance, delay_per_km=delays * instance.delay_per_km, cloud_delay=cloud * instance.cloud_delay
    )
    result = run(far, "cpsat", time_limit=120)
    assert result.evaluation.objective == pytest.approx(run(far, "enumerate").evaluation.objective)
    assert result.solution.status == "optimal"


def test_the_presolve_step_that_overflows_is_off_where_rows_have_large_coefficients(monkeypatch):
    """OR-Tools 9.15 adds up such coefficients of Booleans in 32 bits, and then drops rows that are not redundant."""
    from ortools.sat.python import cp_model

    limits, largest = [], []
    solve_model = cp_model.CpSolver.solve

    def watched(self, model, *args):
        limits.append(self.parameters.presolve_inclusion_work_limit)
        rows = [row.linear for row in model.proto.constraints if row.has_linear()]
        binary = {i for i, each in enumerate(model.proto.variables) if list(each.domain) == [0, 1]}
        terms = [term for row in rows for term in zip(row.vars, row.coeffs, strict=True)]
        largest.append(max(abs(value) for variable, value in terms if variable in binary))
        return solve_model(self, model, *args)

    monkeypatch.setattr(cp_model.CpSolver, "solve", watched)
    instance = dataclasses.replace(instance := enumerable(KINDS[8]), spool=instance.spool + 1 / 3)
    assert_optimal(instance, solve(instance, seed=0, time_limit=30))
    assert max(largest) > 2**31
    assert set(limits) == {0}
