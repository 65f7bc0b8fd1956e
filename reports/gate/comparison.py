"""Decide whether costs increased significantly and by a relevant amount.

The change on an instance is the mean over the seeds of ``ln(now / before)``, where a run is paired with the run of the
baseline that has the same seed. With the logarithm, a cost that doubles and a cost that halves have the same weight.
The following hypotheses are tested, each with a one-sided t-test:

- For all instances together and for each group: the mean change is above 0. The instances are the sample, because a
  neutral change of a method improves some instances and worsens others.
- For each instance: its change is above 0. The seeds are the sample.

Holm's method corrects for the number of hypotheses of all methods of a check. Samples without any change are
not tested.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import stdtr

Scope = Literal["all", "group", "instance"]
# Costs with a smaller relative difference count as equal, because another machine may round sums differently.
SAME = 1e-9
# A cost counts as at least this share of the other one, so that a cost of 0 gives a finite ratio.
LEAST_SHARE = 1e-9


@dataclass(frozen=True)
class Rule:
    """The rule that decides when a method fails.

    Attributes
    ----------
    alpha
        The significance level: the largest probability of failing a method that is no worse.
    effect
        The least mean change over all instances, or over a group, that fails; 0.005 is 0.5 %.
    instance_effect
        The same for a single instance. It is larger, because good changes of a method also worsen single instances.
    fewest
        The least number of instances in a group, or of seeds of an instance, for a test.

    Examples
    --------
    >>> import relocbench
    >>> relocbench.check("nearest", instances="tiny-loose-*", rule=relocbench.Rule(effect=0.01)).passed
    True
    """

    alpha: float = 0.05
    effect: float = 0.005
    instance_effect: float = 0.5
    fewest: int = 5


@dataclass(frozen=True)
class Pairs:
    """The costs of a method on an instance.

    Attributes
    ----------
    before, now
        The costs in the baseline and now, one for each seed.
    """

    before: Sequence[float]
    now: Sequence[float]

    @property
    def changes(self) -> list[float]:
        """The values of ``ln(now / before)``; exactly 0 where the two differ only by rounding."""
        ratios = [_log_ratio(before, now) for before, now in zip(self.before, self.now, strict=True)]
        return [0.0 if abs(ratio) < SAME else ratio for ratio in ratios]


def _log_ratio(before: float, now: float) -> float:
    """Return ``ln(now / before)``; 0 if both are 0."""
    if before == now:
        return 0.0
    least = LEAST_SHARE * max(before, now)
    return math.log(max(now, least) / max(before, least))


@dataclass(frozen=True)
class Finding:
    """The result of one test.

    Attributes
    ----------
    method, scope, name
        The method, and what was tested: ``all`` instances, a ``group`` or an ``instance``, with its name.
    size
        The sample size: the number of instances, or of seeds of an instance.
    change
        The increase of the cost: the geometric mean of now / before, minus 1.
    p
        The p-value, corrected for the number of tests; None if the sample was too small or without change.
    worse
        Whether the method fails because of this test.
    """

    method: str
    scope: Scope
    name: str
    size: int
    change: float
    p: float | None
    worse: bool


@dataclass(frozen=True)
class _Hypothesis:
    method: str
    scope: Scope
    name: str
    sample: Sequence[float] = field(repr=False)

    def finding(self, rule: Rule, p: float | None) -> Finding:
        change = math.expm1(float(np.mean(self.sample)))
        enough = rule.instance_effect if self.scope == "instance" else rule.effect
        worse = p is not None and p <= rule.alpha and change >= enough - SAME
        return Finding(self.method, self.scope, self.name, len(self.sample), change, p, worse)


def group_of(name: str) -> str:
    """Return the group of an instance.

    Parameters
    ----------
    name
        The name of the instance.

    Returns
    -------
    str
        The first word of the name.
    """
    return name.partition("-")[0]


def compare(costs: Mapping[str, Mapping[str, Pairs]], rule: Rule | None = None) -> list[Finding]:
    """Compare the costs of methods with those of the baseline.

    Parameters
    ----------
    costs
        The costs by method and by the name of the instance.
    rule
        The rule that decides when a method fails.

    Returns
    -------
    list of Finding
        For each method: all instances, the groups, and the instances, in the given order.
    """
    rule = rule or Rule()
    hypotheses = [one for method, pairs in costs.items() for one in _hypotheses(method, pairs)]
    raw = [_p_value(one.sample, rule.fewest) for one in hypotheses]
    return [one.finding(rule, p) for one, p in zip(hypotheses, _holm(raw), strict=True)]


def _hypotheses(method: str, pairs: Mapping[str, Pairs]) -> list[_Hypothesis]:
    if not pairs:
        return []
    changes = {name: pair.changes for name, pair in pairs.items()}
    means = {name: float(np.mean(values)) for name, values in changes.items()}
    groups: dict[str, list[float]] = {}
    for name, mean in means.items():
        groups.setdefault(group_of(name), []).append(mean)
    hypotheses = [_Hypothesis(method, "all", "all", list(means.values()))]
    if len(groups) > 1:
        hypotheses += [_Hypothesis(method, "group", name, sample) for name, sample in groups.items()]
    return hypotheses + [_Hypothesis(method, "instance", name, sample) for name, sample in changes.items()]


def _p_value(sample: Sequence[float], fewest: int) -> float | None:
    """Return the p-value of the hypothesis that the mean is above 0; None if the sample cannot be tested."""
    values = np.asarray(sample)
    if len(values) < fewest or not values.any():
        return None
    mean, spread = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    # All values differ only by rounding.
    if spread < SAME:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(values) - 1, -mean / spread))


def _holm(raw: Sequence[float | None]) -> list[float | None]:
    """Correct p-values for their number by Holm's method; None stands for a sample that was not tested."""
    adjusted: list[float | None] = [None] * len(raw)
    tested = sorted((p, index) for index, p in enumerate(raw) if p is not None)
    highest = 0.0
    for rank, (p, index) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[index] = highest
    return adjusted
