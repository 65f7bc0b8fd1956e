"""The command ``relocbench``: one module below ``commands`` for each word.

A command is a module with a function ``run`` and a line in one of the tables below. It imports what it calls when it
runs, so that ``--help`` answers at once.
"""

import io
import signal
import sys
from types import ModuleType
from typing import Annotated

import typer

from relocbench.commands import (
    bench,
    certify,
    check,
    describe,
    evaluate,
    families,
    generate,
    info,
    library,
    methods,
    paper,
    show,
    solve,
    study,
    verify,
)
from relocbench.commands.spark import arrange, compare, reloc
from relocbench.commands.spark import evaluate as spark_evaluate
from relocbench.commands.spark import generate as spark_generate
from relocbench.commands.spark import run as spark_run
from relocbench.instances.errors import InputError
from relocbench.runs.version import __version__

COMMANDS: tuple[ModuleType, ...] = (
    generate,
    describe,
    solve,
    evaluate,
    certify,
    verify,
    study,
    bench,
    paper,
    check,
    show,
    families,
    methods,
    info,
)
SPARK_COMMANDS: tuple[ModuleType, ...] = (arrange, spark_generate, spark_run, reloc, spark_evaluate, compare)

app = typer.Typer(
    help="Exact-versus-heuristic workbench for topic allocation on edge servers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
spark = typer.Typer(
    help="The same work at scale, on Spark: on this machine, or on a cluster with --master spark://host:port.",
    no_args_is_help=True,
)


def _register(group: typer.Typer, commands: tuple[ModuleType, ...]) -> None:
    for command in commands:
        group.command(command.__name__.rpartition(".")[2])(command.run)


_register(app, COMMANDS)
_register(spark, SPARK_COMMANDS)
app.add_typer(library.app, name="library")
app.add_typer(spark, name="spark")


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
