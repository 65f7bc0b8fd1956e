"""The command ``relocbench``, with one module in ``commands`` for each subcommand.

To add a subcommand, write a module with a function ``run`` and add its name to one of the two tables below. The
function imports what it needs when it is called, so that ``relocbench --help`` is fast.
"""

import errno
import importlib
import io
import os
import re
import signal
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from relocbench.commands import library, moving, moving_study
from relocbench.instances.errors import InputError
from relocbench.runs.run_error import RunError
from relocbench.runs.version import __version__

# The modules in ``relocbench/commands``, in the order in which ``relocbench --help`` lists them.
COMMANDS = (
    "generate",
    "convert",
    "describe",
    "solve",
    "evaluate",
    "export",
    "certify",
    "verify",
    "study",
    "bench",
    "paper",
    "check",
    "show",
    "index",
    "families",
    "methods",
    "info",
)
# The modules in ``relocbench/commands/spark``.
SPARK_COMMANDS = (
    "arrange",
    "generate",
    "run",
    "reloc",
    "evaluate",
    "compare",
    "anneal",
    "bound",
    "verify",
    "study",
)

app = typer.Typer(
    help="Exact-versus-heuristic workbench for topic allocation on edge servers.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
spark = typer.Typer(
    help="The same work at scale with Spark, on this machine or on a cluster (--master spark://host:port).\n\n"
    "Example: relocbench spark run small.parquet --method nearest --out runs",
    no_args_is_help=True,
)


class Command(TyperCommand):
    """A command whose help is shown as it is written. rich would drop ``[k=8]`` of ``reloc[k=8]`` as markup."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        parts: list[Any] = [self, *self.params]
        for part in parts:
            part.help = re.sub(r"\[(?=[a-z#/@])", r"\\[", part.help or "") or None


for name in COMMANDS:
    app.command(name)(importlib.import_module(f"relocbench.commands.{name}").run)
for name in SPARK_COMMANDS:
    spark.command(name)(importlib.import_module(f"relocbench.commands.spark.{name}").run)
moving.app.command("study")(moving_study.run)
app.add_typer(moving.app, name="moving")
app.add_typer(library.app, name="library")
app.add_typer(spark, name="spark")
for group in (app, moving.app, library.app, spark):
    for command in group.registered_commands:
        command.cls = Command


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relocbench {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command; report wrong input (exit code 2) or a failed run (1) as one line on standard error."""
    try:
        try:
            app()
        finally:
            sys.stdout.flush()
    except (InputError, RunError) as error:
        print(f"relocbench: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, InputError) else 1)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        # What standard output still holds goes nowhere, because Python would report its failure once more at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        place = error.filename or "standard output"
        print(f"relocbench: {place}: cannot be written ({os.strerror(error.errno)})", file=sys.stderr)
        sys.exit(2)


def run() -> None:
    """Run the command as a program: the entry point of the installed script."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a closed pipe (head, less) ends the program silently
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not be able to print Σ and θ
    main()
