"""``relocbench solve``: find homes with one method."""

import math
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from relocbench.runs.progress import live_line
from relocbench.terminal import print_json, second_interrupt_ends_at_once


def run(
    instance: Annotated[Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name.")],
    method: Annotated[
        str, typer.Option(help="Method, such as 'reloc[k=8]' or mine.py:function; `relocbench methods` lists them.")
    ],
    seed: Annotated[
        int, typer.Option(help="The same seed gives the same homes, unless the time limit ends a search.", min=0)
    ] = 0,
    time_limit: Annotated[float, typer.Option(help="Time limit in seconds.", min=0)] = 60.0,
    memory_limit: Annotated[
        float,
        typer.Option(
            help="Memory limit in GiB of an exact method or your own, which runs in a separate process.",
            min=0.25,
            max=1e6,
        ),
    ] = 4.0,
    log: Annotated[
        Path | None, typer.Option(help="File for what an exact method or your own prints, such as a solver's log.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Solution file to write (.json).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Find a home for every client with one method.

    Ctrl-C ends the search and keeps the best homes so far (exit code 130); a second Ctrl-C ends at once.

    Example: relocbench solve inst.json --method nearest --seed 0 --time-limit 60 --out sol.json
    """
    from relocbench.instances.files.solution_file import check_solution_path, write_solution
    from relocbench.instances.instance_source import check_not_the_instance, read_instance
    from relocbench.runs.isolation.supervisor import GIB
    from relocbench.runs.outcome import INTERRUPTED
    from relocbench.runs.run_error import RunError
    from relocbench.runs.selectors import parse_selector
    from relocbench.runs.solve import solve

    if out is not None:
        check_solution_path(out)
        check_not_the_instance(out, instance)
    problem = read_instance(instance)
    selector = parse_selector(method)
    path = log or (_temporary_log() if selector.is_isolated else None)
    result, failure, code = None, None, 1
    with live_line() as show, second_interrupt_ends_at_once():

        def progress(seconds: float, incumbent: float, bound: float) -> None:
            bound_text = f", bound {bound:.8g}" if math.isfinite(bound) else ""
            show(f"{method}: ΣD = {incumbent:.8g}{bound_text} after {seconds:.1f} of {time_limit:g} s")

        try:
            result = solve(
                problem,
                selector,
                seed=seed,
                time_limit=time_limit,
                memory_limit=round(memory_limit * GIB),
                on_progress=progress,
                log=path,
                keep_incumbent=True,
            )
            if result.stopped == INTERRUPTED:
                failure = f"{selector}: interrupted after {result.seconds:.3g} s; these are the best homes so far"
            elif result.stopped is not None:
                failure = f"{selector}: {result.solution.status}: {result.stopped}"
        except RunError as error:
            failure = str(error)
        except KeyboardInterrupt:
            failure, code = f"{selector}: interrupted before it reported homes; nothing was written", 130
        finally:
            printed = path is not None and path.exists() and path.stat().st_size > 0
            if path is not None and log is None and not (failure and printed):
                path.unlink(missing_ok=True)
    if failure is not None:
        print(f"relocbench: {failure}" + (f"; log: {path}" if printed else ""), file=sys.stderr)
    if result is None:
        raise typer.Exit(code)
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
            + (f", bound {stored.bound:.8g} (gap {result.gap:.2%})" if result.gap else "")
            + (f"; written to {out}" if out else "")
        )
    if result.stopped == INTERRUPTED:
        raise typer.Exit(130)


def _temporary_log() -> Path:
    handle, name = tempfile.mkstemp(prefix="relocbench-", suffix=".log")
    os.close(handle)
    return Path(name)
