"""The report of ``relocbench bench``: a Parquet file, and a page if the packages for pages are installed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.library.library import Library
from relocbench.reports.benchmark.assessment import AssessedRun, assess
from relocbench.reports.benchmark.rows_file import write_rows
from relocbench.reports.pages.requirements import require
from relocbench.runs.cross_check import Disagreement
from relocbench.runs.run_store import Row

# The report is below the folder of the runs and logs, so that all can be moved together.
FOLDER = "report"


@dataclass(frozen=True)
class WrittenReport:
    """The files of a report.

    Attributes
    ----------
    data, page
        The Parquet file, and the page; None if there is no page.
    missing
        Why there is no page; None if there is one.
    """

    data: Path
    page: Path | None
    missing: str | None = None


def write_report(
    rows: Sequence[Row], store: Path, *, command: str, wrong: Sequence[Disagreement], note: str = ""
) -> WrittenReport:
    """Write ``report/rows.parquet`` and ``report/report.html`` into the folder of the runs.

    Parameters
    ----------
    rows
        The runs, at least one, all under the same limits.
    store
        The folder of the runs and their logs.
    command
        The command that made the runs.
    wrong
        The wrong answers among them.
    note
        A remark that readers need to interpret the times.

    Returns
    -------
    WrittenReport
        The files.
    """
    library = Library()
    runs = assess(rows, wrong, library)
    data = write_rows(runs, store / FOLDER / "rows.parquet")
    try:
        require()
    except InputError as error:
        return WrittenReport(data, None, str(error))
    from relocbench.reports.benchmark.page import page_of
    from relocbench.reports.benchmark.results import Results

    def link(run: AssessedRun) -> str | None:
        log = run.row.log
        return f"../{log}" if log is not None and (store / log).is_file() else None

    facts = {"library": f"version {library.version}"}
    page = page_of(Results(runs, wrong), link, command=command, facts=facts, note=note)
    return WrittenReport(data, page.write(store / FOLDER / "report.html"))
