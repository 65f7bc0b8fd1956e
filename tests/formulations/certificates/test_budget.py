import dataclasses
import tracemalloc

import numpy as np
import pytest

from relocbench.formulations.certificates import exact_bound, verification
from relocbench.formulations.certificates.certificate import Certificate, SplitClient, write_certificate
from relocbench.formulations.certificates.exact_bound import DualBound
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import root_region
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import write_instance
from relocbench.instances.nearest_server import nearest_server
from tests.formulations.certificates.duals import certificate_for, zero_dual
from tests.instances.files.bad_files import run_command
from tests.samples import worked_example


@pytest.fixture(scope="module")
def certificate():
    return certificate_for(worked_example(), np.random.default_rng(0), 0.9)


def paper():
    return FAMILIES["paper"].cells({"sigma": 10})[0].build(0)


def test_a_certificate_is_refused_beyond_each_limit_and_the_reason_names_it(certificate):
    steps = len(certificate.proof)
    assert verify(worked_example(), certificate, max_steps=steps).proved
    for limits, reason in (
        ({"time_limit": 0}, "not proved within the time limit of 0 s; raise it with --time-limit"),
        ({"memory_limit": 1000}, "more than the memory limit of 9.31e-07 GiB; raise it with --memory-limit"),
        ({"max_steps": steps - 1}, f"proof: has {steps} steps, more than the limit of {steps - 1} (--max-steps)"),
    ):
        verdict = verify(worked_example(), certificate, **limits)
        assert (verdict.proved, verdict.bound, verdict.status) == (False, None, "error")
        assert reason in verdict.reason


def test_the_command_has_the_same_limits_and_exits_with_1(tmp_path, certificate):
    inst, cert = tmp_path / "inst.json", tmp_path / "cert.json"
    write_instance(worked_example(), inst)
    write_certificate(certificate, cert)
    assert run_command("verify", inst, cert)[0] == 0
    for option, value, reason in (
        ("--time-limit", "0", "time limit of 0 s"),
        ("--memory-limit", "1e-6", "memory limit of 1e-06 GiB"),
        ("--max-steps", "0", "limit of 0"),
    ):
        code, out, err = run_command("verify", inst, cert, option, value)
        assert (code, out) == (1, "")
        assert reason in err
        assert option in err
        assert len(err.splitlines()) == 1


def test_the_time_limit_also_holds_within_a_step(certificate, monkeypatch):
    class Clock:
        now = 0

        def thread_time(self):
            self.now += 1
            return self.now

    monkeypatch.setattr("relocbench.formulations.certificates.budget.time", Clock())
    monkeypatch.setattr(exact_bound, "ENTRIES", 1)
    seen = []
    instance = paper()
    dual = zero_dual(IntegerProblem(instance))
    home = nearest_server(instance)
    proof = Certificate(instance=instance.hash, home=home, claim=1, bits=0, proof=(dual, dual))
    verdict = verify(instance, proof, seen.append, time_limit=500)
    assert "proof[0]: not proved within the time limit of 500 s" in verdict.reason
    assert seen == [0]


def test_a_part_of_a_split_without_steps_ends_the_check_at_once():
    instance, seen = paper(), []
    proof = tuple(SplitClient(0, (0,), 99_998 - index) for index in range(99_999))
    home = nearest_server(instance)
    certificate = Certificate(instance=instance.hash, home=home, claim=500, bits=0, proof=proof)
    verdict = verify(instance, certificate, seen.append)
    assert verdict.reason == "claim: is not proved, no step is left for one of the parts of proof[0]"
    assert seen == [0]


def test_open_regions_count_against_the_memory_limit():
    instance, seen = paper(), []
    size = IntegerProblem(instance).size
    # The first part of each split has one step and waits while the second part is split again.
    proof = tuple(SplitClient(index // 2, (0,), 1) for index in range(200))
    home = nearest_server(instance)
    certificate = Certificate(instance=instance.hash, home=home, claim=500, bits=0, proof=proof)
    limit = size.problem_bytes + 10 * size.region_bytes
    verdict = verify(instance, certificate, seen.append, memory_limit=limit)
    assert "more than the memory limit" in verdict.reason
    assert seen == [0, 2, 4, 6, 8, 10, 12]
    assert "more than the memory limit" not in verify(instance, certificate).reason


def peak_of(work):
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(("bits", "long"), [(16, False), (90, True)])
def test_the_memory_that_is_checked_before_is_an_upper_bound_and_not_far_above(bits, long, monkeypatch):
    instance, asked = paper(), []
    monkeypatch.setattr(verification.Budget, "check_memory", lambda self, wanted: asked.append(wanted))
    found = []
    assert peak_of(lambda: found.append(IntegerProblem(instance))) < asked[-1]
    problem = found[0]
    dual, region = zero_dual(problem, bits=bits), root_region(problem)
    dual = dataclasses.replace(dual, alpha=(1,) * problem.n_servers)

    def bound():
        value = DualBound(problem, region, dual)
        assert value.long == long
        value.forbidden(value.value + 1)

    step = peak_of(bound)
    allowed = asked[-1] - problem.size.problem_bytes - problem.region_memory
    assert step < allowed < 12 * step
