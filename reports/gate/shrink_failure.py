"""Find the smallest instance that still shows a failure or a regression, so that a person can study it.

The version of a method that made the baseline is not available, but its homes are. When a client is removed, its home
is removed too. So the homes of the baseline remain an assignment that the new version can be compared with.
"""

import math
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

# The time limit of a run while shrinking, in seconds.
RUN_SECONDS = 10.0


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
    with _worker(selector, limits) as worker:

        def ratio(found: Instance, homes: IntArray) -> float:
            before, row = evaluate(found, homes).objective, _run(worker, found, selector, seed, limits)
            if row.failure is not None or row.objective is None or before <= 0:
                return math.nan
            return row.objective / before

        start = checked_home(instance, np.asarray(home))
        enough = 1 + max(least, (ratio(instance, start) - 1) / 2)
        if not ratio(instance, start) >= enough:
            return None
        small, remaining = shrink_with_homes(
            instance, start, lambda found, homes: ratio(found, homes) >= enough, seconds=seconds
        )
        before = evaluate(small, remaining).objective
        now = before * ratio(small, remaining)
        says = f"{now / before - 1:.1%} worse than the homes of the baseline"
        return SmallestInstance(small, says, remaining, before, now)


def smallest_failure(
    selector: Selector, instance: Instance, seed: int, kind: str, limits: Limits, seconds: float
) -> SmallestInstance | None:
    """Shrink an instance as long as the method fails on it in the same way.

    Parameters
    ----------
    selector, instance, seed, limits
        The run.
    kind
        The kind of failure.
    seconds
        The time for shrinking.

    Returns
    -------
    SmallestInstance or None
        None if the method does not fail again.
    """
    with _worker(selector, limits) as worker:

        def fails(found: Instance) -> bool:
            return _run(worker, found, selector, seed, limits).failure == kind

        if not fails(instance):
            return None
        small = shrink(instance, fails, seconds=seconds)
        return SmallestInstance(small, _run(worker, small, selector, seed, limits).error or kind)


def _worker(selector: Selector, limits: Limits) -> Worker:
    return Worker(threads=selector.threads, memory_limit=limits.memory)


def _run(worker: Worker, instance: Instance, selector: Selector, seed: int, limits: Limits) -> Row:
    short = Limits(min(limits.time, RUN_SECONDS), limits.memory)
    return execute(Task(instance, selector, seed), None, short, worker=worker)
