"""Progress of long work on a terminal; nothing is shown where there is none."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


def progress(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Pass the items on, with a progress bar on a terminal and without one elsewhere."""
    if not sys.stderr.isatty() or total < 2:
        yield from items
        return
    from rich.console import Console
    from rich.progress import track

    yield from track(items, description=what, total=total, console=Console(stderr=True), transient=True)


@contextlib.contextmanager
def live_line() -> Iterator[Callable[[str], None]]:
    """Give a function that shows one changing line of progress on a terminal, and does nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.console import Console

    with Console(stderr=True).status("working") as status:
        yield status.update
