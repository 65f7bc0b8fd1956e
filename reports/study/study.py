"""An excess study, from instances to a page."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from relocbench.instances.checks import checked_seed, checked_time_limit
from relocbench.instances.errors import InputError, plural, shown
from relocbench.instances.features import features_of
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import Instance, require_instance
from relocbench.instances.library.library import Library
from relocbench.instances.notebook_card import card, percent
from relocbench.reports.pages.requirements import require
from relocbench.reports.study.anytime import Course, courses, curves
from relocbench.reports.study.excess import (
    Measurement,
    Summary,
    as_table,
    best_known,
    measure,
    summaries,
    write_measurements,
)
from relocbench.reports.study.groups import By, grouped
from relocbench.reports.study.instance_space import write_features, write_metadata
from relocbench.reports.study.references import contradictions
from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import Subject, kept, of_family, without_duplicates
from relocbench.reports.study.versions import versions_of
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.selectors import MethodLike, as_selectors, require_available
from relocbench.runs.sweep import Limits

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

PAGE = "report.html"
DATA = "excess.parquet"
FEATURES_FILE = "features.parquet"
# The name that tools for instance space analysis expect.
METADATA = "metadata.csv"
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
        Objectives below a proved or claimed bound: one line for each contradiction.
    warnings
        What a reader must know first. Contradictions come first.
    problems
        One line for each run that left no row.
    page
        The file of the page.
    courses
        The progress of each run on an instance with a reference.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
    >>> [(one.selector, round(one.excess, 4)) for one in done.measurements]
    [('nearest', 0.5217), ('reloc', 0.5217)]
    >>> done.page.as_posix()
    'study/report.html'
    """

    measurements: list[Measurement]
    wrong: list[str]
    warnings: list[str]
    problems: list[str]
    page: Path
    courses: list[Course] = field(default_factory=list)

    def __repr__(self) -> str:
        parts = [plural(len(self.measurements), "run"), plural(self._distinct("selector"), "method")]
        parts.append(plural(self._distinct("hash"), "instance"))
        parts += [plural(len(self.warnings), "warning")] if self.warnings else []
        return f"<Study {', '.join(parts)}: {self.page}>"

    def _repr_html_(self) -> str:
        values: dict[str, object] = {
            "runs": len(self.measurements),
            "methods": self._distinct("selector"),
            "instances": self._distinct("hash"),
            "page": self.page,
        }
        values |= {f"warning {number}": text for number, text in enumerate(self.warnings, start=1)}
        columns = ("instances", "method", "mean excess", "median", "worst", "optimal runs", "seconds")
        rows = [
            (
                *(one.regime, one.selector, percent(one.mean), percent(one.median), percent(one.worst)),
                *(f"{one.hits} of {one.hits_of}" if one.hits_of else None, f"{one.seconds:.3f}"),
            )
            for one in summaries(self.measurements)
        ]
        return card("Study", values, columns, rows, texts=2)

    def _distinct(self, name: str) -> int:
        return len({getattr(one, name) for one in self.measurements})

    def to_arrow(self) -> pa.Table:
        """Return the measurements as an Arrow table.

        Returns
        -------
        pyarrow.Table
            One row for each run, with the attributes of a measurement as columns.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
        >>> done.to_arrow()["selector"].to_pylist()
        ['nearest', 'reloc']
        """
        return as_table(self.measurements).drop_columns("format")

    def to_pandas(self) -> "pd.DataFrame":
        """Return the measurements as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            One row for each run, with the attributes of a measurement as columns.

        Raises
        ------
        InputError
            If pandas is not installed.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
        >>> done.to_pandas()[["selector", "seed", "status"]]
          selector  seed    status
        0  nearest     0  feasible
        1    reloc     0  feasible
        """
        require("pandas", install="pandas")
        return self.to_arrow().to_pandas()

    def summary(self, by: str = "regime") -> "pd.DataFrame":
        """Return the excess of each method, summarised.

        Parameters
        ----------
        by
            What to summarise by: ``regime`` or ``group``.

        Returns
        -------
        pandas.DataFrame
            One row for each method in each regime or group: the number of runs and instances, the mean excess with its
            95 % interval, the median, the worst run, the optimal runs, and the median time.

        Raises
        ------
        InputError
            If pandas is not installed or ``by`` is something else.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
        >>> done.summary()[["regime", "selector", "mean"]].round(4)
                regime selector    mean
        0  tiny-scarce  nearest  0.5217
        1  tiny-scarce    reloc  0.5217
        """
        require("pandas", install="pandas")
        import pandas as pd

        if by not in ("regime", "group"):
            raise InputError("by", f"expected regime or group, got {shown(by)}")
        # The attribute ``regime`` of a summary holds what it is summarised by.
        rows = [asdict(one) | {by: one.regime} for one in summaries(self.measurements, by)]
        names = [spec.name for spec in fields(Summary) if spec.name not in ("regime", by)]
        return pd.DataFrame(rows, columns=[by, *names])

    def plot(self, kind: str = "runs", group: str | None = None) -> "go.Figure":
        """Return a figure of the page.

        Parameters
        ----------
        kind
            ``runs`` (every run by method), ``distribution`` (the share of runs up to an excess), ``time`` (mean excess
            against the time of a run), ``progress`` (mean excess during the runs) or ``sigma`` (mean excess against the
            spread of topics).
        group
            The group of instances, usually a family. It must be given if the study has several.

        Returns
        -------
        plotly.graph_objects.Figure
            The figure. Notebooks draw it; ``figure.write_html("plot.html")`` writes it to a file.

        Raises
        ------
        InputError
            If there is no such kind or group, there is nothing to draw, or plotly is not installed.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
        >>> figure = done.plot("time")
        >>> [trace.name for trace in figure.data]
        ['NS', 'RELOC']
        """
        require()
        from relocbench.reports.study.anytime_plot import over_time
        from relocbench.reports.study.plots import KINDS

        if kind not in (kinds := [*KINDS, "progress"]):
            raise InputError("kind", f"expected one of {', '.join(kinds)}, got {shown(kind)}")
        groups = list(dict.fromkeys(one.group for one in self.measurements if one.excess is not None))
        if not groups:
            raise InputError("study", "expected runs with an excess, but no run has one")
        if group not in groups and not (group is None and len(groups) == 1):
            raise InputError("group", f"expected one of {', '.join(groups)}, got {shown(group)}")
        group = group or groups[0]
        if kind == "progress":
            return over_time(curves([one for one in self.courses if one.group == group]))
        chosen = [one for one in self.measurements if one.group == group and one.excess is not None]
        if kind == "sigma" and len({one.sigma for one in chosen} - {None}) < 2:
            raise InputError("kind", "sigma needs instances with two or more values of the parameter sigma")
        return KINDS[kind](chosen)


def study(
    methods: MethodLike | Iterable[MethodLike],
    instances: Instance | Iterable[Instance] = (),
    *,
    families: Mapping[str, Sequence[int] | None] | None = None,
    out: str | Path = "study",
    seeds: Sequence[int] = (0, 1, 2),
    time_limit: float = 60.0,
    reference_time: float = 12.0,
    jobs: int = 1,
    group_by: By | None = None,
    block_by: By | None = None,
) -> Study:
    """Measure how far methods are above the optimum, and write a page.

    Parameters
    ----------
    methods
        Selectors or functions, as a list or as one text with commas.
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
    group_by, block_by
        What the groups of instances, and the blocks that are not independent, are made by; see
        :func:`reports.study.groups.grouped`. For example ``"sigma"``, ``"/^[a-z]+/"``, or a function from an instance
        to its label.

    Returns
    -------
    Study
        The measurements and the page.

    Raises
    ------
    InputError
        If there is no instance or no method, if a method is unknown or cannot run here, if the instances cannot be
        grouped like that, or if a package is missing.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> done = relocbench.study("nearest,reloc", [instance], seeds=[0], out="study")
    >>> done
    <Study 2 runs, 2 methods, 1 instance: study/report.html>
    """
    refuse_during_import("relocbench.study")
    require()
    selectors = as_selectors(methods)
    require_available(selectors)
    folder = Path(out)
    given = [instances] if isinstance(instances, Instance | str) else list(instances)
    for instance in given:
        require_instance(instance)
    if isinstance(seeds, int):
        raise InputError("seeds", "expected a list of seeds such as [0]")
    if jobs < 1:
        raise InputError("jobs", "expected at least 1")
    seeds, time_limit = [checked_seed(seed) for seed in seeds], checked_time_limit(time_limit)
    found = [kept(instance, folder / "instances") for instance in given]
    for name, replicates in (families or {}).items():
        found += of_family(name, replicates, {})
    if not found or not selectors:
        raise InputError("study", "expected at least one instance and one method")
    design = Design(selectors, seeds, Limits(time_limit), reference_time, jobs)
    subjects = grouped(without_duplicates(found), group_by, block_by)
    return conduct(subjects, design, folder, f"relocbench.study({','.join(map(str, selectors))!r}, …)")


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
    versions = versions_of(every)
    if versions.warning is not None:
        warnings.append(versions.warning)
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
    features = {subject.instance.hash: features_of(subject.instance) for subject in subjects}
    write_features(measurements, features, out / FEATURES_FILE)
    write_metadata(measurements, features, out / METADATA)
    progress = courses(measurements, results.rows)
    page = write_page(
        measurements,
        out / PAGE,
        command=command,
        facts=facts,
        warnings=warnings,
        courses=progress,
        versions=versions,
        families=[name for name in dict.fromkeys(one.family for one in subjects) if name in FAMILIES],
        features=features,
    )
    return Study(measurements, wrong, warnings, results.problems, page, progress)


def _warnings(measurements: Sequence[Measurement], wrong: Sequence[str], problems: Sequence[str]) -> list[str]:
    found = [f"**A run contradicts a proof:** {line}." for line in wrong[:MOST_WARNINGS]]
    for selector in dict.fromkeys(one.selector for one in measurements):
        own = [one for one in measurements if one.selector == selector]
        failed = [one for one in own if one.objective is None]
        if failed:
            first = failed[0]
            found.append(
                f"`{selector}` gave no homes in {len(failed)} of {plural(len(own), 'run')}, which the means leave out. "
                f"The first is on {first.instance}: {first.status}{f' ({first.error})' if first.error else ''}."
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
