"""Many runs on Spark, into the store that a local sweep uses: either goes on where the other was stopped."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from relocbench.runs.run_store import Store
from relocbench.runs.selectors import Selector
from relocbench.runs.sweep import Limits, Task, execute
from relocbench.spark.parallel_map import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _Errand:
    """A run as it is sent to an executor, which reads the instance itself."""

    instance: Path
    selector: Selector
    seed: int


def missing(tasks: Sequence[Task], store: Store, limits: Limits, retry_errors: bool = False) -> list[Task]:
    """Return the tasks that a store has no row of, or one of an error that is to be run again."""
    runs = {task.run(limits): task for task in tasks}
    return [task for run, task in runs.items() if store.finished(run, retry_errors) is None]


def sweep(
    spark: "SparkSession",
    tasks: Sequence[Task],
    store: Store,
    limits: Limits,
    *,
    retry_errors: bool = False,
    parts: int | None = None,
) -> list[str]:
    """Run tasks, each in a process of its own.

    Every row is written, whole or not at all, by the executor that has run it, so that nothing finished is lost
    whoever is killed. All executors must see the store's folder under the same path.

    Parameters
    ----------
    spark, tasks, limits
        The session, what is run (:func:`missing` says what there is to run), and how much each may take.
    store
        Takes the rows. Instances are written below its folder, for the executors to read.
    retry_errors
        Whether a row of an error does not count as one.
    parts
        About how many parts the work is cut into.

    Returns
    -------
    problems
        For each run that left no row one line that says why. Whatever a method does is a row; this is a full disk,
        say. The next sweep tries again.
    """
    store = Store(store.folder.resolve())  # executors work elsewhere
    files = {task.instance.hash: _provide(task.instance, store.folder) for task in tasks}
    errands = [_Errand(files[task.instance.hash], task.selector, task.seed) for task in tasks]

    def run(errand: _Errand) -> str | None:
        try:
            _run(errand, store, limits, retry_errors)
        except Exception as error:  # this run is lost, the others need not be
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            return f"{errand.selector}, seed {errand.seed}, on {errand.instance}: {kind}{error}"
        return None

    return sorted(problem for problem in spread(spark, errands, run, "running", parts) if problem is not None)


def _run(errand: _Errand, store: Store, limits: Limits, retry_errors: bool) -> None:
    task = Task(_read(errand.instance), errand.selector, errand.seed)
    # A part is done anew when its executor was lost: not what it had finished by then.
    if store.finished(task.run(limits), retry_errors) is None:
        execute(task, store, limits)


def _provide(instance: Instance, folder: Path) -> Path:
    """Put an instance where executors find it."""
    path = folder / "instances" / f"{instance.hash}.parquet"
    if not path.exists():
        write_rows([instance], path)
    return path


@functools.lru_cache(maxsize=16)
def _read(path: Path) -> Instance:
    return read_instance(path)
