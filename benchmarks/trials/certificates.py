"""Certificates: tampered and random proofs. An accepted one must prove a bound that is true in rational numbers."""

import functools
import importlib
import json
import random
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.parallel import results_of
from benchmarks.trials.rational_cost import Case, cost
from benchmarks.trials.results import Plan, Result, Verdict
from benchmarks.trials.sandbox import Sandbox
from benchmarks.trials.tampering import CERTIFY_SECONDS, KINDS, MOST_ASSIGNMENTS, Base, base_of, tampered, written
from relocbench.formulations.certificates.verification import verify

NAME = "certificates"
QUICK, LONG = 300, 20_000
# Trials with certificates of the same instance.
PER_INSTANCE = 50
# Seconds of each trial.
TRIAL_SECONDS = 60.0
# A verdict of optimality allows this gap.
TOLERANCE = Fraction(1, 10**6)
SECOND_VERIFIER = "tests.formulations.certificates.second_verifier"


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
                files = {"instance.json": json.dumps(odd_case(plan.seed, base, MOST_ASSIGNMENTS)[2]).encode()}
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
        content = written(base.certificate)
    else:
        content = tampered(base, kind, rng)
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
    if bound <= 0:
        return "right", ""  # no assignment costs less than 0, which needs no proof
    try:
        found = second.verify(case, json.loads(content))
    except second.Rejected as error:
        return "wrong", f"the second verifier does not accept it: {error}"
    if found != (exact, bound):
        return "wrong", f"the second verifier finds the cost and the bound {', '.join(map(_text, found))}"
    return "right", ""


def _text(number: Fraction | None) -> str:
    return "none" if number is None else repr(float(number))
