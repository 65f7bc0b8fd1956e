"""The command ``relocbench``: one module below ``commands`` for each word, and what other rooms register."""

import importlib.metadata
import io
import signal
import sys
from typing import Annotated

import typer

from relocbench.commands import (
    bench,
    certify,
    describe,
    evaluate,
    families,
    generate,
    info,
    library,
    methods,
    solve,
    verify,
)
from relocbench.version import __version__

app = typer.Typer(
    help="Exact-versus-heuristic workbench for topic allocation on edge servers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (generate, describe, solve, evaluate, certify, verify, bench, families, methods, info):
    app.command(command.__name__.rpartition(".")[2])(command.run)
app.add_typer(library.app, name="library")
for point in importlib.metadata.entry_points(group="relocbench.commands"):
    word = point.load()
    if isinstance(word, typer.Typer):
        app.add_typer(word, name=point.name)
    else:
        app.command(point.name)(word)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relocbench {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; wrong input is one line and exit 2, never a traceback."""
    from relocbench.instances.errors import InputError

    try:
        app()
    except InputError as error:
        print(f"relocbench: {error}", file=sys.stderr)
        sys.exit(2)


def run() -> None:
    """Run the command as a program of its own."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader that has seen enough (head, less) ends us quietly
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # Σ and θ on a terminal that has no such letters
    main()
