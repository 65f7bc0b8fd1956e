"""Methods against each other: claims about the same instance that cannot all be true."""

import contextlib
import queue
import re
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from relocbench.formulations.incumbent import slack
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Entry, Library
from relocbench.runs.isolation.supervisor import Worker, threads_of
from relocbench.runs.methods import METHODS
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import Selector, select
from relocbench.runs.shrink_instance import shrink
from relocbench.runs.sweep import Limits, Task, execute

# Heuristics join in for the costs of their homes, which no bound may exceed.
HEURISTICS = ("nearest", "reloc", "anneal[moves=20000]")
# While shrinking, a method has this long for an instance, and the whole of it so long.
SHRINK_RUN_SECONDS = 10.0
SHRINK_SECONDS = 90.0


@dataclass(frozen=True)
class Disagreement:
    """Claims that cannot all be true, or a run that failed.

    Attributes
    ----------
    kind
        ``optimum``: a method calls a cost optimal that another beats. ``bound``: a bound is above the cost of another
        method's homes. ``claim``: a method contradicts itself. ``error``: a method failed.
    methods
        The selector that claims, then the one that shows otherwise, if it takes two.
    instance
        The name of the instance.
    message
        What they say, with both numbers.
    file
        A smallest instance that shows it.
    hash, seed
        The instance and the seed of the run that claims.
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
    """What was compared, and what was wrong.

    Attributes
    ----------
    instances, runs
        How many.
    optima, bounds
        How many runs claimed an optimum, and how many others at least a bound.
    unfinished, refused
        How many runs of methods that could prove optimality did not, and how many were not for that method.
    disagreements
        Empty if all is well.
    """

    instances: int
    runs: int
    optima: int
    bounds: int
    unfinished: int
    refused: int
    disagreements: tuple[Disagreement, ...]


def exact_methods() -> tuple[list[Selector], dict[str, str]]:
    """Return every method that proves optimality and the heuristics that join in; and why others are not here."""
    exact = [method for method in METHODS.values() if method.proves == "optimality"]
    absent = {method.name: reason for method in exact if (reason := method.unavailable())}
    names = [method.name for method in exact if method.name not in absent]
    return [select(text) for text in (*names, *HEURISTICS)], absent


def default_instances(seeds: int = 2) -> list[Instance]:
    """Return enumerable instances of every regime and shape."""
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
    """Run every method on every instance, each method in a process of its own; yield the rows as they come.

    A process is used for all instances of a method, as starting one takes longer than solving a tiny instance. So the
    rows are kept apart from those of a sweep, whose processes are fresh.
    """
    stop = threading.Event()
    done: queue.SimpleQueue[Row | BaseException] = queue.SimpleQueue()

    def work(selector: Selector) -> None:
        try:
            with Worker(threads=threads_of(selector), memory_limit=limits.memory, stop=stop) as worker:
                for instance in instances:
                    if stop.is_set():
                        return
                    done.put(_row(worker, Task(instance, selector), limits, store, retry_errors))
        except BaseException as error:
            done.put(error)  # it is raised where the rows are waited for

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
    """Hold the claims about one instance against each other and against every verified cost."""
    found = []
    costed = [row for row in rows if row.objective is not None]
    for row in rows:
        if row.failure == "claim":
            found.append(_disagreement("claim", row, f"{row.selector} {row.error}"))
            continue
        if row.status == "error" and row.failure != "refused":
            found.append(_disagreement("error", row, f"{row.selector}: {row.error}"))
            continue
        others = [(one.objective, one.selector) for one in costed if one is not row and one.objective is not None]
        if not others:
            continue
        cost, other = min(others)
        if row.status == "optimal" and row.objective is not None and cost < row.objective - slack(cost):
            said = f"{row.selector} calls {row.objective!r} optimal, {other} has homes that cost {cost!r}"
            found.append(_disagreement("optimum", row, said, other))
        elif row.bound is not None and row.bound > cost + slack(cost):
            said = f"{row.selector} claims the bound {row.bound!r}, {other} has homes that cost {cost!r}"
            found.append(_disagreement("bound", row, said, other))
    return found


def wrong_answers(rows: Sequence[Row], shelf: Library | None = None) -> list[Disagreement]:
    """Return what is claimed and not so, of any instances; what the library has of them is held against it, too."""
    known = {entry.instance: entry for entry in (shelf or Library()).entries.values()}
    found = []
    for key, part in by_instance(rows).items():
        certified = [_certified(part[0], known[key])] if key in known else []
        found += [one for one in compare([*part, *certified]) if one.kind != "error"]
    return found


def by_instance(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each instance, by its hash."""
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
    """Compare all rows, and shrink what disagrees.

    Parameters
    ----------
    rows, instances, selectors, limits
        What was run.
    out
        Folder for the shrunk instances; without one nothing is shrunk.
    shrink_seconds
        How long to look for a smaller instance, each time.
    """
    named = {str(selector): selector for selector in selectors}
    at_hand = {instance.hash: instance for instance in instances}
    parts = by_instance(rows)
    found: list[Disagreement] = []
    shrunk: set[tuple[str, tuple[str, ...]]] = set()
    for key, part in parts.items():
        for disagreement in compare(part):
            # One small instance for each fault is enough to look at; the rest are probably the same.
            fault = disagreement.kind, disagreement.methods
            if out is not None and fault not in shrunk:
                shrunk.add(fault)
                pair = [named[name] for name in disagreement.methods]
                small = _shrunk(at_hand[key], disagreement, pair, limits, shrink_seconds)
                path = out / f"{_file_name(disagreement)}.json"
                write_instance(small, path)
                disagreement = replace(disagreement, file=str(path))
            found.append(disagreement)
    exact = {name for name, selector in named.items() if selector.method.proves == "optimality"}
    return Comparison(
        instances=len(parts),
        runs=len(rows),
        optima=sum(row.status == "optimal" for row in rows),
        bounds=sum(row.status != "optimal" and row.bound is not None for row in rows),
        unfinished=sum(
            row.selector in exact and row.status in ("time_limit", "memory_limit", "feasible") for row in rows
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
    """Run methods, which need not be in the registry, on the same instances and compare what they claim."""
    limits = limits or Limits()
    rows = list(run_all(instances, selectors, limits, jobs=jobs))
    return conclude(rows, instances, selectors, limits, out=out)


def _row(worker: Worker, task: Task, limits: Limits, store: Store | None, retry_errors: bool = False) -> Row:
    if store is not None and (row := store.finished(task.run(limits), retry_errors)) is not None:
        return row
    return execute(task, store, limits, worker=worker)


def _shrunk(
    instance: Instance, disagreement: Disagreement, pair: Sequence[Selector], limits: Limits, seconds: float
) -> Instance:
    """Return a smallest instance about which the same methods disagree in the same way."""
    hasty = Limits(min(limits.time, SHRINK_RUN_SECONDS), limits.memory)
    with contextlib.ExitStack() as stack:
        workers = [
            (selector, stack.enter_context(Worker(threads=threads_of(selector), memory_limit=limits.memory)))
            for selector in pair
        ]

        def disagrees(candidate: Instance) -> bool:
            rows = [_row(worker, Task(candidate, selector), hasty, None) for selector, worker in workers]
            return any(
                (again.kind, again.methods) == (disagreement.kind, disagreement.methods) for again in compare(rows)
            )

        return shrink(instance, disagrees, seconds=seconds)


def _disagreement(kind: str, row: Row, message: str, *others: str) -> Disagreement:
    return Disagreement(kind, (row.selector, *others), row.instance, message, hash=row.hash, seed=row.seed)


def _certified(row: Row, entry: Entry) -> Row:
    """Return what the library has of a row's instance, as one more run."""
    return replace(
        row,
        selector="library",
        seed=0,
        status="feasible",
        objective=entry.objective,
        bound=entry.bound,
        failure=None,
        error=None,
    )


def _file_name(disagreement: Disagreement) -> str:
    text = "-".join((disagreement.kind, *disagreement.methods, disagreement.instance))
    return re.sub(r"[^\w.-]+", "_", text)[:150]
