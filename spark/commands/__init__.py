"""The word ``spark`` of the command: one module for each word below it."""

from types import ModuleType

import typer

from relocbench.spark.commands import arrange, compare, evaluate, generate, reloc, run

app = typer.Typer(
    help="The same work at scale, on Spark: on this machine, or on a cluster with --master spark://host:port.",
    no_args_is_help=True,
)
COMMANDS: tuple[ModuleType, ...] = (arrange, generate, run, reloc, evaluate, compare)
for command in COMMANDS:
    app.command(command.__name__.rpartition(".")[2])(command.run)
