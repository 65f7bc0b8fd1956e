"""The smallest instance that still shows what a check found, for a person to look at.

The version of a method that made the baseline is not at hand, but its homes are. When clients go, theirs go along: so
there is always an assignment that the old version had, to compare the new one's with.
"""

import math
from dataclasses import dataclass

import numpy as np

from relocbench.instances.evaluation import checked_home, evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.runs.isolation.supervisor import Worker, threads_of
from relocbench.runs.run_store import Row
from relocbench.runs.selectors import Selector
from relocbench.runs.shrink_instance import shrink, shrink_with_homes
from relocbench.runs.sweep import Limits, Task, execute

# While shrinking, a run has this long.
RUN_SECONDS = 10.0


@dataclass(frozen=True, eq=False)
class Smallest:
    """A small instance.

    Attributes
    ----------
    instance
        The one.
    says
        What it shows.
    home, before
        The homes of the baseline and their cost; None if it shows a failure.
    now
        The cost of the method's homes; None if it shows a failure.
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
) -> Smallest | None:
    """Shrink an instance as long as the method's homes cost clearly more than those of the baseline.

    Parameters
    ----------
    selector, instance, seed, limits
        What to run.
    home
        The homes of the baseline.
    least
        How much worse the method has to be at least: 0.01 is one percent. Half of what is seen on the whole instance is
        asked for as well, so that what is left shows the same regression and not a lesser one.
    seconds
        How long to look for smaller ones.

    Returns
    -------
    smallest
        None if not even the whole instance shows it, which is so where it takes several seeds to see it.
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
        small, left = shrink_with_homes(
            instance, start, lambda found, homes: ratio(found, homes) >= enough, seconds=seconds
        )
        before = evaluate(small, left).objective
        now = before * ratio(small, left)
        return Smallest(small, f"{now / before - 1:.1%} worse than the homes of the baseline", left, before, now)


def smallest_failure(
    selector: Selector, instance: Instance, seed: int, kind: str, limits: Limits, seconds: float
) -> Smallest | None:
    """Shrink an instance as long as the method fails on it in the same way; None if it does not fail again."""
    with _worker(selector, limits) as worker:

        def fails(found: Instance) -> bool:
            return _run(worker, found, selector, seed, limits).failure == kind

        if not fails(instance):
            return None
        small = shrink(instance, fails, seconds=seconds)
        return Smallest(small, _run(worker, small, selector, seed, limits).error or kind)


def _worker(selector: Selector, limits: Limits) -> Worker:
    return Worker(threads=threads_of(selector), memory_limit=limits.memory)


def _run(worker: Worker, instance: Instance, selector: Selector, seed: int, limits: Limits) -> Row:
    hasty = Limits(min(limits.time, RUN_SECONDS), limits.memory)
    return execute(Task(instance, selector, seed), None, hasty, worker=worker)
