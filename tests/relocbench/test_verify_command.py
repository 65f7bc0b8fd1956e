import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

import relocbench
from relocbench.formulations.certificates.certificate import SplitClient, write_certificate
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance_source import write_instance
from tests.formulations.certificates.duals import Costs, certificate_for
from tests.instances.files.bad_files import run_command
from tests.samples import enumerable_instance

INSTANCE = enumerable_instance(8, most=260, least_servers=2)


@pytest.fixture(scope="module")
def certificate():
    return certificate_for(INSTANCE, np.random.default_rng(0), 0.9999)


@pytest.fixture
def files(tmp_path, certificate):
    inst, cert = tmp_path / "inst.json", tmp_path / "cert.json.gz"
    write_instance(INSTANCE, inst)
    write_certificate(certificate, cert)
    return inst, cert


def test_a_valid_proof_exits_with_0_and_prints_what_is_proved(files, certificate):
    code, out, err = run_command("verify", *files, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    objective = evaluate_exact(INSTANCE, certificate.home).objective
    assert answer.pop("seconds") > 0
    assert answer == {
        "proved": True,
        "objective": float(objective),
        "bound": pytest.approx(float(certificate.bound), rel=1e-15),
        "gap": pytest.approx(float(1 - certificate.bound / objective)),
        "status": "feasible",
        "exact_objective": f"{objective.numerator}/{objective.denominator}",
        "exact_bound": f"{certificate.bound.numerator}/{certificate.bound.denominator}",
        "steps": len(certificate.proof),
    }
    assert Fraction(answer["bound"]) <= certificate.bound
    code, out, err = run_command("verify", *files)
    assert (code, err) == (0, "")
    assert out.startswith("proved (feasible): ΣD = ")
    assert f"{len(certificate.proof)} step" in out


def test_the_best_homes_are_proved_optimal(files):
    inst, cert = files
    least, home = Costs(INSTANCE).least()
    proof = certificate_for(INSTANCE, np.random.default_rng(0), 1 - 1e-7, most_steps=400)
    assert proof.bound > least * Fraction(999_999, 1_000_000)
    write_certificate(dataclasses.replace(proof, home=home.astype(np.int32)), cert)
    code, out, _ = run_command("verify", inst, cert, "--json")
    assert code == 0
    assert json.loads(out)["status"] == "optimal"
    assert json.loads(out)["gap"] < 1e-6


def check_refused(inst, cert, reason):
    code, out, err = run_command("verify", inst, cert)
    assert (code, out) == (1, "")
    assert err.startswith(f"relocbench: {cert}: {reason}")
    assert len(err.splitlines()) == 1
    code, out, again = run_command("verify", inst, cert, "--json")
    assert (code, again) == (1, err)
    answer = json.loads(out)
    assert (answer["proved"], answer["bound"], answer["gap"], answer["status"]) == (False, None, None, "error")


def test_an_invalid_proof_exits_with_1_and_prints_the_reason(files, certificate):
    inst, cert = files
    for change, reason in (
        ({"claim": certificate.claim << 20}, "claim: is above what the homes of the certificate cost"),
        ({"instance": "f" * 64}, "instance: expected the hash"),
        ({"proof": ()}, "claim: is not proved, no step is left for one of its regions"),
        ({"proof": (SplitClient(99, ()),)}, "proof[0]: client: expected a number from 0 to"),
        ({"home": np.full(INSTANCE.n_clients, 9)}, "home[0]: expected a server from 0 to"),
    ):
        write_certificate(dataclasses.replace(certificate, **change), cert)
        check_refused(inst, cert, reason)


def test_a_damaged_file_exits_with_1(files):
    inst, cert = files
    whole = cert.read_bytes()
    for content in (whole[: len(whole) // 2], b"", whole[:-5] + b"12345", b"{}"):
        cert.write_bytes(content)
        check_refused(inst, cert, "")
    plain = cert.with_name("cert.json")
    plain.write_text('{"format": "relocbench-certificate/1", "claim": ' + "9" * 10_000 + "}")
    check_refused(inst, plain, "proof: is missing")


def test_missing_files_exit_with_2(files, tmp_path):
    inst, cert = files
    missing = tmp_path / "none.json"
    for arguments in ((missing, cert), (inst, missing)):
        code, out, err = run_command("verify", *arguments)
        assert (code, out) == (2, "")
        assert err == f"relocbench: {missing}: cannot be read (No such file or directory)\n"
    code, out, err = run_command("verify", cert, cert)
    assert (code, out) == (2, "")
    assert 'format: expected "relocbench-instance/1"' in err
    code, out, err = run_command("verify", inst, inst.with_suffix(".parquet"))
    assert (code, out) == (2, "")
    assert "expected a name ending in .json or .json.gz for a certificate" in err


def test_verify_works_from_python(files):
    assert relocbench.verify(INSTANCE, files[1]).proved
