"""The speed of a machine: the processor time of fixed computations, measured between the runs of a check.

Processor times of two machines, or of one machine on two days, cannot be compared as they are. A baseline therefore
stores, beside the times of a method, those of five small computations, and a check measures the same computations
again. They differ in what limits them: the interpreter, memory that is read in order, memory that is read at random,
sorting, and compiled code with branches. The mean of their changes is the change of the speed of the machine. Their
disagreement says how well it is known for a method whose mix of work is another one.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.kernels.compiled import compiled

# Seconds between two measurements during the runs.
INTERVAL = 1.0
# The least number of computations that two measurements must share.
FEWEST = 3
# The standard deviation of the change that remains where all computations agree: methods have other mixes of work, and
# two runs of one program on one machine differ, too. benchmarks/gate_times.py measures it.
REMAINING = 0.04

_SIZE = 1 << 18
_VALUES = np.random.default_rng(0).random(_SIZE)
_ORDER = np.random.default_rng(1).permutation(_SIZE)


def _interpreted() -> float:
    counts: dict[int, int] = {}
    state = 1
    for _ in range(20_000):
        state = state * 1_103_515_245 + 12_345 & 0x7FFFFFFF
        counts[state % 997] = counts.get(state % 997, 0) + 1
    return float(max(counts.values()))


def _streamed() -> float:
    total = 0.0
    for factor in (1.1, 1.2, 1.3, 1.4, 1.5):
        total += float((np.sqrt(_VALUES * factor) + _VALUES).sum())
    return total


def _gathered() -> float:
    values = _VALUES
    for _ in range(4):
        values = values[_ORDER]
    return float(values[0])


def _sorted() -> float:
    return float(np.sort(_VALUES[:60_000])[0])


@compiled
def _proposals(steps: int, values: np.ndarray) -> float:
    """Accept or reject moves as annealing does: random numbers, branches, and reads at random places."""
    state, cost, size = np.uint64(88_172_645_463_325_252), 0.0, np.uint64(len(values))
    for _ in range(steps):
        state ^= state << np.uint64(13)
        state ^= state >> np.uint64(7)
        state ^= state << np.uint64(17)
        change = values[int(state % size)] - 0.5
        if change < 0.0 or math.exp(-4.0 * change) > values[int((state >> np.uint64(20)) % size)]:
            cost += change
    return cost


# A computation that is changed needs another name, because times under the same name are compared.
COMPUTATIONS: Mapping[str, Callable[[], float]] = {
    "interpreted-1": _interpreted,
    "streamed-1": _streamed,
    "gathered-1": _gathered,
    "sorted-1": _sorted,
    "compiled-1": lambda: _proposals(300_000, _VALUES),
}


class SpeedMeter:
    """Measures the fixed computations again and again."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {name: [] for name in COMPUTATIONS}
        self._last = -math.inf
        for compute in COMPUTATIONS.values():  # the first call compiles and fills the caches
            compute()

    def measure(self) -> None:
        """Measure each computation once."""
        for name, compute in COMPUTATIONS.items():
            begin = time.thread_time()
            compute()
            self._seconds[name].append(time.thread_time() - begin)
        self._last = time.monotonic()

    def measure_sometimes(self) -> None:
        """Measure each computation once, unless the last measurement was a moment ago."""
        if time.monotonic() - self._last >= INTERVAL:
            self.measure()

    @property
    def seconds(self) -> dict[str, float]:
        """The median processor time of each computation in seconds."""
        return {name: statistics.median(found) for name, found in self._seconds.items()}


@dataclass(frozen=True)
class SpeedChange:
    """How much longer the machine takes for the same work than at the time of the baseline.

    Attributes
    ----------
    log
        The mean over the computations of ``ln(now / before)``.
    spread
        The standard deviation of these values.
    count
        The number of computations.
    """

    log: float
    spread: float
    count: int

    @property
    def variance(self) -> float:
        """The variance of the unknown change of one more computation, as estimated from the others."""
        return self.spread**2 * (1 + 1 / self.count)


def speed_change(before: Mapping[str, float], now: Mapping[str, float]) -> SpeedChange:
    """Compare two measurements of the fixed computations.

    Parameters
    ----------
    before, now
        The processor time of each computation in seconds.

    Returns
    -------
    SpeedChange
        The change.

    Raises
    ------
    InputError
        If the measurements share too few computations.
    """
    logs = [math.log(now[name] / before[name]) for name in before if name in now]
    if len(logs) < FEWEST:
        problem = f"has times of other reference computations ({', '.join(before)}); --update-baseline measures anew"
        raise InputError("reference_seconds", problem)
    return SpeedChange(statistics.fmean(logs), statistics.stdev(logs), len(logs))
