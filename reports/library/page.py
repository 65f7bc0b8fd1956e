"""The page of the library of certified instances."""

import hashlib
import math
import os
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from relocbench.instances.errors import InputError, plural
from relocbench.instances.library.library import Entry, Library
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table, Value
from relocbench.runs.environment import information

KIND = "library"
# A bar of full length stands for this gap or a larger one; one without length for the smallest one below.
LARGEST_GAP, SMALLEST_GAP = 0.2, 1e-4


def index_hash(library: Library) -> str:
    """Return the SHA-256 of the index file, which contains the hash of every instance.

    Parameters
    ----------
    library
        The library.

    Returns
    -------
    str
        The hash in hexadecimal digits.
    """
    return hashlib.sha256(library.index_path.read_bytes()).hexdigest()


def citation(library: Library) -> str:
    """Return the text with which a paper cites the library.

    Parameters
    ----------
    library
        The library.

    Returns
    -------
    str
        Name, version and hash, in one sentence.
    """
    made = information(java=False)["relocbench"]
    size = plural(len(library.entries), "instance")
    return (
        f"relocbench library of certified instances, version {library.version} ({size}; relocbench {made}), "
        f"SHA-256 of the index: {index_hash(library)}."
    )


def write_page(library: Library, path: Path, command: str, files: str | None = None) -> Path:
    """Write the page of a library.

    Parameters
    ----------
    library
        The library.
    path
        The file of the page.
    command
        The command that makes the page.
    files
        Where the links to the files lead: an address or a folder; by default the folder of the library, relative to
        the page.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the library is empty or the file cannot be written.
    """
    entries = list(library.entries.values())
    if not entries:
        raise InputError(str(library.folder), "has no entries; `relocbench library add` adds one")
    if files is None:
        files = quote(Path(os.path.relpath(library.folder.resolve(), path.parent.resolve())).as_posix())
    page = Page(f"Library of certified instances, version {library.version}", _lead(entries), kind=KIND)
    page.numbers(_numbers(entries))
    page.section("Entries")
    page.table(_table(entries, files.rstrip("/")))
    page.section("How the results were obtained")
    page.text(
        "The homes and the bound of an entry are independent of each other: each is the best that was handed in. A "
        "bound counts when a certificate proves it in exact arithmetic, without a solver. A bound also holds for every "
        "harder entry, which differs only in larger spools or smaller capacities."
    )
    page.table(
        _origins(entries),
        folded=f"The origin of the homes and of the bound of {plural(len(entries), 'entry', 'entries')}",
    )
    page.section("Hand in a better solution or a better bound")
    page.text(
        "A file with homes or a certificate can improve an entry. The program verifies it first. It writes nothing if "
        "the file proves nothing or improves nothing, and says why."
    )
    name = next((entry.name for entry in entries if entry.status != "optimal"), entries[0].name)
    folder = "" if library.folder == Library().folder else " --directory FOLDER"
    page.html(
        _listing(
            f"relocbench library show {name}{folder}",
            f"relocbench certify library:{name} --time-limit 600 --out cert.json",
            f"relocbench library improve {name} cert.json --by 'certify, 10 min'{folder}",
            f"relocbench library improve {name} homes.json --by 'your method, your name'{folder}",
            f"relocbench library check{folder}",
        )
    )
    page.text(
        "`library check` is the referee. It verifies every certificate, evaluates all best homes exactly, and compares "
        "each line of the index with the files. Hand in the changed files of the library together with its output. "
        "`library add INSTANCE CERTIFICATE` adds another instance."
    )
    page.section("Cite")
    page.text("State the version, because bounds and best solutions improve. The hash identifies the index.")
    page.html(Markup("<pre>{}</pre>").format(citation(library)))
    page.html(Markup("<pre>{}</pre>").format(bibtex(library)))
    page.describe(instances=len(entries), methods=[])
    page.provenance(command, {"library version": library.version, "index SHA-256": index_hash(library)})
    return page.write(path)


def bibtex(library: Library) -> str:
    """Return an entry for a bibliography.

    Parameters
    ----------
    library
        The library.

    Returns
    -------
    str
        The entry in the format of BibTeX.
    """
    made = information(java=False)["relocbench"]
    return (
        f"@misc{{relocbench-library-{library.version},\n"
        "  title = {relocbench library of certified instances},\n"
        f"  version = {{{library.version}}},\n"
        f"  note = {{relocbench {made}, {plural(len(library.entries), 'instance')}, "
        f"SHA-256 of the index: {index_hash(library)}}},\n}}"
    )


def _lead(entries: list[Entry]) -> str:
    optimal = sum(entry.status == "optimal" for entry in entries)
    return (
        f"**{plural(len(entries), 'instance')}** of topic allocation on edge servers, with the best homes known and a "
        f"certified lower bound on the cost of every assignment. **{optimal}** are proved optimal."
    )


def _numbers(entries: list[Entry]) -> dict[str, str]:
    gaps = [entry.gap for entry in entries if entry.status != "optimal" and entry.gap is not None]
    optimal = sum(entry.status == "optimal" for entry in entries)
    found = {"entries": str(len(entries)), "proved optimal": str(optimal)}
    if gaps:
        middle = sorted(gaps)[len(gaps) // 2]
        found |= {"median gap of the others": f"{middle:.2%}", "largest gap": f"{max(gaps):.2%}"}
    return found


def _table(entries: list[Entry], files: str) -> Table:
    columns = [
        Column("entry", hint="The name: library:NAME stands for the instance in every command."),
        Column("gap", ".3%", "(ΣD - bound) / ΣD"),
        Column("best ΣD", ".10g", "The cost of the best homes known."),
        Column("lower bound", ".10g", "No assignment costs less. A certificate proves it."),
        Column("clients", "d"),
        Column("servers", "d"),
        Column("topics", "d"),
        Column("instance"),
        Column("certificate"),
    ]
    caption = (
        "Entries are **optimal** if the certificate proves the best homes optimal, within 10⁻⁶. The bar is the gap on "
        f"a logarithmic scale from {SMALLEST_GAP:.2%} to {LARGEST_GAP:.0%}. Click a heading to sort. The certificate "
        "contains the best homes and the proof of the bound."
    )
    if any(entry.claimed is not None for entry in entries):
        caption += " An asterisk marks entries with a higher bound that is claimed without a certificate."
    if any(entry.bound_from is not None for entry in entries):
        caption += " Some bounds are proved by the certificate of an easier entry; the next table names it."
    return Table(columns, [_row(entry, files) for entry in entries], caption)


def _row(entry: Entry, files: str) -> list[Value]:
    instance, certificate = f"{entry.name}.json.gz", f"{entry.name}.certificate.json.gz"
    sizes: list[Value] = [entry.clients, entry.servers, entry.topics]
    return [
        Cell(f"**{entry.name}**", entry.name),
        _gap_cell(entry),
        entry.objective,
        entry.bound,
        *sizes,
        Cell("instance", href=f"{files}/{instance}"),
        Cell("certificate", href=f"{files}/{certificate}"),
    ]


def _gap_cell(entry: Entry) -> Cell:
    if entry.status == "optimal":
        return Cell("optimal", 0.0, tone="good")
    if entry.gap is None or not math.isfinite(entry.gap):
        return Cell("no bound", math.inf, tone="soft")
    place = math.log(max(entry.gap, SMALLEST_GAP) / SMALLEST_GAP) / math.log(LARGEST_GAP / SMALLEST_GAP)
    claimed = "" if entry.claimed is None else " *"
    return Cell(f"{entry.gap:.3%}{claimed}", entry.gap, bar=min(1.0, max(0.02, place)))


def _origins(entries: list[Entry]) -> Table:
    columns = [Column("entry"), Column("homes by"), Column("bound by"), Column("claimed bound")]
    rows: list[list[Value]] = [
        [
            entry.name,
            Cell(entry.homes_by, tone="wrapped"),
            Cell(entry.bound_by + ("" if entry.bound_from is None else f" (of {entry.bound_from})"), tone="wrapped"),
            "" if entry.claimed is None else Cell(f"{entry.claimed.bound!r}, {entry.claimed.by}", tone="wrapped"),
        ]
        for entry in entries
    ]
    if all(entry.claimed is None for entry in entries):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    return Table(columns, rows, "As stated by those who handed the results in.")


def _listing(*commands: str) -> Markup:
    return Markup("<pre>{}</pre>").format("\n".join(commands))
