"""``relocbench solve``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from relocbench.terminal import live_line, print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Instance file (or family.parquet#name).")],
    method: Annotated[str, typer.Option(help="Selector; `relocbench methods` lists them.")],
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same homes (a search cut off by the time limit aside).", min=0)
    ] = 0,
    time_limit: Annotated[float, typer.Option(help="Seconds.", min=0)] = 60.0,
    out: Annotated[Path | None, typer.Option(help="Where the solution goes (.json).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find a home for every client with one method.

    Example: relocbench solve inst.json --method nearest --seed 0 --time-limit 60 --out sol.json
    """
    from instances.errors import InputError
    from instances.instance_file import read_instance
    from instances.solution_file import check_solution_path, write_solution
    from relocbench.solving import solve

    if out is not None:
        check_solution_path(out)
        if out.exists() and instance.exists() and out.samefile(instance):
            raise InputError(str(out), "expected another file than the instance's")
    problem = read_instance(instance)
    with live_line() as show:

        def progress(seconds: float, incumbent: float, bound: float) -> None:
            proved = f", bound {bound:.8g}" if math.isfinite(bound) else ""
            show(f"{method}: ΣD = {incumbent:.8g}{proved} after {seconds:.1f} of {time_limit:g} s")

        result = solve(problem, method, seed=seed, time_limit=time_limit, on_progress=progress)
    stored = result.stored()
    if out is not None:
        write_solution(stored, out)
    cost = result.evaluation
    if as_json:
        print_json(
            {
                "method": stored.method,
                "seed": stored.seed,
                "status": stored.status,
                "objective": stored.objective,
                "bound": stored.bound,
                "Y": cost.y,
                "Y1": cost.y1,
                "Y2": cost.y2,
                "seconds": result.seconds,
                "trace": [
                    [second, incumbent, bound if math.isfinite(bound) else None]
                    for second, incumbent, bound in result.solution.trace
                ],
            }
        )
    else:
        print(
            f"{stored.method}: {stored.status}, Y = {cost.y:.6g} (Y1 {cost.y1:.6g} + Y2 {cost.y2:.6g}), "
            f"ΣD = {cost.objective:.8g}, least θ = {cost.theta.min():.3g}, {result.seconds:.3g} s"
            + (f", in {out}" if out else "")
        )
