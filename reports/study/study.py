"""An excess study, from instances to a page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from relocbench.instances.errors import InputError, plural
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import Library
from relocbench.reports.pages.requirements import require
from relocbench.reports.study.excess import Measurement, best_known, measure, write_measurements
from relocbench.reports.study.references import contradictions
from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import Subject, kept, of_family, without_duplicates
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.selectors import parse_selectors, require_available
from relocbench.runs.sweep import Limits

PAGE = "report.html"
DATA = "excess.parquet"
# The name that earlier versions gave to the data file. Its column ``gap`` held the excess.
FORMER_DATA = "gaps.parquet"
MOST_WARNINGS = 20


@dataclass(frozen=True)
class Study:
    """The results of a study.

    Attributes
    ----------
    measurements
        One for each run.
    wrong
        Objectives below a proved bound: one line for each contradiction.
    warnings
        What a reader must know first. Contradictions come first.
    problems
        One line for each run that left no row.
    page
        The file of the page.
    """

    measurements: list[Measurement]
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
    """Measure how far methods are above the optimum, and write a page.

    Parameters
    ----------
    methods
        Selectors, as a list or as one text with commas.
    instances
        The instances. Each is written below ``out``, so that the commands on the page can read it.
    families
        Further instances: families with the seeds of their instances, such as ``{"paper": [0, 1]}``; None for all
        seeds.
    out
        The folder for the page, its data and the runs. Runs that are in it are not repeated.
    seeds
        The seeds of the methods.
    time_limit, reference_time
        The time limits in seconds of each run, and of each proof that the library does not have.
    jobs
        The number of runs at the same time.

    Returns
    -------
    Study
        The measurements and the page.

    Raises
    ------
    InputError
        If there is no instance or no method, if a method is unknown or cannot run here, or if a package is missing.
    """
    refuse_during_import("relocbench.study")
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
    return conduct(without_duplicates(found), design, folder, f"relocbench.study({methods!r}, …)")


def conduct(subjects: Sequence[Subject], design: Design, out: Path, command: str) -> Study:
    """Make the missing runs, and write the page and the data.

    Parameters
    ----------
    subjects
        The instances.
    design
        The methods, seeds and limits.
    out
        The folder of the study.
    command
        The command that the page names as its origin.

    Returns
    -------
    Study
        The measurements and the page.
    """
    from relocbench.reports.study.page import write_page

    results = run(subjects, design, out)
    library = Library()
    objectives = {entry.instance: entry.objective for entry in library.entries.values()}
    every = [*results.rows, *results.proving]
    measurements = measure(subjects, results.rows, results.references, best_known(every, objectives))
    wrong = contradictions(every, results.references)
    warnings = _warnings(measurements, wrong, results.problems)
    warnings += [f"{stop.method} was {stop}." for stop in results.stopped]
    if (out / FORMER_DATA).exists():
        warnings.append(f"`{FORMER_DATA}` in this folder is from an earlier version; `{DATA}` replaces it.")
    write_measurements(measurements, out / DATA)
    facts: dict[str, object] = {
        "library": f"version {library.version}",
        "method seeds": ", ".join(map(str, design.seeds)),
        "time limits": f"{design.limits.time:g} s per run, {design.reference_time:g} s per proof that the library "
        "does not have",
    }
    page = write_page(measurements, out / PAGE, command=command, facts=facts, warnings=warnings)
    return Study(measurements, wrong, warnings, results.problems, page)


def _warnings(measurements: Sequence[Measurement], wrong: Sequence[str], problems: Sequence[str]) -> list[str]:
    found = [f"**A run contradicts a proof:** {line}." for line in wrong[:MOST_WARNINGS]]
    failed = [one for one in measurements if one.objective is None]
    if failed:
        first = failed[0]
        found.append(
            f"The means leave out {plural(len(failed), 'run')} without homes. The first is {first.selector} on "
            f"{first.instance}: {first.status}{f' ({first.error})' if first.error else ''}."
        )
    unproved = {one.instance for one in measurements if one.reference is None}
    if unproved:
        found.append(
            f"There is neither a proven optimum nor a certified bound of {plural(len(unproved), 'instance')}, such as "
            f"{min(unproved)}, so these runs have no excess."
        )
    if problems:
        found.append(f"{plural(len(problems), 'run')} left no row. The first: {problems[0]}.")
    return found
