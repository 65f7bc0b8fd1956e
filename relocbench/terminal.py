"""Output of the commands on the terminal."""

import contextlib
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from relocbench.instances.errors import plural


@contextlib.contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Turn an interrupt (Ctrl-C) into a message and exit code 130, for a command that can be resumed.

    Parameters
    ----------
    out
        The folder that contains the finished work.

    Yields
    ------
    None
        Nothing; the command runs inside the context.

    Raises
    ------
    typer.Exit
        If the command is interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        import typer

        print(
            f"relocbench: interrupted; the finished work is in {out}, the same command continues from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


@contextlib.contextmanager
def second_interrupt_ends_at_once() -> Iterator[None]:
    """Let the first interrupt (Ctrl-C) raise KeyboardInterrupt as usual, and every further one end the process.

    Yields
    ------
    None
        Nothing. A command that still has work to do after an interrupt runs inside the context.
    """
    if threading.current_thread() is not threading.main_thread():  # only the main thread may handle signals
        yield
        return

    def end(*_: object) -> None:
        os._exit(130)  # the guards of worker processes notice it and end them

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, end)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:  # a command in the background of a shell ignores interrupts
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def command_line() -> str:
    """Return the command line of this process, for the provenance of a report.

    Returns
    -------
    str
        The command with its arguments, quoted for a shell.
    """
    return shlex.join(["relocbench", *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Print a value as one line of JSON.

    Parameters
    ----------
    value
        What to print.
    """
    print(json.dumps(value, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[str] = ()) -> None:
    """Print a table.

    Parameters
    ----------
    title
        The line above the table.
    columns, rows
        The names of the columns, and the cells of each row.
    numeric
        The columns that are aligned to the right.
    """
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=SIMPLE, title_style="bold")
    right = set(numeric)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # as Text, because rich would read reloc[k=1] as markup
    console = Console()
    # A file or a pipe has no width, so the table gets a wide one, unless the user says how wide it may be.
    Console(width=None if console.is_terminal or "COLUMNS" in os.environ else 160).print(table)


def print_cost(cost: dict[str, Any]) -> None:
    """Print the cost of an assignment and the extreme loads of its servers.

    Parameters
    ----------
    cost
        The values that ``relocbench evaluate --json`` prints.
    """
    print(f"Y = {cost['Y']:.9g}   Y1 = {cost['Y1']:.9g}   Y2 = {cost['Y2']:.9g}")
    print(f"ΣD = {cost['objective']:.12g} over {plural(cost['publications'], 'publication')}")
    overloaded = sum(share < 1.0 for share in cost["theta"])
    loads = f"largest storage load {max(cost['storage']):,.6g}, largest compute load {max(cost['compute']):,.6g}"
    print(
        f"{plural(len(cost['theta']), 'server')}, {overloaded:,} overloaded, least θ {min(cost['theta']):.4f}; {loads}"
    )
