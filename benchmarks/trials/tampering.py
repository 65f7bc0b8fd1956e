"""Tampered certificates: changed numbers, steps and claims of a true proof, and proofs made from nothing."""

import contextlib
import dataclasses
import functools
import importlib
import itertools
import json
import math
import random
import tempfile
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.trials.mutations import mutated_bytes, mutated_json
from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.rational_cost import Case, Delays, cost
from relocbench.formulations.certificates.certificate import (
    Certificate,
    Contents,
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
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance

# Seconds of the search that makes a certificate.
CERTIFY_SECONDS = 1.5
# The largest number of assignments of an instance, all of which are enumerated.
MOST_ASSIGNMENTS = 260
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

    shape, magnitude, case = odd_case(seed, number, MOST_ASSIGNMENTS)
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


def written(certificate: Certificate) -> bytes:
    """Return the file of a certificate.

    Parameters
    ----------
    certificate
        The certificate.

    Returns
    -------
    bytes
        Its JSON.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate.json")
        write_certificate(certificate, path)
        return path.read_bytes()


def tampered(base: Base, kind: str, rng: random.Random) -> bytes:
    """Return the file of a tampered certificate.

    Parameters
    ----------
    base
        The instance and its true certificate.
    kind
        What is changed: one of ``KINDS``.
    rng
        Random numbers.

    Returns
    -------
    bytes
        The file.
    """
    certificate = base.certificate
    if kind.startswith("random") or certificate is None:
        splits = kind == "random splits"
        certificate = _random_certificate(base, rng, splits)
    elif kind == "bytes":
        return mutated_bytes(written(certificate), rng)
    elif kind == "JSON values":
        return mutated_json(written(_raised(base, certificate, rng)), rng)
    elif kind == "claim":
        certificate = _raised(base, certificate, rng)
    elif kind == "homes":
        home = [rng.randrange(base.instance.n_servers) for _ in range(base.instance.n_clients)]
        if rng.random() < 0.2:
            home = home[: rng.randrange(len(home) + 1)] + [base.instance.n_servers] * rng.randrange(2)
        certificate = dataclasses.replace(certificate, home=np.array(home, np.int32))
    elif kind == "another instance":
        certificate = _of_another_instance(base, certificate, rng)
    else:
        steps = _tampered_steps(base, list(certificate.proof), kind, rng)
        certificate = dataclasses.replace(certificate, proof=tuple(steps))
        if rng.random() < 0.7:
            certificate = _raised(base, certificate, rng)
    return written(certificate)


def _raised(base: Base, certificate: Certificate, rng: random.Random) -> Certificate:
    """Claim a little more than the optimum; with the worst homes, so that the claim is not refuted by them."""
    bits = max(certificate.bits, 40)
    above = 1 + Fraction(rng.choice([0, 1, 10**3, 10**6, 10**9]), 10**10)
    claim = (base.least * above * (1 << bits)).__floor__() + 1
    return dataclasses.replace(certificate, claim=claim, bits=bits, home=np.array(base.worst, np.int32))


def _of_another_instance(base: Base, certificate: Certificate, rng: random.Random) -> Certificate:
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
        splits = [n for n, step in enumerate(steps) if not isinstance(step, Dual | Contents)]
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
        elif isinstance(step, Contents) and rng.random() < 0.6:
            steps[number] = _changed_contents(base, step, rng)
    return steps


def _changed_contents(base: Base, step: Contents, rng: random.Random) -> Step:
    """Change a price or a limit, or all of them by the same number."""
    clients, servers, pairs = base.problem.n_clients, base.problem.n_servers, len(base.problem.sender)
    shapes = {"client_prices": (clients,), "pair_prices": (pairs, servers), "least": (servers,)}
    name = rng.choice([name for name, shape in shapes.items() if math.prod(shape)])
    numbers = unpacked(getattr(step, name), shapes[name], name).copy()
    if rng.random() < 0.3:
        return _replaced(step, **{name: numbers + rng.choice([1, -1, 1 << 20, 1 << 40])})
    place = rng.randrange(numbers.size)
    value = int(numbers.flat[place])
    numbers.flat[place] = rng.choice([0, -1, value + 1, value // 2, -value, (1 << 46) - 1, 1 << 46, (1 << 63) - 1])
    return _replaced(step, **{name: numbers})


def _changed_split(base: Base, step: Step, rng: random.Random) -> Step:
    name = rng.choice([field.name for field in dataclasses.fields(step)])
    value = getattr(step, name)
    if name == "servers":
        every = range(base.instance.n_servers)
        return _replaced(step, servers=tuple(rng.sample(every, rng.randint(0, len(every)))))
    return _replaced(step, **{name: rng.choice([0, value + 1, max(0, value - 1), value * 2, value + 1024])})


def _replaced(step: Any, **values: Any) -> Step:
    changed: Step = dataclasses.replace(step, **values)
    return changed


def _random_split(base: Base, rng: random.Random) -> Step:
    first, server = rng.randrange(4), rng.randrange(base.instance.n_servers)
    splits: list[Step] = [
        SplitClient(rng.randrange(base.instance.n_clients), (server,), first),
        SplitTopic(rng.randrange(base.instance.n_topics), server, first),
        SplitShare(server, rng.randrange(1025), first),
    ]
    return rng.choice(splits)


def _changed_dual(base: Base, dual: Dual, kind: str, rng: random.Random) -> Step:
    if kind == "multipliers":
        name = rng.choice(["alpha", "beta"])
        values = [_near(value, rng) if rng.random() < 0.5 else value for value in getattr(dual, name)]
        return _replaced(dual, **{name: tuple(values)})
    if kind == "units and flags":
        return _changed_unit(base, dual, rng)
    active = unpacked(dual.active, (base.instance.n_clients, base.instance.n_servers), "active").astype(bool)
    arrays = {name: unpacked(getattr(dual, name), (size,), name) for name, size in _sizes(base, active).items()}
    if kind == "active homes":
        numbers = np.random.default_rng(rng.randrange(2**32))
        other = active ^ (numbers.random(active.shape) < rng.choice([0.1, 0.5]))
        resized = {
            name: np.resize(arrays[name], size) if len(arrays[name]) else np.zeros(size, np.int64)
            for name, size in _sizes(base, other).items()
        }
        return _replaced(dual, active=other, **resized)
    changed = [_near(value, rng) if rng.random() < 0.5 else value for value in arrays[kind].tolist()]
    if rng.random() < 0.1:
        changed = changed[: rng.randint(0, len(changed))]
    return _replaced(dual, **{kind: np.array([max(-(2**62), min(2**62, value)) for value in changed], np.int64)})


def _changed_unit(base: Base, dual: Dual, rng: random.Random) -> Step:
    name = rng.choice(["bits", "multiplier_bits", "fix", "hard"])
    if name == "hard":
        return _replaced(dual, hard=tuple(rng.randrange(2) for _ in range(base.instance.n_servers)))
    if name == "fix":
        return _replaced(dual, fix=not dual.fix)
    return _replaced(dual, **{name: min(200, max(0, getattr(dual, name) + rng.choice([-8, -1, 1, 8])))})


def _sizes(base: Base, active: Any) -> dict[str, int]:
    """Return how many numbers the two arrays have that depend on the active homes."""
    problem = base.problem
    return {"messages": int(active[problem.first].sum()), "shares": int(active[problem.publisher_client].sum())}


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
