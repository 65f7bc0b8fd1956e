"""``relocbench families``: list the families of instances."""

from typing import Annotated

import typer

from relocbench.terminal import print_json, print_table


def run(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the families of instances: how many cells (combinations of parameters) and seeds each has.

    Example: relocbench families
    """
    from relocbench.instances.generators.families import FAMILIES

    if as_json:
        print_json(
            [
                {
                    "name": family.name,
                    "summary": family.summary,
                    "cells": [dict(cell) for cell in family.grid],
                    "seeds": family.replicates,
                }
                for family in FAMILIES.values()
            ]
        )
        return
    rows = [
        (family.name, str(len(family.grid)), str(family.replicates), ", ".join(family.grid[0]), family.summary)
        for family in FAMILIES.values()
    ]
    print_table("Families", ("name", "cells", "seeds", "parameters", "purpose"), rows, ("cells", "seeds"))
