"""Make a baseline, or make it anew, and say what changes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import FOLDER, Library
from relocbench.reports.gate.baseline import USUAL, Baseline, Line, Record, read_baseline, write_baseline
from relocbench.reports.gate.check import Wanted, changes_of, listed, paired
from relocbench.reports.gate.comparison import Finding, compare
from relocbench.reports.gate.measurement import Failed, Job, Measured, measure
from relocbench.reports.gate.verdict import Change
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.selectors import Selector, as_selector

SEEDS = (0, 1, 2, 3, 4)
TIME_LIMIT = 60.0
# What of all versions can change a result.
VERSIONS = ("relocbench", "python", "numpy", "numba", "scikit-learn")


@dataclass(frozen=True)
class Renewed:
    """A record that was made anew.

    Attributes
    ----------
    record
        The new one.
    is_new
        Whether there was none before.
    added, gone
        Names of instances that only the new, or only the old one has.
    findings, changes
        What changes on the instances and seeds that both have.
    failed
        Runs without a valid assignment.
    """

    record: Record
    is_new: bool
    added: tuple[str, ...]
    gone: tuple[str, ...]
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    failed: tuple[Failed, ...]


@dataclass(frozen=True)
class Update:
    """Records that were made anew, and whether they are in the file: not if any run of them failed."""

    path: Path
    renewed: tuple[Renewed, ...]
    written: bool


def update(
    method: Wanted | Sequence[Wanted] | None = None,
    *,
    baseline: str | Path | None = None,
    instances: str | None = None,
    seeds: Sequence[int] | None = None,
    time_limit: float | None = None,
    library: str | Path = FOLDER,
    memory_limit: int = MEMORY_LIMIT,
    jobs: int = 1,
) -> Update:
    """Run methods and write what they cost into a baseline.

    Parameters
    ----------
    method
        As in :func:`reports.gate.check.check`; every method of the baseline if not given.
    baseline
        The file; ``relocbench-baseline.json`` by default. It is made if it is not there.
    instances, seeds, time_limit
        A pattern, seeds of the method and seconds for each run; by default what they were before, and for a new method
        all instances, seeds 0 to 4 and a minute.
    library, memory_limit, jobs
        As in :func:`reports.gate.check.check`.
    """
    path = Path(baseline) if baseline is not None else USUAL
    old = read_baseline(path) if path.exists() else Baseline({})
    selectors = listed(method) or [as_selector(name) for name in old.records]
    if not selectors:
        raise InputError(str(path), "expected a baseline with methods in it, or --method")
    shelf = Library(library)
    conditions = [
        _conditions(selector, old.records.get(str(selector)), shelf, instances, seeds, time_limit)
        for selector in selectors
    ]
    at_hand: dict[str, Instance] = {}
    for record in conditions:
        for name in _names(shelf, record.pattern):
            at_hand.setdefault(name, shelf.read(name))
    work = [
        Job(selector, {name: at_hand[name] for name in shelf.names(record.pattern)}, record.seeds, record.time_limit)
        for selector, record in zip(selectors, conditions, strict=True)
    ]
    measured = measure(work, shelf, memory_limit=memory_limit, processes=jobs)
    renewed = [
        _renewed(record, found, old.records.get(record.method), shelf)
        for record, found in zip(conditions, measured, strict=True)
    ]
    written = not any(found.failed for found in renewed)
    if written:
        write_baseline(Baseline({**old.records, **{found.record.method: found.record for found in renewed}}), path)
    return Update(path, tuple(renewed), written)


def _conditions(
    selector: Selector,
    before: Record | None,
    shelf: Library,
    pattern: str | None,
    seeds: Sequence[int] | None,
    time_limit: float | None,
) -> Record:
    """Return a record without costs: what was asked for, otherwise as it was before."""
    usual = before or Record("", SEEDS, TIME_LIMIT, "*", 0, {}, {})
    return Record(
        method=str(selector),
        seeds=tuple(seeds or usual.seeds),
        time_limit=usual.time_limit if time_limit is None else time_limit,
        pattern=pattern or usual.pattern,
        library=shelf.version,
        made={},
        lines={},
    )


def _names(shelf: Library, pattern: str) -> list[str]:
    if not (names := shelf.names(pattern)):
        raise InputError("instances", f"expected a pattern of names in the library, got {pattern!r}")
    return names


def _renewed(conditions: Record, measured: Measured, before: Record | None, shelf: Library) -> Renewed:
    record = _record(conditions, measured)
    old = before.lines if before else {}
    # An instance that has changed under its name is another one.
    same = {name for name, line in record.lines.items() if name in old and old[name].instance == line.instance}
    pairs = {name: pair for name, pair in paired(before, measured).items() if name in same} if before else {}
    findings = compare({record.method: pairs})
    return Renewed(
        record=record,
        is_new=before is None,
        added=tuple(name for name in measured.rows if name not in same),
        gone=tuple(name for name in old if name not in same),
        findings=tuple(findings),
        changes=tuple(changes_of(record.method, findings, pairs, shelf)),
        failed=measured.failed,
    )


def _record(conditions: Record, measured: Measured) -> Record:
    rows = [row for part in measured.rows.values() for row in part]
    lines = {
        name: Line(
            part[0].hash, tuple(row.objective for row in part if row.objective is not None), tuple(part[0].home or ())
        )
        for name, part in measured.whole.items()
    }
    made = {name: rows[0].versions[name] for name in VERSIONS if name in rows[0].versions}
    return replace(conditions, made=made, lines=lines)
