"""What a check found, for people, for programs and for tests."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from relocbench.reports.gate.comparison import Finding, Rule
from relocbench.reports.gate.measurement import Failed

# So many instances are named in a text; a program gets all.
MOST_LINES = 20


@dataclass(frozen=True)
class Change:
    """A method on an instance, before and now.

    Attributes
    ----------
    method, instance
        Which.
    before, now
        Mean cost over the seeds.
    change
        Geometric mean of now to before, minus 1.
    bound, optimal
        What nothing can cost less than, and whether that is the proven optimum.
    """

    method: str
    instance: str
    before: float
    now: float
    change: float
    bound: float
    optimal: bool

    def above(self, cost: float) -> str:
        """Say how far a cost is above what is proved."""
        return f"{cost / self.bound - 1:.2%}" if self.bound > 0 else f"{cost:.6g}"


@dataclass(frozen=True)
class Shown:
    """A smallest instance, written to a file; ``before`` is the solution file of the baseline's homes."""

    method: str
    instance: str
    clients: int
    servers: int
    says: str
    file: str
    before: str | None


@dataclass(frozen=True)
class Subject:
    """A method that was checked, and what it was compared with."""

    method: str
    against: str
    instances: int
    seeds: int


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes
    ----------
    subjects
        The methods.
    baseline
        The file they were compared with.
    rule
        When a change counts.
    findings
        Of all instances, of groups and of instances, method by method.
    changes
        Every instance of every method.
    failed
        Runs that gave no valid assignment.
    smallest
        Instances to look at.
    notes
        What else is worth knowing.
    """

    subjects: tuple[Subject, ...]
    baseline: str
    rule: Rule
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    failed: tuple[Failed, ...]
    smallest: tuple[Shown, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing is worse and nothing failed."""
        return not self.failed and not any(finding.worse for finding in self.findings)

    def assert_passed(self) -> None:
        """Raise AssertionError, with the whole text, unless passed; for tests."""
        if not self.passed:
            raise AssertionError(f"\n{self}")

    def to_json(self) -> dict[str, Any]:
        """Return everything for a program."""
        return {"passed": self.passed, **asdict(self)}

    def __str__(self) -> str:
        lines = [f"note: {note}" for note in self.notes]
        for subject in self.subjects:
            lines += self._subject_lines(subject)
        for shown in self.smallest:
            beside = f"; homes of the baseline: {shown.before}" if shown.before else ""
            size = f"{shown.clients} clients, {shown.servers} servers"
            lines.append(f"smallest instance ({size}, from {shown.instance}): {shown.file}{beside}")
            lines.append(f"  {shown.method}: {shown.says}")
        lines.append("passed" if self.passed else "FAILED")
        return "\n".join(lines)

    def _subject_lines(self, subject: Subject) -> list[str]:
        findings = [finding for finding in self.findings if finding.method == subject.method]
        changes = [change for change in self.changes if change.method == subject.method]
        failed = [run for run in self.failed if run.method == subject.method]
        wide = [finding for finding in findings if finding.scope != "instance"]
        alone = [finding for finding in findings if finding.scope == "instance" and finding.worse]
        bad = bool(failed) or any(finding.worse for finding in findings)
        other = f" ({subject.against})" if subject.against != subject.method else ""
        lines = [
            f"{subject.method}: {'FAILED' if bad else 'ok'}, against {self.baseline}{other}, "
            f"{subject.instances} instances, {subject.seeds} seeds",
            f"  {counted(changes)}",
        ]
        if any(change.change for change in changes):
            lines += finding_lines([*wide, *alone])
        lines += failed_lines(failed)
        if any(finding.worse for finding in findings):
            risen = sorted((change for change in changes if change.change > 0), key=lambda change: -change.change)
            lines.append("  instances that got worse, and how far above what is proved they were and are:")
            lines += change_lines(risen)
        return lines


def counted(changes: Sequence[Change]) -> str:
    """Say how many instances cost more, less and the same."""
    up, down = sum(change.change > 0 for change in changes), sum(change.change < 0 for change in changes)
    return f"of the instances {up} cost more, {down} less, {len(changes) - up - down} the same"


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return a line for each answer."""
    return _columns([_finding_cells(finding) for finding in findings])


def change_lines(changes: Sequence[Change]) -> list[str]:
    """Return a line for each of the first instances, and how many more there are."""
    return _columns([_change_cells(change) for change in changes[:MOST_LINES]], "    ") + _rest(len(changes))


def failed_lines(failed: Sequence[Failed]) -> list[str]:
    """Return a line for each of the first runs that failed, and how many more there are."""
    if not failed:
        return []
    seeds: dict[tuple[str, str], list[int]] = {}
    for run in failed:
        seeds.setdefault((run.instance, run.error), []).append(run.seed)
    named = [f"    {name}, seed {','.join(map(str, part))}: {error}" for (name, error), part in seeds.items()]
    return [f"  {len(failed)} runs without a valid assignment:", *named[:MOST_LINES], *_rest(len(named))]


def _finding_cells(finding: Finding) -> list[str]:
    unit = "seeds" if finding.scope == "instance" else "instances"
    p = "not tested" if finding.change else ""
    if finding.p is not None:
        p = f"p = {finding.p:.2g}" if finding.p > 1e-12 else "p < 1e-12"
    return [finding.name, f"{finding.size} {unit}", f"{finding.change:+.2%}", p, "WORSE" if finding.worse else ""]


def _change_cells(change: Change) -> list[str]:
    what = "the optimum" if change.optimal else "the bound"
    return [
        change.instance,
        f"{change.change:+.2%}",
        f"{change.above(change.before)} above {what}",
        f"now {change.above(change.now)}",
    ]


def _columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _rest(count: int) -> list[str]:
    return [f"    and {count - MOST_LINES} more"] if count > MOST_LINES else []
