"""An instance of full scale as an ordinary one, and what the local methods make of it: read without Spark."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.heuristics import nearest, otos
from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.reloc import Related, Steps, factor_relations, relation_finder, run_clusters
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.errors import InputError, reason
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.edge_list import IdArray
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged
from relocbench.spark.assign import Reading
from relocbench.spark.checkpoints import read_note
from relocbench.spark.placement import read_field


@dataclass(frozen=True)
class Comparison:
    """How homes found by Spark compare with those found here: how many differ, and both costs."""

    clients: int
    different: int
    objective: float
    local_objective: float

    @property
    def equal(self) -> bool:
        """Whether all homes are equal, and the costs to nine digits."""
        return not self.different and abs(self.objective - self.local_objective) <= 1e-9 * abs(self.local_objective)


def read_local(folder: Path) -> tuple[Instance, IdArray]:
    """Return the instance in a folder that ``reloc`` wrote, and the id of each of its clients.

    Clients and topics are numbered by their ids. For sizes that fit into memory.
    """
    field, note = read_field(folder / "field"), read_note(folder / "field")
    clients = _read(folder / "field" / "clients", ["client", "x", "y"]).sort_by("client")
    topics = _read(Path(note["asked"]["topics"]) / "topics", ["topic", "members"]).sort_by("topic")
    ids = clients["client"].to_numpy()
    members = topics["members"].combine_chunks()
    size = members.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    member = np.searchsorted(ids, members.flatten().to_numpy(zero_copy_only=False))
    groups = Ragged(np.append(0, np.cumsum(size)), member)
    instance = Instance(
        name=folder.resolve().name,
        cloud_delay=field.cloud_delay,
        delay_per_km=field.delay_per_km,
        server_x=field.server_x,
        server_y=field.server_y,
        storage_capacity=field.storage_capacity,
        compute_capacity=field.compute_capacity,
        client_x=clients["x"].to_numpy(),
        client_y=clients["y"].to_numpy(),
        spool=field.spool_per_member * size.astype(np.float64),
        publishers=groups,
        subscribers=groups,
        parameters=note["asked"],
    )
    return instance, ids


def read_homes(folder: Path, ids: IdArray) -> IntArray:
    """Return the homes in a dataset, in the order of the clients."""
    table = _read(folder, ["client", "home"]).sort_by("client")
    if not np.array_equal(table["client"].to_numpy(), ids):
        raise InputError(str(folder), f"expected one home for each of {len(ids)} clients, got {len(table)} rows")
    return np.asarray(table["home"].to_numpy(), np.int32)


def read_factors(folder: Path, ids: IdArray) -> FloatArray:
    """Return the factors in a dataset, a row for each client."""
    table = _read(folder, ["client", "factors"]).sort_by("client")
    if not np.array_equal(table["client"].to_numpy(), ids):
        raise InputError(str(folder), f"expected factors for each of {len(ids)} clients, got {len(table)} rows")
    flat = table["factors"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(len(ids), -1))


def local_homes(folder: Path, method: str, instance: Instance, ids: IdArray) -> IntArray:
    """Return the homes that the local method finds, told the same; RELOC by factors is handed those in the folder."""
    if method == "nearest":
        return nearest.solve(instance, seed=0, time_limit=0.0).home
    if method == "otos":
        return otos.solve(instance, seed=0, time_limit=0.0).home
    if method != "reloc":
        raise InputError(str(folder), f"expected reloc, nearest or otos, got {method}: its draws are Spark's own")
    asked = read_note(folder / method)["asked"]
    reading = Reading(**{name: asked[name] for name in Reading.__dataclass_fields__})
    related: Related | None
    if reading.needs_factors:
        related = factor_relations(read_factors(folder / "factors" / "factors", ids), reading.related)
    else:
        related = relation_finder(instance, "exact", reading.related, reading.rank, reading.seed)
    clusters = make_clusters(instance, reading.k, reading.seed)
    return run_clusters(instance, cluster_tasks(instance, clusters), Steps(related, cooperate=True), threads=2)


def compare(folder: Path, method: str) -> Comparison:
    """Run a method here and compare homes and cost with what Spark wrote."""
    instance, ids = read_local(folder)
    found, stated = read_homes(folder / method / "homes", ids), read_note(folder / method)["objective"]
    local = local_homes(folder, method, instance, ids)
    different = int(np.count_nonzero(found != local))
    return Comparison(len(ids), different, stated, evaluate(instance, local).objective)


def _read(folder: Path, columns: list[str]) -> pa.Table:
    try:
        return pq.read_table(folder, columns=columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(str(folder), f"cannot be read as Parquet ({reason(error)})") from error
