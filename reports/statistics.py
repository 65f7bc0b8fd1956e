"""Statistics of samples: confidence intervals of a mean, paired comparisons, and a correction for multiple tests."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 4000
# With fewer values than this, a bootstrap interval is meaningless.
FEWEST_FOR_INTERVAL = 5


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean of a sample and its 95 % bootstrap interval.

    Parameters
    ----------
    values
        The sample; at least one value.

    Returns
    -------
    mean, low, high
        The mean and the 2.5 and 97.5 percentiles of 4,000 resampled means. The resampling is seeded, so the same sample
        always gives the same interval.
    """
    sample = np.array(values, dtype=float)
    rng = np.random.default_rng(0)
    means = sample[rng.integers(len(sample), size=(RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(sample.mean()), float(low), float(high)


@dataclass(frozen=True)
class Paired:
    """A comparison of two methods on the same instances; smaller values are better.

    Attributes
    ----------
    pairs, wins, losses
        The number of instances, and on how many of them the first method is smaller and larger.
    median_difference
        The median of first minus second.
    effect
        The matched-pairs rank-biserial correlation: -1 if the first method is always smaller, 1 if it is always larger.
    p
        The p-value of the two-sided Wilcoxon signed-rank test. Pairs without a difference are left out.
    """

    pairs: int
    wins: int
    losses: int
    median_difference: float
    effect: float
    p: float


def paired(first: Sequence[float], second: Sequence[float], tie: float = 0.0) -> Paired:
    """Compare two samples pair by pair.

    Parameters
    ----------
    first, second
        The values of the two methods, in the same order of instances.
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
    difference = np.array(first, dtype=float) - np.array(second, dtype=float)
    if len(difference) == 0:
        raise ValueError("expected at least one pair")
    different = difference[np.abs(difference) > tie]
    effect, p = 0.0, 1.0
    if len(different):
        # Importing scipy.stats takes a second, and most commands do not need it.
        from scipy.stats import rankdata, wilcoxon

        ranks = rankdata(np.abs(different))
        effect = float((ranks * np.sign(different)).sum() / ranks.sum())
        p = float(wilcoxon(different).pvalue)
    return Paired(
        pairs=len(difference),
        wins=int((different < 0).sum()),
        losses=int((different > 0).sum()),
        median_difference=float(np.median(difference)),
        effect=effect,
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
