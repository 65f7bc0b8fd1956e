"""The cross-check: run several methods on the same instances and find claims that contradict each other."""

import contextlib
import queue
import threading
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from relocbench.formulations.incumbent import slack
from relocbench.formulations.model_files.export import MODELS
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Entry, Library
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.methods import METHODS, Selector
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import parse_selector
from relocbench.runs.shrink_instance import shrink
from relocbench.runs.sweep import Limits, Task, execute
from relocbench.runs.wrong_answer_folder import write_folder

# Heuristics take part because no valid bound exceeds the cost of their homes.
HEURISTICS = ("nearest", "reloc", "anneal[moves=20000]")
# The name under which the library takes part in a comparison.
LIBRARY = "library"
# Time limit of one run while an instance is shrunk, in seconds.
SHRINK_RUN_SECONDS = 10.0
# Time limit for shrinking one instance, in seconds.
SHRINK_SECONDS = 90.0


@dataclass(frozen=True)
class Disagreement:
    """Two claims that contradict each other, or a run that failed.

    Attributes
    ----------
    kind
        ``optimum``: a method claims that a cost is optimal, and another method has a lower one. ``bound``: a bound is
        above the cost of another method's homes. ``claim``: a method contradicts itself. ``error``: a method failed.
    methods
        The selector that makes the claim, then the selector that refutes it, if it is another one.
    instance
        The name of the instance.
    message
        The claims with their numbers.
    file
        A small instance on which the same methods disagree; None if none was written.
    hash, seed
        The content hash of the instance and the seed of the run that makes the claim.
    """

    kind: str
    methods: tuple[str, ...]
    instance: str
    message: str
    file: str | None = None
    hash: str = ""
    seed: int = 0


@dataclass(frozen=True)
class Comparison:
    """The result of a cross-check.

    Attributes
    ----------
    instances, runs
        How many there were.
    optima, bounds
        How many runs claimed optimality, and how many of the others claimed a bound.
    unfinished
        How many runs of exact methods ended without a proof of optimality.
    refused
        How many runs were refused because the method does not support the instance.
    disagreements
        The contradictions and failures; empty if there are none.
    """

    instances: int
    runs: int
    optima: int
    bounds: int
    unfinished: int
    refused: int
    disagreements: tuple[Disagreement, ...]


def exact_methods() -> tuple[list[Selector], dict[str, str]]:
    """Return the methods of a cross-check.

    Returns
    -------
    selectors
        Every available method that proves optimality, and some heuristics.
    absent
        For each exact method that is not available the reason.
    """
    exact = [method for method in METHODS.values() if method.proves == "optimality"]
    absent = {method.name: reason for method in exact if (reason := method.unavailable())}
    names = [method.name for method in exact if method.name not in absent]
    return [parse_selector(text) for text in (*names, *HEURISTICS)], absent


def default_instances(seeds: int = 2) -> list[Instance]:
    """Return instances of every regime and shape that are small enough for enumeration.

    Parameters
    ----------
    seeds
        How many instances of each combination.

    Returns
    -------
    list of Instance
        The instances.
    """
    return [cell.build(seed) for cell in family("tiny").cells() for seed in range(seeds)]


def run_all(
    instances: Sequence[Instance],
    selectors: Sequence[Selector],
    limits: Limits,
    *,
    store: Store | None = None,
    jobs: int = 1,
    retry_errors: bool = False,
) -> Generator[Row, None, None]:
    """Run every method on every instance, each method in its own process.

    A process runs all instances of its method, because starting a process takes longer than solving a tiny instance.
    The rows should therefore not share a store with a sweep, which starts a new process for each run.

    Parameters
    ----------
    instances, selectors, limits
        What to run, and the limits of each run.
    store
        Rows that it contains are not run again, and new rows are written to it.
    jobs
        How many processes run at the same time.
    retry_errors
        Whether runs that ended in an error are run again.

    Yields
    ------
    Row
        The rows in the order in which they finish.
    """
    stop = threading.Event()
    done: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()

    def work(selector: Selector) -> None:
        try:
            with Worker(threads=selector.threads, memory_limit=limits.memory, stop=stop) as worker:
                for instance in instances:
                    if stop.is_set():
                        return
                    done.put(_row(worker, Task(instance, selector), limits, store, retry_errors))
        except BaseException as error:
            done.put(error)  # the thread that waits for the rows raises it

    with ThreadPoolExecutor(jobs) as pool:
        try:
            for selector in selectors:
                pool.submit(work, selector)
            for _ in range(len(instances) * len(selectors)):
                row = done.get()
                if isinstance(row, BaseException):
                    raise row
                yield row
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def compare(rows: Sequence[Row]) -> list[Disagreement]:
    """Compare the claims about one instance with each other and with every verified cost.

    Parameters
    ----------
    rows
        The runs on the instance.

    Returns
    -------
    list of Disagreement
        The contradictions and failures.
    """
    found = []
    with_cost = [row for row in rows if row.objective is not None]
    for row in rows:
        if row.failure == "claim":
            found.append(_disagreement("claim", row, f"{row.selector} {row.error}"))
            continue
        if row.status == "error" and row.failure != "refused":
            found.append(_disagreement("error", row, f"{row.selector}: {row.error}"))
            continue
        others = [(one.objective, one.selector) for one in with_cost if one is not row and one.objective is not None]
        if not others:
            continue
        cost, other = min(others)
        if row.status == "optimal" and row.objective is not None and cost < row.objective - slack(cost):
            message = (
                f"{row.selector} claims that {row.objective!r} is optimal, but {other} has homes that cost {cost!r}"
            )
            found.append(_disagreement("optimum", row, message, other))
        elif row.bound is not None and row.bound > cost + slack(cost):
            message = f"{row.selector} claims the bound {row.bound!r}, but {other} has homes that cost {cost!r}"
            found.append(_disagreement("bound", row, message, other))
    return found


def wrong_answers(rows: Sequence[Row], library: Library | None = None) -> list[Disagreement]:
    """Find false claims in the rows of any instances, also by comparing them with the library.

    Parameters
    ----------
    rows
        The runs.
    library
        Certified costs and bounds; by default the library of this package.

    Returns
    -------
    list of Disagreement
        The contradictions, without failed runs.
    """
    known = {entry.instance: entry for entry in (library or Library()).entries.values()}
    found = []
    for key, part in by_instance(rows).items():
        certified = [_certified(part[0], known[key])] if key in known else []
        found += [one for one in compare([*part, *certified]) if one.kind != "error"]
    return found


def by_instance(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Group rows by instance.

    Parameters
    ----------
    rows
        The rows.

    Returns
    -------
    dict
        For each content hash the rows of that instance.
    """
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row.hash, []).append(row)
    return parts


def conclude(
    rows: Sequence[Row],
    instances: Sequence[Instance],
    selectors: Sequence[Selector],
    limits: Limits,
    *,
    out: Path | None = None,
    shrink_seconds: float = SHRINK_SECONDS,
) -> Comparison:
    """Compare all rows, and find small instances on which the methods disagree.

    Parameters
    ----------
    rows, instances, selectors, limits
        What was run.
    out
        Folder for the folders about the disagreements, with small instances; None to write none.
    shrink_seconds
        Time limit for shrinking one instance.

    Returns
    -------
    Comparison
        The counts and the disagreements.
    """
    named = {str(selector): selector for selector in selectors}
    by_hash = {instance.hash: instance for instance in instances}
    parts = by_instance(rows)
    found: list[Disagreement] = []
    shrunk: set[tuple[str, tuple[str, ...]]] = set()
    for key, part in parts.items():
        for disagreement in compare(part):
            # One small instance per kind and pair of methods is enough. Further ones probably show the same fault.
            fault = disagreement.kind, disagreement.methods
            if out is not None and fault not in shrunk:
                shrunk.add(fault)
                disagreement = document(disagreement, by_hash[key], named, limits, out, shrink_seconds)
            found.append(disagreement)
    exact = {name for name, selector in named.items() if selector.method.proves == "optimality"}
    return Comparison(
        instances=len(parts),
        runs=len(rows),
        optima=sum(row.status == "optimal" for row in rows),
        bounds=sum(row.status != "optimal" and row.bound is not None for row in rows),
        unfinished=sum(
            row.selector in exact and row.status in ("claimed", "time_limit", "memory_limit", "feasible")
            for row in rows
        ),
        refused=sum(row.failure == "refused" for row in rows),
        disagreements=tuple(found),
    )


def cross_check(
    instances: Sequence[Instance],
    selectors: Sequence[Selector],
    limits: Limits | None = None,
    *,
    out: Path | None = None,
    jobs: int = 1,
) -> Comparison:
    """Run methods on the same instances and compare their claims.

    Parameters
    ----------
    instances
        The instances.
    selectors
        The methods, which may be external.
    limits
        The limits of each run.
    out, jobs
        As in :func:`conclude` and :func:`run_all`.

    Returns
    -------
    Comparison
        The counts and the disagreements.
    """
    limits = limits or Limits()
    rows = list(run_all(instances, selectors, limits, jobs=jobs))
    return conclude(rows, instances, selectors, limits, out=out)


def _row(worker: Worker, task: Task, limits: Limits, store: Store | None, retry_errors: bool = False) -> Row:
    if store is not None and (row := store.finished(task.run(limits), retry_errors)) is not None:
        return row
    return execute(task, store, limits, worker=worker)


def document(
    disagreement: Disagreement,
    instance: Instance,
    selectors: Mapping[str, Selector],
    limits: Limits,
    out: Path,
    seconds: float = SHRINK_SECONDS,
) -> Disagreement:
    """Write a folder about a disagreement: a small instance, models, scripts and claims.

    Parameters
    ----------
    disagreement, instance
        The disagreement and its instance.
    selectors
        The methods by their texts. If a claim is refuted by the library, which knows no smaller instances, the instance
        is not shrunk.
    limits
        The limits of the runs.
    out
        The folder in which the new one is created.
    seconds
        Time limit for shrinking the instance.

    Returns
    -------
    Disagreement
        The disagreement with the ``file`` of the small instance.
    """
    pair = [selectors[name] for name in disagreement.methods if name in selectors]
    by_library = len(pair) < len(disagreement.methods)
    small = instance if by_library else _shrunk(instance, disagreement, pair, limits, seconds)
    with contextlib.ExitStack() as stack:
        rows = _runs(_workers(pair, limits, stack), small, limits, disagreement.seed)
    if by_library:
        entries = [entry for entry in Library().entries.values() if entry.instance == instance.hash]
        rows += [replace(_certified(rows[0], entry), home=None) for entry in entries]
    path = write_folder(out / _file_name(disagreement), small, disagreement.message, pair, rows)
    return replace(disagreement, file=str(path))


def _workers(
    selectors: Sequence[Selector], limits: Limits, stack: contextlib.ExitStack
) -> list[tuple[Selector, Worker]]:
    return [
        (selector, stack.enter_context(Worker(threads=selector.threads, memory_limit=limits.memory)))
        for selector in selectors
    ]


def _runs(workers: list[tuple[Selector, Worker]], instance: Instance, limits: Limits, seed: int) -> list[Row]:
    return [_row(worker, Task(instance, selector, seed), limits, None) for selector, worker in workers]


def _shrunk(
    instance: Instance, disagreement: Disagreement, pair: Sequence[Selector], limits: Limits, seconds: float
) -> Instance:
    """Return a small instance on which the same methods disagree in the same way."""
    shorter = Limits(min(limits.time, SHRINK_RUN_SECONDS), limits.memory)
    with contextlib.ExitStack() as stack:
        workers = _workers(pair, limits, stack)

        needs_model = any(selector.method.name in MODELS for selector in pair)

        def disagrees(candidate: Instance) -> bool:
            # Where the nearest servers cost nothing, there is no model to write.
            if needs_model and evaluate(candidate, nearest_server(candidate)).objective == 0:
                return False
            rows = _runs(workers, candidate, shorter, disagreement.seed)
            return any(
                (found.kind, found.methods) == (disagreement.kind, disagreement.methods) for found in compare(rows)
            )

        return shrink(instance, disagrees, seconds=seconds)


def _disagreement(kind: str, row: Row, message: str, *others: str) -> Disagreement:
    return Disagreement(kind, (row.selector, *others), row.instance, message, hash=row.hash, seed=row.seed)


def _certified(row: Row, entry: Entry) -> Row:
    """Return the library's entry for a row's instance in the form of a row."""
    return replace(
        row,
        selector=LIBRARY,
        seed=0,
        status="feasible",
        objective=entry.objective,
        bound=entry.bound,
        failure=None,
        error=None,
    )


def _file_name(disagreement: Disagreement) -> str:
    return safe_file_name("-".join((disagreement.kind, *disagreement.methods, disagreement.instance)))
