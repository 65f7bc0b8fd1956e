"""Execution of Spark jobs with a progress bar. An interrupt cancels the jobs."""

import sys
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

Result = TypeVar("Result")
# Seconds between two updates of the progress bar.
UPDATE_INTERVAL = 0.2


def run_with_progress(spark: "SparkSession", action: Callable[[], Result], description: str) -> Result:
    """Run an action that starts Spark jobs.

    On a terminal a progress bar shows how many tasks of all stages have ended. An interrupt cancels the jobs.

    Parameters
    ----------
    spark
        The session.
    action
        The action. It runs in another thread.
    description
        The text of the progress bar.

    Returns
    -------
    object
        The result of the action. An exception of the action is raised here.
    """
    from pyspark import InheritableThread

    group = f"relocbench-{uuid.uuid4()}"
    results: list[Result] = []
    errors: list[BaseException] = []
    done = threading.Event()

    def act() -> None:
        try:
            spark.sparkContext.setJobGroup(group, description, interruptOnCancel=True)
            results.append(action())
        except BaseException as error:  # the calling thread raises it below
            errors.append(error)
        finally:
            done.set()

    thread = InheritableThread(target=act, daemon=True)
    thread.start()
    try:
        _show_progress(spark.sparkContext.statusTracker(), group, description, done)
    except BaseException:
        spark.sparkContext.cancelJobGroup(group)
        thread.join()
        raise
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


def count_tasks(tracker: "StatusTracker", group: str) -> tuple[int, int]:
    """Count the tasks of a group of jobs.

    Parameters
    ----------
    tracker
        The status tracker of the Spark context.
    group
        The name of the job group.

    Returns
    -------
    done
        The number of tasks that have ended.
    total
        The number of tasks that are known so far.
    """
    done = total = 0
    stages = set()
    for job in tracker.getJobIdsForGroup(group):
        if (job_info := tracker.getJobInfo(job)) is not None:
            stages.update(job_info.stageIds)
    for stage in stages:
        # There is no information on stages that have not begun, or that Spark skips because their result exists.
        if (stage_info := tracker.getStageInfo(stage)) is not None:
            done += stage_info.numCompletedTasks
            total += stage_info.numTasks
    return done, total


def _show_progress(tracker: "StatusTracker", group: str, description: str, done: threading.Event) -> None:
    if not sys.stderr.isatty():
        while not done.wait(UPDATE_INTERVAL):  # Python handles an interrupt only between two short waits
            pass
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(description, total=None)
        while not done.wait(UPDATE_INTERVAL):
            completed, total = count_tasks(tracker, group)
            progress.update(bar, completed=completed, total=total or None)
