"""Sweeps on Spark. They use the run store of a local sweep, so that each can continue what the other began."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from relocbench.runs.methods import Selector
from relocbench.runs.run_store import Store
from relocbench.runs.sweep import Limits, Task, execute
from relocbench.spark.parallel_map import parallel_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class _RemoteTask:
    """A task in the form that is sent to an executor, which reads the instance from its file."""

    instance: Path
    selector: Selector
    seed: int


def missing(tasks: Sequence[Task], store: Store, limits: Limits, retry_errors: bool = False) -> list[Task]:
    """List the tasks that still have to be run.

    Parameters
    ----------
    tasks
        All tasks of the sweep.
    store
        The store with the rows of earlier sweeps.
    limits
        The limits of each run.
    retry_errors
        Whether runs that ended in an error are run again.

    Returns
    -------
    list of Task
        The tasks without a row in the store, each once.
    """
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

    The executor that has run a task writes its row, either completely or not at all. Therefore no finished run is lost
    when any process is killed. All executors must see the folder of the store under the same path.

    Parameters
    ----------
    spark
        The session.
    tasks
        The tasks to run, see :func:`missing`.
    store
        The store for the rows. The instances are written below its folder, from where the executors read them.
    limits
        The limits of each run.
    retry_errors
        Whether a task is run although the store has a row of it that is an error.
    parts
        The approximate number of chunks of tasks.

    Returns
    -------
    list of str
        One line for each run that left no row, with the reason (for example a full disk). A failure of a method is not
        among them, because it leaves a row. The next sweep runs these tasks again.
    """
    store = Store(store.folder.resolve())  # the working directory of an executor is another one
    files = {task.instance.hash: _write_instance(task.instance, store.folder) for task in tasks}
    remote_tasks = [_RemoteTask(files[task.instance.hash], task.selector, task.seed) for task in tasks]

    def run(task: _RemoteTask) -> str | None:
        try:
            _run(task, store, limits, retry_errors)
        except Exception as error:  # the other runs must continue
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            return f"{task.selector}, seed {task.seed}, on {task.instance}: {kind}{error}"
        return None

    problems = parallel_map(spark, remote_tasks, run, "running", parts)
    return sorted(problem for problem in problems if problem is not None)


def _run(remote: _RemoteTask, store: Store, limits: Limits, retry_errors: bool) -> None:
    task = Task(_read_cached(remote.instance), remote.selector, remote.seed)
    # Spark repeats all tasks of a chunk when their executor is lost. The finished ones must not run again.
    if store.finished(task.run(limits), retry_errors) is None:
        execute(task, store, limits)


def _write_instance(instance: Instance, folder: Path) -> Path:
    path = folder / "instances" / f"{instance.hash}.parquet"
    if not path.exists():
        write_rows([instance], path)
    return path


@functools.lru_cache(maxsize=16)
def _read_cached(path: Path) -> Instance:
    return read_instance(path)
