"""An index page over the reports of a folder."""

import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from relocbench.instances.errors import InputError, plural
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.pages.page import Page, kind_of
from relocbench.reports.pages.tables import Cell, Column, Table, Value

FILE = "index.html"
KIND = "index"
# A page describes itself within its first bytes.
HEAD = 1 << 16
# With more methods than this, the table gives their number only.
MOST_METHODS = 2


@dataclass(frozen=True)
class Entry:
    """A report in a folder.

    Attributes
    ----------
    path
        The file, relative to the folder.
    kind, title
        The kind of report and its title.
    made
        When it was made; empty if the page does not say so.
    instances, methods
        The number of instances, and the selectors; None and empty if the page does not say so.
    result
        The main result.
    """

    path: Path
    kind: str
    title: str
    made: str
    instances: int | None
    methods: Sequence[str]
    result: str


def reports_in(folder: Path) -> list[Entry]:
    """Find the reports below a folder.

    Parameters
    ----------
    folder
        The folder. Hidden folders inside it are not searched.

    Returns
    -------
    list of Entry
        The reports, the newest first.

    Raises
    ------
    InputError
        If the folder does not exist.
    """
    if not folder.is_dir():
        raise InputError(str(folder), "expected a folder")
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if path.suffix == ".html" and (kind := kind_of(path)) not in (None, KIND):
                found.append(_entry(path, path.relative_to(folder), str(kind)))
    return sorted(found, key=lambda entry: entry.made, reverse=True)


def _entry(path: Path, name: Path, kind: str) -> Entry:
    with path.open("rb") as file:
        head = file.read(HEAD).decode(errors="replace")
    meta = re.search(r'<meta name="relocbench-report" content="([^"]*)">', head)
    try:
        about = json.loads(html.unescape(meta[1])) if meta else {}
    except ValueError:  # a damaged page is listed by its title
        about = {}
    title = re.search(r"<title>([^<]*)</title>", head)
    return Entry(
        path=name,
        kind=kind,
        title=html.unescape(title[1]) if title else str(name),
        made=str(about.get("made", "")),
        instances=about.get("instances"),
        methods=about.get("methods", ()),
        result=str(about.get("result", "")),
    )


def write_index(folder: Path, command: str, path: Path | None = None) -> tuple[Path, list[Entry]]:
    """Write an index page over the reports of a folder.

    Parameters
    ----------
    folder
        The folder.
    command
        The command that the page names as its origin.
    path
        The file; ``index.html`` in the folder if not given.

    Returns
    -------
    Path, list of Entry
        The file, and the reports that it lists.

    Raises
    ------
    InputError
        If the folder has no reports, or the file exists and is something else than such an index.
    """
    target = folder / FILE if path is None else path
    if target.exists() and not is_index(target):
        raise InputError(str(target), "exists and is not an index of reports; give another file with --out")
    found = reports_in(folder)
    if not found:
        raise InputError(str(folder), "expected at least one page of relocbench study, bench, paper or show")
    count = plural(len(found), "report")
    page = Page(f"Reports in {folder.resolve().name or folder}", f"**{count}**, the newest first.", kind=KIND)
    page.table(_table(found, Path(os.path.relpath(folder, target.parent))))
    page.provenance(command)
    return page.write(target), found


def is_index(path: Path) -> bool:
    """Return whether a file is an index of reports.

    Parameters
    ----------
    path
        A file, which need not exist.

    Returns
    -------
    bool
        Whether :func:`write_index` wrote it.
    """
    return path.is_file() and kind_of(path) == KIND


def _table(found: Sequence[Entry], folder: Path) -> Table:
    columns = [
        Column("report"),
        Column("main result"),
        Column("kind"),
        Column("made (UTC)"),
        Column("instances", "d"),
        Column("methods"),
    ]
    rows: list[list[Value]] = [
        [
            Cell(entry.path.as_posix(), href=quote((folder / entry.path).as_posix())),
            Cell(f"**{entry.title}** {entry.result}", tone="wrapped"),
            entry.kind,
            entry.made.removesuffix(" UTC") or None,
            entry.instances,
            Cell(_methods(entry.methods), len(entry.methods)),
        ]
        for entry in found
    ]
    return Table(columns, rows, "Click a report to open it, or a heading to sort.")


def _methods(selectors: Sequence[str]) -> str:
    """Return the methods; if there are many, their number."""
    if len(selectors) > MOST_METHODS:
        return f"{len(selectors)} methods"
    return ", ".join(map(name_of, selectors)) or "–"
