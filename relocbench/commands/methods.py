"""``relocbench methods``: list the methods."""

from typing import Annotated

import typer

from relocbench.terminal import print_json, print_table


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods with their parameters, what they prove, and whether they can run on this machine.

    Example: relocbench methods
    """
    from relocbench.runs.methods import METHODS

    listed = [
        {
            "name": method.name,
            "summary": method.summary,
            "proves": method.proves,
            "unavailable": method.unavailable(),
            "parameters": method.described_parameters(),
        }
        for method in METHODS.values()
    ]
    if as_json:
        print_json(listed)
        return
    rows = [
        (
            method.name,
            method.proves,
            method.unavailable() or "yes",
            "\n".join(
                f"{name}={spec['default']}: {spec['expects']}" for name, spec in method.described_parameters().items()
            )
            or "-",
            method.summary,
        )
        for method in METHODS.values()
    ]
    print_table("Methods", ("name", "proves", "available", "parameter=default: expected value", "summary"), rows)
