"""The result of a check as Markdown, for a pull request or the summary of a CI job."""

import re
from collections.abc import Sequence

from relocbench.instances.errors import plural
from relocbench.reports.gate.verdict import MOST_LINES, Subject, Verdict, change_cells, finding_cells


def markdown_of(verdict: Verdict) -> str:
    """Return the result of a check as Markdown.

    Parameters
    ----------
    verdict
        The result.

    Returns
    -------
    str
        A heading, and for each method a line, the table of the tests, the instances that got worse, and the failed
        runs. The long parts are folded.
    """
    worse = [subject.method for subject in verdict.subjects if not verdict.subject_passed(subject.method)]
    title = "passed: no method is worse" if verdict.passed else f"FAILED: {', '.join(map(code, worse))}"
    parts = [f"## relocbench check {title}"]
    parts += [f"> {text(note)}" for note in verdict.notes]
    for subject in verdict.subjects:
        parts += _subject(verdict, subject)
    if verdict.smallest:
        parts.append("**Smallest instances that show a failure**")
        lines = [
            f"- {code(one.file)}: {plural(one.clients, 'client')}, {plural(one.servers, 'server')}, from "
            f"{code(one.instance)}. {code(one.method)}: {text(one.says)}"
            for one in verdict.smallest
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _subject(verdict: Verdict, subject: Subject) -> list[str]:
    mark = "✅" if verdict.subject_passed(subject.method) else "❌"
    other = "" if subject.against == subject.method else f" ({code(subject.against)})"
    size = f"{plural(subject.instances, 'instance')}, {plural(subject.seeds, 'seed')}"
    parts = [f"### {mark} {code(subject.method)}", f"Against {code(verdict.baseline)}{other}, {size}."]
    parts += [f"**{text(str(stop))}**" for stop in verdict.stopped if stop.method == subject.method]
    listed = verdict.listed_findings(subject.method)
    if listed:
        rows = [
            [*map(text, cells[:-1]), f"**{cells[-1]}**" if cells[-1] else ""] for cells in map(finding_cells, listed)
        ]
        parts.append(_table(("tested", "sample", "change", "p", ""), rows))
    worsened = verdict.worsened(subject.method)
    if worsened and any(finding.worse and finding.criterion == "cost" for finding in listed):
        rows = [list(map(text, change_cells(change))) for change in worsened[:MOST_LINES]]
        table = _table(("instance", "change", "before", "now"), rows)
        parts.append(_folded(f"{plural(len(worsened), 'instance')} got worse", len(worsened), table))
    failed = [run for run in verdict.failed if run.method == subject.method]
    if failed:
        rows = [[text(run.instance), str(run.seed), text(run.error)] for run in failed[:MOST_LINES]]
        table = _table(("instance", "seed", "error"), rows)
        parts.append(_folded(f"{plural(len(failed), 'run')} without a valid assignment", len(failed), table))
    return parts


def _folded(summary: str, count: int, table: str) -> str:
    shown = f"; the first {MOST_LINES}" if count > MOST_LINES else ""
    return f"<details><summary>{summary}{shown}</summary>\n\n{table}\n\n</details>"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(value: str) -> str:
    """Return text that Markdown shows as it is, on one line and inside a table.

    Parameters
    ----------
    value
        Any text, such as an error message.

    Returns
    -------
    str
        The text with escapes.
    """
    one_line = " ".join(value.split())
    escaped = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # A mention of a user or a link in an error message must not become one.
    return re.sub(r"([\\`*_\[\]|~#!@])", r"\\\1", escaped)


def code(value: str) -> str:
    """Return text in the typeface of code, on one line and inside a table.

    Parameters
    ----------
    value
        Any text, such as a selector.

    Returns
    -------
    str
        The text as HTML, in which selectors with backticks or pipes do no harm.
    """
    return f"<code>{text(value)}</code>"
