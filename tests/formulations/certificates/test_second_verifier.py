"""The verifier and the second verifier agree: on the library, on certificates made by hand, and on tampered files.

The first verifier rounds costs down. So its bound is lower than the exact one by up to ``ROUNDING``. It can also be
higher by less than that, because rounded pair costs give other valid messages at homes that are not active.
"""

import ast
import base64
import dataclasses
import json
import lzma
import math
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relocbench.formulations.certificates.certificate import Certificate, read_certificate, write_certificate
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.packed_arrays import to_json as to_json_packed
from relocbench.formulations.certificates.region import root_region, split_region
from relocbench.formulations.certificates.verification import check_proof, verify
from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_json import read_json, to_json
from relocbench.instances.library import library
from tests.formulations.certificates import second_verifier as second
from tests.formulations.certificates.duals import (
    good_dual,
    instances_of_every_kind,
    perturbed,
    random_dual,
    random_split,
    scaled,
)
from tests.formulations.certificates.test_certificate import samples, stored, tampered
from tests.instances.files.bad_files import INSTANCE, mutated_bytes, mutated_json

SOURCE = Path(second.__file__)
FOLDER = Path(library.__file__).parent
# Largest difference of the two bounds, relative to the size of the numbers that are summed (2.1e-9 was seen).
ROUNDING = Fraction(1, 10**8)


def to_json_array(values):
    return to_json_packed(np.array(values, np.int64))


def second_reason(instance, path):
    """The reason why the second verifier refuses a file; empty if it accepts it."""
    try:
        second.verify(instance, second.read(path))
    except second.Rejected as refused:
        return str(refused)
    return ""


def first_proves(instance, path, caps=()):
    """Whether the first verifier accepts the proof of a file, also for a claim below 0, which needs none."""
    certificate = read_certificate(path)
    try:
        check_proof(IntegerProblem(instance, *caps), certificate.proof, certificate.bound, lambda step: None)
    except InputError as error:
        if "is not proved" in str(error):
            return False
        raise
    return True


def second_proves(p, path):
    """Whether the second verifier accepts the proof of a file, also for a claim below 0."""
    certificate = second.read(path)
    try:
        second.prove(p, certificate["proof"], Fraction(certificate["claim"], 2 ** certificate["bits"]))
    except second.Rejected:
        return False
    return True


def check_agreement(instance, content, path):
    """Verify a file with both verifiers; return whether the first accepts it."""
    path.write_bytes(content)
    parsed = json.loads(to_json(instance))
    first, reason = verify(instance, path), second_reason(parsed, path)
    if first.proved != (reason == ""):
        # Only a claim that is within the rounding may be judged differently, so a little more or less must decide it.
        assert first.proved or "is not proved" in first.reason, first.reason
        certificate = second.read(path)
        error = ROUNDING * size_of(second.Problem(parsed), certificate["proof"])
        certificate["claim"] += math.ceil(error * Fraction(2) ** certificate["bits"]) * (-1 if first.proved else 1)
        path.write_text(json.dumps(certificate))
        assert (second_reason(parsed, path) == "") == first.proved, (first.reason, reason)
    return first.proved


# The second verifier needs more than three seconds for each of these.
LONG = {f"small-overloaded-{size}-0" for size in ("m20-l4", "m26-l6", "m30-l6", "m39-l9")}
LONG |= {f"small-scarce-{size}-0" for size in ("m26-l6", "m30-l6", "m39-l9")}
SLOW = {"small-overloaded-m10-l3-0", "small-overloaded-m15-l4-0"}
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))["entries"]
ENTRIES = [entry for entry in INDEX if entry["clients"] < 60 and entry["name"] not in LONG]


@pytest.mark.parametrize(
    "entry", [pytest.param(e, id=e["name"], marks=[pytest.mark.slow] * (e["name"] in SLOW)) for e in ENTRIES]
)
def test_both_verifiers_prove_the_small_entries_of_the_library(entry):
    files = FOLDER / f"{entry['name']}.json.gz", FOLDER / f"{entry['name']}.certificate.json.gz"
    cost, bound = second.verify(*map(second.read, files))
    assert (str(cost), str(bound)) == (entry["exact_objective"], entry["exact_bound"])
    verdict = verify(read_json(files[0]), files[1])
    assert (verdict.proved, verdict.objective, verdict.bound) == (True, cost, bound)


def value(p, region, steps):
    """The largest claim that steps without fixing prove for a region, as the second verifier computes it."""
    if not region.propagate(p):
        return math.inf
    best = -math.inf
    for index, step in enumerate(steps):
        if step["step"] != "dual":
            rest, first = steps[index + 1 :], step["first"]
            parts = zip(region.split(p, step), (rest[:first], rest[first:]), strict=True)
            return max(best, min(value(p, part, own) for part, own in parts))
        best = max(best, second.Dual(p, step).bound(p, region)[0])
    return best


def size_of(p, steps):
    """The size of the numbers that a bound is the sum of."""
    size = 2 * p.dC * sum(p.f.values()) + sum(p.w[m] * max(p.dH[m]) for m in range(p.M))
    size += sum(max(map(max, pair)) for pair in p.pair.values())
    prices = messages = 0
    for dual in [second.Dual(p, step) for step in steps if step["step"] == "dual"]:
        messages = max(messages, sum(map(abs, dual.message.values())))
        for l in range(p.L):
            # The capacities of a hard server are divided by the least θ.
            least = p.theta(l, range(p.M)) if dual.hard[l] else 1
            price = dual.alpha[l] * (p.A[l] / (least or Fraction(1, 1024)) + sum(p.u))
            prices = max(prices, price + dual.beta[l] * (p.B[l] / (least or Fraction(1, 1024)) + sum(p.U)))
    return size + messages + p.L * prices


def root(p):
    return second.Region([range(p.L)] * p.M, (), [0] * p.L, [1] * p.L)


def check_tightly(instance, steps, path, caps=()):
    """Both verifiers accept the largest claim that the steps prove, up to the rounding, and refuse what is above it."""
    parsed = json.loads(to_json(instance))
    p = second.Problem(parsed, *caps)
    write_claim(instance, steps, path, 0)
    proof = second.read(path)["proof"]
    largest, error = value(p, root(p), proof), ROUNDING * size_of(p, proof)
    if largest == math.inf:
        return False
    assert largest > -math.inf, "the first verifier found a region empty that the second did not"
    for claim, proved in ((largest - error, True), (largest, True), (largest + error + Fraction(1, 1 << 70), False)):
        write_claim(instance, steps, path, claim)
        assert second_proves(p, path) == proved
        if claim != largest:
            assert first_proves(instance, path, caps) == proved, (float(largest), float(claim))
    return True


def write_claim(instance, steps, path, claim):
    # The homes are the worst of a few, so that a claim above the bound is not refused because of its homes.
    p = second.Problem(json.loads(to_json(instance)))
    home = max(([(l + m * k) % p.L for m in range(p.M)] for l in range(p.L) for k in range(p.L)), key=p.cost)
    number, homes = math.floor(claim * (1 << 80)), np.array(home, np.int32)
    content = Certificate(instance=instance.hash, home=homes, claim=number, bits=80, proof=tuple(steps))
    write_certificate(content, path)


def random_dual_of_any_kind(problem, region, rng, **settings):
    """A random dual, or the best one, sometimes changed."""
    bits = int(rng.choice([8, 16, 30]))
    if rng.random() < 0.4:
        return random_dual(problem, region, rng, bits=bits, **settings)
    dual = good_dual(problem, region, rng, bits=bits, **settings)
    change = rng.random()
    return dual if change < 0.4 else perturbed(dual, rng) if change < 0.7 else scaled(problem, region, dual, rng)


@pytest.mark.parametrize("part", range(2))
def test_both_verifiers_compute_the_same_bound_of_a_dual(part, tmp_path):
    for number, instance in instances_of_every_kind(2, part, 2):
        rng = np.random.default_rng(number)
        caps = (int(rng.integers(-3, 3)), int(rng.integers(-3, 3))) if number % 3 == 0 else ()
        problem = IntegerProblem(instance, *caps)
        dual = random_dual_of_any_kind(problem, root_region(problem), rng)
        assert check_tightly(instance, [dual], tmp_path / "cert.json", caps)


def random_tree(problem, region, rng, depth):
    """Steps with splits of every kind; the regions that remain have one dual each."""
    if region is None:
        return []
    if depth == 0:
        return [random_dual_of_any_kind(problem, region, rng)]
    split = random_split(problem, region, rng)
    first, second_part = (random_tree(problem, part, rng, depth - 1) for part in split_region(problem, region, split))
    return [dataclasses.replace(split, first=len(first)), *first, *second_part]


@pytest.mark.slow
def test_both_verifiers_compute_the_same_bound_after_splits_of_every_kind(tmp_path):
    kinds = Counter()
    for number, instance in instances_of_every_kind(2):
        rng = np.random.default_rng(number)
        problem = IntegerProblem(instance)
        steps = random_tree(problem, root_region(problem), rng, 2)
        if check_tightly(instance, steps, tmp_path / "cert.json"):
            kinds.update(type(step).__name__ for step in steps)
    assert min(kinds[kind] for kind in ("Dual", "SplitClient", "SplitTopic", "SplitShare")) > 10


def largest_claim(p, path, low, high):
    """The largest claim, to 20 bits, that the second verifier accepts for the proof in a file."""
    content = second.read(path)
    for _ in range(20):
        middle = (low + high) / 2
        content["claim"] = math.floor(middle * 2 ** content["bits"])
        path.write_text(json.dumps(content))
        low, high = (middle, high) if second_proves(p, path) else (low, middle)
    return low, high


@pytest.mark.slow
def test_both_verifiers_fix_the_same_homes(tmp_path):
    path, fixed = tmp_path / "cert.json", 0
    for number, instance in instances_of_every_kind(1, 0, 2):
        rng = np.random.default_rng(number)
        problem = IntegerProblem(instance)
        parsed = json.loads(to_json(instance))
        p, region = second.Problem(parsed), root_region(problem)
        steps = [random_dual_of_any_kind(problem, region, rng, fix=True) for _ in range(3)]
        write_claim(instance, steps, path, 0)
        proof = second.read(path)["proof"]
        without = value(p, root(p), proof)
        size = size_of(p, proof)
        low, high = largest_claim(p, path, min(without, 0) - 1, p.cost(second.read(path)["home"]))
        fixed += low > without + ROUNDING * size
        # The rounding decides which homes are fixed, so it may count once for each of the steps and clients.
        for claim, proved in ((low - 9 * ROUNDING * size, True), (high + 9 * ROUNDING * size, False)):
            write_claim(instance, steps, path, claim)
            assert first_proves(instance, path) == proved
    assert fixed > 3


# A proof with much room: the claim is 2^-20, and the dual is 0 everywhere. So only a check of the file can refuse it.
ZERO = {"bits": 0, "data": ""}
DUAL = {"step": "dual", "bits": 4, "multiplier_bits": 4, "fix": False, "alpha": [0, 0], "beta": [0, 0], "hard": [0, 0],
        "active": to_json_array([1] * 8), "messages": ZERO, "shares": ZERO}  # fmt: skip
CONTENTS = {"step": "contents", "bits": 24, "client_prices": to_json_array([1 << 8] * 4), "pair_prices": ZERO,
            "least": ZERO}  # fmt: skip
SPLIT = {"step": "split-client", "client": 0, "servers": [0], "first": 1}


def packed_bytes(raw, more=b""):
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 4096}]
    return base64.b64encode(lzma.compress(raw, lzma.FORMAT_RAW, filters=filters) + more).decode()


@pytest.mark.parametrize(
    ("proved", "change"),
    [
        (True, {}),
        (True, {"made": None}),
        (True, {"proof": [SPLIT, DUAL, DUAL]}),
        (True, {"proof": [SPLIT | {"servers": []}, DUAL, DUAL]}),
        (True, {"proof": [{"step": "split-share", "server": 0, "share": 1023, "first": 1}, DUAL, DUAL]}),
        (True, {"proof": [DUAL, SPLIT | {"client": 9}]}),
        (True, {"proof": [DUAL | {"hard": [1, 0]}]}),
        (True, {"proof": [DUAL | {"alpha": [1, 1], "shares": to_json_array([1] * 8)}]}),
        (True, {"proof": [DUAL | {"bits": 200, "multiplier_bits": 200, "alpha": [2**200 - 1, 0]}]}),
        (True, {"proof": [DUAL | {"active": {"bits": 8, "data": packed_bytes(bytes([2] * 8))}}]}),
        (False, {"proof": []}),
        (False, {"proof": [SPLIT, DUAL]}),
        (False, {"proof": [SPLIT | {"first": 3}, DUAL, DUAL]}),
        (False, {"proof": [SPLIT | {"first": -1}, DUAL, DUAL]}),
        (False, {"proof": [SPLIT | {"client": 4}, DUAL, DUAL]}),
        (False, {"proof": [SPLIT | {"servers": [2]}, DUAL, DUAL]}),
        (False, {"proof": [{"step": "split-share", "server": 0, "share": 1024, "first": 1}, DUAL, DUAL]}),
        (False, {"proof": [{"step": "split-share", "server": 0, "share": 0, "first": 1}, DUAL, DUAL]}),
        (False, {"proof": [{"step": "split-topic", "server": 0, "topic": 2, "first": 1}, DUAL, DUAL]}),
        (False, {"proof": [DUAL, SPLIT | {"client": True}]}),
        (False, {"proof": [DUAL, SPLIT | {"more": 1}]}),
        (False, {"proof": [DUAL, {"step": "guess"}]}),
        (False, {"proof": [DUAL | {"hard": [0, 1]}]}),
        (False, {"proof": [DUAL | {"hard": [2, 0]}]}),
        (False, {"proof": [DUAL | {"hard": [0]}]}),
        (False, {"proof": [DUAL | {"alpha": [-1, 0]}]}),
        (False, {"proof": [DUAL | {"beta": [0, -1]}]}),
        (False, {"proof": [DUAL | {"beta": [0, 2**200]}]}),
        (True, {"proof": [DUAL | {"bits": 2200}]}),
        (False, {"proof": [DUAL | {"bits": 2201}]}),
        (False, {"proof": [DUAL | {"fix": 0}]}),
        (False, {"proof": [DUAL | {"shares": to_json_array([1] + [0] * 7)}]}),
        (False, {"proof": [DUAL | {"shares": to_json_array([-1] + [0] * 7)}]}),
        (False, {"proof": [DUAL | {"alpha": [1, 1], "shares": to_json_array([43, 0] * 3 + [0, 0])}]}),
        (False, {"proof": [DUAL | {"shares": to_json_array([0] * 7 + [1])}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 8, "data": packed_bytes(bytes([4] * 8))}}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 1, "data": packed_bytes(b"\xff", b"\0")}}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 1, "data": packed_bytes(b"\xff\xff")}}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 1, "data": packed_bytes(b"\xff")[:-4]}}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 1, "data": "?"}}]}),
        (False, {"proof": [DUAL | {"active": {"bits": 9, "data": ""}}]}),
        (False, {"claim": 1 << 60}),
        (False, {"claim": -1.0}),
        (True, {"claim": -1, "proof": []}),
        (True, {"delay_cap": 3, "cloud_cap": 1}),
        (False, {"delay_cap": -40, "cloud_cap": -40}),
        (False, {"delay_cap": 1024}),
        (False, {"cloud_cap": 1.0}),
        (False, {"bits": 2201}),
        (False, {"home": [0, 1, 2, 0]}),
        (False, {"home": [0, 1, 0]}),
        (False, {"instance": "0" * 64}),
        (True, {"format": "relocbench-certificate/2"}),
        (True, {"format": "relocbench-certificate/3"}),
        (False, {"format": "relocbench-certificate/4"}),
        (True, {"format": "relocbench-certificate/2", "proof": [CONTENTS]}),
        (False, {"format": "relocbench-certificate/1", "proof": [CONTENTS]}),
        (True, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"client_prices": ZERO}, DUAL]}),
        (True, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"client_prices": ZERO}, CONTENTS]}),
        (True, {"format": "relocbench-certificate/2", "proof": [SPLIT, CONTENTS, CONTENTS]}),
        (False, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"client_prices": ZERO}]}),
        (False, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"least": to_json_array([1, 0])}]}),
        (False, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"least": to_json_array([0, 0, 1])}]}),
        (
            False,
            {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"pair_prices": to_json_array([-1] * 12)}]},
        ),
        (
            False,
            {
                "format": "relocbench-certificate/2",
                "proof": [CONTENTS | {"client_prices": to_json_array([1 << 46] * 4)}],
            },
        ),
        (False, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"bits": -2201}]}),
        (False, {"format": "relocbench-certificate/2", "proof": [CONTENTS | {"fix": False}]}),
        (False, {"made": []}),
        (False, {"more": 1}),
    ],
)
def test_both_verifiers_refuse_the_same_fields(proved, change, tmp_path):
    file, path = tmp_path / "inst.json", tmp_path / "cert.json"
    file.write_text(json.dumps(INSTANCE | {"servers": INSTANCE["servers"] | {"storage": [10.0, 0.0]}}))
    instance = read_json(file)
    content = {"format": "relocbench-certificate/1", "instance": instance.hash, "home": [0] * 4, "claim": 1, "bits": 20}
    content |= {"made": {}, "proof": [DUAL]}
    path.write_text(json.dumps(content | change))
    assert verify(instance, path).proved == proved
    assert (second_reason(second.read(file), path) == "") == proved


def check_tampered(files, tmp_path, different):
    """Both verifiers agree on so many different files; return how many of them the first accepts."""
    answers = {}

    @settings(max_examples=different * 3 // 2)
    @given(st.integers(0, len(samples()) - 1).flatmap(lambda index: files(index).map(lambda file: (index, file))))
    def check(drawn):
        index, content = drawn
        if content not in answers:
            answers[content] = check_agreement(samples()[index][0], content, tmp_path / "tampered.json")

    check()
    assert len(answers) >= different
    return sum(answers.values())


@pytest.mark.slow
def test_both_verifiers_agree_on_changed_numbers_and_steps(tmp_path):
    contents = [json.loads(stored(index, tmp_path)) for index in range(len(samples()))]
    assert 60 < check_tampered(lambda index: tampered(contents[index]), tmp_path, 300) < 250


@pytest.mark.slow
def test_both_verifiers_agree_on_changed_files(tmp_path):
    contents = [stored(index, tmp_path) for index in range(len(samples()))]
    check_tampered(lambda index: mutated_json(json.loads(contents[index])), tmp_path, 150)
    check_tampered(lambda index: mutated_bytes(contents[index]), tmp_path, 100)


def test_the_second_verifier_imports_nothing_but_the_standard_library():
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names
    assert len(SOURCE.read_text(encoding="utf-8").splitlines()) <= 420


def test_the_second_verifier_runs_by_itself(tmp_path):
    script = tmp_path / "second_verifier.py"
    script.write_bytes(SOURCE.read_bytes())
    names = ("tiny-scarce-plain-0.json.gz", "tiny-scarce-plain-0.certificate.json.gz")
    # -I and -S leave out this project and everything that is installed.
    command = [sys.executable, "-I", "-S", str(script), *(str(FOLDER / name) for name in names)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("proved: the homes cost ")
    done = subprocess.run([*command[:-1], command[-2]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("not proved: ")
