"""What methods cost on instances of the library, each run isolated."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row
from relocbench.runs.selectors import Selector
from relocbench.runs.sweep import Limits, Task, sweep


@dataclass(frozen=True)
class Failed:
    """A run that gave no valid assignment.

    Attributes
    ----------
    method, instance, seed
        Which run.
    kind
        As in :class:`runs.outcome.Outcome`; ``bound`` where the cost is below what is proved.
    error
        One line that says more.
    """

    method: str
    instance: str
    seed: int
    kind: str
    error: str


@dataclass(frozen=True)
class Measured:
    """The runs of a method.

    Attributes
    ----------
    rows
        By the name of the instance, a row for each seed, in the order of seeds.
    failed
        Those that gave no valid assignment.
    """

    rows: Mapping[str, Sequence[Row]]
    failed: tuple[Failed, ...]

    @property
    def whole(self) -> Mapping[str, Sequence[Row]]:
        """Those of the instances on which every run gave an assignment."""
        bad = {run.instance for run in self.failed}
        return {name: rows for name, rows in self.rows.items() if name not in bad}


@dataclass(frozen=True)
class Job:
    """A method, instances by their names in the library, and seeds."""

    selector: Selector
    instances: Mapping[str, Instance]
    seeds: Sequence[int]
    time_limit: float


def measure(jobs: Sequence[Job], shelf: Library, *, memory_limit: int, processes: int = 1) -> list[Measured]:
    """Run methods on instances of a library."""
    rows: dict[tuple[str, str, int, float], Row] = {}
    for time_limit in sorted({job.time_limit for job in jobs}):
        # The large ones first, so that all processes end at about the same time.
        tasks = sorted(
            (
                Task(instance, job.selector, seed)
                for job in jobs
                if job.time_limit == time_limit
                for instance in job.instances.values()
                for seed in job.seeds
            ),
            key=lambda task: -task.instance.n_clients,
        )
        # Without a store: what is under test is code, which no row of earlier knows of.
        running = sweep(tasks, None, Limits(time_limit, memory_limit), jobs=processes, reuse=True)
        with contextlib.closing(running):
            for row in progress(running, len(tasks), "running"):
                rows[row.selector, row.hash, row.seed, time_limit] = row
    return [_measured(job, rows, shelf) for job in jobs]


def _measured(job: Job, rows: Mapping[tuple[str, str, int, float], Row], shelf: Library) -> Measured:
    method = str(job.selector)
    own = {
        name: [rows[method, instance.hash, seed, job.time_limit] for seed in job.seeds]
        for name, instance in job.instances.items()
    }
    failed = [
        Failed(method, name, row.seed, *problem)
        for name, part in own.items()
        for row in part
        if (problem := _problem(row, shelf.entry(name).bound)) is not None
    ]
    return Measured(own, tuple(failed))


def _problem(row: Row, bound: float) -> tuple[str, str] | None:
    if row.failure is not None or row.objective is None:
        return row.failure or row.status, row.error or f"ended as {row.status} without homes"
    if row.objective < bound - slack(bound):
        return (
            "bound",
            f"costs {row.objective!r}, nothing can cost less than {bound!r}: the library or the cost is wrong",
        )
    return None
