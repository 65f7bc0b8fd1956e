"""The runs of a study, in processes on this machine or on Spark. A second call continues from the run store."""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.reports.study.references import Reference, from_library, from_rows, merged, wanted
from relocbench.reports.study.subjects import Subject
from relocbench.runs.methods import Selector
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.sweep import EarlyStop, Limits, Task, announce_out_of_date, early_stops, gives_nothing, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Design:
    """The design of a study.

    Attributes
    ----------
    selectors, seeds
        The methods, and the seeds of each method.
    limits
        The time and memory limit of each run.
    reference_time
        The time limit in seconds of each proof that the library does not have.
    jobs
        The number of processes that run at the same time.
    retry_errors
        Whether runs that ended in an error are repeated.
    session
        A function that starts Spark; None to run on this machine.
    """

    selectors: Sequence[Selector]
    seeds: Sequence[int]
    limits: Limits
    reference_time: float
    jobs: int = 1
    retry_errors: bool = False
    session: "Callable[[], AbstractContextManager[SparkSession]] | None" = None


@dataclass(frozen=True)
class Results:
    """The results of all runs of a study.

    Attributes
    ----------
    rows
        The runs of the methods.
    proving
        The runs that were made to prove an optimum or a bound.
    references
        The references by hash.
    problems
        One line for each run that left no row.
    stopped
        The methods whose other runs were not made, because their first runs failed.
    """

    rows: list[Row]
    proving: list[Row]
    references: dict[str, Reference]
    problems: list[str]
    stopped: list[EarlyStop]


def run(subjects: Sequence[Subject], design: Design, out: Path) -> Results:
    """Make all runs that are not yet in the store.

    Parameters
    ----------
    subjects
        The instances.
    design
        The methods, seeds and limits.
    out
        The folder of the study; its subfolder ``runs`` is the store.

    Returns
    -------
    Results
        All runs of the study, those of earlier calls included.
    """
    store = Store(out / "runs")
    problems: list[str] = []
    # Instances are in the inner loop, so that an interrupted study is complete for its first methods.
    tasks = [
        Task(subject.instance, selector, seed)
        for selector in design.selectors
        for seed in design.seeds
        for subject in subjects
    ]
    with contextlib.ExitStack() as stack:
        runner = _Runner(design, store, stack, problems)
        proving: list[Row] = []
        references = from_library(subjects)
        limits = Limits(design.reference_time, design.limits.memory)
        for label, tried_exact in (("proving optima", False), ("certifying bounds", True)):
            missing = wanted(subjects, references, tried_exact)
            proving += runner.rows([Task(subject.instance, selector) for subject, selector in missing], limits, label)
            references = merged(references, from_rows(proving))
        rows = runner.rows(tasks, design.limits, "running methods")
    # On Spark no method is stopped early: a run without a row is then among the problems.
    stopped = early_stops(rows, tasks) if design.session is None else []
    return Results(rows, proving, merged(references, from_rows(rows)), problems, stopped)


class _Runner:
    """Runs tasks here or on Spark; the Spark session is started when the first task needs it."""

    def __init__(self, design: Design, store: Store, stack: contextlib.ExitStack, problems: list[str]) -> None:
        self._design, self._store, self._stack, self._problems = design, store, stack, problems
        self._session: SparkSession | None = None

    def rows(self, tasks: Sequence[Task], limits: Limits, label: str) -> list[Row]:
        """Run tasks and return their rows in the order of the tasks; ``label`` names the step in the progress line."""
        design, store = self._design, self._store
        announce_out_of_date(tasks, store, limits)
        if design.session is not None:
            self._run_on_spark(tasks, limits)
            found = {run: row for task in tasks if (row := store.find(run := task.run(limits))) is not None}
        else:
            running = sweep(
                tasks,
                store,
                limits,
                jobs=design.jobs,
                retry_errors=design.retry_errors,
                reuse=True,
                counts_as_failed=gives_nothing(design.selectors),
            )
            with contextlib.closing(running):
                found = {row.run: row for row in progress(running, len(tasks), label)}
        return [found[run] for task in tasks if (run := task.run(limits)) in found]

    def _run_on_spark(self, tasks: Sequence[Task], limits: Limits) -> None:
        from relocbench.spark.sweep import missing
        from relocbench.spark.sweep import sweep as sweep_on_spark

        remaining = missing(tasks, self._store, limits, self._design.retry_errors)
        if not remaining:
            return
        if self._session is None:
            assert self._design.session is not None
            self._session = self._stack.enter_context(self._design.session())
        self._problems += sweep_on_spark(
            self._session, remaining, self._store, limits, retry_errors=self._design.retry_errors
        )
