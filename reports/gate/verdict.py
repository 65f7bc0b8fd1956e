"""The result of a check, as text, as JSON and for tests."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from relocbench.instances.errors import plural
from relocbench.instances.gap import excess
from relocbench.instances.notebook_card import card
from relocbench.reports.gate.comparison import Finding, Rule
from relocbench.reports.gate.measurement import FailedRun
from relocbench.runs.sweep import EarlyStop

# The text names at most this many instances; the JSON has all.
MOST_LINES = 20


@dataclass(frozen=True)
class Change:
    """The change of a method on an instance.

    Attributes
    ----------
    method, instance
        The method and the instance.
    before, now
        The mean cost over the seeds, in the baseline and now.
    change
        The geometric mean of now / before, minus 1.
    bound, optimal
        The lower bound of the instance, and whether it is the optimum; None if no bound is known.
    """

    method: str
    instance: str
    before: float
    now: float
    change: float
    bound: float | None
    optimal: bool

    def excess_text(self, cost: float) -> str:
        """Return the excess of a cost over the bound, as text.

        Parameters
        ----------
        cost
            The cost.

        Returns
        -------
        str
            The excess in percent, or the cost itself if there is no bound or it is 0.
        """
        above = None if self.bound is None else excess(cost, self.bound)
        return f"{cost:.6g}" if above is None else f"{above:.2%}"


@dataclass(frozen=True)
class WrittenInstance:
    """A smallest instance that was written to a file.

    Attributes
    ----------
    method, instance
        The method, and the instance that was shrunk.
    clients, servers
        The size of the small instance.
    says
        What it shows.
    file
        The instance file.
    before
        The solution file with the homes of the baseline; None for a failure.
    """

    method: str
    instance: str
    clients: int
    servers: int
    says: str
    file: str
    before: str | None


@dataclass(frozen=True)
class Subject:
    """A method that was checked.

    Attributes
    ----------
    method, against
        The method, and the method of the baseline that it was compared with.
    instances, seeds
        The number of instances and seeds.
    """

    method: str
    against: str
    instances: int
    seeds: int


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    Attributes
    ----------
    subjects
        The methods.
    baseline
        The baseline file.
    rule
        The rule that decides when a method fails.
    findings
        The tests of all instances, of groups and of instances, method by method.
    changes
        The change on every instance, method by method.
    failed
        The runs that gave no valid assignment.
    stopped
        The methods whose other runs were not made, because their first runs failed.
    smallest
        The smallest instances that show failures.
    notes
        Further remarks.

    Examples
    --------
    >>> import relocbench
    >>> verdict = relocbench.check("nearest", instances="tiny-loose-*")
    >>> verdict.passed, len(verdict.changes), len(verdict.failed)
    (True, 5, 0)
    """

    subjects: tuple[Subject, ...]
    baseline: str
    rule: Rule
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    failed: tuple[FailedRun, ...]
    stopped: tuple[EarlyStop, ...] = ()
    smallest: tuple[WrittenInstance, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no method got worse and no run failed."""
        return not self.failed and not any(finding.worse for finding in self.findings)

    def assert_passed(self) -> None:
        """Raise an error unless the check passed, for tests.

        Raises
        ------
        AssertionError
            If the check failed. The message is the complete text of the result.

        Examples
        --------
        In a test of your project:

        >>> import relocbench
        >>> relocbench.check("nearest", instances="tiny-loose-*").assert_passed()
        """
        if not self.passed:
            raise AssertionError(f"\n{self}")

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON.

        Returns
        -------
        dict
            All attributes, and ``passed``.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.check("nearest", instances="tiny-loose-*").to_json()["passed"]
        True
        """
        return {"passed": self.passed, **asdict(self)}

    def subject_passed(self, method: str) -> bool:
        """Return whether one method did not get worse and had no failed run.

        Parameters
        ----------
        method
            The selector.

        Returns
        -------
        bool
            Whether it passed.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.check("nearest", instances="tiny-loose-*").subject_passed("nearest")
        True
        """
        failed = any(run.method == method for run in self.failed)
        return not failed and not any(finding.worse for finding in self.findings if finding.method == method)

    def listed_findings(self, method: str) -> list[Finding]:
        """Return the tests that reports list: all of them, but those of a single instance only if it is worse.

        Parameters
        ----------
        method
            The selector.

        Returns
        -------
        list of Finding
            The tests.

        Examples
        --------
        >>> import relocbench
        >>> verdict = relocbench.check("nearest", instances="tiny-loose-*")
        >>> [finding.name for finding in verdict.listed_findings("nearest")]
        ['all']
        """
        own = [finding for finding in self.findings if finding.method == method]
        return [finding for finding in own if finding.scope != "instance" or finding.worse]

    def worsened(self, method: str) -> list[Change]:
        """Return the changes of the instances on which a method costs more than before, the largest first.

        Parameters
        ----------
        method
            The selector.

        Returns
        -------
        list of Change
            The changes.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.check("nearest", instances="tiny-loose-*").worsened("nearest")
        []
        """
        own = [change for change in self.changes if change.method == method and change.change > 0]
        return sorted(own, key=lambda change: -change.change)

    def __repr__(self) -> str:
        methods = ", ".join(subject.method for subject in self.subjects)
        failed = f", {plural(len(self.failed), 'failed run')}" if self.failed else ""
        worse = sum(finding.worse for finding in self.findings)
        found = f"worse in {plural(worse, 'test')}" if worse else "no worse"
        return f"<GateVerdict {'passed' if self.passed else 'FAILED'}: {methods}, {found}{failed}>"

    def _repr_html_(self) -> str:
        values = {
            subject.method: f"against {self.baseline} ({subject.against}), {plural(subject.instances, 'instance')}, "
            f"{plural(subject.seeds, 'seed')}"
            for subject in self.subjects
        }
        if self.failed:
            values["failed runs"] = f"{len(self.failed)}; the first: {self.failed[0].error}"
        listed = [finding for subject in self.subjects for finding in self.listed_findings(subject.method)]
        rows = [(finding.method, *finding_cells(finding)) for finding in listed]
        columns = ("method", "instances", "size", "change", "p", "")
        return card(f"Check: {'passed' if self.passed else 'FAILED'}", values, columns, rows, texts=2)

    def __str__(self) -> str:
        lines = [f"note: {note}" for note in self.notes]
        for subject in self.subjects:
            lines += self._subject_lines(subject)
        for written in self.smallest:
            baseline = f"; homes of the baseline: {written.before}" if written.before else ""
            size = f"{plural(written.clients, 'client')}, {plural(written.servers, 'server')}"
            lines.append(f"smallest instance ({size}, from {written.instance}): {written.file}{baseline}")
            lines.append(f"  {written.method}: {written.says}")
        lines.append("passed" if self.passed else "FAILED")
        return "\n".join(lines)

    def _subject_lines(self, subject: Subject) -> list[str]:
        changes = [change for change in self.changes if change.method == subject.method]
        failed = [run for run in self.failed if run.method == subject.method]
        listed = self.listed_findings(subject.method)
        bad = not self.subject_passed(subject.method)
        other = f" ({subject.against})" if subject.against != subject.method else ""
        lines = [
            f"{subject.method}: {'FAILED' if bad else 'ok'}, against {self.baseline}{other}, "
            f"{plural(subject.instances, 'instance')}, {plural(subject.seeds, 'seed')}",
        ]
        stopped = [stop for stop in self.stopped if stop.method == subject.method]
        lines += [f"  {stop}" for stop in stopped] or [f"  {change_counts(changes)}"]
        if any(finding.change for finding in listed):
            lines += finding_lines(listed)
        lines += failed_lines(failed)
        if any(finding.worse and finding.criterion == "cost" for finding in listed):
            lines.append("  instances that got worse, with their excess before and now:")
            lines += change_lines(self.worsened(subject.method))
        return lines


def change_counts(changes: Sequence[Change]) -> str:
    """Return how many instances cost more, less and the same.

    Parameters
    ----------
    changes
        The changes of one method.

    Returns
    -------
    str
        One line.
    """
    up, down = sum(change.change > 0 for change in changes), sum(change.change < 0 for change in changes)
    return f"{plural(up, 'instance')} cost more, {down} less, {len(changes) - up - down} the same"


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return one line per test.

    Parameters
    ----------
    findings
        The tests.

    Returns
    -------
    list of str
        The lines.
    """
    return _columns([finding_cells(finding) for finding in findings])


def change_lines(changes: Sequence[Change]) -> list[str]:
    """Return one line for each of the first changes, and the number of the others.

    Parameters
    ----------
    changes
        The changes.

    Returns
    -------
    list of str
        The lines.
    """
    return _columns([change_cells(change) for change in changes[:MOST_LINES]], "    ") + _rest(len(changes))


def failed_lines(failed: Sequence[FailedRun]) -> list[str]:
    """Return one line for each of the first failed runs, and the number of the others.

    Parameters
    ----------
    failed
        The failed runs.

    Returns
    -------
    list of str
        The lines; none if no run failed.
    """
    if not failed:
        return []
    seeds: dict[tuple[str, str], list[int]] = {}
    for run in failed:
        seeds.setdefault((run.instance, run.error), []).append(run.seed)
    named = [f"    {name}, seed {','.join(map(str, part))}: {error}" for (name, error), part in seeds.items()]
    return [f"  {plural(len(failed), 'run')} without a valid assignment:", *named[:MOST_LINES], *_rest(len(named))]


def finding_cells(finding: Finding) -> list[str]:
    """Return the cells of a test in a table.

    Parameters
    ----------
    finding
        The test.

    Returns
    -------
    list of str
        What was tested, the sample size, the change, the p-value, and ``WORSE`` or nothing.
    """
    unit = "seed" if finding.scope == "instance" else "instance"
    name = finding.name if finding.criterion == "cost" else f"{finding.criterion}: {finding.name}"
    p = "not tested" if finding.change else ""
    if finding.p is not None:
        p = f"p = {finding.p:.2g}" if finding.p > 1e-12 else "p < 1e-12"
    return [name, plural(finding.size, unit), f"{finding.change:+.2%}", p, "WORSE" if finding.worse else ""]


def change_cells(change: Change) -> list[str]:
    """Return the cells of the change on an instance in a table.

    Parameters
    ----------
    change
        The change.

    Returns
    -------
    list of str
        The instance, the change, and the excess (or, without a bound, the cost) before and now.
    """
    kind = "" if change.bound is None else f" over the {'optimum' if change.optimal else 'bound'}"
    before, now = change.excess_text(change.before), change.excess_text(change.now)
    return [change.instance, f"{change.change:+.2%}", before + kind, f"now {now}"]


def _columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _rest(count: int) -> list[str]:
    return [f"    and {count - MOST_LINES} more"] if count > MOST_LINES else []
