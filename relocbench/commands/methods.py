"""``relocbench methods``."""

from typing import Annotated

import typer

from relocbench.terminal import print_json, print_table


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods, their parameters, what they prove, and why one cannot run here.

    Example: relocbench methods
    """
    from relocbench.runs.methods import METHODS

    listed = [
        {
            "name": method.name,
            "summary": method.summary,
            "proves": method.proves,
            "unavailable": method.unavailable(),
            "parameters": method.described(),
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
            "\n".join(f"{name}={spec['default']}: {spec['expects']}" for name, spec in method.described().items())
            or "-",
            method.summary,
        )
        for method in METHODS.values()
    ]
    print_table("Methods", ("name", "proves", "available", "parameter=default: what it takes", "what it does"), rows)
