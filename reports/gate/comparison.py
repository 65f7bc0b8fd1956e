"""Whether costs got worse: by more than chance makes them, and by enough to matter.

The change on an instance is the mean over the seeds of ``ln(now / before)``, a run and the one of the baseline with the
same seed being a pair; a logarithm, so that twice as much and half as much weigh the same. What is asked, each by a
one-sided t-test:

- of all instances together and of each group: is the mean change above 0? The instances are the sample, since a
  change that is neither good nor bad helps on some and harms on others.
- of each instance: is its change above 0? The seeds are the sample.

All these questions, of all methods of a check, share one error rate (Holm). What nothing has changed in is not asked.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.special import stdtr

Scope = Literal["all", "group", "instance"]
# Costs closer than this are the same: sums may be rounded otherwise on another machine.
SAME = 1e-9
# Keeps the ratio of a cost to one that is 0 finite.
LEAST_COST = 1e-9


@dataclass(frozen=True)
class Rule:
    """When a change counts.

    Attributes
    ----------
    alpha
        How often a method that is no worse may fail, by chance, at most.
    effect
        The least mean change of all instances, or of a group, that fails: 0.005 is half a percent.
    instance_effect
        The same for a single instance; larger, since trading one instance for another is what good changes do too.
    fewest
        Instances in a group, or seeds of an instance, that a test needs.
    """

    alpha: float = 0.05
    effect: float = 0.005
    instance_effect: float = 0.5
    fewest: int = 5


@dataclass(frozen=True)
class Pairs:
    """Costs of a method on an instance, before and now, seed by seed."""

    before: Sequence[float]
    now: Sequence[float]

    @property
    def changes(self) -> list[float]:
        """Logarithms of now to before, exactly 0 where both are the same but for rounding."""
        ratios = [
            math.log(max(now, LEAST_COST) / max(before, LEAST_COST))
            for before, now in zip(self.before, self.now, strict=True)
        ]
        return [0.0 if abs(ratio) < SAME else ratio for ratio in ratios]


@dataclass(frozen=True)
class Finding:
    """The answer to one question.

    Attributes
    ----------
    method, scope, name
        Of which method, and of what: ``all``, a ``group`` or an ``instance``, by its name.
    size
        How many instances, or seeds of an instance.
    change
        By how much the costs went up: the geometric mean of now to before, minus 1.
    p
        How likely a method that is no worse is to look this bad, corrected for the number of questions; None where
        there were too few to test.
    worse
        Whether the method fails because of it.
    """

    method: str
    scope: Scope
    name: str
    size: int
    change: float
    p: float | None
    worse: bool


@dataclass(frozen=True)
class _Question:
    method: str
    scope: Scope
    name: str
    sample: Sequence[float] = field(repr=False)

    def answer(self, rule: Rule, p: float | None) -> Finding:
        change = math.expm1(float(np.mean(self.sample)))
        enough = rule.instance_effect if self.scope == "instance" else rule.effect
        worse = p is not None and p <= rule.alpha and change >= enough - SAME
        return Finding(self.method, self.scope, self.name, len(self.sample), change, p, worse)


def group_of(name: str) -> str:
    """Return the group an instance belongs to: the first word of its name."""
    return name.partition("-")[0]


def compare(costs: Mapping[str, Mapping[str, Pairs]], rule: Rule | None = None) -> list[Finding]:
    """Compare the costs of methods with those before.

    Parameters
    ----------
    costs
        By method, then by the name of the instance.
    rule
        When a change counts.

    Returns
    -------
    findings
        For each method: of all instances, of the groups, of the instances, in the order given.
    """
    rule = rule or Rule()
    questions = [question for method, pairs in costs.items() for question in _questions(method, pairs)]
    raw = [_p_value(question.sample, rule.fewest) for question in questions]
    return [question.answer(rule, p) for question, p in zip(questions, _holm(raw), strict=True)]


def _questions(method: str, pairs: Mapping[str, Pairs]) -> list[_Question]:
    if not pairs:
        return []
    changes = {name: pair.changes for name, pair in pairs.items()}
    means = {name: float(np.mean(values)) for name, values in changes.items()}
    groups: dict[str, list[float]] = {}
    for name, mean in means.items():
        groups.setdefault(group_of(name), []).append(mean)
    questions = [_Question(method, "all", "all", list(means.values()))]
    if len(groups) > 1:
        questions += [_Question(method, "group", name, sample) for name, sample in groups.items()]
    return questions + [_Question(method, "instance", name, sample) for name, sample in changes.items()]


def _p_value(sample: Sequence[float], fewest: int) -> float | None:
    """Return how likely a mean this high is if the true one is 0; None if that cannot be told."""
    values = np.asarray(sample)
    if len(values) < fewest or not values.any():
        return None
    mean, spread = values.mean(), values.std(ddof=1) / math.sqrt(len(values))
    # A spread of rounding only: the same change throughout.
    if spread < SAME:
        return 0.0 if mean > 0 else 1.0
    return float(stdtr(len(values) - 1, -mean / spread))


def _holm(raw: Sequence[float | None]) -> list[float | None]:
    """Correct p-values for their number; those not tested do not count."""
    adjusted: list[float | None] = [None] * len(raw)
    tested = sorted((p, place) for place, p in enumerate(raw) if p is not None)
    highest = 0.0
    for rank, (p, place) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        adjusted[place] = highest
    return adjusted
