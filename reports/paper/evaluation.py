"""The runs of the evaluation: the methods of the paper, annealing, and the best known homes with their bound."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.library.library import Entry, Library
from relocbench.reports.paper.grid import Unit, groups, run_grid, run_units
from relocbench.reports.paper.measures import BEST, Case, Measured, Measures, carry_bounds, measure
from relocbench.reports.paper.planner import PAPER, STUDIES, TIGHTNESS, Planner, Setup
from relocbench.reports.paper.readings import CLUSTERS
from relocbench.runs.certify import certify
from relocbench.runs.method_code import project_code
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row, Store
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANNEAL = "anneal[moves=2000000]"
BOUND = "bound"
# The time limit of annealing in seconds, more than it needs. Users set the time limit of the bound only.
METHOD_SECONDS = 120.0
# Instances in the library were certified for at most this long; a shorter run cannot improve their bound.
LIBRARY_SECONDS = 30.0
# The share of the time limit for an instance of the study over tightness. There are many of them, and what is measured
# there, the excess of the paper's methods, is large compared with the gap of the bound.
TIGHTNESS_SHARE = 0.75


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of an evaluation.

    Attributes
    ----------
    groups
        The measures of every assignment, by group of instances: ``paper``, and the least topic sizes.
    readings
        The settings of each reading of RELOC that was run.
    cases
        The instances of the group ``paper``.
    clusters
        The values of K.
    plans
        Generates further instances of any family from the same files.
    from_library
        The number of instances that the library has.
    problems
        One line for each failed run.
    """

    groups: Mapping[str, Measures]
    readings: Sequence[str]
    cases: Sequence[Case]
    clusters: Sequence[int]
    plans: Planner
    from_library: int
    problems: Sequence[str]

    @property
    def measures(self) -> Measures:
        """The measures on the instances of the paper's own families."""
        return self.groups[PAPER]


def run_evaluation(
    setup: Setup, readings: Sequence[str], folder: Path, spark: "SparkSession | None" = None
) -> Evaluation:
    """Make the runs that are not yet in the folder, and measure all assignments.

    Parameters
    ----------
    setup
        The setup.
    readings
        The settings of each reading of RELOC.
    folder
        The folder of the run stores.
    spark
        A session that runs the grid of readings; by default this machine does.

    Returns
    -------
    Evaluation
        The results.
    """
    planner = Planner(setup)
    servers = planner.plan("paper", [0], setup.parameters).build(0).n_servers
    clusters = [k for k in CLUSTERS if k <= servers]
    grid = run_grid(setup, readings, clusters, folder / "readings", spark)
    cases = [case for study in STUDIES for case in planner.cases(PAPER, study, range(setup.seeds))]
    tight = _tightness_bounds(setup, folder / "tightness", spark)
    library = Library()
    wanted = {case.instance.hash for case in cases}
    known = {entry.instance: entry for entry in library.entries.values() if entry.instance in wanted}
    rows = _run(setup, cases, known, Store(folder))
    certified = tight | {PAPER: Measures(_with_carried_bounds(list(_measured(cases, rows, known, library)), cases))}
    measures = {group: Measures([*measured.rows, *certified[group].rows]) for group, measured in grid.items()}
    problems = [f"{row.selector} on {row.instance}: {row.error}" for row in rows if row.home is None]
    return Evaluation(measures, readings, cases, clusters, planner, len(known), problems)


def _tightness_bounds(setup: Setup, folder: Path, spark: "SparkSession | None") -> dict[str, Measures]:
    """Certify the instances of the study over tightness; return their best homes with the bound."""
    units = [Unit(group, seed) for group in groups(setup) if group != PAPER for seed in range(setup.seeds)]
    seconds = TIGHTNESS_SHARE * setup.time_limit
    key = [seconds, project_code("relocbench.runs.certify")]
    what = "certifying bounds against tightness"
    return run_units(setup, units, partial(_certified, setup, seconds), what, folder, key, spark)


def _certified(setup: Setup, seconds: float, unit: Unit) -> Iterator[Measured]:
    spreads = {float(cell.varied["sigma"]) for cell in family(TIGHTNESS).cells(setup.parameters)}
    for case in Planner(setup).cases(unit.group, "sigma", [unit.seed]):
        if case.x in spreads:
            solution = certify(case.instance, seed=0, time_limit=seconds).solution
            yield measure(case, solution.home, BEST, solution.bound)


def _run(setup: Setup, cases: Sequence[Case], known: Mapping[str, Entry], store: Store) -> list[Row]:
    """Run annealing, then certify the instances that the library does not have."""
    tasks = [Task(case.instance, parse_selector(ANNEAL)) for case in cases]
    # One process makes several runs, because starting a process takes as long as a run.
    running = sweep(tasks, Store(store.folder / "methods"), Limits(METHOD_SECONDS), jobs=setup.jobs, reuse=True)
    with contextlib.closing(running):
        rows = list(progress(running, len(tasks), "annealing"))
    certified = {
        entry.instance for entry in known.values() if entry.status == "optimal" or setup.time_limit <= LIBRARY_SECONDS
    }
    tasks = [Task(case.instance, parse_selector(BOUND)) for case in cases if case.instance.hash not in certified]
    # The bound uses two threads, one to search and one to bound.
    limits, jobs = Limits(setup.time_limit), max(1, setup.jobs // 2)
    running = sweep(tasks, Store(store.folder / "bounds"), limits, jobs=jobs, reuse=True)
    with contextlib.closing(running):
        rows += progress(running, len(tasks), "certifying bounds")
    return rows


def _measured(
    cases: Sequence[Case], rows: Sequence[Row], known: Mapping[str, Entry], library: Library
) -> Iterator[Measured]:
    by_instance: dict[str, list[Row]] = {}
    for row in rows:
        if row.home is not None and row.selector in (ANNEAL, BOUND):
            by_instance.setdefault(row.hash, []).append(row)
    for case in cases:
        instance = case.instance
        own = by_instance.get(instance.hash, [])
        homes: list[IntArray] = []
        bounds = [row.bound for row in own if row.bound is not None]
        for row in own:
            homes.append(np.asarray(row.home, np.int32))
            if row.selector == ANNEAL:
                yield measure(case, homes[-1], ANNEAL)
        if (entry := known.get(instance.hash)) is not None:
            homes.append(library.best_home(entry.name))
            bounds.append(entry.bound)
        if homes:
            best = min(homes, key=lambda home: evaluate(instance, home).objective)
            yield measure(case, best, BEST, max(bounds, default=None))


def _with_carried_bounds(rows: list[Measured], cases: Sequence[Case]) -> list[Measured]:
    """Carry the bounds of the study over spools to larger spools of the same map."""
    instances = {case.instance.hash: case.instance for case in cases}
    carried = [row for row in rows if row.study == "spool" and row.method == BEST]
    others = [row for row in rows if row.study != "spool" or row.method != BEST]
    return [*others, *carry_bounds(carried, instances)]
