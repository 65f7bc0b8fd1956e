"""``relocbench methods``."""

import inspect
from typing import Annotated

import typer

from relocbench.terminal import print_json, print_table


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the methods, their parameters and what they prove.

    Example: relocbench methods
    """
    from relocbench.methods import METHODS

    listed = [
        {
            "name": method.name,
            "summary": method.summary,
            "proves": method.proves,
            "parameters": {
                name: None if spec.default is inspect.Parameter.empty else spec.default
                for name, spec in method.parameters().items()
            },
        }
        for method in METHODS.values()
    ]
    if as_json:
        print_json(listed)
        return
    rows = []
    for entry in listed:
        assert isinstance(entry["parameters"], dict)
        shown = ", ".join(f"{name}={value}" for name, value in entry["parameters"].items())
        rows.append((str(entry["name"]), str(entry["proves"]), shown or "-", str(entry["summary"])))
    print_table("Methods", ("name", "proves", "parameters", "what it does"), rows)
