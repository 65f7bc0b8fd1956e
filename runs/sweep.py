"""Many runs: those that are not yet in the store, several at a time, and a summary."""

import itertools
import statistics
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

from relocbench.instances.instance import Instance
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT, Worker, threads_of
from relocbench.runs.run_store import Row, Run, Store, row_of
from relocbench.runs.selectors import Selector


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that a run may take."""

    time: float = 60.0
    memory: int = MEMORY_LIMIT


@dataclass(frozen=True, eq=False)
class Task:
    """An instance, a method and a seed."""

    instance: Instance
    selector: Selector
    seed: int = 0

    def run(self, limits: Limits) -> Run:
        """Return the run that this is under given limits."""
        return Run(self.instance.hash, str(self.selector), self.seed, float(limits.time), limits.memory)


def sweep(
    tasks: Sequence[Task],
    store: Store | None,
    limits: Limits,
    *,
    jobs: int = 1,
    retry_errors: bool = False,
    stop: threading.Event | None = None,
    reuse: bool = False,
) -> Generator[Row, None, None]:
    """Run what is not in the store yet; yield the rows as they are there, those found first.

    Parameters
    ----------
    tasks, store, limits
        What is run, where the rows go (nowhere without a store), and how much each may take.
    jobs
        How many processes run at a time.
    retry_errors
        Whether runs that ended in an error are run again.
    stop
        When set, what is running is killed; so it is when the iterator is closed or interrupted.
    reuse
        Whether a process goes on with further runs of its method. Starting one takes a second or more, which counts
        where there are many short runs; where memory is compared, each should begin with none of another's.
    """
    stop = stop or threading.Event()
    workers = _Workers(limits, stop)
    missing: dict[str, Task] = {}
    for task in tasks:
        run = task.run(limits)
        if store is not None and (row := store.finished(run, retry_errors)) is not None:
            yield row
        else:
            missing.setdefault(run.digest, task)

    def do(task: Task) -> Row:
        return execute(task, store, limits, stop, workers.worker_of(task.selector) if reuse else None)

    order = list(missing.values())
    if reuse:
        order.sort(key=lambda task: str(task.selector))
    waiting = iter(order)
    with workers, ThreadPoolExecutor(jobs) as pool:
        try:
            # No more are handed out than can run, so that a stop has nothing to wait for.
            running = {pool.submit(do, task) for task in itertools.islice(waiting, jobs)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    running |= {pool.submit(do, task) for task in itertools.islice(waiting, 1)}
                    yield future.result()
        finally:
            stop.set()


def execute(
    task: Task,
    store: Store | None,
    limits: Limits,
    stop: threading.Event | None = None,
    worker: Worker | None = None,
) -> Row:
    """Run one task, in a process of its own if none is given, and keep the row."""
    run = task.run(limits)
    log = store.log(run) if store is not None else None
    if worker is None:
        with _worker(task.selector, limits, stop) as fresh:
            return execute(task, store, limits, stop, fresh)
    outcome = worker.run(task.instance, task.selector, seed=task.seed, time_limit=limits.time, log=log)
    name = str(log.relative_to(store.folder)) if store is not None and log is not None else None
    row = row_of(task.instance, run, outcome, name)
    if store is not None:
        store.write(row)
    return row


class _Workers:
    """A process for each thread, replaced when the thread comes to another method."""

    def __init__(self, limits: Limits, stop: threading.Event) -> None:
        self._limits, self._stop = limits, stop
        self._of_thread: dict[int, tuple[str, Worker]] = {}

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for known in self._of_thread.values():
            known[1].close()

    def worker_of(self, selector: Selector) -> Worker:
        """Return the process of this thread that has begun with a method."""
        thread, wanted = threading.get_ident(), f"{selector.method.where} on {threads_of(selector)}"
        known, worker = self._of_thread.get(thread, ("", None))
        if worker is None or known != wanted:
            if worker is not None:
                worker.close()
            worker = _worker(selector, self._limits, self._stop)
            self._of_thread[thread] = wanted, worker
        return worker


def _worker(selector: Selector, limits: Limits, stop: threading.Event | None) -> Worker:
    return Worker(threads=threads_of(selector), memory_limit=limits.memory, stop=stop)


@dataclass(frozen=True)
class Summary:
    """What one method did on one group of instances.

    Attributes
    ----------
    method, group
        Which.
    runs, proved, stopped, errors
        How many there were, ended with a proof, at a limit, in an error.
    seconds_to_proof
        The median over those proved.
    gap
        The mean over those neither proved nor in error that have one.
    y
        The mean over those that have homes.
    """

    method: str
    group: str
    runs: int
    proved: int
    stopped: int
    errors: int
    seconds_to_proof: float | None
    gap: float | None
    y: float | None


def summarise(rows: Sequence[Row], group_of: Callable[[Row], str]) -> list[Summary]:
    """Sum up rows by method and group, both in the order they first appear."""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((group_of(row), row.selector), []).append(row)
    return [_summary(method, group, part) for (group, method), part in parts.items()]


def group_of(row: Row) -> str:
    """Return what an instance belongs to: its name without the seed at its end."""
    name, dash, seed = row.instance.rpartition("-")
    return name if dash and seed.isdecimal() else row.instance or row.hash[:12]


def _summary(method: str, group: str, rows: Sequence[Row]) -> Summary:
    proved = [row for row in rows if row.status == "optimal"]
    gaps = [row.gap for row in rows if row.status not in ("optimal", "error") and row.gap is not None]
    delays = [row.y for row in rows if row.y is not None and row.status != "error"]
    return Summary(
        method=method,
        group=group,
        runs=len(rows),
        proved=len(proved),
        stopped=sum(row.status in ("time_limit", "memory_limit") for row in rows),
        errors=sum(row.status == "error" for row in rows),
        seconds_to_proof=statistics.median(row.seconds for row in proved) if proved else None,
        gap=statistics.fmean(gaps) if gaps else None,
        y=statistics.fmean(delays) if delays else None,
    )
