"""``relocbench certify``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from relocbench.runs.progress import live_line
from relocbench.terminal import print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Instance file (or family.parquet#name, library:name).")],
    out: Annotated[Path, typer.Option(help="Where the certificate goes (.json, .json.gz).")],
    time_limit: Annotated[float, typer.Option(help="Seconds, verification included.", min=0)] = 60.0,
    seed: Annotated[int, typer.Option(help="Steers the search for homes.", min=0)] = 0,
    start: Annotated[Path | None, typer.Option(help="Solution file to begin with.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find good homes and a proof of how good they are, which anyone can check with `relocbench verify`.

    Ctrl-C ends the search early; what is proved by then is written.

    Example: relocbench certify inst.json --time-limit 60 --out cert.json
    """
    from relocbench.formulations.certificates.certificate import check_certificate_path, write_certificate
    from relocbench.instances.files.solution_file import read_solution
    from relocbench.instances.instance_source import check_not_the_instance, read_instance
    from relocbench.runs.certify import certify
    from relocbench.runs.solve import warm_up

    check_certificate_path(out)
    check_not_the_instance(out, instance)
    problem = read_instance(instance)
    homes = None if start is None else read_solution(start, problem).home
    with live_line() as show:
        show("getting ready")
        warm_up("bound")

        def progress(seconds: float, incumbent: float, bound: float) -> None:
            gap = (incumbent - bound) / incumbent if incumbent > 0 and math.isfinite(bound) else math.nan
            show(
                f"ΣD = {incumbent:.8g}, no assignment below {bound:.8g}, gap {gap:.3%} "
                f"after {seconds:.1f} of {time_limit:g} s"
            )

        found = certify(problem, seed=seed, time_limit=time_limit, start=homes, on_progress=progress)
    write_certificate(found.certificate, out)
    solution, verdict = found.solution, found.verdict
    cost, bound, gap = float(verdict.objective or 0), solution.bound, float(verdict.gap or 0)
    if as_json:
        print_json(
            {
                "objective": cost,
                "bound": bound,
                "gap": gap,
                "status": verdict.status,
                "steps": verdict.steps,
                "bytes": out.stat().st_size,
                "seconds": solution.trace[-1][0],
            }
        )
    else:
        print(
            f"{verdict.status}: ΣD = {cost:.10g}, no assignment costs less than {bound:.10g} (gap {gap:.4%}); "
            f"{solution.trace[-1][0]:.1f} s"
        )
        size = out.stat().st_size / 1000
        print(f"proof: {out}, {verdict.steps} steps, {size:.0f} kB; check it: relocbench verify {instance} {out}")
