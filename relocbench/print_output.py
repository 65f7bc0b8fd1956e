"""The option ``--print`` of the commands that write a page."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.instances.errors import plural

FOLDER = "print"

Print = Annotated[
    bool,
    typer.Option(
        "--print",
        help="Also write every table of the page as LaTeX and CSV, and every figure as SVG and PDF, into the folder "
        "`print` beside the page.",
    ),
]


def print_files(page: Path, wanted: bool, as_json: bool) -> None:
    """Write the tables and figures of a page as files for a paper, and say where they are.

    Parameters
    ----------
    page
        The page.
    wanted
        Whether the user asked for them.
    as_json
        Whether the command prints JSON, so that nothing else may be printed.

    Raises
    ------
    InputError
        If Chromium fails.
    """
    if not wanted:
        return
    from relocbench.reports.pages.chromium import find_chromium
    from relocbench.reports.pages.print_files import write_print_files

    files = write_print_files(page, page.parent / FOLDER)
    tables, figures = (sum(file.suffix == ending for file in files) for ending in (".csv", ".pdf"))
    missing = "" if find_chromium() else " (figures need Chromium, which is not installed)"
    if not as_json:
        made = f"{plural(tables, 'table')}, {plural(figures, 'figure')}{missing}"
        print(f"for print: {made}, in {page.parent / FOLDER}; all.tex shows all of them")
