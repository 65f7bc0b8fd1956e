import ast
import dataclasses
import functools
import importlib.util
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import Certificate, SplitClient, SplitShare
from relocbench.formulations.certificates.exact_bound import apply_dual
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.region import root_region, split_region
from relocbench.formulations.certificates.verification import Verdict, cost, rounded_down, verify
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.library.library import FOLDER
from tests.formulations.certificates.duals import (
    Costs,
    certificate_for,
    good_dual,
    instances_of_every_kind,
    random_split,
)
from tests.samples import KINDS, enumerable_instance, random_home, random_instance, worked_example

OURS = {"instances", "heuristics", "formulations", "relocbench", "spark", "reports"}
# The modules the verifier may import: data classes, file readers, and its own modules.
READERS = {
    "checks",
    "errors",
    "files.atomic_write",
    "files.file_lock",
    "files.json_fields",
    "files.limited_file",
    "instance",
    "kernels.ragged",
    "notebook_card",
}
TIMELINES = {"timeline.epoch", "timeline.network", "timeline.prices", "timeline.timeline"}
OWN_MODULES = {"budget", "certificate", "content_bound", "exact_bound", "home_prices_bound", "integer_problem"}
OWN_MODULES |= {"least_content", "packed_arrays", "region", "topic_search"}


def imported(module):
    """All modules that a module of this project imports, according to its source.

    ``Instance.of``, which makes instances from tables, is left out: the verifier does not call it.
    """
    spec = importlib.util.find_spec(module)
    nodes = list(ast.walk(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))))
    unused = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "of"]
    skipped = {id(inner) for node in unused for inner in ast.walk(node)}
    for node in nodes:
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (
                name if importlib.util.find_spec(node.module).submodule_search_locations else node.module
                for name in names
            )


@pytest.mark.parametrize(
    ("module", "readers", "more"),
    [
        ("verification", READERS, set()),
        ("timeline_verification", READERS | TIMELINES, {"potentials", "timeline_certificate", "verification"}),
    ],
)
def test_the_verifier_imports_no_module_of_the_solvers(module, readers, more):
    seen, waiting = set(), [f"relocbench.formulations.certificates.{module}"]
    while waiting:
        for name in imported(waiting.pop()):
            if name.partition(".")[0] in OURS and name not in seen:
                seen.add(name)
                waiting.append(name)
            elif name.partition(".")[0] not in OURS:
                seen.add(name.partition(".")[0])
    ours = {name for name in seen if name.partition(".")[0] in OURS}
    allowed = {f"relocbench.instances.{name}" for name in readers}
    assert ours == allowed | {f"relocbench.formulations.certificates.{name}" for name in OWN_MODULES | more}
    assert not seen & {"numba", "scipy", "sklearn", "random", "pulp", "ortools", "pyomo"}
    assert seen - ours - sys.stdlib_module_names == {"numpy"}


def test_a_verification_loads_no_compiled_code():
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from relocbench.formulations.certificates.certificate import read_certificate\n"
        "from relocbench.formulations.certificates.verification import verify\n"
        "from relocbench.instances.files.instance_json import read_json\n"
        "folder = Path(sys.argv[1])\n"
        "instance = read_json(folder / 'tiny-loose-plain-0.json.gz')\n"
        "assert verify(instance, read_certificate(folder / 'tiny-loose-plain-0.certificate.json.gz')).proved\n"
        "assert not {'numba', 'scipy', 'sklearn', 'highspy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program, str(FOLDER)], check=True)


def test_the_verifier_and_the_exact_evaluator_compute_the_same_cost():
    for seed in range(4 * len(KINDS)):
        instance = random_instance(seed)
        home = random_home(instance, seed)
        assert cost(instance, home.tolist()) == evaluate_exact(instance, home).objective


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_step_removes_an_assignment_below_the_claim(part):
    steps = Counter()
    for seed, instance in instances_of_every_kind(5, part, 4):
        rng = np.random.default_rng(seed)
        problem, costs = IntegerProblem(instance), Costs(instance)
        least, _ = costs.least()
        claim = least * Fraction(float(rng.choice([0.9, 1.0, 1.001, 1.1, 1.5])))
        below = np.array([evaluate_exact(instance, home).objective < claim for home in costs.homes])
        waiting = [root_region(problem)]
        for _ in range(8):
            if not waiting:
                break
            region = waiting.pop()
            if rng.random() < 0.5:
                dual = good_dual(problem, region, rng, fix=True)
                _, rest = apply_dual(problem, region, dual, claim)
                waiting += [] if rest is None else [rest]
                steps["proved" if rest is None else "fixed" if (rest.allowed != region.allowed).any() else "idle"] += 1
            else:
                split = random_split(problem, region, rng)
                waiting += [part for part in split_region(problem, region, split) if part is not None]
                steps[type(split).__name__] += 1
            covered = np.any([costs.inside(region) for region in waiting], axis=0) if waiting else np.zeros_like(below)
            assert not (below & ~covered).any()
    assert min(steps[kind] for kind in ("proved", "fixed", "SplitClient", "SplitTopic", "SplitShare")) > 3


@pytest.mark.parametrize("seed", [3, 7, 8, 26, 58])
def test_certificates_of_true_claims_are_accepted(seed):
    rng = np.random.default_rng(seed)
    instance = enumerable_instance(seed, most=260, least_servers=2)
    certificate = certificate_for(instance, rng, 0.999999)
    verdict = verify(instance, certificate)
    assert verdict.proved, verdict.reason
    assert verdict.objective == evaluate_exact(instance, certificate.home).objective
    assert verdict.bound == certificate.bound == Fraction(certificate.claim, 1 << 40)
    assert verdict.steps == len(certificate.proof)
    _, best = Costs(instance).least()
    verdict = verify(instance, dataclasses.replace(certificate, home=best.astype(np.int32)))
    assert verdict.proved
    assert (verdict.status == "optimal") == (verdict.gap <= Fraction(1, 10**6))


@functools.cache
def valid_certificate():
    return certificate_for(worked_example(), np.random.default_rng(0), 0.9)


def certificate_of_example(**changes):
    return dataclasses.replace(valid_certificate(), **changes)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"instance": "0" * 64}, "instance: expected the hash "),
        ({"home": np.zeros(3, np.int32)}, "home: expected one server for each of 4 clients, got 3"),
        ({"home": np.array([0, 1, 2, 0])}, "home[2]: expected a server from 0 to 1, got 2"),
        ({"claim": 1 << 60}, "claim: is above what the homes of the certificate cost"),
        ({"proof": ()}, "claim: is not proved, no step is left for one of its regions"),
        ({"proof": (SplitClient(0, (0,)),)}, "claim: is not proved, no step is left for one of the parts of proof[0]"),
        ({"proof": (SplitClient(0, (0,), 1),)}, "proof[0]: first: expected a number from 0 to 0, got 1"),
        ({"proof": (SplitClient(0, (0,), -1),)}, "proof[0]: first: expected a number from 0 to 0, got -1"),
        ({"proof": (SplitClient(4, (0,)),)}, "proof[0]: client: expected a number from 0 to 3, got 4"),
        ({"proof": (SplitShare(0, 1024),)}, "proof[0]: share: expected a number from 1 to 1023, got 1024"),
    ],
)
def test_a_wrong_proof_is_refused_with_a_reason(change, reason):
    verdict = verify(worked_example(), certificate_of_example(**change))
    assert (verdict.proved, verdict.bound, verdict.status) == (False, None, "error")
    assert verdict.reason.startswith(reason)


def test_steps_after_the_end_of_a_proof_are_ignored():
    certificate = certificate_of_example()
    assert verify(worked_example(), dataclasses.replace(certificate, proof=certificate.proof * 2)).proved


def test_optimal_means_within_a_millionth():
    objective = Fraction(1000)
    for bound, status in (
        (Fraction(1000), "optimal"),
        (Fraction(999999, 1000), "optimal"),
        (Fraction(9999989, 10000), "feasible"),
    ):
        assert Verdict(True, "", objective, bound, 1).status == status
        tiny = Fraction(1, 10**300)
        assert Verdict(True, "", objective * tiny, bound * tiny, 1).status == status
        assert (Verdict(True, "", objective, bound, 1).stated_gap == 0) == (status == "optimal")
    assert Verdict(True, "", Fraction(0), Fraction(0), 1).status == "optimal"
    assert Verdict(True, "", Fraction(0), Fraction(0), 1).gap == 0
    assert Verdict(True, "", Fraction(4), Fraction(3), 1).gap == Fraction(1, 4)


def test_bounds_are_printed_rounded_down():
    for number in (Fraction(1, 3), Fraction(2, 3), Fraction(-1, 3), Fraction(1, 10), Fraction(5)):
        assert Fraction(rounded_down(number)) <= number
        assert rounded_down(number) == pytest.approx(float(number), rel=1e-15)


def test_a_certificate_may_be_given_by_its_path(tmp_path):
    verdict = verify(worked_example(), tmp_path / "none.json")
    assert not verdict.proved
    assert "cannot be read (No such file or directory)" in verdict.reason
    assert isinstance(certificate_of_example(), Certificate)
