"""What a benchmark prints and writes in the end, on this machine and on Spark alike."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.terminal import command_line, print_json, print_table

if TYPE_CHECKING:
    from relocbench.runs.cross_check import Disagreement
    from relocbench.runs.run_store import Row


def print_benchmark(rows: "list[Row]", out: Path, as_json: bool) -> int:
    """Print what came of runs and draw their report; return how many answers are wrong."""
    from relocbench.runs.cross_check import wrong_answers
    from relocbench.runs.sweep import group_of, summarise

    wrong = wrong_answers(rows)
    drawn = write_report(rows, out, wrong)
    summaries = summarise(rows, group_of)
    errors = [f"{row.selector} on {row.instance}: {row.error}" for row in rows if row.status == "error"]
    if as_json:
        told = {"runs": len(rows), "out": str(out), "summary": list(map(asdict, summaries)), "errors": errors}
        print_json(told | {"wrong": list(map(asdict, wrong))} | drawn)
        return len(wrong)
    for one in wrong:
        print(f"WRONG: {one.instance}, seed {one.seed}: {one.message}")
    columns = ("instances", "method", "proved", "seconds to proof", "gap otherwise", "mean Y", "at a limit", "errors")
    table = [
        (
            summary.group,
            summary.method,
            f"{summary.proved} / {summary.runs}",
            _number(summary.seconds_to_proof, ".3g"),
            _number(summary.gap, ".2%"),
            _number(summary.y, ".6g"),
            str(summary.stopped or "-"),
            str(summary.errors or "-"),
        )
        for summary in summaries
    ]
    print_table(f"{len(rows)} runs, in {out}", columns, table, columns[2:])
    for line in errors[:20]:
        print(line)
    if len(errors) > 20:
        print(f"and {len(errors) - 20} more errors")
    print_report(drawn)
    return len(wrong)


def write_report(
    rows: "list[Row]", out: Path, wrong: "Sequence[Disagreement]", note: str = ""
) -> dict[str, str | None]:
    """Have the report drawn; return where it is, for people and programs."""
    from relocbench.reports.benchmark.report import draw

    if not rows:
        return {"report": None, "data": None}
    drawn = draw(rows, out, command=command_line(), wrong=wrong, note=note)
    if drawn.missing is not None:
        print(f"relocbench: {drawn.missing}", file=sys.stderr)
    return {
        "report": None if drawn.page is None else str(drawn.page),
        "data": str(drawn.data),
    }


def print_report(drawn: "Mapping[str, str | None]") -> None:
    """Print where the files of a report are."""
    for what, path in drawn.items():
        if path is not None:
            print(f"{what}: {path}")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
