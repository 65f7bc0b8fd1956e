"""``relocbench certify``: find homes and a certified lower bound."""

import math
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import HOMES
from relocbench.runs.progress import live_line
from relocbench.terminal import print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name.")],
    out: Annotated[Path, typer.Option(help="Certificate file to write (.json, .json.gz).")],
    time_limit: Annotated[float, typer.Option(help="Time limit in seconds, including the verification.", min=0)] = 60.0,
    seed: Annotated[int, typer.Option(help="Seed of the search for homes.", min=0)] = 0,
    start: Annotated[Path | None, typer.Option(help=f"Start from these {HOMES}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find good homes and a certified lower bound, which `relocbench verify` checks in exact arithmetic.

    Ctrl-C ends the search early and writes the certificate of what is proved by then.

    Example: relocbench certify inst.json --time-limit 60 --out cert.json
    """
    from relocbench.formulations.certificates.certificate import check_certificate_path, write_certificate
    from relocbench.instances.errors import InputError
    from relocbench.instances.files.homes_file import read_homes
    from relocbench.instances.gap import gap
    from relocbench.instances.instance_source import check_not_the_instance, read_instance
    from relocbench.runs.certify import certify
    from relocbench.runs.solve import warm_up

    check_certificate_path(out)
    check_not_the_instance(out, instance)
    problem = read_instance(instance)
    homes = None if start is None else read_homes(start, problem)
    with live_line() as show:
        show("compiling")
        warm_up("bound")

        def progress(seconds: float, incumbent: float, bound: float) -> None:
            relative = gap(incumbent, bound) if math.isfinite(bound) else None
            bound_text = "" if relative is None else f", lower bound {bound:.8g}, gap {relative:.3%}"
            show(f"ΣD = {incumbent:.8g}{bound_text} after {seconds:.1f} of {time_limit:g} s")

        try:
            found = certify(problem, seed=seed, time_limit=time_limit, start=homes, on_progress=progress)
        except MemoryError:
            raise InputError(str(instance), "too large for the memory of this machine") from None
    write_certificate(found.certificate, out)
    solution, verdict = found.solution, found.verdict
    answer = {
        "objective": found.objective,
        "bound": found.bound,
        "gap": found.gap,
        "status": found.status,
        "steps": verdict.steps,
        "bytes": out.stat().st_size,
        "seconds": solution.trace[-1][0],
    }
    if as_json:
        print_json(answer)
    else:
        print(
            f"{verdict.status}: ΣD = {answer['objective']:.10g}, lower bound {solution.bound:.10g} "
            f"(gap {verdict.gap_text}); {answer['seconds']:.1f} s"
        )
        print(f"certificate: {out}, {verdict.steps} steps, {out.stat().st_size / 1000:.0f} kB")
        print(f"to verify it: relocbench verify {instance} {out}")
