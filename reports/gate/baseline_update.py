"""Create or update a baseline, and report the changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.file_lock import locked
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import FOLDER, Library
from relocbench.reports.gate.baseline import USUAL, Baseline, Line, Record, read_baseline, write_baseline
from relocbench.reports.gate.check import changes_of, paired
from relocbench.reports.gate.comparison import Finding, compare
from relocbench.reports.gate.measurement import FailedRun, Job, MethodRuns, measure
from relocbench.reports.gate.verdict import Change
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.methods import Selector
from relocbench.runs.selectors import MethodLike, as_selector, as_selectors
from relocbench.runs.sweep import EarlyStop

# The conditions of a new record: seeds, and the time limit of each run in seconds.
SEEDS = (0, 1, 2, 3, 4)
TIME_LIMIT = 60.0
# The packages whose version can change a result.
VERSIONS = ("relocbench", "python", "numpy", "numba", "scikit-learn")


@dataclass(frozen=True)
class RenewedRecord:
    """A record that replaces an earlier one.

    Attributes
    ----------
    record
        The new record.
    is_new
        Whether there was no earlier record.
    added, gone
        The names of instances that only the new record has, and that only the earlier record has.
    findings, changes
        The comparison on the instances and seeds that both have.
    failed
        The runs without a valid assignment.
    stopped
        Why the other runs of the method were not made; None if all were made.
    """

    record: Record
    is_new: bool
    added: tuple[str, ...]
    gone: tuple[str, ...]
    findings: tuple[Finding, ...]
    changes: tuple[Change, ...]
    failed: tuple[FailedRun, ...]
    stopped: EarlyStop | None = None


@dataclass(frozen=True)
class Update:
    """The result of an update.

    Attributes
    ----------
    path
        The file of the baseline.
    renewed
        The new records.
    written
        Whether the file was written. It is not written if a run failed.
    replaced
        The methods of which another process wrote costs during the runs. The costs of this update replace them.
    """

    path: Path
    renewed: tuple[RenewedRecord, ...]
    written: bool
    replaced: tuple[str, ...] = ()


def update(
    method: MethodLike | Iterable[MethodLike] | None = None,
    *,
    baseline: str | Path | None = None,
    instances: str | None = None,
    seeds: Sequence[int] | None = None,
    time_limit: float | None = None,
    library: str | Path = FOLDER,
    memory_limit: int = MEMORY_LIMIT,
    jobs: int = 1,
) -> Update:
    """Run methods and write their costs to a baseline.

    Parameters
    ----------
    method
        As in :func:`reports.gate.check.check`; by default every method of the baseline.
    baseline
        The file; ``relocbench-baseline.json`` by default. It is created if it does not exist.
    instances, seeds, time_limit
        A pattern, the seeds of the methods and the time limit in seconds; by default those of the earlier record, and
        for a new method all instances, seeds 0 to 4 and 60 s.
    library, memory_limit, jobs
        As in :func:`reports.gate.check.check`.

    Returns
    -------
    Update
        The new records.

    Raises
    ------
    InputError
        If there is no method, or if the pattern selects no instance.
    """
    path = Path(baseline) if baseline is not None else USUAL
    with locked(path):  # a folder that cannot be written is noticed before the runs, which take long
        pass
    old = read_baseline(path) if path.exists() else Baseline({})
    selectors = as_selectors(method or ()) or [as_selector(name) for name in old.records]
    if not selectors:
        raise InputError(str(path), "expected a baseline with methods in it, or --method")
    opened = Library(library)
    conditions = [
        _conditions(selector, old.records.get(str(selector)), opened, instances, seeds, time_limit)
        for selector in selectors
    ]
    loaded: dict[str, Instance] = {}
    for record in conditions:
        for name in _names(opened, record.pattern):
            loaded.setdefault(name, opened.read(name))
    work = [
        Job(selector, {name: loaded[name] for name in opened.names(record.pattern)}, record.seeds, record.time_limit)
        for selector, record in zip(selectors, conditions, strict=True)
    ]
    measured = measure(work, opened, memory_limit=memory_limit, processes=jobs)
    renewed = [
        _renewed_record(record, found, old.records.get(record.method), opened)
        for record, found in zip(conditions, measured, strict=True)
    ]
    if any(found.failed for found in renewed):
        return Update(path, tuple(renewed), False)
    return Update(path, tuple(renewed), True, _write(old, [found.record for found in renewed], path))


def _write(old: Baseline, records: Sequence[Record], path: Path) -> tuple[str, ...]:
    """Write records to a baseline that another process may have changed since it was read as ``old``.

    The records of other methods stay as they are now. Return the methods of which another process has written a record
    meanwhile, which was replaced.
    """
    with locked(path):
        now = read_baseline(path) if path.exists() else Baseline({})
        write_baseline(Baseline({**now.records, **{record.method: record for record in records}}), path)
    methods = (record.method for record in records)
    return tuple(method for method in methods if now.records.get(method) not in (None, old.records.get(method)))


def _conditions(
    selector: Selector,
    before: Record | None,
    library: Library,
    pattern: str | None,
    seeds: Sequence[int] | None,
    time_limit: float | None,
) -> Record:
    """Return a record without costs; conditions that are not given are those of the earlier record."""
    usual = before or Record("", SEEDS, TIME_LIMIT, "*", 0, {}, {})
    return Record(
        method=str(selector),
        seeds=tuple(seeds or usual.seeds),
        time_limit=usual.time_limit if time_limit is None else time_limit,
        pattern=pattern or usual.pattern,
        library=library.version,
        made={},
        lines={},
    )


def _names(library: Library, pattern: str) -> list[str]:
    if not (names := library.names(pattern)):
        raise InputError("instances", f"expected a pattern of names in the library, got {pattern!r}")
    return names


def _renewed_record(conditions: Record, measured: MethodRuns, before: Record | None, library: Library) -> RenewedRecord:
    record = _record(conditions, measured)
    old = before.lines if before else {}
    # Instances are the same only if their content is, not just their name.
    same = {name for name, line in record.lines.items() if name in old and old[name].instance == line.instance}
    pairs = {name: pair for name, pair in paired(before, measured).items() if name in same} if before else {}
    findings = compare({record.method: pairs})
    return RenewedRecord(
        record=record,
        is_new=before is None,
        added=tuple(name for name in measured.rows if name not in same),
        gone=tuple(name for name in old if name not in same),
        findings=tuple(findings),
        changes=tuple(changes_of(record.method, findings, pairs, library)),
        failed=measured.failed,
        stopped=measured.stopped,
    )


def _record(conditions: Record, measured: MethodRuns) -> Record:
    rows = [row for part in measured.rows.values() for row in part]
    lines = {
        name: Line(
            part[0].hash, tuple(row.objective for row in part if row.objective is not None), tuple(part[0].home or ())
        )
        for name, part in measured.complete.items()
    }
    made = {name: rows[0].versions[name] for name in VERSIONS if name in rows[0].versions}
    return replace(conditions, made=made, lines=lines)
