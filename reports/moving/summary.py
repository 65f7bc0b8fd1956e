"""Means over the replicates of a study of moving clients, with intervals that are blocked by seed."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from relocbench.instances.errors import plural
from relocbench.reports.moving.plan import RELOCATE
from relocbench.reports.moving.rows import ScheduleRow
from relocbench.reports.moving.study import Results
from relocbench.reports.pages.method_style import name_of
from relocbench.reports.statistics import Interval, blocked_interval


@dataclass(frozen=True)
class Line:
    """A policy with a method on the timelines of one group.

    Attributes
    ----------
    group, policy, method
        What the line is about.
    rows
        The schedules, one per timeline.
    """

    group: str
    policy: str
    method: str
    rows: tuple[ScheduleRow, ...]

    def interval(self, values: Sequence[float]) -> Interval:
        """Return a mean over the timelines with its interval.

        Parameters
        ----------
        values
            One value per timeline.

        Returns
        -------
        Interval
            The mean and the 95 % interval, from five seeds on.
        """
        return blocked_interval(values, [row.seed for row in self.rows])

    @property
    def cost(self) -> Interval:
        """The cost per publication, in ms."""
        return self.interval([row.cost for row in self.rows])

    @property
    def ratio(self) -> Interval | None:
        """The cost divided by the certified bound; None if a bound is 0."""
        ratios = [row.ratio for row in self.rows]
        known = [ratio for ratio in ratios if ratio is not None]
        return self.interval(known) if len(known) == len(ratios) else None

    @property
    def parts(self) -> dict[str, float]:
        """The delay, handover and spool parts of the cost per publication, in ms."""
        rows = self.rows
        parts = {
            "delay": [row.delay_cost for row in rows],
            "handover": [row.handover_cost for row in rows],
            "spool": [row.spool_cost for row in rows],
        }
        return {
            name: statistics.fmean(cost / (row.publications or 1) for cost, row in zip(costs, rows, strict=True))
            for name, costs in parts.items()
        }

    @property
    def handovers(self) -> float:
        """Handovers per client and hour."""
        return statistics.fmean(row.handovers_per_client_hour for row in self.rows)

    @property
    def spool_moved(self) -> float:
        """Messages of spool that were copied, per timeline."""
        return statistics.fmean(row.spool_moved for row in self.rows)

    @property
    def overload(self) -> float:
        """The share of the time in which some server has θ < 1."""
        return statistics.fmean(row.overloaded_share for row in self.rows)

    @property
    def solves(self) -> float:
        """How often homes were computed, per timeline."""
        return statistics.fmean(row.solves for row in self.rows)

    @property
    def seconds_per_solve(self) -> float:
        """The time of one computation of homes."""
        solves = sum(row.solves for row in self.rows)
        return sum(row.solve_seconds for row in self.rows) / solves if solves else 0.0

    @property
    def period(self) -> float | None:
        """The period of ``every[k=…]`` in seconds; None for other policies."""
        periods = [row.period for row in self.rows]
        known = [period for period in periods if period is not None]
        return statistics.fmean(known) if known and len(known) == len(periods) else None

    @property
    def clusters(self) -> float | None:
        """The mean number of clusters that RELOC used; None for other methods."""
        known = [row.clusters for row in self.rows if row.clusters is not None]
        return statistics.fmean(known) if known else None

    @property
    def clusters_only(self) -> bool:
        """Whether the line only compares numbers of clusters."""
        return self.rows[0].clusters_only

    @property
    def cluster_setting(self) -> str:
        """What the method sets as ``k``: a number or ``auto``; empty if it sets nothing."""
        inside = self.method.strip("]").partition("[")[2]
        return next((part[2:] for part in inside.split(",") if part.startswith("k=")), "")

    @property
    def counts_relocation(self) -> bool:
        """Whether the policy counts what relocation costs when it computes homes."""
        return self.policy.partition("[")[0] == RELOCATE

    @property
    def name(self) -> str:
        """The name of the policy with the method, for tables and legends."""
        if self.counts_relocation:
            return self.policy
        if self.period is not None:
            return f"{name_of(self.method)} every {time_text(self.period)}"
        return f"{name_of(self.method)}, {self.policy}"

    def values(self) -> dict[str, Any]:
        """Return the main numbers by name.

        Returns
        -------
        dict
            What ``relocbench moving study --json`` prints for each line.
        """
        cost, ratio = self.cost, self.ratio
        return {
            "timelines": self.group,
            "policy": self.policy,
            "method": self.method,
            "period": self.period,
            "cost": cost.mean,
            "cost_interval": None if cost.low is None else [cost.low, cost.high],
            "ratio": None if ratio is None else ratio.mean,
            "ratio_interval": None if ratio is None or ratio.low is None else [ratio.low, ratio.high],
            **self.parts,
            "handovers_per_client_hour": self.handovers,
            "spool_moved": self.spool_moved,
            "overloaded_share": self.overload,
            "solves": self.solves,
            "clusters": self.clusters,
        }


class Summary:
    """The lines of a study, and comparisons of them.

    Parameters
    ----------
    results
        The results.
    """

    def __init__(self, results: Results) -> None:
        self.results = results
        parts: dict[tuple[str, str, str], list[ScheduleRow]] = {}
        for row in results.schedules:
            parts.setdefault((row.group, row.policy, row.method), []).append(row)
        self.lines = [Line(*key, tuple(rows)) for key, rows in parts.items()]
        self.groups = list(dict.fromkeys(row.group for row in results.schedules))
        self.methods = list(dict.fromkeys(line.method for line in self.lines if not line.clusters_only))

    @property
    def main(self) -> str:
        """The method that the questions are about: the first one."""
        return self.methods[0]

    def speed(self, group: str) -> float | None:
        """Return the speed of a group.

        Parameters
        ----------
        group
            The group.

        Returns
        -------
        float or None
            In km/h; None for traces.
        """
        return next(one.speed for one in self.results.subjects if one.group == group)

    def periodic(self, group: str, method: str) -> list[Line]:
        """Return the lines of ``every[k=…]``.

        Parameters
        ----------
        group, method
            The group and the method.

        Returns
        -------
        list of Line
            By increasing period.
        """
        found = [
            line
            for line in self.lines
            if (line.group, line.method) == (group, method) and line.period is not None and not line.clusters_only
        ]
        return sorted(found, key=lambda line: line.period or 0.0)

    def best(self, group: str, method: str) -> Line | None:
        """Return the best period of a method.

        Parameters
        ----------
        group, method
            The group and the method.

        Returns
        -------
        Line or None
            The line with the least mean cost, of several the one with the longest period; None without periods.
        """
        found = self.periodic(group, method)
        return min(reversed(found), key=lambda line: line.cost.mean) if found else None

    def others(self, group: str) -> list[Line]:
        """Return the lines of all other policies.

        Parameters
        ----------
        group
            The group.

        Returns
        -------
        list of Line
            In the order in which the policies were given.
        """
        return [line for line in self.lines if line.group == group and line.period is None]

    def clusters(self, group: str) -> list[Line]:
        """Return the lines that compare numbers of clusters.

        Parameters
        ----------
        group
            The group.

        Returns
        -------
        list of Line
            In the order in which they were given.
        """
        return [line for line in self.lines if line.group == group and line.clusters_only]

    def cheapest(self, group: str, accepts: Callable[[Line], bool] = lambda _: True) -> Line | None:
        """Return the cheapest line of a group.

        Parameters
        ----------
        group
            The group.
        accepts
            Returns whether a line may be chosen.

        Returns
        -------
        Line or None
            The line; of several with the same cost, the one that computes homes least often. None if there is none.
        """
        lines = [line for line in self.lines if line.group == group and accepts(line)]
        return min(lines, key=lambda line: (round(line.cost.mean, 9), line.solves), default=None)

    @property
    def main_lines(self) -> list[Line]:
        """For each group: the best period of each method, and all other policies."""
        found = []
        for group in self.groups:
            best = (self.best(group, method) for method in self.methods)
            found += [*(line for line in best if line is not None), *self.others(group)]
        return found

    def bound(self, group: str) -> float:
        """Return the certified bound of a group.

        Parameters
        ----------
        group
            The group.

        Returns
        -------
        float
            The mean over its timelines of the bound per publication, in ms.
        """
        return self._mean_bound(group, lambda row: row.bound)

    def delay_bound(self, group: str) -> float:
        """Return the certified bound on the delay part of the cost of a group.

        Parameters
        ----------
        group
            The group.

        Returns
        -------
        float
            The mean over its timelines of the sum of the epochs' bounds per publication, in ms.
        """
        return self._mean_bound(group, lambda row: row.delay_bound)

    def _mean_bound(self, group: str, bound: Callable[[ScheduleRow], float]) -> float:
        rows = [row for row in self._one_per_timeline if row.group == group]
        return statistics.fmean(bound(row) / (row.publications or 1) for row in rows)

    @property
    def _one_per_timeline(self) -> list[ScheduleRow]:
        """One schedule of each timeline, because all have the same bounds."""
        return list({row.hash: row for row in self.results.schedules}.values())

    @property
    def bound_words(self) -> str:
        """A sentence that says which bound was used."""
        rows = self._one_per_timeline
        counted = sum(row.bound > row.delay_bound for row in rows)
        if not counted:
            return "The bound is the sum of the bounds of all epochs, so it does not count relocation."
        words = "The bound counts relocation: all epochs of a timeline were bounded together"
        if counted == len(rows):
            return f"{words}."
        others = "The others have the sum of the bounds of their epochs, which was larger."
        return f"{words}, for {counted} of {plural(len(rows), 'timeline')}. {others}"

    def difference(self, first: Line, second: Line) -> Interval:
        """Compare the costs of two lines of one group.

        Parameters
        ----------
        first, second
            The lines.

        Returns
        -------
        Interval
            The mean of ``cost of first / cost of second - 1`` over the timelines, with its interval.
        """
        other = {row.hash: row.total for row in second.rows}
        values = [row.total / other[row.hash] - 1 if other[row.hash] else 0.0 for row in first.rows]
        return first.interval(values)


def time_text(seconds: float) -> str:
    """Return a time in words.

    Parameters
    ----------
    seconds
        The time.

    Returns
    -------
    str
        Such as ``30 s``, ``5 min`` or ``4 h``.
    """
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 1.999 * size or (unit == "min" and seconds >= size):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
