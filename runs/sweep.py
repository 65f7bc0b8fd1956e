"""Sweeps: run all tasks that are not yet in a store, several at a time, and summarise the rows."""

import itertools
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass

from relocbench.instances.errors import plural
from relocbench.instances.instance import Instance
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT, Worker
from relocbench.runs.methods import Selector
from relocbench.runs.progress import doing
from relocbench.runs.run_store import Row, Run, Store, row_of

# A method is stopped early when this many of its runs have finished and all of them have failed.
FIRST_RUNS = 3


@dataclass(frozen=True)
class Limits:
    """The limits of a run.

    Attributes
    ----------
    time
        Seconds.
    memory
        Resident bytes.
    """

    time: float = 60.0
    memory: int = MEMORY_LIMIT


@dataclass(frozen=True, eq=False)
class Task:
    """One run to do: an instance, a method and a seed."""

    instance: Instance
    selector: Selector
    seed: int = 0

    def run(self, limits: Limits) -> Run:
        """Return what identifies the run of this task in a store.

        Parameters
        ----------
        limits
            The limits of the run.

        Returns
        -------
        Run
            What identifies the run.
        """
        return Run(
            self.instance.hash,
            str(self.selector),
            self.seed,
            float(limits.time),
            limits.memory,
            self.selector.version(),
        )


def announce_out_of_date(tasks: Iterable[Task], store: Store, limits: Limits) -> int:
    """Say on standard error which stored runs are made again, because the code of their methods has changed since.

    Parameters
    ----------
    tasks
        The runs to do.
    store
        The store with the rows of earlier sweeps.
    limits
        The limits of each run.

    Returns
    -------
    int
        The number of such runs. A sweep makes them again and replaces their rows.
    """
    runs = {task.run(limits): str(task.selector) for task in tasks}
    counts = Counter(selector for run, selector in runs.items() if store.is_out_of_date(run))
    if counts:
        listed = ", ".join(f"{count} of {selector}" for selector, count in counts.items())
        print(f"relocbench: stored runs of another version of the code are made again: {listed}", file=sys.stderr)
    return counts.total()


def sweep(
    tasks: Sequence[Task],
    store: Store | None,
    limits: Limits,
    *,
    jobs: int = 1,
    retry_errors: bool = False,
    stop: threading.Event | None = None,
    reuse: bool = False,
    counts_as_failed: Callable[[Row], bool] | None = None,
) -> Generator[Row, None, None]:
    """Run the tasks that are not yet in the store, and yield the rows of all tasks.

    Parameters
    ----------
    tasks
        The runs to do.
    store
        Where the rows are kept; None to keep none.
    limits
        The limits of each run.
    jobs
        How many processes run at the same time.
    retry_errors
        Whether runs that ended in an error are run again.
    stop
        When it is set, the running processes are killed. The same happens when the generator is closed or interrupted.
    reuse
        Whether a process is used for further runs of its method. Starting a process takes a second or more, which
        matters for many short runs. Where memory is compared, each run should have a new process.
    counts_as_failed
        Returns whether a run failed. When the first ``FIRST_RUNS`` finished runs of a method have all failed, its other
        runs are not made, so that a method that hangs does not cost its time limit again and again. The first runs of a
        method are then on small instances up to one of median size. None to make all runs.

    Yields
    ------
    Row
        First the rows that the store contains, then the others in the order in which they finish. A method that was
        stopped early has fewer rows than tasks.
    """
    stop = stop or threading.Event()
    first_runs = _FirstRuns(counts_as_failed)
    workers = _Workers(limits, stop)
    missing: dict[str, Task] = {}
    for task in tasks:
        run = task.run(limits)
        if store is not None and (row := store.finished(run, retry_errors)) is not None:
            first_runs.add(row)
            yield row
        else:
            missing.setdefault(run.digest, task)

    def run_task(task: Task) -> Row:
        return execute(task, store, limits, stop, workers.worker_of(task.selector) if reuse else None)

    order = first_runs.in_front(list(missing.values()))
    if reuse:
        order.sort(key=lambda task: str(task.selector))
    waiting = (task for task in order if not first_runs.all_failed(task.selector))
    with workers, ThreadPoolExecutor(jobs) as pool:
        try:
            # Only as many tasks are submitted as can run, so that no waiting task starts after a stop.
            running = {pool.submit(run_task, task) for task in itertools.islice(waiting, jobs)}
            while running:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                rows = [future.result() for future in done]
                for row in rows:
                    first_runs.add(row)
                running |= {pool.submit(run_task, task) for task in itertools.islice(waiting, len(done))}
                yield from rows
        finally:
            stop.set()


def execute(
    task: Task,
    store: Store | None,
    limits: Limits,
    stop: threading.Event | None = None,
    worker: Worker | None = None,
) -> Row:
    """Run one task and write its row to the store.

    Parameters
    ----------
    task
        The run to do.
    store
        Where the row and the log are written; None to write neither.
    limits
        The limits of the run.
    stop
        When it is set, the process is killed.
    worker
        The worker to use; None for a new one.

    Returns
    -------
    Row
        The row of the run.
    """
    run = task.run(limits)
    log = store.log(run) if store is not None else None
    if worker is None:
        with _worker(task.selector, limits, stop) as fresh:
            return execute(task, store, limits, stop, fresh)
    with doing(f"{task.selector} on {task.instance.name or task.instance.hash[:12]}"):
        outcome = worker.run(task.instance, task.selector, seed=task.seed, time_limit=limits.time, log=log)
    name = str(log.relative_to(store.folder)) if store is not None and log is not None else None
    row = row_of(task.instance, run, outcome, name)
    if store is not None:
        store.write(row)
    return row


class _Workers:
    """One worker per thread, which is replaced when the thread starts with another method."""

    def __init__(self, limits: Limits, stop: threading.Event) -> None:
        self._limits, self._stop = limits, stop
        self._of_thread: dict[int, tuple[str, Worker]] = {}

    def __enter__(self) -> "_Workers":
        return self

    def __exit__(self, *_: object) -> None:
        for _key, worker in self._of_thread.values():
            worker.close()

    def worker_of(self, selector: Selector) -> Worker:
        """Return the worker of this thread for a method and its number of threads."""
        # Code of other people may change this project's modules in its process, so nothing else may run there.
        method = str(selector) if selector.runs_external_code else ""
        thread, key = threading.get_ident(), f"{selector.method.where} {method} on {selector.threads}"
        current_key, worker = self._of_thread.get(thread, ("", None))
        if worker is None or current_key != key:
            if worker is not None:
                worker.close()
            worker = _worker(selector, self._limits, self._stop)
            self._of_thread[thread] = key, worker
        return worker


class _FirstRuns:
    """The first finished runs of each method, which show whether it works at all."""

    def __init__(self, counts_as_failed: Callable[[Row], bool] | None) -> None:
        self._counts_as_failed = counts_as_failed
        self._failed: dict[str, list[bool]] = {}

    def in_front(self, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks with the first ones of each method in front: from the smallest instance to the median."""
        if self._counts_as_failed is None:
            return list(tasks)
        parts: dict[str, list[Task]] = {}
        for task in sorted(tasks, key=lambda task: task.instance.n_clients):
            parts.setdefault(str(task.selector), []).append(task)
        front = []
        for part in parts.values():
            places = {(len(part) - 1) * number // (2 * FIRST_RUNS - 2) for number in range(FIRST_RUNS)}
            front += [part[place] for place in sorted(places)]
        chosen = set(front)  # tasks are compared by identity
        return [*front, *(task for task in tasks if task not in chosen)]

    def add(self, row: Row) -> None:
        runs = self._failed.setdefault(row.selector, [])
        if self._counts_as_failed is not None and len(runs) < FIRST_RUNS:
            runs.append(self._counts_as_failed(row))

    def all_failed(self, selector: Selector) -> bool:
        runs = self._failed.get(str(selector), [])
        return len(runs) == FIRST_RUNS and all(runs)


def has_failed(row: Row) -> bool:
    """Return whether a run failed through its method.

    Parameters
    ----------
    row
        The row of the run.

    Returns
    -------
    bool
        Whether the method was killed, died, raised an exception or made a false claim. A method that refuses an
        instance has not failed.
    """
    return row.failure not in (None, "refused")


def gives_nothing(selectors: Sequence[Selector]) -> Callable[[Row], bool]:
    """Return the rule by which studies and benchmarks stop a method early: code of other people that gives no homes.

    A method of this project is never stopped: that an exact method finds nothing in time is a result.

    Parameters
    ----------
    selectors
        The methods.

    Returns
    -------
    Callable
        The argument ``counts_as_failed`` of :func:`sweep`.
    """
    external = {str(selector) for selector in selectors if selector.runs_external_code}
    return lambda row: row.selector in external and row.home is None and has_failed(row)


@dataclass(frozen=True)
class EarlyStop:
    """A method whose remaining runs were not made, because its first runs failed.

    Attributes
    ----------
    method
        The selector.
    runs, planned
        How many runs were made, and how many there should have been.
    error
        The error message of the first run that failed.
    """

    method: str
    runs: int
    planned: int
    error: str

    def __str__(self) -> str:
        first = plural(FIRST_RUNS, "run")
        return f"stopped after {self.runs} of {self.planned} runs, because the first {first} failed: {self.error}"


def early_stops(rows: Iterable[Row], tasks: Iterable[Task]) -> list[EarlyStop]:
    """Return the methods that a sweep has stopped early.

    Parameters
    ----------
    rows, tasks
        The rows that the sweep has yielded, and its tasks.

    Returns
    -------
    list of EarlyStop
        One for each method that has fewer runs than tasks, in the order of the tasks.
    """
    planned: dict[str, set[tuple[str, int]]] = {}
    for task in tasks:
        planned.setdefault(str(task.selector), set()).add((task.instance.hash, task.seed))
    made: dict[str, dict[tuple[str, int], Row]] = {}
    for row in rows:
        made.setdefault(row.selector, {})[row.hash, row.seed] = row
    stops = []
    for method, wanted in planned.items():
        own = made.get(method, {})
        failed = [row for row in own.values() if has_failed(row)]
        if len(own) < len(wanted) and failed:
            stops.append(EarlyStop(method, len(own), len(wanted), failed[0].error or failed[0].status))
    return stops


def _worker(selector: Selector, limits: Limits, stop: threading.Event | None) -> Worker:
    return Worker(threads=selector.threads, memory_limit=limits.memory, stop=stop)


@dataclass(frozen=True)
class Summary:
    """The runs of one method on one group of instances.

    Attributes
    ----------
    method, group
        The selector and the group.
    runs
        The number of runs.
    proved, claimed, stopped, errors
        How many of them proved optimality, claimed it without a proof that anybody has checked, stopped at a limit, or
        ended in an error.
    seconds_to_proof
        The median time of the runs that proved or claimed optimality.
    gap
        The mean gap of the runs that neither proved optimality nor ended in an error.
    y
        The mean ``Y`` of the runs that have homes and did not end in an error.
    """

    method: str
    group: str
    runs: int
    proved: int
    claimed: int
    stopped: int
    errors: int
    seconds_to_proof: float | None
    gap: float | None
    y: float | None


def summarise(rows: Sequence[Row], group_of: Callable[[Row], str]) -> list[Summary]:
    """Summarise rows by method and group.

    Parameters
    ----------
    rows
        The rows.
    group_of
        Returns the group of a row.

    Returns
    -------
    list of Summary
        One for each combination of group and method, in the order in which the combinations first occur.
    """
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((group_of(row), row.selector), []).append(row)
    return [_summary(method, group, part) for (group, method), part in parts.items()]


def group_of(row: Row) -> str:
    """Return the group of a row's instance: its name without the seed at the end.

    Parameters
    ----------
    row
        The row.

    Returns
    -------
    str
        The group.
    """
    name, dash, seed = row.instance.rpartition("-")
    return name if dash and seed.isdecimal() else row.instance or row.hash[:12]


def _summary(method: str, group: str, rows: Sequence[Row]) -> Summary:
    proved = [row for row in rows if row.status == "optimal"]
    claimed = [row for row in rows if row.status == "claimed"]
    gaps = [row.gap for row in rows if row.status not in ("optimal", "claimed", "error") and row.gap is not None]
    delays = [row.y for row in rows if row.y is not None and row.status != "error"]
    return Summary(
        method=method,
        group=group,
        runs=len(rows),
        proved=len(proved),
        claimed=len(claimed),
        stopped=sum(row.status in ("time_limit", "memory_limit") for row in rows),
        errors=sum(row.status == "error" for row in rows),
        seconds_to_proof=statistics.median(row.seconds for row in ended) if (ended := proved + claimed) else None,
        gap=statistics.fmean(gaps) if gaps else None,
        y=statistics.fmean(delays) if delays else None,
    )
