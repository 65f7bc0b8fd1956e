"""Check methods against the baseline: run them, compare, and show the smallest instance of what is wrong."""

import fnmatch
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.files.solution_file import StoredSolution, write_solution
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import FOLDER, Library
from relocbench.reports.gate.baseline import SHIPPED, USUAL, Record, read_baseline
from relocbench.reports.gate.comparison import Finding, Pairs, Rule, compare, group_of
from relocbench.reports.gate.measurement import Failed, Job, Measured, measure
from relocbench.reports.gate.shrink_failure import Smallest, smallest_failure, smallest_regression
from relocbench.reports.gate.verdict import Change, Shown, Subject, Verdict
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.selectors import Selector, as_selector
from relocbench.runs.sweep import Limits

Wanted = str | Callable[..., Any]
# What a method without a baseline of its own is compared with: the paper's heuristic.
STANDARD = "reloc"
# So many instances are tried for one that shows a regression by itself.
MOST_TRIALS = 5


@dataclass(frozen=True)
class Case:
    """A method, the record it is compared with, and the instances."""

    selector: Selector
    record: Record
    instances: dict[str, Instance]

    @property
    def method(self) -> str:
        """The selector as text."""
        return str(self.selector)


def check(
    method: Wanted | Sequence[Wanted] | None = None,
    *,
    baseline: str | Path | None = None,
    against: str | None = None,
    instances: str = "*",
    library: str | Path = FOLDER,
    rule: Rule | None = None,
    memory_limit: int = MEMORY_LIMIT,
    jobs: int = 1,
    out: str | Path | None = None,
    shrink_seconds: float = 30.0,
) -> Verdict:
    """Tell whether methods got worse than a baseline says they were.

    Parameters
    ----------
    method
        As in :func:`runs.selectors.as_selector`, one or several; every method of the baseline if not given.
    baseline
        The file; by default ``relocbench-baseline.json`` where that is, otherwise the one of this project.
    against
        The method of the baseline to compare with; by default the same.
    instances
        A pattern such as ``paper-*``: fewer instances than the baseline has.
    library
        The folder the instances are in.
    rule
        When a change counts.
    memory_limit, jobs
        Bytes for each process, and how many at a time. Seeds and time limits are those of the baseline.
    out
        Folder for the smallest instances that show what is wrong; without one they are not looked for.
    shrink_seconds
        How long to look for each.

    Examples
    --------
    In a test: ``relocbench.check("mine.py:my_heuristic", baseline="baseline.json").assert_passed()``.
    """
    rule = rule or Rule()
    shelf = Library(library)
    path = located(baseline)
    cases, notes = _cases(listed(method), path, baseline is None and path == SHIPPED, against, instances, shelf)
    work = [Job(case.selector, case.instances, case.record.seeds, case.record.time_limit) for case in cases]
    measured = measure(work, shelf, memory_limit=memory_limit, processes=jobs)
    pairs = {case.method: paired(case.record, found) for case, found in zip(cases, measured, strict=True)}
    findings = compare(pairs, rule)
    smallest: list[Shown] = []
    if out is not None:
        for case, found in zip(cases, measured, strict=True):
            limits = Limits(case.record.time_limit, memory_limit)
            own = [finding for finding in findings if finding.method == case.method and finding.worse]
            search = _smallest(case, found, own, pairs[case.method], rule, limits, shrink_seconds)
            smallest += [_write(small, case.method, origin, Path(out)) for origin, small in search]
    return Verdict(
        subjects=tuple(
            Subject(case.method, case.record.method, len(case.instances), len(case.record.seeds)) for case in cases
        ),
        baseline="the baseline of this project" if path == SHIPPED else str(path),
        rule=rule,
        findings=tuple(findings),
        changes=tuple(change for name, found in pairs.items() for change in changes_of(name, findings, found, shelf)),
        failed=tuple(run for found in measured for run in found.failed),
        smallest=tuple(smallest),
        notes=tuple(notes),
    )


def located(baseline: str | Path | None) -> Path:
    """Return the file a baseline is in, if nobody says otherwise."""
    if baseline is not None:
        return Path(baseline)
    return USUAL if USUAL.exists() else SHIPPED


def listed(method: Wanted | Sequence[Wanted] | None) -> list[Selector]:
    """Return the methods that are meant, each once."""
    wanted = [] if method is None else [method] if isinstance(method, str) or callable(method) else method
    return list({str(selector): selector for selector in map(as_selector, wanted)}.values())


def paired(record: Record, measured: Measured) -> dict[str, Pairs]:
    """Put the costs of a record beside those of the same instances and seeds now."""
    pairs = {}
    for name, rows in measured.whole.items():
        if name not in record.lines:
            continue
        before = dict(zip(record.seeds, record.lines[name].costs, strict=True))
        both = [(before[row.seed], row.objective) for row in rows if row.seed in before and row.objective is not None]
        if both:
            pairs[name] = Pairs(*zip(*both, strict=True))
    return pairs


def changes_of(method: str, findings: Sequence[Finding], pairs: dict[str, Pairs], shelf: Library) -> Iterator[Change]:
    """Tell of each instance what it cost and costs, beside what is proved of it."""
    for finding in findings:
        if finding.method == method and finding.scope == "instance":
            pair, entry = pairs[finding.name], shelf.entry(finding.name)
            before, now = math.fsum(pair.before) / len(pair.before), math.fsum(pair.now) / len(pair.now)
            optimal = entry.status == "optimal"
            yield Change(method, finding.name, before, now, finding.change, entry.bound, optimal)


def _cases(
    selectors: list[Selector], path: Path, by_default: bool, against: str | None, pattern: str, shelf: Library
) -> tuple[list[Case], list[str]]:
    baseline = read_baseline(path)
    notes = []
    cases = []
    at_hand: dict[str, Instance] = {}
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
            if found not in at_hand:
                at_hand[found] = _instance(shelf, found, record, path)
        cases.append(Case(selector, record, {found: at_hand[found] for found in names}))
    if not cases:
        raise InputError(str(path), "has no methods; --method and --update-baseline add one")
    return cases, notes


def _instance(shelf: Library, name: str, record: Record, path: Path) -> Instance:
    known = name in shelf.entries
    if not known or shelf.entry(name).instance != record.lines[name].instance:
        what = "another instance of that name" if known else "no such instance"
        raise InputError(f"{path}: {name}", f"the library has {what}; --update-baseline makes the baseline anew")
    return shelf.read(name)


def _smallest(
    case: Case,
    measured: Measured,
    worse: list[Finding],
    pairs: dict[str, Pairs],
    rule: Rule,
    limits: Limits,
    seconds: float,
) -> Iterator[tuple[str, Smallest]]:
    """Look for a small instance of each kind of failure, and of the regression; give the instance it comes from."""
    kinds: dict[str, Failed] = {}
    for run in sorted(measured.failed, key=lambda run: case.instances[run.instance].n_clients):
        kinds.setdefault(run.kind, run)
    for kind, run in kinds.items():
        found = smallest_failure(case.selector, case.instances[run.instance], run.seed, kind, limits, seconds)
        if found is not None:
            yield run.instance, found
    for name in _suspects(case, worse, pairs, rule)[:MOST_TRIALS]:
        home, seed = case.record.lines[name].home, case.record.seeds[0]
        instance = case.instances[name]
        found = smallest_regression(case.selector, instance, home, seed, rule.effect, limits, seconds)
        if found is not None:
            yield name, found
            return


def _suspects(case: Case, worse: list[Finding], pairs: dict[str, Pairs], rule: Rule) -> list[str]:
    """Return the instances that are worse with the seed whose homes are known, the small ones first."""
    scopes = {(finding.scope, finding.name) for finding in worse}
    meant = [
        name
        for name, pair in pairs.items()
        if scopes & {("all", "all"), ("group", group_of(name)), ("instance", name)}
        and pair.now[0] >= pair.before[0] * (1 + rule.effect)
    ]
    return sorted(meant, key=lambda name: case.instances[name].n_clients)


def _write(small: Smallest, method: str, origin: str, folder: Path) -> Shown:
    stem = re.sub(r"[^\w.-]+", "_", f"{method}-{small.instance.name}").strip("_")[:150]
    file, beside = folder / f"{stem}.json", None
    write_instance(small.instance, file)
    if small.home is not None and small.before is not None:
        beside = folder / f"{stem}.before.json"
        stored = StoredSolution(
            small.instance.hash, f"baseline of {method}", 0, "feasible", small.home, small.before, None
        )
        write_solution(stored, beside)
    return Shown(
        method=method,
        instance=origin,
        clients=small.instance.n_clients,
        servers=small.instance.n_servers,
        says=small.says,
        file=str(file),
        before=str(beside) if beside else None,
    )
