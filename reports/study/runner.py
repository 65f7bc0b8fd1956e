"""The runs of a study: in processes here, or on Spark; into one store, from which a second call goes on."""

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.reports.study.references import Reference, from_library, from_rows, merged, wanted
from relocbench.reports.study.subjects import Subject
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import Selector
from relocbench.runs.sweep import Limits, Task, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Design:
    """How a study is run.

    Attributes
    ----------
    selectors, seeds
        The methods, and the seeds each is run with.
    limits
        Seconds and bytes for each run.
    reference_time
        Seconds for proving, where the library has no proof.
    jobs
        Processes at a time.
    retry_errors
        Whether runs that ended in an error are run again.
    session
        Starts Spark, if runs are to be there.
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
    """Rows of the methods and of what was run to prove something, what is proved, and what left no row at all."""

    rows: list[Row]
    proving: list[Row]
    references: dict[str, Reference]
    problems: list[str]


def run(subjects: Sequence[Subject], design: Design, out: Path) -> Results:
    """Run what is not in the store below ``out`` yet, and return everything that belongs to the study."""
    store = Store(out / "runs")
    problems: list[str] = []
    # Instances in the inner loop: what is there when somebody interrupts is then a study of fewer methods.
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
        for what, tried_exact in (("proving optima", False), ("certifying bounds", True)):
            missing = wanted(subjects, references, tried_exact)
            proving += runner.rows([Task(subject.instance, selector) for subject, selector in missing], limits, what)
            references = merged(references, from_rows(proving))
        rows = runner.rows(tasks, design.limits, "running methods")
    return Results(rows, proving, merged(references, from_rows(rows)), problems)


class _Runner:
    def __init__(self, design: Design, store: Store, stack: contextlib.ExitStack, problems: list[str]) -> None:
        self._design, self._store, self._stack, self._problems = design, store, stack, problems
        self._session: SparkSession | None = None

    def rows(self, tasks: Sequence[Task], limits: Limits, what: str) -> list[Row]:
        """Run tasks and return their rows, in the order of the tasks."""
        design, store = self._design, self._store
        if design.session is not None:
            self._on_spark(tasks, limits)
            found = {run: row for task in tasks if (row := store.find(run := task.run(limits))) is not None}
        else:
            running = sweep(tasks, store, limits, jobs=design.jobs, retry_errors=design.retry_errors, reuse=True)
            with contextlib.closing(running):
                found = {row.run: row for row in progress(running, len(tasks), what)}
        return [found[run] for task in tasks if (run := task.run(limits)) in found]

    def _on_spark(self, tasks: Sequence[Task], limits: Limits) -> None:
        from relocbench.spark.sweep import missing
        from relocbench.spark.sweep import sweep as sweep_on_spark

        to_do = missing(tasks, self._store, limits, self._design.retry_errors)
        if not to_do:
            return
        if self._session is None:
            assert self._design.session is not None
            self._session = self._stack.enter_context(self._design.session())
        self._problems += sweep_on_spark(
            self._session, to_do, self._store, limits, retry_errors=self._design.retry_errors
        )
