import dataclasses
import json

import numpy as np
import pytest

from relocbench.formulations.certificates.verification import verify
from relocbench.formulations.enumeration import solve as enumerate_all
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import write_instance
from relocbench.runs.certify import certify
from relocbench.runs.solve import solve_here, warm_up
from tests.instances.files.bad_files import run_command
from tests.samples import KINDS, enumerable_instance, scaled_delays


@pytest.fixture(autouse=True, scope="module")
def _compiled():
    """Compile first: with an empty cache this takes longer than some of the time limits."""
    warm_up("bound")


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_small_instances_of_every_kind_are_proved_optimal(seed):
    instance = enumerable_instance(seed, 200)
    best = evaluate(instance, enumerate_all(instance, seed=0, time_limit=60).home).objective
    found = certify(instance, time_limit=60)
    assert found.verdict.status == "optimal"
    assert found.solution.status == "optimal"
    assert evaluate(instance, found.solution.home).objective == pytest.approx(best, rel=1e-6, abs=1e-6)
    assert found.solution.bound <= best * (1 + 1e-12)


@pytest.mark.parametrize("regime", ["loose", "scarce", "overloaded"])
def test_the_time_limit_leaves_a_verified_bound(regime):
    instance = FAMILIES["small"].cells({"regime": regime, "clients": 39, "servers": 9})[0].build(1)
    found = certify(instance, time_limit=3)
    verdict = verify(instance, found.certificate)
    assert verdict.proved
    assert verdict.bound == found.verdict.bound
    assert 0 < found.solution.bound <= evaluate(instance, found.solution.home).objective
    assert found.solution.bound > 0.5 * found.solution.facts["root_bound"]


def test_scaling_all_delays_scales_cost_and_bound():
    instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(2)
    one, other = certify(instance, time_limit=30), certify(scaled_delays(instance, 1024.0), time_limit=30)
    assert one.verdict.status == other.verdict.status == "optimal"
    assert float(other.verdict.objective) == pytest.approx(1024 * float(one.verdict.objective), rel=2e-6)


def test_an_interrupted_run_certifies_its_current_bound():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    calls = []

    def interrupt(seconds, incumbent, bound):
        calls.append(bound)
        if len(calls) == 3:
            raise KeyboardInterrupt

    found = certify(instance, time_limit=600, on_progress=interrupt)
    assert found.verdict.proved
    assert found.solution.bound >= 0.99 * calls[1]


def test_a_time_limit_of_0_still_gives_a_certificate():
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    assert certify(instance, time_limit=0).verdict.proved


def test_a_start_is_never_made_worse():
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(1)
    start = solve_here(instance, "anneal[moves=2e5]", seed=0).solution.home
    found = certify(instance, time_limit=0, start=start)
    assert float(found.verdict.objective) <= evaluate(instance, start).objective * (1 + 1e-12)


def test_the_commands_certify_and_verify(tmp_path):
    instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(0)
    path, proof = tmp_path / "inst.json", tmp_path / "cert.json"
    write_instance(instance, path)
    code, out, err = run_command("certify", path, "--time-limit", "30", "--out", proof, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    assert answer["status"] == "optimal"
    assert answer["objective"] - answer["bound"] == pytest.approx(answer["gap"] * answer["objective"], abs=1e-9)
    code, out, _ = run_command("verify", path, proof)
    assert code == 0
    assert "proved (optimal)" in out
    code, out, _ = run_command("certify", path, "--time-limit", "30", "--out", proof)
    assert code == 0
    assert f"relocbench verify {path} {proof}" in out
    code, _, err = run_command("certify", path, "--out", tmp_path / "cert.txt")
    assert code == 2
    assert "cert.txt" in err
    other = dataclasses.replace(instance, cloud_delay=instance.cloud_delay + 1)
    write_instance(other, path)
    code, _, err = run_command("verify", path, proof)
    assert code == 1
    assert "instance" in err


def test_the_method_bound_returns_a_proved_solution():
    instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(3)
    result = solve_here(instance, "bound", time_limit=30)
    assert result.solution.status == "optimal"
    assert np.isfinite(result.solution.bound)
