"""What ``relocbench bench`` ends in: a Parquet file, and a page where pages can be made."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.library.library import Library
from relocbench.reports.benchmark.assessment import Judged, judge
from relocbench.reports.benchmark.rows_file import write_table
from relocbench.reports.pages.requirements import require
from relocbench.runs.cross_check import Disagreement
from relocbench.runs.run_store import Row

# Below the runs and their logs, so that all can be moved together.
FOLDER = "report"


@dataclass(frozen=True)
class Drawn:
    """What was written.

    Attributes
    ----------
    data, page
        The Parquet file, and the page; None where there is none.
    missing
        Why there is no page.
    """

    data: Path
    page: Path | None
    missing: str | None = None


def draw(rows: Sequence[Row], store: Path, *, command: str, wrong: Sequence[Disagreement], note: str = "") -> Drawn:
    """Write ``report/rows.parquet`` and ``report/report.html`` into the folder of the runs.

    Parameters
    ----------
    rows
        The runs, at least one, all under the same limits.
    store
        The folder they and their logs are in.
    command
        What was called.
    wrong
        The wrong answers among them.
    note
        What else has to be known to read the times.
    """
    shelf = Library()
    runs = judge(rows, wrong, shelf)
    data = write_table(runs, store / FOLDER / "rows.parquet")
    try:
        require()
    except InputError as error:
        return Drawn(data, None, str(error))
    from relocbench.reports.benchmark.page import page_of
    from relocbench.reports.benchmark.results import Results

    def link(run: Judged) -> str | None:
        log = run.row.log
        return f"../{log}" if log is not None and (store / log).is_file() else None

    facts = {"library": f"version {shelf.version}"}
    page = page_of(Results(runs, wrong), link, command=command, facts=facts, note=note)
    return Drawn(data, page.write(store / FOLDER / "report.html"))
