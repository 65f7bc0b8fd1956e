"""A gap study, from instances to a page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.pages.requirements import require
from relocbench.reports.study.excess import Gap, best_known, gaps_of, write_gaps
from relocbench.reports.study.references import contradictions
from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import Subject, kept, of_family, once
from relocbench.runs.selectors import parse_selectors, require_available
from relocbench.runs.sweep import Limits

PAGE, DATA = "report.html", "gaps.parquet"
MOST_WARNINGS = 20


@dataclass(frozen=True)
class Study:
    """What came of a study.

    Attributes
    ----------
    gaps
        One for each run.
    wrong
        Claims of exact methods that another run refutes.
    warnings
        What a reader must know first; what is wrong comes first.
    problems
        Runs that left no row.
    page
        Where the page is.
    """

    gaps: list[Gap]
    wrong: list[str]
    warnings: list[str]
    problems: list[str]
    page: Path


def study(
    methods: str | Sequence[str],
    instances: Iterable[Instance] = (),
    *,
    families: Mapping[str, Sequence[int] | None] | None = None,
    out: str | Path = "study",
    seeds: Sequence[int] = (0, 1, 2),
    time_limit: float = 60.0,
    reference_time: float = 12.0,
    jobs: int = 1,
) -> Study:
    """Measure how far methods are from optimal, and write a page.

    Parameters
    ----------
    methods
        Selectors, each by itself or between commas.
    instances
        What to run them on; each is written below ``out``, for the commands that the page names.
    families
        More of it: families with the seeds of their instances, None for all, such as ``{"paper": [0, 1]}``.
    out
        Folder for the page, its data and the runs; what is in it is not run again.
    seeds
        Of the methods.
    time_limit, reference_time
        Seconds for each run, and for each proof that the library does not have.
    jobs
        Runs at a time.
    """
    require()
    selectors = parse_selectors([methods] if isinstance(methods, str) else methods)
    require_available(selectors)
    folder = Path(out)
    found = [kept(instance, folder / "instances") for instance in instances]
    for name, replicates in (families or {}).items():
        found += of_family(name, replicates, {})
    if not found or not selectors:
        raise InputError("study", "expected at least one instance and one method")
    design = Design(selectors, seeds, Limits(time_limit), reference_time, jobs)
    return conduct(once(found), design, folder, f"relocbench.study({methods!r}, …)")


def conduct(subjects: Sequence[Subject], design: Design, out: Path, command: str) -> Study:
    """Run what is missing, and write the page and the data into a folder; ``command`` is what the page says made it."""
    from relocbench.reports.study.page import write_page

    results = run(subjects, design, out)
    shelf = Library()
    library = {entry.instance: entry.objective for entry in shelf.entries.values()}
    every = [*results.rows, *results.proving]
    gaps = gaps_of(subjects, results.rows, results.references, best_known(every, library))
    wrong = contradictions(every, results.references)
    warnings = _warnings(gaps, wrong, results.problems)
    write_gaps(gaps, out / DATA)
    facts: dict[str, object] = {
        "library": f"version {shelf.version}",
        "method seeds": ", ".join(map(str, design.seeds)),
        "limits": f"{design.limits.time:g} s a run, {design.reference_time:g} s a proof that the library does not have",
    }
    page = write_page(gaps, out / PAGE, command=command, facts=facts, warnings=warnings)
    return Study(gaps, wrong, warnings, results.problems, page)


def _warnings(gaps: Sequence[Gap], wrong: Sequence[str], problems: Sequence[str]) -> list[str]:
    told = [f"**Something here is wrong:** {line}." for line in wrong[:MOST_WARNINGS]]
    failed = [gap for gap in gaps if gap.objective is None]
    if failed:
        first = failed[0]
        told.append(
            f"{len(failed)} runs have no homes and are in no mean; the first: {first.selector} on {first.instance}, "
            f"{first.status}{f' ({first.error})' if first.error else ''}."
        )
    unproved = {gap.instance for gap in gaps if gap.reference is None}
    if unproved:
        told.append(f"Nothing is proved of {len(unproved)} instances, such as {min(unproved)}: they have no gaps.")
    if problems:
        told.append(f"{len(problems)} runs left no row, such as {problems[0]}.")
    return told
