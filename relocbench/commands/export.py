"""``relocbench export``: write an exact model as a file for any solver, and read the solver's answer."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relocbench.terminal import print_json

if TYPE_CHECKING:
    from relocbench.instances.instance import Instance
    from relocbench.runs.methods import Selector


def run(
    instance: Annotated[Path, typer.Argument(help="Instance: a file, family.parquet#name or library:name.")],
    model: Annotated[
        str,
        typer.Option(help="Model, such as 'milp-strong[condition=together]': a method that solves one model."),
    ],
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", help="mps, lp, nl, cpsat-proto or cfn, as far as the model has it. Default: by the ending."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Model file to write (.mps, .lp, .nl, .pb, .pbtxt, .cfn, .wcsp); with --read-solution a solution file "
            "(.json)."
        ),
    ] = None,
    read_solution: Annotated[
        Path | None,
        typer.Option(
            help="Do not write a model, but read the answer of a solver to it: a solution of HiGHS, SCIP, CBC, CPLEX "
            "or toulbar2, names with values, or a response of CP-SAT."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write an exact model as a file that any solver can read, or read a solver's answer and evaluate it exactly.

    A second file, with .json at the end of its name, says how objectives translate to ms. With --read-solution the exit
    code is 1 if the solver claims another objective than the one that its homes have.

    Example: relocbench export inst.json --model milp-strong --format mps --out model.mps

    Example: relocbench export inst.json --model milp-strong --read-solution highs.sol --out sol.json
    """
    from relocbench.formulations.model_files.export import require_model
    from relocbench.instances.errors import InputError
    from relocbench.instances.instance_source import check_not_the_instance, read_instance
    from relocbench.runs.selectors import parse_selector

    selector = parse_selector(model)
    require_model(selector.method.name)
    if selector.start is not None:
        raise InputError("--model", "start: a model file does not depend on a start")
    if out is not None:
        check_not_the_instance(out, instance)
    if read_solution is not None:
        if format_ is not None:
            raise InputError("--format", "cannot be combined with --read-solution, which recognises the format")
        _read(read_instance(instance), selector, read_solution, out, as_json)
    elif out is None:
        raise InputError("--out", "expected the name of the model file to write")
    else:
        _write(read_instance(instance), selector, out, format_, as_json)


def _write(problem: "Instance", selector: "Selector", out: Path, format_: str | None, as_json: bool) -> None:
    from dataclasses import asdict

    from relocbench.formulations.model_files.export import choose_format, export_model

    name = selector.method.name
    made = export_model(problem, name, selector.settings, out, choose_format(name, out, format_))
    if as_json:
        print_json(asdict(made))
        return
    unit, loss = made.translation.unit_ms, made.translation.loss_ms
    print(
        f"{selector}: {made.variables:,} variables, {made.constraints:,} constraints in {made.files[0]}; "
        f"ΣD in ms = {unit:.17g} × objective"
        + (f", and a bound minus {loss:.3g} ms" if loss else "")
        + ("; a relaxation, whose minimum is a lower bound" if made.translation.below_ms is None else "")
    )
    print("also written: " + ", ".join(made.files[1:]))
    if made.warning:
        print(f"warning: {made.warning}")


def _read(problem: "Instance", selector: "Selector", path: Path, out: Path | None, as_json: bool) -> None:
    from relocbench.formulations.model_files.export import translation_of
    from relocbench.formulations.model_files.solver_answer import read_answer
    from relocbench.instances.evaluation import evaluate
    from relocbench.instances.evaluation_exact import evaluate_exact
    from relocbench.instances.files.solution_file import StoredSolution, check_solution_path, write_solution

    if out is not None:
        check_solution_path(out)
    answer = read_answer(path, problem, selector.method.name, selector.settings)
    cost = evaluate(problem, answer.home)
    objective = float(evaluate_exact(problem, answer.home).objective)
    translation = translation_of(problem, selector.method.name)
    claimed = None if answer.objective is None else translation.to_ms(answer.objective)
    agrees = claimed is None or translation.agrees(claimed, objective)
    if out is not None:
        write_solution(StoredSolution(problem.hash, str(selector), 0, "feasible", answer.home, objective, None), out)
    if as_json:
        facts: dict[str, Any] = {"home": answer.home.tolist(), "objective": objective, "Y": cost.y}
        print_json(facts | {"claimed": claimed, "agrees": agrees, "out": None if out is None else str(out)})
    else:
        print(
            f"{path}: ΣD = {objective:.12g} ms, Y = {cost.y:.9g} (Y1 {cost.y1:.9g} + Y2 {cost.y2:.9g}), "
            f"least θ = {cost.theta.min():.3g}" + (f"; written to {out}" if out is not None else "")
        )
        if claimed is None:
            print("the file claims no objective")
        else:
            print(f"the file claims {claimed:.12g} ms: {_judgement(claimed, objective, agrees)}")
    if not agrees:
        raise typer.Exit(1)


def _judgement(claimed: float, objective: float, agrees: bool) -> str:
    """Say in words how a claimed objective compares with the one of the evaluator."""
    difference = claimed - objective
    if not agrees:
        return (
            f"WRONG by {difference:+.6g} ms, more than the tolerances of a solver and the rounding of the model explain"
        )
    if difference == 0:
        return "the same"
    return f"it differs by {difference:+.3g} ms, which tolerances and the rounding of the model explain"
