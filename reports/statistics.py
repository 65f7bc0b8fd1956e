"""Statistics of samples: confidence intervals, shifted means, paired comparisons, ranks, and Holm's correction.

Instances that share random draws, such as the cells of one seed of the family ``paper``, are not independent: if one of
them is easy for a method, the others tend to be easy too. Such instances form a *block*. The functions with an argument
``blocks`` treat the blocks, and not the instances, as the sample.
"""

import functools
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtr, stdtr, stdtrit

RESAMPLES = 4000
# With fewer independent values than this there is neither an interval nor a test.
FEWEST_FOR_INTERVAL = 5


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval.

    Attributes
    ----------
    mean
        The mean over all values.
    low, high
        The limits of the interval; None if there are too few blocks for one.
    blocks
        The number of independent samples.
    """

    mean: float
    low: float | None
    high: float | None
    blocks: int

    @property
    def limits(self) -> tuple[float, float]:
        """The limits of the interval; without an interval, the mean twice."""
        return (self.mean, self.mean) if self.low is None or self.high is None else (self.low, self.high)


def blocked_interval(values: Sequence[float], blocks: Sequence[Hashable]) -> Interval:
    """Return the mean of a sample and its 95 % bootstrap interval, which resamples whole blocks.

    Parameters
    ----------
    values
        The sample; at least one value.
    blocks
        The block of each value.

    Returns
    -------
    Interval
        The mean over all values, and the interval from five blocks on. Its percentiles are moved outwards so that the
        interval of a normal sample is as wide as that of the t distribution (Hesterberg's expanded percentiles): the
        2.5 and 97.5 percentiles of few values cover the mean too rarely, in 85 of 100 cases with six values.
    """
    sums, counts = _by_block(values, blocks)
    mean, size = float(sums.sum() / counts.sum()), len(sums)
    if size < FEWEST_FOR_INTERVAL:
        return Interval(mean, None, None, size)
    tail = 100 * float(ndtr(-math.sqrt(size / (size - 1)) * stdtrit(size - 1, 0.975)))
    low, high = np.percentile(_resampled_means(sums, counts), [tail, 100 - tail])
    return Interval(mean, float(low), float(high), size)


def _by_block(
    values: Sequence[float], blocks: Sequence[Hashable]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the sum and the number of the values of each block, in the order in which blocks first appear."""
    number = {block: index for index, block in enumerate(dict.fromkeys(blocks))}
    place = [number[block] for block in blocks]
    sums: npt.NDArray[np.float64] = np.bincount(place, np.asarray(values, dtype=float)).astype(float)
    return sums, np.bincount(place).astype(float)


def _resampled_means(sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    chosen = _resamples(len(sums))
    means: npt.NDArray[np.float64] = sums[chosen].sum(axis=1) / counts[chosen].sum(axis=1)
    return means


@functools.lru_cache(maxsize=16)
def _resamples(size: int) -> npt.NDArray[np.int64]:
    """Return which of ``size`` values each resample has. The draw is seeded: the same sample has the same interval."""
    return np.random.default_rng(0).integers(size, size=(RESAMPLES, size))


@dataclass(frozen=True)
class Paired:
    """A comparison of two methods on the same instances; smaller values are better.

    Attributes
    ----------
    pairs, blocks
        The number of instances, and of blocks of instances, which is the sample size.
    wins, losses
        In how many blocks the first method is smaller and larger.
    difference, low, high
        The mean over blocks of first minus second, and its 95 % interval; the interval is None with too few blocks.
    p
        The p-value of the two-sided paired t-test on the means of the blocks; None with too few blocks.
    """

    pairs: int
    blocks: int
    wins: int
    losses: int
    difference: float
    low: float | None
    high: float | None
    p: float | None


def paired(
    first: Sequence[float], second: Sequence[float], blocks: Sequence[Hashable] | None = None, tie: float = 0.0
) -> Paired:
    """Compare two samples pair by pair.

    Parameters
    ----------
    first, second
        The values of the two methods, in the same order of instances.
    blocks
        The block of each instance; by default every instance is a block of its own.
    tie
        Differences of at most this size count as no difference.

    Returns
    -------
    Paired
        The comparison.

    Raises
    ------
    ValueError
        If the samples are empty.
    """
    every = np.array(first, dtype=float) - np.array(second, dtype=float)
    if len(every) == 0:
        raise ValueError("expected at least one pair")
    every[np.abs(every) <= tie] = 0.0
    sums, counts = _by_block(every.tolist(), range(len(every)) if blocks is None else blocks)
    difference = sums / counts
    mean, size = float(difference.mean()), len(difference)
    low = high = p = None
    if size >= FEWEST_FOR_INTERVAL:
        error = float(difference.std(ddof=1)) / math.sqrt(size)
        reach = float(stdtrit(size - 1, 0.975)) * error
        low, high = mean - reach, mean + reach
        # Without any spread, all blocks have the same difference.
        p = 2 * float(stdtr(size - 1, -abs(mean) / error)) if error > 0 else float(mean == 0)
    return Paired(
        pairs=len(every),
        blocks=size,
        wins=int((difference < 0).sum()),
        losses=int((difference > 0).sum()),
        difference=mean,
        low=low,
        high=high,
        p=p,
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests by Holm's method.

    Parameters
    ----------
    p_values
        The p-values of all tests.

    Returns
    -------
    list of float
        The adjusted p-values in the same order. Each may be compared with the significance level directly.
    """
    order = np.argsort(p_values, kind="stable")
    adjusted = [0.0] * len(order)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * float(p_values[index])))
        adjusted[index] = largest
    return adjusted


def shifted_geometric_mean(values: Iterable[float], shift: float) -> float | None:
    """Return the shifted geometric mean ``exp(mean(log(value + shift))) - shift``.

    Parameters
    ----------
    values
        Values above minus the shift.
    shift
        The shift: values much smaller than it hardly influence the mean.

    Returns
    -------
    float or None
        The mean; None if there are no values.
    """
    shifted = np.log(np.array(list(values)) + shift)
    return None if not len(shifted) else float(np.exp(shifted.mean())) - shift


@dataclass(frozen=True)
class Ranks:
    """The mean ranks of several methods on the same samples (Demšar, 2006); rank 1 is the best.

    Attributes
    ----------
    mean
        The mean rank of each method.
    samples
        The number of independent samples that the methods were ranked on.
    p
        The p-value of Friedman's test that all methods have the same rank.
    critical_difference
        Two mean ranks that differ by at least this much differ significantly, at 5 % over all pairs (Nemenyi's test).
    """

    mean: list[float]
    samples: int
    p: float
    critical_difference: float

    def cliques(self) -> list[list[int]]:
        """Return the largest sets of methods whose mean ranks do not differ significantly.

        Returns
        -------
        list of list of int
            The methods of each set with at least two, from the best rank to the worst.
        """
        order = sorted(range(len(self.mean)), key=lambda method: self.mean[method])
        found: list[list[int]] = []
        for start, first in enumerate(order):
            inside = [one for one in order[start:] if self.mean[one] - self.mean[first] < self.critical_difference]
            if len(inside) > 1 and not (found and inside[-1] == found[-1][-1]):
                found.append(inside)
        return found


def mean_ranks(values: Sequence[Sequence[float]], tie: float = 0.0) -> Ranks:
    """Rank methods on every sample and compare their mean ranks.

    Parameters
    ----------
    values
        For each sample the values of all methods, at least two of each; smaller is better.
    tie
        Values within this distance of the next smaller one share its rank.

    Returns
    -------
    Ranks
        The mean ranks, where equal values share the mean of their ranks.

    Raises
    ------
    ValueError
        If there are fewer than two samples or methods.
    """
    from scipy.stats import rankdata, studentized_range  # this import takes as long as a small study

    table = np.array(values, dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        raise ValueError("expected at least two samples and two methods")
    order = np.argsort(table, axis=1, kind="stable")
    ascending = np.take_along_axis(table, order, axis=1)
    levels = np.zeros(table.shape)
    steps = np.concatenate([np.zeros((len(table), 1)), np.diff(ascending, axis=1) > tie], axis=1)
    np.put_along_axis(levels, order, np.cumsum(steps, axis=1), axis=1)
    ranks = rankdata(levels, axis=1)
    samples, methods = ranks.shape
    mean = ranks.mean(axis=0)
    # Friedman's statistic, corrected for ties.
    spread = float(((ranks - (methods + 1) / 2) ** 2).sum()) / (samples * (methods - 1))
    statistic = samples * float(((mean - (methods + 1) / 2) ** 2).sum()) / spread if spread > 0 else 0.0
    reach = float(studentized_range.ppf(0.95, methods, np.inf)) / math.sqrt(2)
    return Ranks(
        mean=mean.tolist(),
        samples=samples,
        p=float(chdtrc(methods - 1, statistic)),
        critical_difference=reach * math.sqrt(methods * (methods + 1) / (6 * samples)),
    )
