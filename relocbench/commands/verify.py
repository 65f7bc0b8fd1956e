"""``relocbench verify``: check the proof of a certificate."""

import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from relocbench.formulations.certificates.budget import MAX_STEPS, MEMORY_LIMIT, TIME_LIMIT
from relocbench.instances.errors import plural
from relocbench.runs.progress import live_line
from relocbench.terminal import print_json

GIB = 1 << 30


def run(
    instance: Annotated[
        Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name; or a timeline.")
    ],
    certificate: Annotated[Path, typer.Argument(help="Certificate file (.json, .json.gz).")],
    time_limit: Annotated[float, typer.Option(help="Limit of the processor time, in seconds.", min=0)] = TIME_LIMIT,
    memory_limit: Annotated[float, typer.Option(help="Memory limit in GiB.", min=0, max=1e6)] = MEMORY_LIMIT / GIB,
    max_steps: Annotated[int, typer.Option(help="Largest number of steps of the proof.", min=0)] = MAX_STEPS,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the proof of a certificate in exact arithmetic, independently of all solvers.

    The exit code is 0 if the certificate proves its claim. Otherwise it is 1, and the reason is printed. A certificate
    whose check would exceed a limit proves nothing.

    Example: relocbench verify inst.json cert.json --json

    Example: relocbench verify moving.parquet cert.json
    """
    from relocbench.formulations.certificates.certificate import check_certificate_path
    from relocbench.formulations.certificates.timeline_verification import verify_timeline
    from relocbench.formulations.certificates.verification import Verdict, rounded_down, verify
    from relocbench.instances.errors import InputError, reason
    from relocbench.instances.instance import Instance
    from relocbench.instances.instance_source import read_instance
    from relocbench.instances.timeline.timeline_parquet import is_timeline, read_timeline

    check_certificate_path(certificate)
    try:
        certificate.open("rb").close()
    except OSError as error:
        raise InputError(str(certificate), f"cannot be read ({reason(error)})") from error
    limits: dict[str, float] = {
        "time_limit": time_limit,
        "memory_limit": memory_limit * GIB,
        "max_steps": max_steps,
    }
    verdict: Verdict
    over_time = is_timeline(instance)
    problem = read_timeline(instance) if over_time else read_instance(instance)
    begin = time.perf_counter()
    with live_line() as show:
        if isinstance(problem, Instance):
            verdict = verify(problem, certificate, lambda step: show(f"step {step}"), **limits)
        else:
            verdict = verify_timeline(
                problem, certificate, lambda epoch, step: show(f"epoch {epoch}, step {step}"), **limits
            )
    seconds = time.perf_counter() - begin

    objective = None if verdict.objective is None else float(verdict.objective)
    bound = None if verdict.bound is None else rounded_down(verdict.bound)
    answer: dict[str, Any] = {
        "proved": verdict.proved,
        "objective": objective,
        "bound": bound,
        "gap": verdict.stated_gap,
        "status": verdict.status,
        "exact_objective": _ratio(verdict.objective),
        "exact_bound": _ratio(verdict.bound),
        "steps": verdict.steps,
        "seconds": seconds,
    }
    if as_json:
        print_json(answer)
    elif verdict.proved:
        name = "cost" if over_time else "ΣD"
        shown_objective = "" if objective is None else f"{name} = {objective:.12g}   "
        numbers = f"{shown_objective}lower bound = {bound:.12g}   gap = {verdict.gap_text}"
        print(f"proved ({verdict.status}): {numbers}")
        print(f"{plural(verdict.steps, 'step')} in {seconds:.2f} s")
    if not verdict.proved:
        place = "" if verdict.reason.startswith(str(certificate)) else f"{certificate}: "
        print(f"relocbench: {place}{verdict.reason}", file=sys.stderr)
        raise typer.Exit(1)


def _ratio(number: Fraction | None) -> str | None:
    """Return a fraction as ``p/q``; None if it has more digits than Python prints."""
    try:
        return None if number is None else f"{number.numerator}/{number.denominator}"
    except ValueError:
        return None
