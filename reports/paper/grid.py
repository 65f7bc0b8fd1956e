"""The grid of readings: RELOC in many readings on instances of growing tightness, for the verdicts on the claims.

A *group* is a set of instances on which all claims are tested: those of the paper's own families, or those of the
family ``paper-tightness`` with one least topic size. One seed of a group is one unit of work and one file.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.heuristics.clusters import Clusters, divide_servers, nearest_centroid
from relocbench.heuristics.reloc import STEPS, Algorithm
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.generators.families import family
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.reports.paper.measures import Measured, Measures, measure, read_rows, write_rows
from relocbench.reports.paper.planner import PAPER, SIZE, STUDIES, TIGHTNESS, Planner, Setup
from relocbench.reports.paper.readings import DEFAULT_CLUSTERS, after, as_reading, otos, reloc
from relocbench.runs.method_code import project_code
from relocbench.runs.processes import in_processes
from relocbench.runs.progress import progress
from relocbench.runs.solve import solve

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The least topic sizes.
SIZES = tuple(dict.fromkeys(int(cell.varied[SIZE]) for cell in family(TIGHTNESS).cells()))
# The seed of the methods, as in the other runs of the evaluation.
SEED = 0


@dataclass(frozen=True)
class Unit:
    """One seed of a group.

    Attributes
    ----------
    group
        ``paper``, or a least topic size.
    seed
        The seed of the instances.
    """

    group: str
    seed: int


def groups(setup: Setup) -> list[str]:
    """Return the groups of an evaluation.

    Parameters
    ----------
    setup
        The setup of the evaluation.

    Returns
    -------
    list of str
        ``paper`` and the least topic sizes. With a follower graph, or with a least or largest size that the user has
        set, the sizes of topics cannot be varied, and ``paper`` is the only group.
    """
    fixed = setup.social is not None or {SIZE, "max_topic_size"} & setup.parameters.keys()
    return [PAPER] if fixed else [PAPER, *map(str, SIZES)]


def run_grid(
    setup: Setup, readings: Sequence[str], clusters: Sequence[int], folder: Path, spark: "SparkSession | None" = None
) -> dict[str, Measures]:
    """Measure the methods of the paper on every group, with RELOC in every reading. Finished units are read.

    Parameters
    ----------
    setup
        The setup of the evaluation.
    readings
        The settings of each reading.
    clusters
        The values of K for the study over K.
    folder
        The folder for one file per unit.
    spark
        A session that runs the units. Without one, ``setup.jobs`` processes of this machine run them.

    Returns
    -------
    dict
        The measures of each group.
    """
    units = [Unit(group, seed) for group in groups(setup) for seed in range(setup.seeds)]
    key = [readings, clusters, project_code(__name__)]
    work = partial(_unit_rows, setup, tuple(readings), tuple(clusters))
    return run_units(setup, units, work, "running readings", folder, key, spark)


def run_units(
    setup: Setup,
    units: Sequence[Unit],
    work: Callable[[Unit], Iterable[Measured]],
    what: str,
    folder: Path,
    key: Sequence[object],
    spark: "SparkSession | None" = None,
) -> dict[str, Measures]:
    """Measure units that are not yet in the folder, in parallel, and return the measures of all of them.

    Parameters
    ----------
    setup
        The setup of the evaluation.
    units
        The units.
    work
        Returns the rows of a unit.
    what
        The text of the progress bar.
    folder
        The folder for one file per unit.
    key
        What determines the rows besides the setup. The name of a file contains a hash of it.
    spark
        A session that runs the units. Without one, ``setup.jobs`` processes of this machine run them.

    Returns
    -------
    dict
        The measures of each group.
    """
    inputs = [file and [file.name, file.stat().st_size] for file in (setup.social, setup.sites, setup.people)]
    text = json.dumps([dict(setup.parameters), inputs, *key], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    # An executor of Spark has another working directory.
    names = {unit: safe_file_name(f"{unit.group}-{unit.seed}-{digest}", ".parquet") for unit in units}
    files = {unit: folder.resolve() / name for unit, name in names.items()}
    missing = [unit for unit in units if not files[unit].exists()]
    folder.mkdir(parents=True, exist_ok=True)
    run = partial(_run_unit, work, files)
    if spark is not None:
        from relocbench.spark.parallel_map import parallel_map

        parallel_map(spark, missing, run, what, len(missing))
    elif missing:
        for _ in progress(in_processes(run, missing, setup.jobs), len(missing), what):
            pass
    return {
        group: Measures(row for unit in units if unit.group == group for row in read_rows(files[unit]))
        for group in dict.fromkeys(unit.group for unit in units)
    }


def _run_unit(work: Callable[[Unit], Iterable[Measured]], files: Mapping[Unit, Path], unit: Unit) -> None:
    write_rows(work(unit), files[unit])


def _unit_rows(setup: Setup, readings: Sequence[str], clusters: Sequence[int], unit: Unit) -> Iterator[Measured]:
    planner = Planner(setup)
    divide = _Divider()
    for study in STUDIES:
        for case in planner.cases(unit.group, study, [unit.seed]):
            instance = case.instance
            for method in baselines(readings):
                yield measure(case, solve(instance, method, seed=SEED).solution.home, method)
            usual = divide(instance, DEFAULT_CLUSTERS)
            for reading in readings:
                algorithm = Algorithm(instance, as_reading(reading), seed=SEED)
                for step in STEPS:
                    yield measure(case, algorithm.home(usual, step), after(step, reading))
                for k in clusters if study == "sigma" else ():
                    if k != DEFAULT_CLUSTERS:
                        yield measure(case, algorithm.home(divide(instance, k)), reloc(reading, k))


def baselines(readings: Sequence[str]) -> list[str]:
    """Return the methods of the paper beside RELOC.

    Parameters
    ----------
    readings
        The settings of each reading.

    Returns
    -------
    list of str
        The selectors; OTOS once for each kind of cooperation that the readings have.
    """
    return list(dict.fromkeys(["random", "nearest", *map(otos, readings)]))


class _Divider:
    """Divides servers into clusters. Instances of one seed have the same servers, so K-means runs once for each K."""

    def __init__(self) -> None:
        self._found: dict[tuple[bytes, bytes, int], tuple[IntArray, FloatArray]] = {}

    def __call__(self, instance: Instance, k: int) -> Clusters:
        key = (instance.server_x.tobytes(), instance.server_y.tobytes(), k)
        if key not in self._found:
            self._found[key] = divide_servers(instance.server_x, instance.server_y, k, SEED)
        of_server, centre = self._found[key]
        return Clusters(len(centre), of_server, nearest_centroid(instance.client_x, instance.client_y, centre))
