"""A Spark job with a bar that shows its tasks, and that Ctrl-C ends."""

import sys
import threading
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

Answer = TypeVar("Answer")
# Seconds between two looks at the tasks.
INTERVAL = 0.2


def watched(spark: "SparkSession", action: Callable[[], Answer], what: str) -> Answer:
    """Do something that starts Spark jobs, and return its answer.

    On a terminal a bar shows how many tasks of all their stages are done. An interrupt cancels the jobs.

    Parameters
    ----------
    spark
        The session.
    action
        What to do; it runs in another thread.
    what
        What the bar says.
    """
    from pyspark import InheritableThread

    group = f"relocbench-{uuid.uuid4()}"
    answers: list[Answer] = []
    problems: list[BaseException] = []
    done = threading.Event()

    def act() -> None:
        try:
            spark.sparkContext.setJobGroup(group, what, interruptOnCancel=True)
            answers.append(action())
        except BaseException as problem:  # raised below, in the thread that asked
            problems.append(problem)
        finally:
            done.set()

    thread = InheritableThread(target=act, daemon=True)
    thread.start()
    try:
        _show(spark.sparkContext.statusTracker(), group, what, done)
    except BaseException:
        spark.sparkContext.cancelJobGroup(group)
        thread.join()
        raise
    thread.join()
    if problems:
        raise problems[0]
    return answers[0]


def count_tasks(tracker: "StatusTracker", group: str) -> tuple[int, int]:
    """Return how many tasks of a group's jobs are done, and how many there are as far as is known."""
    done = total = 0
    stages = set()
    for job in tracker.getJobIdsForGroup(group):
        if (job_info := tracker.getJobInfo(job)) is not None:
            stages.update(job_info.stageIds)
    for stage in stages:
        # Stages that have not begun, or whose result was there already, say nothing.
        if (stage_info := tracker.getStageInfo(stage)) is not None:
            done += stage_info.numCompletedTasks
            total += stage_info.numTasks
    return done, total


def _show(tracker: "StatusTracker", group: str, what: str, done: threading.Event) -> None:
    if not sys.stderr.isatty():
        while not done.wait(INTERVAL):  # in pieces: an interrupt is heard between them
            pass
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        shown = bar.add_task(what, total=None)
        while not done.wait(INTERVAL):
            completed, total = count_tasks(tracker, group)
            bar.update(shown, completed=completed, total=total or None)
