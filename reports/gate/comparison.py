"""Decide whether costs increased significantly and by a relevant amount.

The change on an instance is the mean over the seeds of ``ln(now / before)``, where a run is paired with the run of the
baseline that has the same seed. With the logarithm, a cost that doubles and a cost that halves have the same weight.
The following hypotheses are tested, each with a one-sided t-test:

- For all instances together and for each group: the mean change is above 0. The instances are the sample, because a
  neutral change of a method improves some instances and worsens others.
- For each instance: its change is above 0. The seeds are the sample.

Times and primal integrals are compared in the same way, for all instances and for groups, if this is wanted. Two terms
are added. The change of the speed of the machine is subtracted from each change. It is the same for all instances, so
its uncertainty does not become smaller with more instances, and is added to the standard error
(:mod:`reports.gate.machine_speed`).

Holm's method corrects for the number of hypotheses of all methods and criteria of a check. Samples without any change
are not tested.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from scipy.special import stdtr

from relocbench.instances.kernels.ragged import FloatArray
from relocbench.reports.gate.machine_speed import REMAINING, SpeedChange
from relocbench.reports.statistics import holm

Criterion = Literal["cost", "time", "integral"]
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
    time_effect, integral_effect
        The least mean change of the time, and of the primal integral, over all instances or a group, that fails.

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
    time_effect: float = 0.25
    integral_effect: float = 0.25

    def least(self, criterion: Criterion, scope: Scope) -> float:
        """Return the least change that fails.

        Parameters
        ----------
        criterion, scope
            What is compared, and over which instances.

        Returns
        -------
        float
            The change.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Rule().least("cost", "group")
        0.005
        """
        if criterion != "cost":
            return self.time_effect if criterion == "time" else self.integral_effect
        return self.instance_effect if scope == "instance" else self.effect


@dataclass(frozen=True)
class Pairs:
    """The costs, times or integrals of a method on an instance.

    Attributes
    ----------
    before, now
        The values in the baseline and now, one for each seed.
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
        The increase: the geometric mean of now / before, minus 1.
    p
        The p-value, corrected for the number of tests; None if the sample was too small or without change.
    worse
        Whether the method fails because of this test.
    criterion
        What was compared: ``cost``, ``time`` or ``integral``.
    """

    method: str
    scope: Scope
    name: str
    size: int
    change: float
    p: float | None
    worse: bool
    criterion: Criterion = "cost"


@dataclass(frozen=True)
class Timed:
    """The times or the primal integrals of a method.

    Attributes
    ----------
    method, criterion
        The method, and which of the two.
    pairs
        The values in processor seconds by the name of the instance.
    speed
        The change of the speed of the machine.
    """

    method: str
    criterion: Criterion
    pairs: Mapping[str, Pairs]
    speed: SpeedChange


@dataclass(frozen=True)
class _Hypothesis:
    method: str
    scope: Scope
    name: str
    sample: Sequence[float] = field(repr=False)
    criterion: Criterion = "cost"
    speed: SpeedChange | None = None

    def finding(self, rule: Rule, p: float | None) -> Finding:
        shift = 0.0 if self.speed is None else self.speed.log
        change = math.expm1(float(np.mean(self.sample)) - shift)
        worse = p is not None and p <= rule.alpha and change >= rule.least(self.criterion, self.scope) - SAME
        return Finding(self.method, self.scope, self.name, len(self.sample), change, p, worse, self.criterion)

    def p_value(self, fewest: int) -> float | None:
        """Return the p-value of the hypothesis that the mean is above 0; None if the sample cannot be tested."""
        values = np.asarray(self.sample)
        if len(values) < max(fewest, 2):  # one value has no spread
            return None
        if self.speed is not None:
            return _timed_p_value(values, self.speed)
        return _p_value(values) if values.any() else None


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


def compare(
    costs: Mapping[str, Mapping[str, Pairs]], rule: Rule | None = None, timed: Sequence[Timed] = ()
) -> list[Finding]:
    """Compare the costs of methods with those of the baseline.

    Parameters
    ----------
    costs
        The costs by method and by the name of the instance.
    rule
        The rule that decides when a method fails.
    timed
        The times and integrals to compare, if any.

    Returns
    -------
    list of Finding
        For each method: all instances, the groups, and the instances, in the given order. Then, for each entry of
        ``timed``, all instances and the groups.
    """
    rule = rule or Rule()
    hypotheses = [one for method, pairs in costs.items() for one in _hypotheses(method, pairs)]
    for entry in timed:
        hypotheses += [
            replace(one, criterion=entry.criterion, speed=entry.speed)
            for one in _hypotheses(entry.method, entry.pairs)
            if one.scope != "instance"
        ]
    raw = [one.p_value(rule.fewest) for one in hypotheses]
    corrected = iter(holm([p for p in raw if p is not None]))
    return [one.finding(rule, None if p is None else next(corrected)) for one, p in zip(hypotheses, raw, strict=True)]


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


def _p_value(values: FloatArray) -> float:
    mean, spread = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    # All values differ only by rounding.
    if spread < SAME:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(values) - 1, -mean / spread))


def _timed_p_value(values: FloatArray, speed: SpeedChange) -> float:
    """Return the p-value of a t-test with the degrees of freedom of Welch and Satterthwaite."""
    noise, machine = float(values.var(ddof=1)) / len(values), speed.variance
    error = noise + machine + REMAINING**2
    freedom = error**2 / (noise**2 / (len(values) - 1) + machine**2 / (speed.count - 1) or SAME**4)
    return float(stdtr(min(freedom, 1e9), -(float(values.mean()) - speed.log) / math.sqrt(error)))
