"""The runs behind the three studies: which instances, which methods, and the best homes known with their bound."""

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
from relocbench.reports.paper.measures import BEST, STEPS, Case, Measured, Measures, carried, measured
from relocbench.reports.paper.readings import CLUSTERS, READINGS, reloc
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep

# Each study: the family, and the parameter that varies. The third, over K, is on the instances of the first: K is a
# setting of RELOC, and one certificate an instance serves both.
STUDIES = {"sigma": ("paper", "sigma"), "spool": ("paper-spooler", "spool_per_member")}
BASELINES = ("random", "nearest", "otos")
ANNEAL = "anneal[moves=2000000]"
BOUND = "bound"
# More than any of these methods takes; only the bound is stopped by the time that users give.
AMPLE = 120.0
# Instances in the library were certified for at most so long: with less time there is nothing to gain.
LIBRARY_SECONDS = 30.0


@dataclass(frozen=True)
class Setup:
    """What is redone.

    Attributes
    ----------
    seeds
        Replicates of each cell.
    time_limit
        Seconds to certify each instance that the library does not hold.
    jobs
        Runs at a time.
    parameters
        Replacements for what the families fix, such as ``servers``.
    social, sites, people
        Files with real people and places.
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
    """What came of it.

    Attributes
    ----------
    measures
        Every assignment of the studies.
    cases
        Their instances.
    clusters
        The values of K.
    plans
        Makes further instances of any family, with the same people and places.
    from_library
        How many instances have their bound from the library.
    problems
        One line for each run that failed.
    """

    measures: Measures
    cases: Sequence[Case]
    clusters: Sequence[int]
    plans: "Planner"
    from_library: int
    problems: Sequence[str]


class Planner:
    """Plans instances of any family on the same real people and places, which are read once."""

    def __init__(self, setup: Setup) -> None:
        self._any = plan("paper", [0], {}, social=setup.social, sites=setup.sites, people=setup.people)

    def plan(self, name: str, seeds: Sequence[int], parameters: Mapping[str, Value]) -> Plan:
        """Plan cells of a family."""
        return dataclasses.replace(self._any, cells=family(name).cells(parameters), seeds=seeds)

    def one(self, name: str, **parameters: Value) -> Instance:
        """Build the first replicate of one cell."""
        return self.plan(name, [0], parameters).build(0)


def run_evaluation(setup: Setup, folder: Path) -> Evaluation:
    """Run what is not in the folder yet, and measure everything."""
    planner = Planner(setup)
    cases = list(progress(_cases(setup, planner), _count(setup, planner), "generating"))
    servers = min(case.instance.n_servers for case in cases)
    clusters = [k for k in CLUSTERS if k <= servers]
    shelf = Library()
    wanted = {case.instance.hash for case in cases}
    known = {entry.instance: entry for entry in shelf.entries.values() if entry.instance in wanted}
    rows = _run(setup, cases, clusters, known, Store(folder))
    found = Measures(_carried(list(_measured(cases, rows, known, shelf)), cases))
    problems = [f"{row.selector} on {row.instance}: {row.error}" for row in rows if row.home is None]
    return Evaluation(found, cases, clusters, planner, len(known), problems)


def methods(study: str, clusters: Sequence[int]) -> list[str]:
    """Return what is run on a study's instances besides the bound: RELOC's readings, in the first with every K."""
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
    """Run the quick methods, then certify what the library does not hold."""
    quick = {study: [parse_selector(text) for text in methods(study, clusters)] for study in STUDIES}
    tasks = [Task(case.instance, selector) for case in cases for selector in quick[case.study]]
    # One process does all runs of a method: starting one takes longer than most of these.
    running = sweep(tasks, Store(store.folder / "methods"), Limits(AMPLE), jobs=setup.jobs, reuse=True)
    with contextlib.closing(running):
        rows = list(progress(running, len(tasks), "running"))
    selector = parse_selector(BOUND)
    enough = {
        entry.instance for entry in known.values() if entry.status == "optimal" or setup.time_limit <= LIBRARY_SECONDS
    }
    tasks = [Task(case.instance, selector) for case in cases if case.instance.hash not in enough]
    # It searches in one thread and bounds in another.
    running = sweep(tasks, Store(store.folder / "bounds"), Limits(setup.time_limit), jobs=max(1, setup.jobs // 2))
    with contextlib.closing(running):
        rows += progress(running, len(tasks), "certifying")
    return rows


def _measured(
    cases: Sequence[Case], rows: Sequence[Row], known: Mapping[str, Entry], shelf: Library
) -> Iterator[Measured]:
    by_instance: dict[str, list[Row]] = {}
    for row in rows:
        by_instance.setdefault(row.hash, []).append(row)
    for case in cases:
        instance = case.instance
        wanted = {BOUND, *methods(case.study, CLUSTERS)}
        mine = [row for row in by_instance.get(instance.hash, []) if row.home is not None and row.selector in wanted]
        homes: list[IntArray] = []
        bounds = [row.bound for row in mine if row.bound is not None]
        for row in mine:
            homes.append(np.asarray(row.home, np.int32))
            if row.selector != BOUND:
                yield measured(case, homes[-1], row.selector, row.seconds)
        if (entry := known.get(instance.hash)) is not None:
            homes.append(shelf.best_home(entry.name))
            bounds.append(entry.bound)
        for snapshot in snapshots(instance, seed=0):
            yield measured(case, snapshot.home, STEPS[snapshot.step])
        if homes:
            best = min(homes, key=lambda home: evaluate(instance, home).objective)
            yield measured(case, best, BEST, bound=max(bounds, default=None))


def _carried(rows: list[Measured], cases: Sequence[Case]) -> list[Measured]:
    """Let bounds of the study over spools hold for larger spools on the same map, too."""
    maps = {case.instance.hash: _map(case.instance) for case in cases if case.instance.cloud_is_far}
    groups: dict[str, list[Measured]] = {}
    others = []
    for row in rows:
        if row.study == "spool" and row.method == BEST and row.hash in maps:
            groups.setdefault(maps[row.hash], []).append(row)
        else:
            others.append(row)
    return [*others, *itertools.chain.from_iterable(map(carried, groups.values()))]


def _map(instance: Instance) -> str:
    """Return what instances share that differ in their spools alone."""
    return dataclasses.replace(instance, spool=np.ones(instance.n_topics)).hash
