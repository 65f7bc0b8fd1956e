"""The runs of the three studies: the instances, the methods, and the best known homes with their bound."""

import contextlib
import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from relocbench.heuristics.reloc import snapshots
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import Value, family
from relocbench.instances.generators.generate import Plan, plan
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.library.library import Entry, Library
from relocbench.reports.paper.measures import BEST, STEPS, Case, Measured, Measures, carry_bounds, measure
from relocbench.reports.paper.readings import CLUSTERS, READINGS, reloc
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep

# The family of each study and the parameter that it varies. The third study, over K, uses the instances of the first,
# because K is a setting of RELOC and one certificate per instance is certified for both.
STUDIES = {"sigma": ("paper", "sigma"), "spool": ("paper-spooler", "spool_per_member")}
BASELINES = ("random", "nearest", "otos")
ANNEAL = "anneal[moves=2000000]"
BOUND = "bound"
# The time limit of the methods in seconds, more than any of them needs. Users set the time limit of the bound only.
METHOD_SECONDS = 120.0
# Instances in the library were certified for at most this long; a shorter run cannot improve their bound.
LIBRARY_SECONDS = 30.0


@dataclass(frozen=True)
class Setup:
    """The setup of an evaluation.

    Attributes
    ----------
    seeds
        The number of replicates per cell.
    time_limit
        The time limit in seconds to certify each instance that the library does not have.
    jobs
        The number of runs at the same time.
    parameters
        Replacements for parameters of the families, such as ``servers``.
    social, sites, people
        Files with a real follower graph, server sites and user positions.
    """

    seeds: int = 5
    time_limit: float = 6.0
    jobs: int = 2
    parameters: Mapping[str, Value] = field(default_factory=dict)
    social: Path | None = None
    sites: Path | None = None
    people: Path | None = None


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of an evaluation.

    Attributes
    ----------
    measures
        The measures of every assignment of the studies.
    cases
        The instances.
    clusters
        The values of K.
    plans
        Generates further instances of any family from the same files.
    from_library
        The number of instances that the library has.
    problems
        One line for each failed run.
    """

    measures: Measures
    cases: Sequence[Case]
    clusters: Sequence[int]
    plans: "Planner"
    from_library: int
    problems: Sequence[str]


class Planner:
    """Plans instances of any family from the same files with real data, which are read once.

    Parameters
    ----------
    setup
        The setup of the evaluation.
    """

    def __init__(self, setup: Setup) -> None:
        self._any = plan("paper", [0], {}, social=setup.social, sites=setup.sites, people=setup.people)

    def plan(self, name: str, seeds: Sequence[int], parameters: Mapping[str, Value]) -> Plan:
        """Plan cells of a family.

        Parameters
        ----------
        name
            The family.
        seeds
            The seeds of the instances.
        parameters
            Parameters that choose cells or replace what the family fixes.

        Returns
        -------
        Plan
            The plan.
        """
        return dataclasses.replace(self._any, cells=family(name).cells(parameters), seeds=seeds)

    def one(self, name: str, **parameters: Value) -> Instance:
        """Generate the first replicate of one cell.

        Parameters
        ----------
        name
            The family.
        **parameters
            Parameters that choose the cell.

        Returns
        -------
        Instance
            The instance.
        """
        return self.plan(name, [0], parameters).build(0)


def run_evaluation(setup: Setup, folder: Path) -> Evaluation:
    """Make the runs that are not yet in the folder, and measure all assignments.

    Parameters
    ----------
    setup
        The setup.
    folder
        The folder of the run stores.

    Returns
    -------
    Evaluation
        The results.
    """
    planner = Planner(setup)
    cases = list(progress(_cases(setup, planner), _count(setup, planner), "generating instances"))
    servers = min(case.instance.n_servers for case in cases)
    clusters = [k for k in CLUSTERS if k <= servers]
    library = Library()
    wanted = {case.instance.hash for case in cases}
    known = {entry.instance: entry for entry in library.entries.values() if entry.instance in wanted}
    rows = _run(setup, cases, clusters, known, Store(folder))
    found = Measures(_with_carried_bounds(list(_measured(cases, rows, known, library)), cases))
    problems = [f"{row.selector} on {row.instance}: {row.error}" for row in rows if row.home is None]
    return Evaluation(found, cases, clusters, planner, len(known), problems)


def methods(study: str, clusters: Sequence[int]) -> list[str]:
    """Return the methods of a study, without the bound.

    Parameters
    ----------
    study
        ``sigma`` or ``spool``.
    clusters
        The values of K; the study over σ runs RELOC with all of them.

    Returns
    -------
    list of str
        Selectors.
    """
    several = clusters if study == "sigma" else [CLUSTERS[2]]
    readings = [reloc(reading, k) for reading in READINGS for k in dict.fromkeys([CLUSTERS[2], *several])]
    return [*BASELINES, *readings, ANNEAL]


def _plans(setup: Setup, planner: Planner) -> Iterator[tuple[str, str, Plan]]:
    for study, (name, varied) in STUDIES.items():
        yield study, varied, planner.plan(name, range(setup.seeds), setup.parameters)


def _count(setup: Setup, planner: Planner) -> int:
    return sum(len(planned) for _, _, planned in _plans(setup, planner))


def _cases(setup: Setup, planner: Planner) -> Iterator[Case]:
    for study, varied, planned in _plans(setup, planner):
        for number, (cell, seed) in enumerate(itertools.product(planned.cells, planned.seeds)):
            yield Case(study, float(cell.varied[varied]), seed, planned.build(number))


def _run(
    setup: Setup, cases: Sequence[Case], clusters: Sequence[int], known: Mapping[str, Entry], store: Store
) -> list[Row]:
    """Run the methods, then certify the instances that the library does not have."""
    quick = {study: [parse_selector(text) for text in methods(study, clusters)] for study in STUDIES}
    tasks = [Task(case.instance, selector) for case in cases for selector in quick[case.study]]
    # One process makes all runs of a method, because starting a process takes longer than most of these runs.
    running = sweep(tasks, Store(store.folder / "methods"), Limits(METHOD_SECONDS), jobs=setup.jobs, reuse=True)
    with contextlib.closing(running):
        rows = list(progress(running, len(tasks), "running methods"))
    selector = parse_selector(BOUND)
    certified = {
        entry.instance for entry in known.values() if entry.status == "optimal" or setup.time_limit <= LIBRARY_SECONDS
    }
    tasks = [Task(case.instance, selector) for case in cases if case.instance.hash not in certified]
    # The bound uses two threads, one to search and one to bound.
    running = sweep(tasks, Store(store.folder / "bounds"), Limits(setup.time_limit), jobs=max(1, setup.jobs // 2))
    with contextlib.closing(running):
        rows += progress(running, len(tasks), "certifying bounds")
    return rows


def _measured(
    cases: Sequence[Case], rows: Sequence[Row], known: Mapping[str, Entry], library: Library
) -> Iterator[Measured]:
    by_instance: dict[str, list[Row]] = {}
    for row in rows:
        by_instance.setdefault(row.hash, []).append(row)
    for case in cases:
        instance = case.instance
        wanted = {BOUND, *methods(case.study, CLUSTERS)}
        own = [row for row in by_instance.get(instance.hash, []) if row.home is not None and row.selector in wanted]
        homes: list[IntArray] = []
        bounds = [row.bound for row in own if row.bound is not None]
        for row in own:
            homes.append(np.asarray(row.home, np.int32))
            if row.selector != BOUND:
                yield measure(case, homes[-1], row.selector, row.seconds)
        if (entry := known.get(instance.hash)) is not None:
            homes.append(library.best_home(entry.name))
            bounds.append(entry.bound)
        for snapshot in snapshots(instance, seed=0):
            yield measure(case, snapshot.home, STEPS[snapshot.step])
        if homes:
            best = min(homes, key=lambda home: evaluate(instance, home).objective)
            yield measure(case, best, BEST, bound=max(bounds, default=None))


def _with_carried_bounds(rows: list[Measured], cases: Sequence[Case]) -> list[Measured]:
    """Carry the bounds of the study over spools to larger spools of the same map."""
    maps = {case.instance.hash: _map(case.instance) for case in cases if case.instance.cloud_is_far}
    groups: dict[str, list[Measured]] = {}
    others = []
    for row in rows:
        if row.study == "spool" and row.method == BEST and row.hash in maps:
            groups.setdefault(maps[row.hash], []).append(row)
        else:
            others.append(row)
    return [*others, *itertools.chain.from_iterable(map(carry_bounds, groups.values()))]


def _map(instance: Instance) -> str:
    """Return a key that instances share if they differ only in their spools."""
    return dataclasses.replace(instance, spool=np.ones(instance.n_topics)).hash
