"""Progress of long work on standard error: a bar on a terminal, otherwise a line of text now and then.

The environment variable ``RELOCBENCH_PROGRESS`` sets the seconds between two such lines; 0 prints nothing at all.
"""

import contextlib
import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from relocbench.instances.kernels.compile_notice import progress_interval

Item = TypeVar("Item")

# Seconds after which the first line is printed where there is no terminal.
FIRST_LINE = 5.0
# At most this many pieces of current work are named.
MOST_NAMED = 2

# The work that is under way in this process, in the order of its start.
_current: dict[int, str] = {}
_numbers = itertools.count()


@contextlib.contextmanager
def doing(what: str) -> Iterator[None]:
    """Name a piece of work that is under way, for the progress that another thread shows.

    Parameters
    ----------
    what
        The name, such as ``reloc on paper-s10-3``.

    Yields
    ------
    None
        Nothing; the work is done inside the context.
    """
    number = next(_numbers)
    _current[number] = what
    try:
        yield
    finally:
        del _current[number]


def _current_work() -> str:
    names = list(_current.values())
    return ", ".join([*names[:MOST_NAMED], *([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])])


def progress(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """Yield items, and show how many have come, what is under way, and the time.

    Parameters
    ----------
    items
        What to yield.
    total
        How many items there are; for a single one nothing is shown.
    what
        The phase, such as ``certifying bounds``.

    Yields
    ------
    Item
        The items, unchanged.
    """
    if total < 2 or not progress_interval():
        yield from items
    elif sys.stderr.isatty():
        yield from _with_bar(items, total, what)
    else:
        done = 0
        begin = time.monotonic()

        def line() -> str:
            work = _current_work()
            return f"{what}: {done}/{total}{f', {work}' if work else ''}{_remaining(begin, done, total)}"

        with _lines(line):
            for item in items:
                done += 1
                yield item


def _remaining(begin: float, done: int, total: int) -> str:
    """Return a rough estimate of the remaining time, if the finished part allows one."""
    seconds = time.monotonic() - begin
    return f" ({seconds:.0f} s, about {seconds / done * (total - done):.0f} s left)" if done else f" ({seconds:.0f} s)"


def _with_bar(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Task as Shown
    from rich.text import Text

    class Work(TextColumn):
        def render(self, task: Shown) -> Text:
            return Text(_current_work(), no_wrap=True, overflow="ellipsis")

    bar = Progress(
        TextColumn(escape(what)),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        Work(""),
        console=Console(stderr=True),
        transient=True,
        speed_estimate_period=600.0,
    )
    with bar:
        yield from bar.track(items, total=total)


@contextlib.contextmanager
def live_line() -> Iterator[Callable[[str], None]]:
    """Show one line of text that can be replaced.

    Yields
    ------
    Callable
        A function that replaces the line by its argument. Where there is no terminal, the latest line is printed now
        and then.
    """
    if not progress_interval():
        yield lambda text: None
        return
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("working") as status:
            yield lambda text: status.update(escape(text))
        return
    latest = ""

    def show(text: str) -> None:
        nonlocal latest
        latest = text

    with _lines(lambda: latest):
        yield show


@contextlib.contextmanager
def _lines(text: Callable[[], str]) -> Iterator[None]:
    """Print a text to standard error now and then, from a thread, because the work itself may not return for long."""
    interval = progress_interval()
    done = threading.Event()

    def print_lines() -> None:
        wait = min(FIRST_LINE, interval)
        while not done.wait(wait):
            if line := text():
                print(line, file=sys.stderr, flush=True)
            wait = interval

    printer = threading.Thread(target=print_lines, daemon=True)
    printer.start()
    try:
        yield
    finally:
        done.set()
        printer.join()
