"""How far readings of Algorithm 1, and sizes of topics, agree with what the paper says.

The paper gives neither the sizes of its topics nor every detail of its methods. Two rules make up for this:

1. A least topic size is *plausible* if, under at least one reading, everything that the paper says about loads is true.
2. The *agreement* of a reading is the mean share of the claims that are true, over the plausible sizes. A claim that is
   true at some of the values that it is about counts with their share. The chosen reading is the one with the largest
   agreement. Differences up to ``EQUAL`` count as none; among equals the reading with the fewest departures from a
   named reading is chosen.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relocbench.reports.paper.claims import HOLDS, WEAK_FROM, Verdict, judge
from relocbench.reports.paper.measures import Measures
from relocbench.reports.paper.planner import PAPER
from relocbench.reports.paper.readings import after

# Twice the standard deviation with which the difference between two readings varies between sets of ten seeds (0-9,
# 10-19 and 20-29).
EQUAL = 0.08


@dataclass(frozen=True)
class Statement:
    """Something that the paper says about loads.

    Attributes
    ----------
    text
        The statement, in our words.
    is_true
        Tests it on the measures of a group, under a reading, with the verdicts on the claims.
    """

    text: str
    is_true: Callable[[Measures, str, Mapping[str, Verdict]], bool]


def _nearest_lacks_capacity(measures: Measures, reading: str, verdicts: Mapping[str, Verdict]) -> bool:
    means = [measures.mean("sigma", x, "nearest", "least_theta") for x in measures.values("sigma") if x >= WEAK_FROM]
    return all(mean is not None and mean.limits[1] < 1 for mean in means)


def _relation_overloads(measures: Measures, reading: str, verdicts: Mapping[str, Verdict]) -> bool:
    method = after("relation", reading)
    fullest = [
        [measures.mean("spool", x, method, what) for what in ("fullest_storage", "fullest_compute")]
        for x in measures.values("spool")
    ]
    return any(all(mean is not None and mean.mean > 1 for mean in means) for means in fullest)


def _holds(key: str) -> Callable[[Measures, str, Mapping[str, Verdict]], bool]:
    return lambda measures, reading, verdicts: verdicts[key].word == HOLDS


STATEMENTS = (
    Statement("Y2 of NS grows with σ.", _holds("NS Y2")),
    Statement(
        f"NS lacks capacity from σ = {WEAK_FROM:g} km on (NS would be the best choice with sufficient capacity, and is "
        "not).",
        _nearest_lacks_capacity,
    ),
    Statement("OTOS uses the least storage at every σ.", _holds("OTOS storage")),
    Statement("The storage of RELOC stays below A at every σ.", _holds("RELOC storage")),
    Statement(
        "For some size of spools, RELOC without cooperation exceeds both A and B on a server.", _relation_overloads
    ),
)


class Agreement:
    """The verdicts on all claims, by group of instances and reading, and what follows from them.

    Parameters
    ----------
    groups
        The measures of each group.
    clusters
        The values of K.
    readings
        The settings of each reading.
    """

    def __init__(self, groups: Mapping[str, Measures], clusters: Sequence[int], readings: Sequence[str]) -> None:
        self.groups, self.readings = list(groups), list(readings)
        self._measures = groups
        self.verdicts = {
            (group, reading): judge(measures, clusters, reading)
            for group, measures in groups.items()
            for reading in readings
        }

    def share(self, group: str, reading: str) -> float | None:
        """Return the mean share of the claims that are true.

        Parameters
        ----------
        group, reading
            The group of instances and the reading.

        Returns
        -------
        float or None
            The mean over the claims that were tested; None if there are none.
        """
        shares = [verdict.share for verdict in self.verdicts[group, reading].values() if verdict.share is not None]
        return float(np.mean(shares)) if shares else None

    def statements(self, group: str, reading: str) -> list[bool]:
        """Return which of ``STATEMENTS`` are true.

        Parameters
        ----------
        group, reading
            The group of instances and the reading.

        Returns
        -------
        list of bool
            One value per statement.
        """
        verdicts = self.verdicts[group, reading]
        return [statement.is_true(self._measures[group], reading, verdicts) for statement in STATEMENTS]

    @property
    def sizes(self) -> list[str]:
        """The least topic sizes, or ``paper`` if sizes were not varied."""
        return [group for group in self.groups if group != PAPER] or [PAPER]

    @functools.cached_property
    def plausible(self) -> list[str]:
        """The plausible sizes (rule 1)."""
        return [size for size in self.sizes if any(all(self.statements(size, reading)) for reading in self.readings)]

    def score(self, reading: str) -> float | None:
        """Return the agreement of a reading (rule 2).

        Parameters
        ----------
        reading
            The reading.

        Returns
        -------
        float or None
            The mean share over the plausible sizes; None if nothing could be tested.
        """
        shares = [share for size in self.plausible if (share := self.share(size, reading)) is not None]
        return float(np.mean(shares)) if shares else None

    @property
    def chosen(self) -> str | None:
        """The reading that agrees best with the paper (rule 2); None if nothing could be tested."""
        scores = {reading: score for reading in self.readings if (score := self.score(reading)) is not None}
        equal = [reading for reading, score in scores.items() if score >= max(scores.values()) - EQUAL]
        return min(equal, key=lambda reading: (reading.count(","), -scores[reading]), default=None)
