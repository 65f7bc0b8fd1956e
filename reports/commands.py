"""The words that this room adds to the command ``relocbench``."""

from pathlib import Path
from typing import Annotated

import typer


def study(
    out: Annotated[Path, typer.Option(help="Folder for the report and its data.")] = Path("study"),
    seeds: Annotated[int, typer.Option(help="Replicates of each cell.", min=1, max=1000)] = 10,
) -> None:
    """Compare the methods on the paper's instances and write a report.

    Example: relocbench study --out study
    """
    from relocbench.terminal import print_table
    from reports.page import write_page
    from reports.study import columns, run_study, table_rows

    rows = run_study(seeds)
    title = f"Y in ms on the paper family, mean of {seeds} seeds with 95 % interval"
    print_table(title, columns(rows), table_rows(rows), numeric=columns(rows)[1:])
    print(f"report: {write_page(rows, out)}")
