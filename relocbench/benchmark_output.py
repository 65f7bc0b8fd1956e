"""The final output of a benchmark: its table, its report, and the wrong answers; on this machine and on Spark."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.instances.errors import plural
from relocbench.print_output import FOLDER
from relocbench.terminal import command_line, print_json, print_table

if TYPE_CHECKING:
    from relocbench.runs.cross_check import Disagreement
    from relocbench.runs.run_store import Row
    from relocbench.runs.sweep import EarlyStop


def print_benchmark(
    rows: "list[Row]",
    out: Path,
    as_json: bool,
    stopped: "Sequence[EarlyStop]" = (),
    for_print: bool = False,
    wrong: "Sequence[Disagreement] | None" = None,
) -> int:
    """Print the results of a benchmark and write its report.

    Parameters
    ----------
    rows
        The runs.
    out
        The folder of the runs.
    as_json
        Whether to print JSON instead of a table.
    stopped
        The methods whose other runs were not made, because their first runs failed.
    for_print
        Whether to write tables and figures as files for a paper, too.
    wrong
        The wrong answers among the runs; None to look for them.

    Returns
    -------
    int
        The number of wrong answers.
    """
    from relocbench.runs.cross_check import wrong_answers
    from relocbench.runs.sweep import group_of, summarise

    wrong = wrong_answers(rows) if wrong is None else wrong
    notes = [f"{stop.method} was {stop}" for stop in stopped]
    files = write_report(rows, out, wrong, "".join(f"{note}. " for note in notes), for_print)
    summaries = summarise(rows, group_of)
    errors = [f"{row.selector} on {row.instance}: {row.error}" for row in rows if row.status == "error"]
    if as_json:
        result = {"runs": len(rows), "out": str(out), "summary": list(map(asdict, summaries)), "errors": errors}
        result |= {"wrong": list(map(asdict, wrong)), "stopped": list(map(asdict, stopped))}
        print_json(result | files)
        return len(wrong)
    for one in wrong:
        where = "" if one.file is None else f"; smallest instance: {one.file}"
        print(f"WRONG: {one.instance}, seed {one.seed}: {one.message}{where}")
    columns = (
        "instances",
        "method",
        "proved",
        "claimed",
        "seconds to proof or claim",
        "gap without proof",
        "mean Y",
        "at a limit",
        "errors",
    )
    table = [
        (
            summary.group,
            summary.method,
            f"{summary.proved} / {summary.runs}",
            str(summary.claimed or "-"),
            _number(summary.seconds_to_proof, ".3g"),
            _number(summary.gap, ".2%"),
            _number(summary.y, ".6g"),
            str(summary.stopped or "-"),
            str(summary.errors or "-"),
        )
        for summary in summaries
    ]
    print_table(f"{plural(len(rows), 'run')}, in {out}", columns, table, columns[2:])
    for line in (*notes, *errors[:20]):
        print(line)
    if len(errors) > 20:
        print(f"and {plural(len(errors) - 20, 'more error')}")
    print_report(files)
    return len(wrong)


def write_report(
    rows: "list[Row]", out: Path, wrong: "Sequence[Disagreement]", note: str = "", for_print: bool = False
) -> dict[str, str | None]:
    """Write the report of a benchmark.

    Parameters
    ----------
    rows
        The runs.
    out
        The folder of the runs.
    wrong
        The wrong answers among them.
    note
        A remark that readers need to interpret the times.
    for_print
        Whether to write tables and figures as files for a paper, too.

    Returns
    -------
    dict
        The paths of the page (``report``), of the Parquet file (``data``) and, if wanted, of the folder for print
        (``print``); None for a file that was not written.
    """
    from relocbench.reports.benchmark import report

    if not rows:
        return {"report": None, "data": None}
    written = report.write_report(rows, out, command=command_line(), wrong=wrong, note=note)
    if written.missing is not None:
        print(f"relocbench: {written.missing}", file=sys.stderr)
    files = {"report": None if written.page is None else str(written.page), "data": str(written.data)}
    if for_print and written.page is not None:
        from relocbench.reports.pages.print_files import write_print_files

        write_print_files(written.page, written.page.parent / FOLDER)
        files["print"] = str(written.page.parent / FOLDER)
    return files


def print_report(files: "Mapping[str, str | None]") -> None:
    """Print the paths of the files of a report.

    Parameters
    ----------
    files
        The result of :func:`write_report`.
    """
    for name, path in files.items():
        if path is not None:
            print(f"{name}: {path}")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
