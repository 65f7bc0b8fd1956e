"""``relocbench info``: print versions and hardware."""

from typing import Annotated

import typer

from relocbench.terminal import print_json


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Print the versions and the hardware that can influence a result, for bug reports.

    Example: relocbench info
    """
    from relocbench.runs.environment import information

    found = information()
    if as_json:
        print_json(found)
        return
    width = max(map(len, found))
    for name, value in found.items():
        print(f"{name:<{width}}  {'not found' if value is None else value}")
