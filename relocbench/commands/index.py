"""``relocbench index``."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    folder: Annotated[Path, typer.Argument(help="Folder with reports, also in its subfolders.")] = Path(),
    out: Annotated[Path | None, typer.Option(help="File to write. Default: index.html in the folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write one page that lists all reports of a folder: studies, benchmarks, paper evaluations and maps.

    `relocbench study` renews an index in the folder above its own.

    Example: relocbench index results
    """
    from dataclasses import asdict

    from relocbench.reports.pages.index import write_index
    from relocbench.reports.pages.requirements import require
    from relocbench.terminal import command_line, print_json, print_table

    require()
    page, found = write_index(folder, command_line(), out)
    if as_json:
        print_json({"page": str(page), "reports": [asdict(one) | {"path": str(one.path)} for one in found]})
        return
    rows = [
        (one.title, one.kind, one.made, "-" if one.instances is None else str(one.instances), str(one.path))
        for one in found
    ]
    print_table("Reports", ("report", "kind", "made", "instances", "file"), rows, ("instances",))
    print(f"index: {page}")
