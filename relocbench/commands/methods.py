"""``relocbench methods``: list the methods."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from relocbench.terminal import print_json, print_table

if TYPE_CHECKING:
    from relocbench.runs.methods import Method


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods with their parameters, what they prove, and whether they can run on this machine.

    Methods that installed packages have registered are among them.

    Example: relocbench methods
    """
    from relocbench.instances.errors import InputError
    from relocbench.runs.external_methods import registered_method, registered_names
    from relocbench.runs.methods import METHODS

    listed = [_about(method) for method in METHODS.values()]
    for name in registered_names():
        if name in METHODS:
            continue  # the names of this project come first
        try:
            method = registered_method(name)
            listed += [] if method is None else [_about(method)]
        except InputError as error:
            absent = {"unavailable": error.problem, "parameters": {}, "version": ""}
            listed.append({"name": name, "summary": "", "proves": "nothing"} | absent)
    if as_json:
        print_json(listed)
        return
    rows = [
        (
            method["name"],
            method["proves"],
            method["unavailable"] or "yes",
            "\n".join(f"{name}={spec['default']}: {spec['expects']}" for name, spec in method["parameters"].items())
            or "-",
            method["summary"],
        )
        for method in listed
    ]
    absent = {name: reason for method in listed for name, reason in method.get("solvers", {}).items() if reason}
    print_table("Methods", ("name", "proves", "available", "parameter=default: expected value", "summary"), rows)
    for name, reason in absent.items():
        print(f"solver={name}: {reason}")


def _about(method: "Method") -> dict[str, Any]:
    from typing import get_args

    from relocbench.formulations.solvers.availability import SOLVERS, missing_solver

    solver = None if method.is_external else method.parameters().get("solver")
    names = [] if solver is None else [name for name in get_args(solver.annotation) if name in SOLVERS]
    return {
        "name": method.name,
        "summary": method.summary,
        "proves": method.proves,
        "unavailable": method.unavailable(),
        "parameters": method.described_parameters(),
        "version": method.version(),
        **({"solvers": {name: missing_solver(name) for name in names}} if names else {}),
    }
