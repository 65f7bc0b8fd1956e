"""What people see while and after a command works."""

import contextlib
import json
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def resumable(out: Path) -> Iterator[None]:
    """Let an interrupt end a command whose finished work is in a folder, and say so."""
    try:
        yield
    except KeyboardInterrupt:
        import typer

        print(
            f"relocbench: interrupted; what is finished is in {out}, the same command goes on from there",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


def command_line() -> str:
    """Return the command as it was called, for a report to name."""
    return shlex.join(["relocbench", *sys.argv[1:]])


def print_json(value: Any) -> None:
    """Print an answer for programs."""
    print(json.dumps(value, allow_nan=False))


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numeric: Iterable[str] = ()) -> None:
    """Print an answer for people; the columns named in ``numeric`` are set flush right."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=SIMPLE, title_style="bold")
    right = set(numeric)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))  # as text: reloc[k=1] is no markup
    console = Console()
    # A file or a pipe has no width of its own: let the table have what it needs.
    Console(width=None if console.is_terminal else 160).print(table)


def print_cost(cost: dict[str, Any]) -> None:
    """Print the cost and the extremes of what servers bear."""
    print(f"Y = {cost['Y']:.9g}   Y1 = {cost['Y1']:.9g}   Y2 = {cost['Y2']:.9g}")
    print(f"ΣD = {cost['objective']:.12g} over {cost['publications']:,} publications")
    busy = sum(share < 1.0 for share in cost["theta"])
    most = f"most storage {max(cost['storage']):,.6g}, most compute {max(cost['compute']):,.6g}"
    print(f"{len(cost['theta']):,} servers, {busy:,} overloaded, least θ {min(cost['theta']):.4f}; {most}")
