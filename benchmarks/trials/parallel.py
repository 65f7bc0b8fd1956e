"""Run groups of trials in threads; each group does its work in processes of its own."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from benchmarks.trials.commands import kill_running
from benchmarks.trials.results import Result

Group = TypeVar("Group")
# How often the main thread looks for an interrupt, in seconds.
INTERVAL = 0.2


def results_of(
    groups: Iterable[Group], run: Callable[[Group], Iterator[Result]], jobs: int, stop: threading.Event
) -> Iterator[Result]:
    """Run groups of trials and yield their results as they end.

    Parameters
    ----------
    groups
        The groups.
    run
        Runs one group and yields its results.
    jobs
        The number of groups at the same time.
    stop
        When it is set, the groups end early.

    Yields
    ------
    Result
        The results in the order in which they are found.
    """
    waiting: queue.SimpleQueue[Group] = queue.SimpleQueue()
    for group in groups:
        waiting.put(group)
    found: queue.SimpleQueue[Result | BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            while not stop.is_set():
                for result in run(waiting.get_nowait()):
                    found.put(result)
                    if stop.is_set():
                        break
        except queue.Empty:
            pass
        except BaseException as error:
            if not stop.is_set():
                found.put(error)
        finally:
            found.put(None)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    running = len(threads)
    try:
        while running:
            try:
                result = found.get(timeout=INTERVAL)
            except queue.Empty:
                continue
            if isinstance(result, BaseException):
                raise result
            if result is None:
                running -= 1
            else:
                yield result
    finally:
        if running:
            stop.set()
            kill_running()
            for thread in threads:
                thread.join(timeout=10.0)
