"""``relocbench library``: list, verify and change the library of certified instances."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from relocbench.commands.options import HOMES
from relocbench.instances.errors import plural
from relocbench.runs.progress import live_line
from relocbench.terminal import print_json, print_table

if TYPE_CHECKING:
    from relocbench.instances.library.library import Entry, Library

app = typer.Typer(
    help="Instances with the best homes known, a lower bound, and a certificate that proves both.\n\n"
    "Every command accepts an entry as library:NAME. Example: relocbench library list",
    no_args_is_help=True,
)

Directory = Annotated[Path | None, typer.Option(help="Folder of another library than that of this package.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
By = Annotated[str, typer.Option(help="How the result was obtained. Default: what the file states.")]
Name = Annotated[str, typer.Argument(help="Name of an entry, with or without the prefix library:.")]


@app.command("list")
def _list(
    pattern: Annotated[str, typer.Argument(help="Pattern of names, such as 'small-*'.")] = "*",
    directory: Directory = None,
    as_json: Json = False,
) -> None:
    """List the entries with their objectives, bounds and gaps.

    Example: relocbench library list 'paper-s10-*'
    """
    library = _open(directory)
    entries = [library.entry(name) for name in library.names(_bare(pattern))]
    if as_json:
        print_json({"version": library.version, "entries": [entry.to_json() for entry in entries]})
        return
    # The table fits a terminal of 80 columns.
    columns = ("name", "M/L/N", "ΣD", "bound", "gap")
    rows = [
        (
            entry.name,
            f"{entry.clients}/{entry.servers}/{entry.topics}",
            f"{entry.objective:.7g}",
            f"{entry.bound:.7g}",
            "optimal" if entry.status == "optimal" else _gap(entry) + ("" if entry.claimed is None else "*"),
        )
        for entry in entries
    ]
    title = f"library, version {library.version}: {plural(len(entries), 'entry', 'entries')}"
    print_table(title, columns, rows, columns[1:])
    print("M/L/N: the numbers of clients, servers and topics")
    if any(entry.claimed is not None for entry in entries):
        print("*: a higher bound is claimed without a certificate (`library show NAME`)")


@app.command("show")
def _show(name: Name, directory: Directory = None, as_json: Json = False) -> None:
    """Print everything that is known about one entry, and the paths of its files.

    Example: relocbench library show paper-s10-3
    """
    library = _open(directory)
    entry = library.entry(_bare(name))
    found = entry.to_json() | {
        "instance_file": str(library.instance_path(entry.name)),
        "certificate_file": str(library.certificate_path(entry.name)),
    }
    if as_json:
        print_json(found)
        return
    width = max(map(len, found))
    for field, value in found.items():
        text = f"{value['bound']} ({value['by']}; no certificate)" if isinstance(value, dict) else value
        print(f"{field:<{width}}  {text}")


@app.command("improve")
def _improve(
    name: Name,
    file: Annotated[Path, typer.Argument(help=f"File with {HOMES}.")],
    by: By = "",
    directory: Directory = None,
    as_json: Json = False,
) -> None:
    """Improve an entry by better homes or a better bound, after verifying them.

    The exit code is 1, and the reason is printed, if the file does not prove its claim or improves nothing.

    Example: relocbench library improve paper-s10-3 cert.json --by 'certify, 1 h'
    """
    from relocbench.runs import library_updates

    library = _open(directory)
    offer = library_updates.read_offer(file, library.read(_bare(name)))
    try:
        change = library_updates.improve(library, _bare(name), offer, by)
    except library_updates.RefusedError as error:
        _refuse(file, error)
    if as_json:
        print_json({"better": list(change.better), "version": library.version, "entry": change.after.to_json()})
    else:
        print(f"{change.after.name}: improved {' and '.join(change.better)}; version {library.version}")
        print(f"before: {_summary(change.before)}")
        print(f"after:  {_summary(change.after)}")
        _print_harder(library, change.after)


@app.command("add")
def _add(
    instance: Annotated[Path, typer.Argument(help="Instance: a file or family.parquet#name.")],
    certificate: Annotated[Path, typer.Argument(help="Certificate file (.json, .json.gz).")],
    name: Annotated[str, typer.Option(help="Name of the entry. Default: the name of the instance.")] = "",
    by: By = "",
    directory: Directory = None,
    as_json: Json = False,
) -> None:
    """Add an instance to the library, after verifying its certificate.

    Example: relocbench library add inst.json cert.json --name paper-s10-7
    """
    from relocbench.formulations.certificates.certificate import read_certificate
    from relocbench.instances.instance_source import read_instance
    from relocbench.runs import library_updates

    library = _open(directory)
    try:
        entry = library_updates.add(library, read_instance(instance), read_certificate(certificate), name=name, by=by)
    except library_updates.RefusedError as error:
        _refuse(certificate, error)
    if as_json:
        print_json({"version": library.version, "entry": entry.to_json()})
    else:
        print(f"{entry.name}: {_summary(entry)}; version {library.version}")
        _print_harder(library, entry)


@app.command("check")
def _check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names or patterns of entries. Default: all entries.")
    ] = None,
    directory: Directory = None,
    as_json: Json = False,
) -> None:
    """Verify the certificates and compare the index with the files.

    The exit code is 1 if anything is wrong.

    Example: relocbench library check 'tiny-*'
    """
    from relocbench.runs import library_updates

    library = _open(directory)
    patterns = list(map(_bare, names or ["*"]))
    chosen = dict.fromkeys(
        name for pattern in patterns for name in library.names(pattern) or [library.entry(pattern).name]
    )
    wrong: dict[str, str] = {}
    with live_line() as show_line:

        def show_step(text: str, step: int) -> None:
            show_line(f"{text}, step {step}")

        for number, name in enumerate(chosen):
            text = f"{number + 1} of {len(chosen)}: {name}"
            show_line(text)
            if problem := library_updates.check(library, name, partial(show_step, text)):
                wrong[name] = problem
    if names is None:
        wrong |= {path.name: "belongs to no entry" for path in library_updates.stray_files(library)}
    if as_json:
        print_json({"version": library.version, "checked": len(chosen), "wrong": wrong})
    else:
        for name, problem in wrong.items():
            print(f"{name}: {problem}")
        print(f"{plural(len(chosen), 'entry', 'entries')} checked, {f'{len(wrong)} wrong' if wrong else 'all proved'}")
    if wrong:
        raise typer.Exit(1)


@app.command("page")
def _page(
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("library.html"),
    files: Annotated[
        str | None,
        typer.Option(help="Where the links to the files lead, such as https://… Default: the folder of the library."),
    ] = None,
    directory: Directory = None,
) -> None:
    """Write a page with every entry, its bounds and their origin, how to improve an entry, and how to cite the library.

    Example: relocbench library page --out library.html
    """
    from relocbench.reports.pages.requirements import require

    require()
    from relocbench.reports.library.page import write_page
    from relocbench.terminal import command_line

    print(f"page: {write_page(_open(directory), out, command_line(), files)}")


def _open(directory: Path | None) -> "Library":
    from relocbench.instances.library.library import FOLDER, Library

    return Library(directory or FOLDER)


def _bare(name: str) -> str:
    return name.removeprefix("library:")


def _refuse(file: Path, error: Exception) -> NoReturn:
    print(f"relocbench: {file}: {error}", file=sys.stderr)
    raise typer.Exit(1)


def _summary(entry: "Entry") -> str:
    source = "" if entry.bound_from is None else f" of {entry.bound_from}"
    return f"{entry.status}, ΣD = {entry.objective:.10g}, lower bound {entry.bound:.10g}{source}, gap {_gap(entry)}"


def _print_harder(library: "Library", entry: "Entry") -> None:
    if harder := [one.name for one in library.entries.values() if one.bound_from == entry.name]:
        print(f"its bound is also that of {', '.join(harder)}")


def _gap(entry: "Entry") -> str:
    return "-" if entry.gap is None else "0" if entry.status == "optimal" else f"{entry.gap:.3%}"
