"""The results of a study at full scale, read from its folder, and the tables that are written from them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.heuristics.clusters import divide_servers
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import use
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.gap import excess, gap
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.runs.solve import exceeds
from relocbench.spark.checkpoints import INPUTS_KEY, RECORD_FILE, read_record
from relocbench.spark.pipeline import CHOSEN_KEY, CLIENTS_KEY, FACTORS, FACTORS_KEY, RESULTS
from relocbench.spark.placement import Field, read_field
from relocbench.spark.stages import STAGES_KEY
from relocbench.spark.study import BOUND_KEY, HOMES_KEY, ON_ONE_MACHINE, result_folders
from relocbench.spark.study_jobs import SPARK_BOUND

STAGE_COLUMNS = ("seconds", "cpu_seconds", "memory_mib")
# Where a result or a bound was computed.
SPARK, ONE_MACHINE = "Spark", "one machine"


@dataclass(frozen=True, eq=False)
class Result:
    """One assignment of a study and its cost.

    Attributes
    ----------
    folder
        The name of its folder in ``results``.
    label
        The selector of the method; ``certify`` for the homes that were found with the bound.
    method, seed
        The name of the method, and its seed.
    k
        The number of clusters; None for other methods than RELOC.
    y, y1, y2, objective, publications
        The cost.
    gap
        The gap to the lower bound of the study; None without a bound.
    excess
        The excess over the cheapest assignment of the study.
    theta, storage_use, compute_use, sent, clients
        For each server ``θ``, its loads as shares of the capacities, its publications and its clients.
    cluster_servers, cluster_clients
        For each cluster of RELOC its number of servers and of clients; empty for other methods.
    chosen
        For ``k=auto`` the folder of the result that was chosen.
    factors
        The folder of the factors that were used; None for none.
    stages
        What each stage used.
    """

    folder: str
    label: str
    method: str
    seed: int
    k: int | None
    y: float
    y1: float
    y2: float
    objective: float
    publications: int
    gap: float | None
    excess: float | None
    theta: FloatArray
    storage_use: FloatArray
    compute_use: FloatArray
    sent: FloatArray
    clients: IntArray
    cluster_servers: IntArray
    cluster_clients: IntArray
    chosen: str | None
    factors: str | None
    stages: Mapping[str, Mapping[str, float]]

    @property
    def computed_on(self) -> str:
        """Where the homes were computed: ``Spark`` or ``one machine``."""
        return _computed_on(self.method)

    @property
    def overloaded(self) -> int:
        """The number of servers with ``θ < 1``."""
        return int(np.count_nonzero(self.theta < 1))

    @property
    def skew(self) -> float | None:
        """The clients of the largest cluster, relative to the mean of all clusters."""
        if not len(self.cluster_clients):
            return None
        return float(self.cluster_clients.max() / self.cluster_clients.mean())

    def used(self, column: str) -> float | None:
        """Return what all stages of the result used.

        Parameters
        ----------
        column
            One of ``STAGE_COLUMNS``.

        Returns
        -------
        float or None
            The sum of times, or the largest memory; None for a result that was chosen among others.
        """
        return _used(self.stages, column)


@dataclass(frozen=True, eq=False)
class Bound:
    """A lower bound on the cost of all assignments.

    Attributes
    ----------
    folder
        The name of its folder in ``results``.
    label
        The selector: ``certify``, or ``spark-bound`` with its settings.
    value
        The bound on ``ΣD``.
    computed_on
        ``Spark`` or ``one machine``.
    homes
        The result that a bound in blocks started from; None for ``certify``.
    stages
        What each stage used.
    """

    folder: str
    label: str
    value: float
    computed_on: str
    homes: str | None
    stages: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class Study:
    """The results of a study.

    Attributes
    ----------
    name
        The name of its folder.
    field
        Servers, capacities, delays and sizes.
    inputs
        What the record of the field notes: seed, parameters, and the choices of capacities and places.
    results
        The results, the cheapest first.
    bounds
        The lower bounds, the best first.
    steps
        What the steps used that are no results: the field, the factorisations and the bounds in blocks.
    """

    name: str
    field: Field
    inputs: Mapping[str, Any]
    results: list[Result]
    bounds: list[Bound]
    steps: Mapping[str, Mapping[str, Mapping[str, float]]]

    @cached_property
    def shown(self) -> list[Result]:
        """The results without those among which ``k=auto`` chose."""
        auto = {(variant(one.label), one.seed) for one in self.results if one.chosen}
        return [one for one in self.results if one.chosen or (variant(one.label), one.seed) not in auto]

    @property
    def bound(self) -> float | None:
        """The best lower bound on ``ΣD``; None for none."""
        return self.bounds[0].value if self.bounds else None

    @property
    def publications(self) -> int:
        """``I``, the number of publications."""
        return self.results[0].publications


def variant(label: str) -> str:
    """Return the selector of RELOC without its number of clusters.

    Parameters
    ----------
    label
        A selector.

    Returns
    -------
    str
        The selector; that of another method unchanged.
    """
    name, _, settings = label.partition("[")
    kept = [part for part in settings.rstrip("]").split(",") if part and not part.startswith("k=")]
    return f"{name}[{','.join(kept)}]" if name == "reloc" else label


def read_study(folder: Path) -> Study:
    """Read the results of a study.

    Parameters
    ----------
    folder
        The folder of the study.

    Returns
    -------
    Study
        The results.

    Raises
    ------
    InputError
        If the folder has no result, a record cannot be read, or a bound exceeds a cost.
    """
    field, field_record = read_field(folder / "field"), read_record(folder / "field")
    found = {path.name: read_record(path) for path in result_folders(folder)}
    records = {name: record for name, record in found.items() if record[INPUTS_KEY]["method"] != SPARK_BOUND}
    if not records:
        raise InputError(str(folder), "expected results of a study, found none")
    bounds = [_bound(name, record) for name, record in found.items() if BOUND_KEY in record]
    bounds.sort(key=lambda one: (-one.value, one.folder))
    bound, best = bounds[0].value if bounds else None, min(record["objective"] for record in records.values())
    if bound is not None and exceeds(bound, best):
        problem = f"has a bound of {bound:.15g} above a cost of {best:.15g}: one of them is wrong"
        raise InputError(str(folder), problem)
    results = [_result(name, record, field, bound, best) for name, record in records.items()]
    steps = {"field": field_record.get(STAGES_KEY, {})}
    for path in sorted((folder / FACTORS).glob(f"*/{RECORD_FILE}")):
        steps[f"{FACTORS}/{path.parent.name}"] = read_record(path.parent).get(STAGES_KEY, {})
    steps |= {f"{RESULTS}/{one.folder}": one.stages for one in bounds if one.folder not in records}
    results.sort(key=lambda one: (one.objective, one.folder))
    return Study(folder.resolve().name, field, field_record[INPUTS_KEY], results, bounds, steps)


def _bound(name: str, record: Mapping[str, Any]) -> Bound:
    homes = record.get(HOMES_KEY)
    return Bound(
        folder=name,
        label=record["selector"],
        value=record[BOUND_KEY],
        computed_on=_computed_on(record[INPUTS_KEY]["method"]),
        homes=None if homes is None else Path(homes).parent.name,
        stages=record[STAGES_KEY],
    )


def _computed_on(method: str) -> str:
    return ONE_MACHINE if method in ON_ONE_MACHINE else SPARK


def _used(stages: Mapping[str, Mapping[str, float]], column: str) -> float | None:
    values = [stage[column] for stage in stages.values()]
    if not values:
        return None
    return max(values) if column == "memory_mib" else sum(values)


def _result(name: str, record: Mapping[str, Any], field: Field, bound: float | None, best: float) -> Result:
    inputs, objective = record[INPUTS_KEY], record["objective"]
    clients = np.array(record[CLIENTS_KEY], np.int32)
    k = cluster_servers = cluster_clients = None
    if inputs["method"] == "reloc":
        k = inputs["k"] if CHOSEN_KEY not in record else record["chosen_k"]
        cluster, centre = divide_servers(field.server_x, field.server_y, k, inputs["seed"])
        # A client's home is a server of its own cluster.
        cluster_servers = np.bincount(cluster, minlength=len(centre))
        cluster_clients = np.bincount(cluster, weights=clients, minlength=len(centre))
    empty = np.empty(0, np.int32)
    return Result(
        folder=name,
        label=record["selector"],
        method=inputs["method"],
        seed=inputs["seed"],
        k=k,
        y=record["Y"],
        y1=record["Y1"],
        y2=record["Y2"],
        objective=objective,
        publications=record["publications"],
        gap=gap(objective, bound),
        excess=excess(objective, best),
        theta=np.array(record["theta"]),
        storage_use=use(np.array(record["storage"]), field.storage_capacity),
        compute_use=use(np.array(record["compute"]), field.compute_capacity),
        sent=np.array(record["sent"]),
        clients=clients,
        cluster_servers=empty if cluster_servers is None else cluster_servers.astype(np.int32),
        cluster_clients=empty if cluster_clients is None else cluster_clients.astype(np.int32),
        chosen=record.get(CHOSEN_KEY),
        factors=record.get(FACTORS_KEY),
        stages=record[STAGES_KEY],
    )


def write_tables(study: Study, folder: Path) -> list[str]:
    """Write the tables of a study as Parquet files.

    Parameters
    ----------
    study
        The results.
    folder
        The folder to write to.

    Returns
    -------
    list of str
        The files.
    """
    tables = {
        "results.parquet": _results_table(study),
        "servers.parquet": _servers_table(study),
        "clusters.parquet": _clusters_table(study),
        "bounds.parquet": _bounds_table(study),
        "stages.parquet": _stages_table(study),
    }
    for name, table in tables.items():
        with written_whole(folder / name) as temporary:
            pq.write_table(table, temporary)
    return [str(folder / name) for name in tables]


def _results_table(study: Study) -> pa.Table:
    rows = [
        {
            "result": one.folder,
            "selector": one.label,
            "method": one.method,
            "seed": one.seed,
            "k": one.k,
            "chosen": one.chosen,
            "factors": one.factors,
            "computed_on": one.computed_on,
            "y": one.y,
            "y1": one.y1,
            "y2": one.y2,
            "objective": one.objective,
            "publications": one.publications,
            "bound": study.bound,
            "gap": one.gap,
            "excess": one.excess,
            "least_theta": float(one.theta.min()),
            "overloaded_servers": one.overloaded,
            "largest_storage_use": float(one.storage_use.max()),
            "largest_compute_use": float(one.compute_use.max()),
            "cluster_skew": one.skew,
            **{column: one.used(column) for column in STAGE_COLUMNS},
        }
        for one in study.results
    ]
    whole = dict.fromkeys(("seed", "k", "publications", "overloaded_servers"), pa.int64())
    texts = dict.fromkeys(("result", "selector", "method", "chosen", "factors", "computed_on"), pa.string())
    return pa.Table.from_pylist(rows, pa.schema([(name, (whole | texts).get(name, pa.float64())) for name in rows[0]]))


def _servers_table(study: Study) -> pa.Table:
    field, count = study.field, len(study.field.server_x)
    parts = [
        pa.table(
            {
                "result": [one.folder] * count,
                "server": pa.array(range(count), pa.int32()),
                "x": field.server_x,
                "y": field.server_y,
                "clients": one.clients,
                "publications": one.sent,
                "storage_capacity": field.storage_capacity,
                "storage_use": one.storage_use,
                "compute_capacity": field.compute_capacity,
                "compute_use": one.compute_use,
                "theta": one.theta,
            }
        )
        for one in study.results
    ]
    return pa.concat_tables(parts)


def _clusters_table(study: Study) -> pa.Table:
    parts = [
        pa.table(
            {
                "result": pa.array([one.folder] * len(one.cluster_clients), pa.string()),
                "cluster": pa.array(range(len(one.cluster_clients)), pa.int32()),
                "servers": one.cluster_servers,
                "clients": one.cluster_clients,
            }
        )
        for one in study.results
    ]
    return pa.concat_tables(parts)


def _bounds_table(study: Study) -> pa.Table:
    best = study.results[0].objective
    rows = [
        {
            "result": one.folder,
            "selector": one.label,
            "computed_on": one.computed_on,
            "homes": one.homes,
            "bound": one.value,
            "y": one.value / study.publications,
            "gap": gap(best, one.value),
            **{column: _used(one.stages, column) for column in STAGE_COLUMNS},
        }
        for one in study.bounds
    ]
    numbers = ("bound", "y", "gap", *STAGE_COLUMNS)
    texts = ("result", "selector", "computed_on", "homes")
    schema = pa.schema([(name, pa.string()) for name in texts] + [(name, pa.float64()) for name in numbers])
    return pa.Table.from_pylist(rows, schema)


def _stages_table(study: Study) -> pa.Table:
    steps = {**study.steps, **{f"results/{one.folder}": one.stages for one in study.results}}
    rows = [{"step": step, "stage": stage, **used} for step, stages in steps.items() for stage, used in stages.items()]
    schema = pa.schema(
        [("step", pa.string()), ("stage", pa.string()), *((name, pa.float64()) for name in STAGE_COLUMNS)]
    )
    return pa.Table.from_pylist(rows, schema)
