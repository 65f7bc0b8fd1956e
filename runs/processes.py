"""Independent work in several processes of this machine, which can be interrupted."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from multiprocessing.synchronize import Event
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

# Set in a worker process: whether the parent wants all work to end.
_stop: Event | None = None


def in_processes(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """Apply a function to each item, in several processes.

    Parameters
    ----------
    work
        The function; it must be importable, because the processes are new interpreters.
    items
        The items, in the order in which they begin.
    jobs
        The number of processes. With one, the work is done in this process.

    Yields
    ------
    Result
        The results, in the order in which they are finished. If the caller ends early, for example after an interrupt,
        items that have not begun are dropped, and those under way end, see :func:`stop_is_requested`.
    """
    if jobs == 1:
        yield from map(work, items)
        return
    if not items:
        return
    # A new interpreter per process: a process that was forked from one with threads may stop forever.
    context = multiprocessing.get_context("spawn")
    stop = context.Event()
    with ProcessPoolExecutor(min(jobs, len(items)), context, _follow_parent, (stop,)) as pool:
        try:
            running = {pool.submit(work, item) for item in items}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def stop_is_requested() -> bool:
    """Return whether the work of this process should end early.

    Returns
    -------
    bool
        True in a process of :func:`in_processes` whose results are not wanted any more. Work that takes long and can be
        resumed should ask now and then.
    """
    return _stop is not None and _stop.is_set()


def _follow_parent(stop: Event) -> None:
    """Leave an interruption to the parent, which waits for the work that has begun; end if the parent has ended."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
