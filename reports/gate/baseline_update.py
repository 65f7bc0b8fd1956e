"""Create or update a baseline, and report the changes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.file_lock import locked
from relocbench.instances.library.library import FOLDER, Library
from relocbench.reports.gate.baseline import (
    USUAL,
    Baseline,
    Line,
    Record,
    Times,
    read_baseline,
    relative_folder,
    write_baseline,
)
from relocbench.reports.gate.check import changes_of, paired
from relocbench.reports.gate.comparison import Finding, compare
from relocbench.reports.gate.judged_instances import JudgedInstance, folder_instances, library_instances
from relocbench.reports.gate.machine_speed import SpeedMeter
from relocbench.reports.gate.measurement import FailedRun, Job, MethodRuns, measure
from relocbench.reports.gate.primal_integral import reports_progress
from relocbench.reports.gate.times import checked_criteria, times_of
from relocbench.reports.gate.verdict import Change
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.methods import Selector
from relocbench.runs.run_store import Row
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
    criteria: Iterable[str] = (),
    memory_limit: int = MEMORY_LIMIT,
    jobs: int = 1,
) -> Update:
    """Run methods and write their costs, and their times if wanted, to a baseline.

    Parameters
    ----------
    method
        As in :func:`reports.gate.check.check`; by default every method of the baseline.
    baseline
        The file; ``relocbench-baseline.json`` by default. It is created if it does not exist.
    instances, seeds, time_limit
        A pattern of entries of the library or a folder of instance files, the seeds of the methods and the time limit
        in seconds; by default those of the earlier record, and for a new method the whole library, seeds 0 to 4 and
        60 s.
    criteria
        With ``time`` or ``integral``, the times and primal integrals are stored, too. A method that has times in the
        earlier record gets new ones in any case.
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
    refuse_during_import("relocbench.reports.gate.baseline_update.update")
    path = Path(baseline) if baseline is not None else USUAL
    with locked(path):  # a folder that cannot be written is noticed before the runs, which take long
        pass
    old = read_baseline(path) if path.exists() else Baseline({})
    selectors = as_selectors(method or ()) or [as_selector(name) for name in old.records]
    if not selectors:
        raise InputError(str(path), "expected a baseline with methods in it, or --method")
    opened = Library(library)
    timed = checked_criteria([criteria] if isinstance(criteria, str) else list(criteria))
    place = None if instances is None else _place(instances, opened, path)
    conditions = [
        _conditions(selector, old.records.get(str(selector)), opened, place, seeds, time_limit)
        for selector in selectors
    ]
    loaded: dict[tuple[str, str], dict[str, JudgedInstance]] = {}
    for record in conditions:
        if (record.folder, record.pattern) not in loaded:
            loaded[record.folder, record.pattern] = _instances(record, opened, path)
    judged = [loaded[record.folder, record.pattern] for record in conditions]
    work = [
        Job(selector, found, record.seeds, record.time_limit)
        for selector, record, found in zip(selectors, conditions, judged, strict=True)
    ]
    wanted = [bool(timed) or _is_timed(old, record.method) for record in conditions]
    meter = SpeedMeter() if any(wanted) else None
    measured = measure(work, memory_limit=memory_limit, processes=jobs, meter=meter)
    if meter is not None:
        conditions = [
            replace(record, reference_seconds=meter.seconds) if wants else record
            for record, wants in zip(conditions, wanted, strict=True)
        ]
    renewed = [
        _renewed_record(record, runs, old.records.get(record.method), found)
        for record, runs, found in zip(conditions, measured, judged, strict=True)
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
    place: tuple[str, str] | None,
    seeds: Sequence[int] | None,
    time_limit: float | None,
) -> Record:
    """Return a record without costs; conditions that are not given are those of the earlier record."""
    usual = before or Record("", SEEDS, TIME_LIMIT, "*", 0, {}, {})
    folder, pattern = place or (usual.folder, usual.pattern)
    return Record(
        method=str(selector),
        seeds=tuple(seeds or usual.seeds),
        time_limit=usual.time_limit if time_limit is None else time_limit,
        pattern=pattern,
        library=0 if folder else library.version,
        made={},
        lines={},
        folder=folder,
    )


def _place(instances: str, library: Library, path: Path) -> tuple[str, str]:
    """Return the folder relative to the baseline, which is empty for the library, and the pattern that a text means."""
    if library.names(instances):
        return "", instances
    if Path(instances).is_dir():
        return relative_folder(Path(instances), path), "*"
    raise InputError("instances", f"expected a pattern of names in the library, or a folder, got {instances!r}")


def _is_timed(old: Baseline, method: str) -> bool:
    return method in old.records and old.records[method].is_timed


def _instances(record: Record, library: Library, path: Path) -> dict[str, JudgedInstance]:
    if record.folder:
        return folder_instances(record.folder_beside(path))
    if not (names := library.names(record.pattern)):
        raise InputError("instances", f"expected a pattern of names in the library, got {record.pattern!r}")
    return library_instances(library, names)


def _renewed_record(
    conditions: Record, measured: MethodRuns, before: Record | None, judged: Mapping[str, JudgedInstance]
) -> RenewedRecord:
    record = _record(conditions, measured, judged)
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
        changes=tuple(changes_of(record.method, findings, pairs, judged)),
        failed=measured.failed,
        stopped=measured.stopped,
    )


def _record(conditions: Record, measured: MethodRuns, judged: Mapping[str, JudgedInstance]) -> Record:
    rows = [row for part in measured.rows.values() for row in part]
    lines = {}
    for name, part in measured.complete.items():
        times = None
        if conditions.is_timed:
            times = times_of(part, judged[name], with_integrals=any(map(reports_progress, rows)))
        lines[name] = _line(part, judged[name], times)
    made = {name: rows[0].versions[name] for name in VERSIONS if name in rows[0].versions}
    return replace(conditions, made=made, lines=lines)


def _line(rows: Sequence[Row], judged: JudgedInstance, times: Times | None) -> Line:
    return Line(
        instance=rows[0].hash,
        costs=tuple(row.objective for row in rows if row.objective is not None),
        home=tuple(rows[0].home or ()),
        file=judged.file,
        # The library has its bounds itself, and improves them.
        bound=judged.bound if judged.file else None,
        optimal=judged.optimal and bool(judged.file),
        times=times,
    )
