"""Certificates: tampered and random proofs. An accepted one must prove a bound that is true in rational numbers."""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials.mutations import mutated_bytes, mutated_json
from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.parallel import results_of
from benchmarks.trials.rational_cost import Case, Delays, cost
from benchmarks.trials.results import Plan, Result, Verdict
from benchmarks.trials.sandbox import Sandbox
from relocbench.formulations.certificates.certificate import (
    Certificate,
    Dual,
    SplitClient,
    SplitShare,
    SplitTopic,
    Step,
    write_certificate,
)
from relocbench.formulations.certificates.integer_problem import IntegerProblem
from relocbench.formulations.certificates.packed_arrays import unpacked
from relocbench.formulations.certificates.region import Region, root_region, split_region
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance

NAME = "certificates"
QUICK, LONG = 400, 20_000
# Trials with certificates of the same instance.
PER_INSTANCE = 50
# Seconds of the search that makes a certificate, and of each trial.
CERTIFY_SECONDS, TRIAL_SECONDS = 1.5, 60.0
# A verdict of optimality allows this gap.
TOLERANCE = Fraction(1, 10**6)
SECOND_VERIFIER = "tests.formulations.certificates.second_verifier"
KINDS = (
    "bytes",
    "JSON values",
    "claim",
    "homes",
    "multipliers",
    "messages",
    "shares",
    "active homes",
    "units and flags",
    "steps dropped",
    "steps repeated",
    "steps in another order",
    "splits",
    "another instance",
    "random duals",
    "random splits",
)


def run(plan: Plan, finished: frozenset[str]) -> Iterator[Result]:
    """Run the trials.

    Parameters
    ----------
    plan
        What to do.
    finished
        The keys of trials that are not repeated.

    Yields
    ------
    Result
        The results.
    """
    numbers = [(n // PER_INSTANCE, n % PER_INSTANCE) for n in range(plan.number(QUICK, LONG))]
    if plan.only:
        numbers = [(int(base), int(trial)) for base, trial in (key.split(".") for key in plan.only)]
    groups: dict[int, list[int]] = {}
    for base, trial in numbers:
        if f"{base}.{trial}" not in finished:
            groups.setdefault(base, []).append(trial)
    yield from results_of(groups.items(), functools.partial(_run_group, plan), plan.jobs, plan.stop)


def _run_group(plan: Plan, group: tuple[int, list[int]]) -> Iterator[Result]:
    base, trials = group
    with Sandbox() as sandbox:
        for trial in trials:
            key = f"{base}.{trial}"
            answer = sandbox.call(try_one, plan.seed, base, trial, seconds=TRIAL_SECONDS)
            if answer.value is None:
                verdict: Verdict = "hung" if answer.hung else "crashed"
                files = {"instance.json": json.dumps(odd_case(plan.seed, base, 260)[2]).encode()}
                yield Result(NAME, kind_of(trial), key, verdict, answer.error, files)
            else:
                yield answer.value


def kind_of(trial: int) -> str:
    """Return what a trial does.

    Parameters
    ----------
    trial
        The number of the trial of an instance.

    Returns
    -------
    str
        The kind.
    """
    return "certify" if trial == 0 else KINDS[trial % len(KINDS)]


@dataclass(frozen=True, eq=False)
class Base:
    """An instance, all its costs, and a certificate.

    Attributes
    ----------
    description
        The shape and magnitude of the instance.
    case, instance, problem
        The instance in three forms.
    least, worst
        The exact optimum, and the assignment of the largest cost.
    certificate
        The certificate that the project made; None if it made none.
    error
        Why there is none.
    """

    description: str
    case: Case
    instance: Instance
    problem: IntegerProblem
    least: Fraction
    worst: tuple[int, ...]
    certificate: Certificate | None
    error: str


@functools.lru_cache(maxsize=4)
def base_of(seed: int, number: int) -> Base:
    """Return an instance with a certificate.

    Parameters
    ----------
    seed, number
        As in :func:`odd_instances.odd_case`.

    Returns
    -------
    Base
        The instance, its costs and a certificate.
    """
    from relocbench.runs.certify import certify

    shape, magnitude, case = odd_case(seed, number, 260)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "instance.json")
        path.write_text(json.dumps(case), encoding="utf-8")
        instance = read_instance(path)
    delays = Delays(case)
    every = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    costs = [(cost(case, home, delays), home) for home in every]
    certificate, error = None, ""
    try:
        certificate = certify(instance, seed=0, time_limit=CERTIFY_SECONDS).certificate
    except Exception as problem:
        # Any error of the search is a finding of its own; the other trials of the instance need no certificate.
        error = f"{type(problem).__name__}: {problem}"
    description = f"{shape}, {magnitude}"
    least, (_, worst) = min(costs)[0], max(costs)
    return Base(description, case, instance, IntegerProblem(instance), least, worst, certificate, error)


def try_one(seed: int, number: int, trial: int) -> Result:
    """Run one trial; called in a child process.

    Parameters
    ----------
    seed, number, trial
        The seed of the campaign, and the numbers of the instance and of the trial.

    Returns
    -------
    Result
        The result.
    """
    base, key = base_of(seed, number), f"{number}.{trial}"
    rng = random.Random(f"certificate {seed} {number} {trial}")
    kind = kind_of(trial)
    files = {"instance.json": json.dumps(base.case).encode()}
    if kind == "certify":
        if base.certificate is None:
            command = f"relocbench certify instance.json --time-limit {CERTIFY_SECONDS} --out certificate.json"
            return Result(NAME, kind, key, "crashed", f"{base.description}: {base.error}", files, command)
        content = _written(base.certificate)
    else:
        content = _tampered(base, seed, number, kind, rng)
    files["certificate.json"] = content
    verdict, note = judged(base, content, must_be_proved=kind == "certify")
    note = f"{base.description}: {note}" if note else ""
    command = "relocbench verify instance.json certificate.json"
    return Result(NAME, kind, key, verdict, note, files if verdict == "wrong" else {}, command)


def judged(base: Base, content: bytes, must_be_proved: bool = False) -> tuple[Verdict, str]:
    """Verify a certificate and compare what is accepted with the truth.

    Parameters
    ----------
    base
        The instance.
    content
        The certificate file.
    must_be_proved
        Whether a refusal is wrong.

    Returns
    -------
    verdict
        What was found.
    note
        The reason of a failure.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate.json")
        path.write_bytes(content)
        found = verify(base.instance, path)
    if not found.proved:
        if must_be_proved:
            return "wrong", f"a certificate of the project is not accepted: {found.reason}"
        fine = found.reason and "\n" not in found.reason
        return ("refused", "") if fine else ("wrong", f"refused with the reason {found.reason!r}")
    home = json.loads(content)["home"]
    exact = cost(base.case, home)
    if found.bound is None or found.bound > base.least:
        return "wrong", f"accepted the bound {_text(found.bound)}, but the optimum is {_text(base.least)}"
    if found.objective != exact:
        return "wrong", f"computed the cost {_text(found.objective)}, but the homes cost {_text(exact)}"
    if found.status == "optimal" and exact - found.bound > TOLERANCE * exact:
        return "wrong", f"optimal, with the cost {_text(exact)} and the bound {_text(found.bound)}"
    return _compared(base.case, content, exact, found.bound)


def _compared(case: Case, content: bytes, exact: Fraction, bound: Fraction) -> tuple[Verdict, str]:
    """Compare with the second verifier, which rounds nothing and therefore accepts everything that the first does."""
    try:
        second: Any = importlib.import_module(SECOND_VERIFIER)
    except ModuleNotFoundError:
        return "right", ""
    proved, reason, objective, claim = second.verify(case, json.loads(content))
    if not proved:
        return "wrong", f"the second verifier does not accept it: {reason}"
    if (objective, claim) != (exact, bound):
        return "wrong", f"the second verifier finds the cost {_text(objective)} and the bound {_text(claim)}"
    return "right", ""


def _text(number: Fraction | None) -> str:
    return "none" if number is None else repr(float(number))


def _written(certificate: Certificate) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate.json")
        write_certificate(certificate, path)
        return path.read_bytes()


def _tampered(base: Base, seed: int, number: int, kind: str, rng: random.Random) -> bytes:
    certificate = base.certificate
    if kind.startswith("random") or certificate is None:
        splits = kind == "random splits"
        certificate = _random_certificate(base, rng, splits)
    elif kind == "bytes":
        return mutated_bytes(_written(certificate), rng)
    elif kind == "JSON values":
        return mutated_json(_written(_raised(base, certificate, rng)), rng)
    elif kind == "claim":
        certificate = _raised(base, certificate, rng)
    elif kind == "homes":
        home = [rng.randrange(base.instance.n_servers) for _ in range(base.instance.n_clients)]
        if rng.random() < 0.2:
            home = home[: rng.randrange(len(home) + 1)] + [base.instance.n_servers] * rng.randrange(2)
        certificate = dataclasses.replace(certificate, home=np.array(home, np.int32))
    elif kind == "another instance":
        certificate = _of_another_instance(base, certificate, seed, number, rng)
    else:
        steps = _tampered_steps(base, list(certificate.proof), kind, rng)
        certificate = dataclasses.replace(certificate, proof=tuple(steps))
        if rng.random() < 0.7:
            certificate = _raised(base, certificate, rng)
    return _written(certificate)


def _raised(base: Base, certificate: Certificate, rng: random.Random) -> Certificate:
    """Claim a little more than the optimum; with the worst homes, so that the claim is not refuted by them."""
    bits = max(certificate.bits, 40)
    above = 1 + Fraction(rng.choice([0, 1, 10**3, 10**6, 10**9]), 10**10)
    claim = (base.least * above * (1 << bits)).__floor__() + 1
    return dataclasses.replace(certificate, claim=claim, bits=bits, home=np.array(base.worst, np.int32))


def _of_another_instance(
    base: Base, certificate: Certificate, seed: int, number: int, rng: random.Random
) -> Certificate:
    """Return a certificate of a similar instance with the hash of this one."""
    from relocbench.runs.certify import certify

    scaled = rng.choice(["spool", "storage_capacity", "compute_capacity", "delay_per_km", "cloud_delay"])
    factor = rng.choice([0.5, 0.99, 1.01, 2.0])
    with contextlib.suppress(InputError, ArithmeticError, OverflowError):
        other = dataclasses.replace(base.instance, **{scaled: factor * getattr(base.instance, scaled)})
        certificate = certify(other, seed=0, time_limit=0.2).certificate
    return dataclasses.replace(certificate, instance=base.instance.hash, home=np.array(base.worst, np.int32))


def _tampered_steps(base: Base, steps: list[Step], kind: str, rng: random.Random) -> list[Step]:
    at = rng.randrange(len(steps)) if steps else 0
    if kind == "steps dropped":
        return [step for step in steps if rng.random() < 0.7]
    if kind == "steps repeated":
        return steps[:at] + steps[at : at + 1] * rng.randint(2, 4) + steps[at + 1 :]
    if kind == "steps in another order":
        return rng.sample(steps, len(steps))
    if kind == "splits":
        splits = [n for n, step in enumerate(steps) if not isinstance(step, Dual)]
        if not splits:
            return [_random_split(base, rng), *steps]
        at = rng.choice(splits)
        steps[at] = _random_split(base, rng) if rng.random() < 0.5 else _changed_split(base, steps[at], rng)
        return steps
    for number, step in enumerate(steps):
        if isinstance(step, Dual) and rng.random() < 0.6:
            # Numbers that no certificate may contain cannot be packed.
            with contextlib.suppress(InputError, OverflowError):
                steps[number] = _changed_dual(base, step, kind, rng)
    return steps


def _changed_split(base: Base, step: Step, rng: random.Random) -> Step:
    name = rng.choice([field.name for field in dataclasses.fields(step)])
    value = getattr(step, name)
    if name == "servers":
        return dataclasses.replace(
            step, servers=tuple(rng.sample(range(base.instance.n_servers), rng.randrange(base.instance.n_servers + 1)))
        )
    return dataclasses.replace(step, **{name: rng.choice([0, value + 1, max(0, value - 1), value * 2, value + 1024])})


def _random_split(base: Base, rng: random.Random) -> Step:
    first, server = rng.randrange(4), rng.randrange(base.instance.n_servers)
    return rng.choice(
        [
            SplitClient(rng.randrange(base.instance.n_clients), (server,), first),
            SplitTopic(rng.randrange(base.instance.n_topics), server, first),
            SplitShare(server, rng.randrange(1025), first),
        ]
    )


def _changed_dual(base: Base, dual: Dual, kind: str, rng: random.Random) -> Dual:
    problem, servers = base.problem, base.instance.n_servers
    if kind == "multipliers":
        name = rng.choice(["alpha", "beta"])
        values = [_near(value, rng) if rng.random() < 0.5 else value for value in getattr(dual, name)]
        return dataclasses.replace(dual, **{name: tuple(values)})
    if kind == "units and flags":
        name = rng.choice(["bits", "multiplier_bits", "fix", "hard"])
        if name == "hard":
            return dataclasses.replace(dual, hard=tuple(rng.randrange(2) for _ in range(servers)))
        if name == "fix":
            return dataclasses.replace(dual, fix=not dual.fix)
        return dataclasses.replace(dual, **{name: min(200, max(0, getattr(dual, name) + rng.choice([-8, -1, 1, 8])))})
    active = unpacked(dual.active, (base.instance.n_clients, servers), "active").astype(bool)
    count = {
        "messages": int(active[problem.first].sum()),
        "shares": int(active[problem.publisher_client].sum()),
    }
    if kind == "active homes":
        changed = active ^ (np.random.default_rng(rng.randrange(2**32)).random(active.shape) < rng.choice([0.1, 0.5]))
        sizes = {"messages": int(changed[problem.first].sum()), "shares": int(changed[problem.publisher_client].sum())}
        arrays = {}
        for name, size in sizes.items():
            old = unpacked(getattr(dual, name), (count[name],), name)
            arrays[name] = np.resize(old, size) if len(old) else np.zeros(size, np.int64)
        return dataclasses.replace(dual, active=changed, **arrays)
    values = unpacked(getattr(dual, kind), (count[kind],), kind)
    changed = np.array([_near(int(value), rng) if rng.random() < 0.5 else int(value) for value in values], dtype=object)
    clipped = np.array([max(-(2**62), min(2**62, int(value))) for value in changed], np.int64)
    if rng.random() < 0.1:
        clipped = clipped[: rng.randrange(len(clipped) + 1)]
    return dataclasses.replace(dual, **{kind: clipped})


def _near(value: int, rng: random.Random) -> int:
    return rng.choice(
        [0, value + 1, value - 1, -value, value * 2, value // 2, value * 1000, value + (1 << rng.randrange(60))]
    )


def _random_certificate(base: Base, rng: random.Random, splits: bool) -> Certificate:
    """Return steps made from nothing, with a claim above the optimum or a true one."""
    duals: Any = importlib.import_module("tests.formulations.certificates.duals")
    numbers = np.random.default_rng(rng.randrange(2**32))
    claim = base.least * (1 + Fraction(rng.choice([-(10**9), -(10**4), 1, 10**4, 10**8]), 10**10)) + Fraction(
        1, 1 << 90
    )
    steps = _random_steps(base, root_region(base.problem), duals, numbers, depth=3 if splits else 0)
    raised = (claim * (1 << 60)).__ceil__()
    return Certificate(
        instance=base.instance.hash, home=np.array(base.worst, np.int32), claim=raised, bits=60, proof=tuple(steps)
    )


def _random_steps(base: Base, region: Region, duals: Any, numbers: np.random.Generator, depth: int) -> list[Step]:
    problem = base.problem
    steps: list[Step] = []
    for _ in range(int(numbers.integers(1, 4))):
        settings = {
            "fix": bool(numbers.random() < 0.7),
            "bits": int(numbers.choice([0, 10, 30, 40])),
            "multiplier_bits": int(numbers.choice([10, 40])),
        }
        kind = numbers.random()
        # Numbers of an odd magnitude may not fit the units, and the linear program of a good dual may fail with them.
        with contextlib.suppress(InputError, ArithmeticError, ValueError, AssertionError), np.errstate(all="ignore"):
            dual = duals.random_dual(problem, region, numbers, **settings)
            if kind < 0.5 and problem.n_clients > 1:
                dual = duals.good_dual(problem, region, numbers, **settings)
            steps.append(duals.perturbed(dual, numbers) if kind < 0.25 else dual)
    if depth == 0 or numbers.random() < 0.2:
        return steps
    split = duals.random_split(problem, region, numbers)
    parts = split_region(problem, region, split)
    first, second = ([] if part is None else _random_steps(base, part, duals, numbers, depth - 1) for part in parts)
    return [*steps, dataclasses.replace(split, first=len(first)), *first, *second]
