"""What may be said of samples: intervals of a mean, paired comparisons, and a correction for making many."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 4000
# Resampling fewer values than this would show an interval that means nothing.
FEWEST_FOR_INTERVAL = 5


def mean_interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval (percentiles of 4,000 resampled means, seeded)."""
    sample = np.array(values, dtype=float)
    rng = np.random.default_rng(0)
    means = sample[rng.integers(len(sample), size=(RESAMPLES, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(sample.mean()), float(low), float(high)


@dataclass(frozen=True)
class Paired:
    """Two methods on the same instances; smaller is better.

    Attributes
    ----------
    pairs, wins, losses
        How many instances there are, on how many the first is smaller, on how many it is larger.
    median_difference
        Of the first minus the second.
    effect
        Matched-pairs rank-biserial correlation, from -1 (the first always smaller) to 1 (always larger): the signed
        share of the ranks of the differences.
    p
        Two-sided Wilcoxon signed-rank test; pairs without a difference are left out.
    """

    pairs: int
    wins: int
    losses: int
    median_difference: float
    effect: float
    p: float


def paired(first: Sequence[float], second: Sequence[float], tie: float = 0.0) -> Paired:
    """Compare two samples pair by pair; differences up to ``tie`` are none."""
    difference = np.array(first, dtype=float) - np.array(second, dtype=float)
    if len(difference) == 0:
        raise ValueError("expected at least one pair")
    different = difference[np.abs(difference) > tie]
    effect, p = 0.0, 1.0
    if len(different):
        # Loading scipy's statistics takes a second, which most commands can do without.
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
    """Return p-values adjusted for their number by Holm's method: each may be compared with 0.05 as it is."""
    order = np.argsort(p_values, kind="stable")
    adjusted = [0.0] * len(order)
    largest = 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * float(p_values[index])))
        adjusted[index] = largest
    return adjusted
