import io
import threading
import time

import pytest

from relocbench.spark import progress
from relocbench.spark.progress import count_tasks, run_with_progress


def test_the_result_of_a_job_is_returned_and_its_error_raised(spark):
    assert run_with_progress(spark, lambda: spark.range(100).count(), "counting") == 100
    with pytest.raises(ZeroDivisionError):
        run_with_progress(spark, lambda: 1 // 0, "dividing")


def test_tasks_of_all_stages_are_counted(spark):
    groups = []

    def act():
        groups.append(spark.sparkContext.getLocalProperty("spark.jobGroup.id"))
        pairs = spark.sparkContext.parallelize([(1, 2), (3, 4)], 3)
        return pairs.groupByKey(2).count()

    assert run_with_progress(spark, act, "grouping") == 2
    assert count_tasks(spark.sparkContext.statusTracker(), groups[0]) == (5, 5)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_a_progress_bar(spark, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    run_with_progress(
        spark, lambda: spark.sparkContext.parallelize(range(2), 2).foreach(lambda _: time.sleep(1)), "sleeping"
    )
    assert "sleeping" in screen.getvalue()
    assert "/2" in screen.getvalue()


def test_an_interrupt_cancels_the_job(spark, monkeypatch):
    begun = threading.Event()

    def interrupted(tracker, group, description, done):
        begun.set()
        while not tracker.getActiveJobsIds():
            time.sleep(0.05)
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "_show_progress", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run_with_progress(
            spark, lambda: spark.sparkContext.parallelize([1], 1).foreach(lambda _: time.sleep(600)), "sleeping"
        )
    assert begun.is_set()
    assert spark.sparkContext.statusTracker().getActiveJobsIds() == []
