"""Check methods against the baseline: run them, compare them, and shrink the instances that show a failure."""

import fnmatch
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.files.solution_file import StoredSolution, write_solution
from relocbench.instances.instance_source import read_instance, write_instance
from relocbench.instances.library.library import FOLDER, Library
from relocbench.reports.gate.baseline import SHIPPED, USUAL, Record, read_baseline
from relocbench.reports.gate.comparison import Finding, Pairs, Rule, compare, group_of
from relocbench.reports.gate.judged_instances import JudgedInstance, library_instances
from relocbench.reports.gate.machine_speed import SpeedMeter
from relocbench.reports.gate.measurement import FailedRun, Job, MethodRuns, measure
from relocbench.reports.gate.shrink_failure import SmallestInstance, smallest_failure, smallest_regression
from relocbench.reports.gate.times import LEAST_SECONDS, checked_criteria, require_times, timed_comparisons
from relocbench.reports.gate.verdict import Change, Subject, Verdict, WrittenInstance
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.methods import Selector
from relocbench.runs.progress import live_line
from relocbench.runs.selectors import MethodLike, as_selector, as_selectors
from relocbench.runs.sweep import Limits

# A method without a record in the shipped baseline is compared with the paper's heuristic.
STANDARD = "reloc"
# At most this many instances are tried to find one that shows a regression with a single seed.
MOST_TRIALS = 5


@dataclass(frozen=True)
class Case:
    """A method to check.

    Attributes
    ----------
    selector
        The method.
    record
        The record of the baseline that it is compared with.
    instances
        The instances by name.
    """

    selector: Selector
    record: Record
    instances: dict[str, JudgedInstance]

    @property
    def method(self) -> str:
        """The selector as text."""
        return str(self.selector)


def check(
    method: MethodLike | Iterable[MethodLike] | None = None,
    *,
    baseline: str | Path | None = None,
    against: str | None = None,
    instances: str = "*",
    library: str | Path = FOLDER,
    rule: Rule | None = None,
    criteria: Iterable[str] = (),
    memory_limit: int = MEMORY_LIMIT,
    jobs: int = 1,
    out: str | Path | None = None,
    shrink_seconds: float = 30.0,
) -> Verdict:
    """Check that methods did not get worse than a baseline.

    Parameters
    ----------
    method
        One or several methods, as in :func:`runs.selectors.as_selector`; by default every method of the baseline.
    baseline
        The file; by default ``relocbench-baseline.json`` if it exists, otherwise the baseline of this project.
    against
        The method of the baseline to compare with; by default the same method.
    instances
        A pattern such as ``paper-*`` that selects instances of the baseline.
    library
        The folder of the library.
    rule
        The rule that decides when a method fails.
    criteria
        What is compared besides the cost: ``time``, ``integral`` (the primal integral), or both.
    memory_limit, jobs
        The memory limit of each process in bytes, and the number of processes at the same time. Seeds and time limits
        are those of the baseline.
    out
        The folder for the smallest instances that show a failure; without it, instances are not shrunk.
    shrink_seconds
        The time for shrinking each of them.

    Returns
    -------
    Verdict
        The result.

    Raises
    ------
    InputError
        If the baseline or a method cannot be found, or if the pattern selects no instance.

    Examples
    --------
    >>> import relocbench
    >>> verdict = relocbench.check("otos", instances="tiny-loose-*")
    >>> verdict
    <GateVerdict passed: otos, no worse>
    >>> verdict.assert_passed()
    """
    refuse_during_import("relocbench.check")
    rule = rule or Rule()
    timed = checked_criteria([criteria] if isinstance(criteria, str) else list(criteria))
    opened = Library(library)
    path = baseline_path(baseline)
    cases, notes = _cases(
        as_selectors(method or ()), path, baseline is None and path == SHIPPED, against, instances, opened
    )
    for case in cases:
        require_times(case.record, timed, path)
    work = [Job(case.selector, case.instances, case.record.seeds, case.record.time_limit) for case in cases]
    meter = SpeedMeter() if timed else None
    measured = measure(work, memory_limit=memory_limit, processes=jobs, meter=meter)
    pairs = {case.method: paired(case.record, found) for case, found in zip(cases, measured, strict=True)}
    seconds = {} if meter is None else meter.seconds
    comparisons = [
        comparison
        for case, found in zip(cases, measured, strict=True)
        for comparison in timed_comparisons(case.method, case.record, found, seconds, timed)
    ]
    findings = compare(pairs, rule, comparisons)
    notes += [
        f"{one.method}: {one.criterion} not compared, as fewer than {rule.fewest} instances take {LEAST_SECONDS} s"
        for one in comparisons
        if len(one.pairs) < rule.fewest
    ]
    smallest: list[WrittenInstance] = []
    if out is not None:
        for case, found in zip(cases, measured, strict=True):
            limits = Limits(case.record.time_limit, memory_limit)
            own = [one for one in findings if (one.method, one.criterion) == (case.method, "cost") and one.worse]
            search = _smallest(case, found, own, pairs[case.method], rule, limits, shrink_seconds)
            with live_line() as show:
                show(f"searching the smallest instance on which {case.method} fails, for {shrink_seconds:g} s")
                smallest += [_write(small, case.method, origin, Path(out)) for origin, small in search]
    return Verdict(
        subjects=tuple(
            Subject(case.method, case.record.method, len(case.instances), len(case.record.seeds)) for case in cases
        ),
        baseline="the baseline of this project" if path == SHIPPED else str(path),
        rule=rule,
        findings=tuple(findings),
        changes=tuple(
            change for case in cases for change in changes_of(case.method, findings, pairs[case.method], case.instances)
        ),
        failed=tuple(run for found in measured for run in found.failed),
        stopped=tuple(found.stopped for found in measured if found.stopped is not None),
        smallest=tuple(smallest),
        notes=tuple(notes),
    )


def baseline_path(baseline: str | Path | None) -> Path:
    """Return the file of the baseline.

    Parameters
    ----------
    baseline
        The file that a user gave, if any.

    Returns
    -------
    Path
        This file, or the default one.
    """
    if baseline is not None:
        return Path(baseline)
    return USUAL if USUAL.exists() else SHIPPED


def paired(record: Record, measured: MethodRuns) -> dict[str, Pairs]:
    """Pair the costs of a record with the current costs on the same instances and seeds.

    Parameters
    ----------
    record
        The record of the baseline.
    measured
        The current runs. Instances with a failed run are left out.

    Returns
    -------
    dict
        The pairs by the name of the instance.
    """
    pairs = {}
    for name, rows in measured.complete.items():
        if name not in record.lines:
            continue
        before = dict(zip(record.seeds, record.lines[name].costs, strict=True))
        both = [(before[row.seed], row.objective) for row in rows if row.seed in before and row.objective is not None]
        if both:
            pairs[name] = Pairs(*zip(*both, strict=True))
    return pairs


def changes_of(
    method: str, findings: Sequence[Finding], pairs: Mapping[str, Pairs], instances: Mapping[str, JudgedInstance]
) -> Iterator[Change]:
    """Return the change of the cost on each instance, with the bound of the instance.

    Parameters
    ----------
    method
        The selector.
    findings
        The findings of all methods.
    pairs
        The costs of this method by the name of the instance.
    instances
        The instances by name.

    Yields
    ------
    Change
        One for each instance.
    """
    for finding in findings:
        if finding.method == method and finding.scope == "instance":
            pair, judged = pairs[finding.name], instances[finding.name]
            before, now = math.fsum(pair.before) / len(pair.before), math.fsum(pair.now) / len(pair.now)
            yield Change(method, finding.name, before, now, finding.change, judged.bound, judged.optimal)


def _cases(
    selectors: list[Selector], path: Path, by_default: bool, against: str | None, pattern: str, library: Library
) -> tuple[list[Case], list[str]]:
    baseline = read_baseline(path)
    notes = []
    cases = []
    loaded: dict[tuple[str, str], JudgedInstance] = {}
    for selector in selectors or [as_selector(name) for name in baseline.records]:
        name = against or str(selector)
        if by_default and against is None and name not in baseline.records:
            notes.append(
                f"{name} has no baseline of its own (--update-baseline makes one); it is compared with {STANDARD}"
            )
            name = STANDARD
        record = baseline.record(name, path)
        names = [found for found in record.lines if fnmatch.fnmatchcase(found, pattern)]
        if not names:
            raise InputError("instances", f"expected a pattern of instances that {path.name} has, got {pattern!r}")
        for found in names:
            if (record.folder, found) not in loaded:
                loaded[record.folder, found] = _judged_instance(library, found, record, path)
        cases.append(Case(selector, record, {found: loaded[record.folder, found] for found in names}))
    if not cases:
        raise InputError(str(path), "has no methods; --method and --update-baseline add one")
    return cases, notes


def _judged_instance(library: Library, name: str, record: Record, path: Path) -> JudgedInstance:
    line = record.lines[name]
    if record.folder:
        file = record.folder_beside(path) / line.file
        instance = read_instance(file)
        if instance.hash != line.instance:
            problem = f"is not the instance of {path.name} (hash {line.instance[:12]}…); --update-baseline replaces it"
            raise InputError(str(file), problem)
        return JudgedInstance(instance, line.bound, line.optimal, line.file)
    known = name in library.entries
    if not known or library.entry(name).instance != line.instance:
        found = "another instance of that name" if known else "no such instance"
        raise InputError(f"{path}: {name}", f"the library has {found}; --update-baseline replaces the baseline")
    return library_instances(library, [name])[name]


def _smallest(
    case: Case,
    measured: MethodRuns,
    worse: list[Finding],
    pairs: dict[str, Pairs],
    rule: Rule,
    limits: Limits,
    seconds: float,
) -> Iterator[tuple[str, SmallestInstance]]:
    """Yield a smallest instance for each kind of failure and for the regression, with the name of its origin."""
    kinds: dict[str, FailedRun] = {}
    for run in sorted(measured.failed, key=lambda run: case.instances[run.instance].instance.n_clients):
        kinds.setdefault(run.kind, run)
    for run in kinds.values():
        [row] = [row for row in measured.rows[run.instance] if row.seed == run.seed]
        found = smallest_failure(case.selector, case.instances[run.instance].instance, row, limits, seconds)
        if found is not None:
            yield run.instance, found
    deadline = time.perf_counter() + seconds
    for name in _suspects(case, worse, pairs, rule)[:MOST_TRIALS]:
        home, seed = case.record.lines[name].home, case.record.seeds[0]
        instance = case.instances[name].instance
        left = deadline - time.perf_counter()
        found = smallest_regression(case.selector, instance, home, seed, rule.effect, limits, left)
        if found is not None:
            yield name, found
        if found is not None or time.perf_counter() > deadline:
            return


def _suspects(case: Case, worse: list[Finding], pairs: dict[str, Pairs], rule: Rule) -> list[str]:
    """Return the instances that are worse with the first seed, whose homes the baseline has; small ones come first."""
    scopes = {(finding.scope, finding.name) for finding in worse}
    chosen = [
        name
        for name, pair in pairs.items()
        if scopes & {("all", "all"), ("group", group_of(name)), ("instance", name)}
        and pair.now[0] >= pair.before[0] * (1 + rule.effect)
    ]
    return sorted(chosen, key=lambda name: case.instances[name].instance.n_clients)


def _write(small: SmallestInstance, method: str, origin: str, folder: Path) -> WrittenInstance:
    stem = f"{method}-{small.instance.name}"
    file, homes = folder / safe_file_name(stem, ".json"), None
    write_instance(small.instance, file)
    if small.home is not None and small.before is not None:
        homes = folder / safe_file_name(stem, ".before.json")
        stored = StoredSolution(
            small.instance.hash, f"baseline of {method}", 0, "feasible", small.home, small.before, None
        )
        write_solution(stored, homes)
    return WrittenInstance(
        method=method,
        instance=origin,
        clients=small.instance.n_clients,
        servers=small.instance.n_servers,
        says=small.says,
        file=str(file),
        before=str(homes) if homes else None,
    )
