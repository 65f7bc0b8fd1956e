import dataclasses
import random
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.trials import certificates
from benchmarks.trials.certificates import judged
from benchmarks.trials.tampering import KINDS, base_of, tampered, written
from relocbench.formulations.certificates.verification import Verdict

# An ordinary instance, whose certificate is accepted.
NUMBER = 15


@pytest.fixture(scope="module")
def base():
    return base_of(0, NUMBER)


def test_a_true_certificate_is_right(base):
    assert judged(base, written(base.certificate), must_be_proved=True) == ("right", "")


def test_a_certificate_of_the_project_that_is_refused_is_wrong(base):
    assert judged(base, b"{}", must_be_proved=True)[0] == "wrong"
    assert judged(base, b"{}") == ("refused", "")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda base: {"bound": base.least * 2}, "accepted the bound"),
        (lambda base: {"objective": base.least * 2}, "computed the cost"),
        (lambda base: {"bound": base.least * (1 - certificates.TOLERANCE * 2)}, "optimal, with the cost"),
    ],
)
def test_a_verifier_that_accepts_something_false_is_found_out(base, monkeypatch, change, problem):
    content = written(base.certificate)
    true = {"proved": True, "objective": None, "bound": base.certificate.bound, "steps": 1}
    true["objective"] = certificates.cost(base.case, base.certificate.home.tolist())

    class Optimal(Verdict):
        status = "optimal"

    monkeypatch.setattr(certificates, "verify", lambda *_: Optimal(**true | change(base)))
    verdict, note = judged(base, content)
    assert verdict == "wrong"
    assert problem in note


def test_every_kind_of_tampering_changes_the_file(base):
    original = written(base.certificate)
    for kind in KINDS:
        assert any(tampered(base, kind, random.Random(f"{kind} {number}")) != original for number in range(5)), kind


def test_a_raised_claim_is_above_the_optimum(base):
    for seed in range(10):
        content = certificates.json.loads(tampered(base, "claim", random.Random(seed)))
        assert content["claim"] > base.least * 2 ** content["bits"]
        assert content["home"] == list(base.worst)


class Second:
    """A second verifier that accepts nothing."""

    Rejected = LookupError

    @classmethod
    def verify(cls, case, certificate):
        raise cls.Rejected("no proof")


class SecondWithAnotherBound(Second):
    @classmethod
    def verify(cls, case, certificate):
        return Fraction(1), Fraction(0)


@pytest.mark.parametrize(
    ("second", "problem"), [(Second, "does not accept it: no proof"), (SecondWithAnotherBound, "finds the cost")]
)
def test_the_second_verifier_must_agree(base, monkeypatch, second, problem):
    monkeypatch.setattr(certificates.importlib, "import_module", lambda name: second)
    verdict, note = judged(base, written(base.certificate))
    assert verdict == "wrong"
    assert problem in note


def test_homes_are_part_of_what_is_compared(base):
    home = np.array(base.worst, np.int32)
    content = written(dataclasses.replace(base.certificate, home=home))
    assert judged(base, content) == ("right", "")
