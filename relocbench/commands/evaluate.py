"""``relocbench evaluate``."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from relocbench.terminal import print_json, print_table


def run(
    instance: Annotated[Path, typer.Argument(help="Instance file (or family.parquet#name, library:name).")],
    solution: Annotated[Path, typer.Argument(help="Solution file.")],
    exact: Annotated[bool, typer.Option("--exact", help="Add ΣD as an exact fraction.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute what an assignment costs, and check what its file claims.

    Exit 1 if the file's objective is not what the evaluator finds, or its bound exceeds it.

    Example: relocbench evaluate inst.json sol.json --json
    """
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.evaluation_exact import evaluate_exact
    from relocbench.instances.files.solution_file import read_solution
    from relocbench.instances.instance_source import read_instance
    from relocbench.runs.solve import exceeds

    problem = read_instance(instance)
    stored = read_solution(solution, problem)
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
            print(f"ΣD = {answer['exact_objective']} exactly")
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

    complaints = []
    if exceeds(stored.objective, cost.objective) or exceeds(cost.objective, stored.objective):
        complaints.append(f"objective: claims {stored.objective}, it is {cost.objective}")
    if stored.bound is not None and exceeds(stored.bound, cost.objective):
        complaints.append(f"bound: {stored.bound} is above the objective {cost.objective}")
    for complaint in complaints:
        print(f"relocbench: {solution}: {complaint}", file=sys.stderr)
    if complaints:
        raise typer.Exit(1)
