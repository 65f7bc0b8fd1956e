"""Progress of long work on a terminal; where standard error is not a terminal, nothing is printed."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Yield items, and show a progress bar on a terminal.

    Parameters
    ----------
    items
        What to yield.
    total
        How many items there are; for a single one no bar is shown.
    what
        The text before the bar.

    Yields
    ------
    Item
        The items, unchanged.
    """
    if not sys.stderr.isatty() or total < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=what, total=total, console=Console(stderr=True), transient=True)


@contextlib.contextmanager
def live_line() -> Iterator[Callable[[str], None]]:
    """Show one line of text on a terminal that can be replaced.

    Yields
    ------
    Callable
        A function that replaces the line by its argument; it does nothing where there is no terminal.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("working") as status:
        yield status.update
