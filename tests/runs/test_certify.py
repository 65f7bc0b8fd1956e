import dataclasses
import itertools
import json
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.bounding.branch_and_bound import BranchAndBound
from relocbench.formulations.certificates.certificate import Contents
from relocbench.formulations.certificates.content_bound import ContentBound
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.verification import cost, verify
from relocbench.formulations.enumeration import solve as enumerate_all
from relocbench.instances.errors import InputError
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
    assert (found.status, found.gap) == ("optimal", 0.0)
    assert found.objective == float(found.verdict.objective)
    assert found.bound == found.solution.bound
    assert found.home is found.solution.home


@pytest.mark.parametrize("regime", ["loose", "scarce", "overloaded"])
def test_the_time_limit_leaves_a_verified_bound(regime):
    instance = FAMILIES["small"].cells({"regime": regime, "clients": 39, "servers": 9})[0].build(1)
    found = certify(instance, time_limit=3)
    verdict = verify(instance, found.certificate)
    assert verdict.proved
    assert verdict.bound == found.verdict.bound
    assert 0 < found.solution.bound <= evaluate(instance, found.solution.home).objective
    assert found.solution.bound > 0.5 * found.solution.facts["root_bound"]


@pytest.mark.slow
@pytest.mark.parametrize(("regime", "clients"), [("overloaded", 18), ("scarce", 26)])
def test_scarce_capacity_is_proved_by_branch_and_price(regime, clients):
    pytest.importorskip("highspy")
    instance = FAMILIES["small"].cells({"regime": regime, "clients": clients})[0].build(0)
    found = certify(instance, time_limit=600)
    assert (found.verdict.proved, found.status) == (True, "optimal")
    assert any(isinstance(step, Contents) for step in found.certificate.proof)
    assert found.verdict.steps < 100


def test_without_its_solver_branch_and_price_is_left_out(monkeypatch):
    monkeypatch.setattr("relocbench.runs.certify.missing", lambda *modules: "not installed")
    instance = FAMILIES["small"].cells({"regime": "overloaded", "clients": 15})[0].build(0)
    found = certify(instance, time_limit=2)
    assert found.verdict.proved
    assert not any(isinstance(step, Contents) for step in found.certificate.proof)


def test_a_proof_by_branch_and_price_that_takes_too_long_to_verify_is_left_out(monkeypatch):
    pytest.importorskip("highspy")
    monkeypatch.setattr(ContentBound, "check", refuse)
    instance = FAMILIES["small"].cells({"regime": "overloaded", "clients": 15})[0].build(0)
    found = certify(instance, time_limit=20)
    assert found.verdict.proved
    assert (found.status, found.bound) < ("optimal", found.objective)
    # No bound that was reported on the way is above what is proved at the end.
    assert max(bound for _, _, bound in found.solution.trace) <= found.bound * (1 + 1e-6)


def refuse(bound):
    raise InputError("", "not proved within the time limit")


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
    assert (answer["status"], answer["gap"]) == ("optimal", 0)
    assert 0 <= answer["objective"] - answer["bound"] <= 1e-6 * answer["objective"]
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


def unusual(instance, rng):
    """The instance with single delays, spools or capacities, or all of them, of other magnitudes."""
    every = np.arange(instance.n_clients)[:, None], np.arange(instance.n_servers)[None, :]
    client, server = np.array(instance.client_delay(*every)), np.array(instance.server_delay)
    factor = float(rng.choice([1e-300, 1e-100, 1e-12, 1e-6, 1e6, 1e11]))
    small = min(factor, 1e-3)
    client_outlier, server_outlier = client.copy(), server.copy()
    client_outlier[rng.integers(len(client)), rng.integers(len(server))] *= factor
    server_outlier[0, 1] *= factor
    one_spool, one_capacity = instance.spool.copy(), instance.storage_capacity.copy()
    one_spool[0] *= factor
    one_capacity[0] *= factor
    yield {"client_server_delay": client_outlier, "server_server_delay": server}
    yield {"client_server_delay": client, "server_server_delay": server_outlier}
    yield {
        "client_server_delay": client * small,
        "server_server_delay": server * small,
        "cloud_delay": instance.cloud_delay * float(rng.choice([small, 1.0])),
    }
    yield {"cloud_delay": min(instance.cloud_delay * factor, 1e12)}
    yield {"spool": one_spool}
    yield {"storage_capacity": one_capacity}
    yield {
        "spool": instance.spool * small,
        "storage_capacity": instance.storage_capacity * small,
        "compute_capacity": instance.compute_capacity * small,
    }


@pytest.mark.parametrize("part", range(4))
def test_certify_ends_with_a_true_claim_at_every_magnitude(part):
    optimal = 0
    for seed in range(part, len(KINDS), 4):
        instance = enumerable_instance(seed, most=70, least_servers=2)
        for changes in unusual(instance, np.random.default_rng(seed)):
            changed = dataclasses.replace(instance, **changes)
            homes = itertools.product(range(changed.n_servers), repeat=changed.n_clients)
            least = min(cost(changed, home) for home in homes)
            verdict = certify(changed, time_limit=0.05).verdict
            assert verdict.proved
            assert 0 <= verdict.bound <= least <= verdict.objective
            assert (verdict.stated_gap == 0) == (verdict.status == "optimal")
            optimal += verdict.status == "optimal"
    assert optimal > 10


@pytest.mark.parametrize("factor", [1e-9, 2.0**-900, 1e9])
def test_a_scaled_instance_gives_the_same_verdict(factor):
    instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(2)
    other = scaled_delays(instance, factor)
    one, two = (certify(problem, time_limit=30) for problem in (instance, other))
    assert (one.verdict.status, two.verdict.status) == ("optimal", "optimal")
    assert float(two.verdict.objective / one.verdict.objective) == pytest.approx(factor, rel=2e-6)
    assert two.solution.bound == pytest.approx(one.solution.bound * factor, rel=2e-6)
    assert two.solution.trace[-1][1] == pytest.approx(float(two.verdict.objective))


def test_a_cost_of_0_is_proved_optimal():
    instance = enumerable_instance(5, 200)
    every = np.zeros((instance.n_clients, instance.n_servers))
    free = dataclasses.replace(
        instance, client_server_delay=every, server_server_delay=np.zeros((instance.n_servers,) * 2), cloud_delay=0.0
    )
    found = certify(free, time_limit=30)
    assert (found.verdict.objective, found.verdict.bound, found.verdict.status) == (0, 0, "optimal")
    assert found.solution.status == "optimal"


def test_delays_far_above_the_others_are_certified_and_optimal_stands_beside_a_gap_of_0(tmp_path):
    instance = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(0)
    between = np.array(instance.server_delay)
    between[0, 1] = between[1, 0] = 1e11
    changed = dataclasses.replace(instance, server_server_delay=between)
    inst, cert = tmp_path / "inst.json", tmp_path / "cert.json"
    write_instance(changed, inst)
    code, out, err = run_command("certify", inst, "--out", cert, "--time-limit", "20", "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["status"], json.loads(out)["gap"]) == ("optimal", 0)
    assert "delay_cap" in json.loads(cert.read_text())
    code, out, err = run_command("verify", inst, cert, "--json")
    assert (code, err) == (0, "")
    assert (json.loads(out)["status"], json.loads(out)["gap"]) == ("optimal", 0)
    code, out, _ = run_command("verify", inst, cert)
    assert out.startswith("proved (optimal)")
    assert "gap = 0.000 %" in out


def test_a_bound_that_the_verifier_does_not_accept_is_lowered(monkeypatch):
    instance = enumerable_instance(3, 200)
    bound = BranchAndBound.bound.fget
    monkeypatch.setattr(BranchAndBound, "bound", property(lambda tree: 1.0005 * bound(tree)))
    found = certify(instance, time_limit=30)
    assert found.verdict.proved
    assert found.verdict.gap < 2e-3
    monkeypatch.setattr(BranchAndBound, "bound", property(lambda tree: 9 * bound(tree)))
    assert certify(instance, time_limit=30).verdict.proved
    monkeypatch.setattr(DualBound, "value", Fraction(10**9))
    found = certify(instance, time_limit=30)
    assert (found.verdict.proved, found.verdict.bound) == (True, 0)


def test_an_instance_too_large_for_the_verifier_is_refused_before_the_search(monkeypatch):
    monkeypatch.setattr("relocbench.formulations.certificates.integer_problem.MOST_PAIRS", 1)
    with pytest.raises(InputError, match="topics: expected at most 1 pairs of publisher and subscriber, got"):
        certify(enumerable_instance(3, 200))
