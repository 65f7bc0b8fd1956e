"""Find the smallest instance that still shows a failure or a regression, so that a person can study it.

The version of a method that made the baseline is not available, but its homes are. When a client is removed, its home
is removed too. So the homes of the baseline remain an assignment that the new version can be compared with.
"""

import math
import time
from dataclasses import dataclass

import numpy as np

from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.methods import Selector
from relocbench.runs.run_store import Row
from relocbench.runs.shrink_instance import shrink, shrink_with_homes
from relocbench.runs.sweep import Limits, Task, execute

# The longest and the shortest time limit of a run while shrinking, in seconds.
LONGEST_RUN = 10.0
SHORTEST_RUN = 1.0


@dataclass(frozen=True, eq=False)
class SmallestInstance:
    """The smallest instance that was found.

    Attributes
    ----------
    instance
        The instance.
    says
        What it shows, on one line.
    home, before
        The homes of the baseline and their cost; None if the instance shows a failure.
    now
        The cost of the method's homes; None if the instance shows a failure.
    """

    instance: Instance
    says: str
    home: IntArray | None = None
    before: float | None = None
    now: float | None = None


def smallest_regression(
    selector: Selector,
    instance: Instance,
    home: tuple[int, ...],
    seed: int,
    least: float,
    limits: Limits,
    seconds: float,
) -> SmallestInstance | None:
    """Shrink an instance as long as the method's homes cost clearly more than those of the baseline.

    Parameters
    ----------
    selector, instance, seed, limits
        The run.
    home
        The homes of the baseline.
    least
        The least relative increase of the cost; 0.01 is one percent. The increase must also be at least half of that on
        the whole instance, so that the small instance shows the same regression and not a weaker one.
    seconds
        The time for shrinking.

    Returns
    -------
    SmallestInstance or None
        None if the whole instance does not show the regression with this seed.
    """
    deadline = time.perf_counter() + seconds
    with _worker(selector, limits) as worker:

        def ratio(found: Instance, homes: IntArray) -> float:
            before = evaluate(found, homes).objective
            row = _run(worker, found, selector, seed, limits, _trial_seconds(deadline))
            if row.failure is not None or row.objective is None or before <= 0:
                return math.nan
            return row.objective / before

        start = checked_home(instance, np.asarray(home))
        # The ratio of the smallest instance so far, which is the last one that was large enough.
        latest = ratio(instance, start)
        enough = 1 + max(least, (latest - 1) / 2)
        if not latest >= enough:
            return None

        def is_worse(found: Instance, homes: IntArray) -> bool:
            nonlocal latest
            current = ratio(found, homes)
            latest = current if current >= enough else latest
            return current >= enough

        remaining_seconds = deadline - time.perf_counter()
        small, remaining = shrink_with_homes(instance, start, is_worse, seconds=remaining_seconds)
        before = evaluate(small, remaining).objective
        says = f"{latest - 1:.1%} worse than the homes of the baseline"
        return SmallestInstance(small, says, remaining, before, before * latest)


def smallest_failure(
    selector: Selector, instance: Instance, failed: Row, limits: Limits, seconds: float
) -> SmallestInstance | None:
    """Shrink an instance as long as the method fails on it in the same way.

    Parameters
    ----------
    selector, instance, limits
        The run.
    failed
        The row of the run, which failed.
    seconds
        The time for shrinking; 0 to return the instance itself without another run.

    Returns
    -------
    SmallestInstance or None
        None if the method does not fail again.
    """
    latest = failed
    if seconds <= 0 or failed.failure is None:
        return None if failed.failure is None else SmallestInstance(instance, failed.error or failed.failure)
    deadline = time.perf_counter() + seconds
    with _worker(selector, limits) as worker:

        def fails(found: Instance) -> bool:
            nonlocal latest
            # A method that did not stop at a long limit does not stop at a short one, and each trial costs the limit.
            most = SHORTEST_RUN if failed.status == "time_limit" else _trial_seconds(deadline)
            row = _run(worker, found, selector, failed.seed, limits, most)
            same = (row.failure, row.status) == (failed.failure, failed.status)
            latest = row if same else latest
            return same

        if not fails(instance):
            return None
        small = shrink(instance, fails, seconds=deadline - time.perf_counter())
        return SmallestInstance(small, latest.error or failed.failure)


def _trial_seconds(deadline: float) -> float:
    """Return the time limit of a trial, so that the trials end at about the deadline."""
    return min(LONGEST_RUN, max(SHORTEST_RUN, deadline - time.perf_counter()))


def _worker(selector: Selector, limits: Limits) -> Worker:
    return Worker(threads=selector.threads, memory_limit=limits.memory)


def _run(worker: Worker, instance: Instance, selector: Selector, seed: int, limits: Limits, most: float) -> Row:
    short = Limits(min(limits.time, most), limits.memory)
    return execute(Task(instance, selector, seed), None, short, worker=worker)
