"""``relocbench evaluate``: compute the cost of an assignment."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import HOMES
from relocbench.terminal import print_json, print_table


def run(
    instance: Annotated[Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name.")],
    homes: Annotated[Path, typer.Argument(help=f"File with {HOMES}.")],
    exact: Annotated[bool, typer.Option("--exact", help="Also print ΣD as an exact fraction.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute the cost of an assignment, and check the objective and the bound that its file claims, if any.

    The exit code is 1 if the objective differs from the computed cost, or the bound exceeds it.

    Example: relocbench evaluate inst.json sol.json --json

    Example: relocbench evaluate inst.json homes.csv
    """
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.evaluation_exact import evaluate_exact
    from relocbench.instances.files.homes_file import read_solution
    from relocbench.instances.instance_source import read_instance
    from relocbench.runs.solve import exceeds

    problem = read_instance(instance)
    stored = read_solution(homes, problem)
    cost = evaluate(problem, stored.home)
    answer = cost.values()
    if exact:
        answer["exact_objective"] = str(evaluate_exact(problem, stored.home).objective)
    if as_json:
        print_json(answer)
    else:
        print(f"Y = {cost.y:.9g}   Y1 = {cost.y1:.9g}   Y2 = {cost.y2:.9g}")
        print(f"ΣD = {cost.objective:.12g} over {cost.n_publications} publications")
        if exact:
            print(f"ΣD = {answer['exact_objective']} (exact)")
        rows = [
            (
                str(l),
                f"{cost.theta[l]:.4f}",
                f"{cost.storage_load[l]:g} / {problem.storage_capacity[l]:g}",
                f"{cost.compute_load[l]:g} / {problem.compute_capacity[l]:g}",
                f"{cost.sent[l]:g}",
                f"{cost.spread[l]:.4g}",
            )
            for l in range(problem.n_servers)
        ]
        columns = ("server", "θ", "storage a / A", "compute v / B", "sent F", "spread Q")
        print_table("Servers", columns, rows, columns)

    problems = []
    claimed = stored.objective
    if claimed is not None and (exceeds(claimed, cost.objective) or exceeds(cost.objective, claimed)):
        problems.append(f"objective: expected {cost.objective}, got {claimed}")
    if stored.bound is not None and exceeds(stored.bound, cost.objective):
        problems.append(f"bound: expected at most the objective {cost.objective}, got {stored.bound}")
    for line in problems:
        print(f"relocbench: {homes}: {line}", file=sys.stderr)
    if problems:
        raise typer.Exit(1)
