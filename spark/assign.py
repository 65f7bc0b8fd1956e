"""A home for every client at full scale: the methods of the paper, RELOC cluster by cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.heuristics.clusters import divide_servers, nearest_centroid
from relocbench.heuristics.otos import topic_servers
from relocbench.heuristics.relations import most_related_by_factors, most_related_exactly
from relocbench.heuristics.reloc import Related, Steps, place_cluster
from relocbench.heuristics.reloc_tasks import Cluster, make_task
from relocbench.instances.errors import InputError
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.nearest_server import nearest_by_distance
from relocbench.spark.blocks import SCHEMA, mixed, packed, unpacked
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Method = Literal["reloc", "nearest", "random", "otos"]
Relation = Literal["svd", "exact"]
HOMES = "client bigint, home int"
COLUMNS = ["client", "x", "y", "topic", "position", "size"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What RELOC is told; as in :func:`heuristics.reloc.solve`.

    Attributes
    ----------
    k, related, rank, relation, seed
        ``K``, ``M′``, columns of the factorisation, how relations are scored, the seed of K-means.
    rounds
        Of the factorisation.
    """

    k: int = 4
    related: int = 100
    rank: int = 16
    relation: Relation = "svd"
    rounds: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("k", 1), ("related", 0), ("rank", 1), ("rounds", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name}", f"expected at least {least}, got {getattr(self, name)}")

    @property
    def needs_factors(self) -> bool:
        """Whether relations are scored by factors."""
        return self.relation == "svd" and self.related > 0


def nearest_homes(clients: "DataFrame", field: Field) -> "DataFrame":
    """Return the nearest server of every client."""

    def nearest(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        return nearest_by_distance(x, y, field.server_x, field.server_y, field.delay_per_km)

    return clients.select("client", "x", "y").mapInArrow(_each(nearest, "home"), HOMES)


def random_homes(clients: "DataFrame", field: Field, seed: int) -> "DataFrame":
    """Return a server for every client that its id and the seed choose."""
    servers = np.uint64(len(field.server_x))

    def choose(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        # The upper bits, scaled: every server is as likely as any other to within 2⁻³².
        return (((mixed(client, seed) >> np.uint64(32)) * servers) >> np.uint64(32)).astype(np.int32)

    return clients.select("client", "x", "y").mapInArrow(_each(choose, "home"), HOMES)


def reloc_homes(clients: "DataFrame", factors: "DataFrame | None", field: Field, reading: Reading) -> "DataFrame":
    """Return RELOC's homes; each cluster is one task."""
    of_server, centre = divide_servers(field.server_x, field.server_y, reading.k, reading.seed)

    def cluster(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        return nearest_centroid(x, y, centre)

    names = [*COLUMNS, "cluster"]
    found = clients.select(*COLUMNS).mapInArrow(_each(cluster, "cluster", keep=True), _schema(clients, "cluster int"))
    if factors is not None:
        found = found.join(factors, "client")
        names.append("factors")
    return found.select(*names).groupBy("cluster").applyInArrow(_place(field, of_server, reading), HOMES)


def otos_homes(clients: "DataFrame", field: Field) -> "DataFrame":
    """Return OTOS's homes: topics choose their servers everywhere at once, the loop over all clients is one task.

    Its cooperation step may move a client to any server, so that it does not split.
    """
    by_topic = clients.select("client", "x", "y", "topic", "position").mapInArrow(_to_topics(field.blocks), SCHEMA)
    preferred = by_topic.groupBy("block").applyInArrow(_preferred(field), "client bigint, preferred int")
    found = clients.select(*COLUMNS).join(preferred, "client").selectExpr("*", "0 AS cluster")
    everything = np.zeros(len(field.server_x), np.int32)
    steps = Reading(k=1, related=0)
    return found.groupBy("cluster").applyInArrow(_place(field, everything, steps), HOMES)


def _schema(frame: "DataFrame", more: str) -> str:
    kinds = ", ".join(f"{name} {kind}" for name, kind in frame.select(*COLUMNS).dtypes)
    return f"{kinds}, {more}"


def _each(
    choose: Callable[[npt.NDArray[np.int64], FloatArray, FloatArray], IntArray], name: str, keep: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that adds a column computed from id and position."""

    def each(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            chosen = choose(*(batch.column(c).to_numpy(zero_copy_only=False) for c in ("client", "x", "y")))
            kept = batch.schema.names if keep else ["client"]
            yield pa.record_batch([*(batch.column(c) for c in kept), pa.array(chosen)], names=[*kept, name])

    return each


def _place(field: Field, of_server: IntArray, reading: Reading) -> Callable[[pa.Table], pa.Table]:
    def place(table: pa.Table) -> pa.Table:
        table = table.combine_chunks().sort_by("client")
        servers = np.flatnonzero(of_server == table["cluster"][0].as_py()).astype(np.int32)
        degree = table["topic"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
        topic, position, size = (_flat(table, name) for name in ("topic", "position", "size"))
        # Algorithm 1 goes through topics by id and through members in their order.
        order = np.lexsort((position, topic))
        named = "preferred" in table.column_names
        task = make_task(
            entry_client=np.repeat(np.arange(len(table), dtype=np.int32), degree)[order],
            entry_topic=topic[order],
            entry_publishes=np.ones(len(topic), np.bool_),
            entry_spool=field.spool_per_member * size[order].astype(np.float64),
            storage_capacity=field.storage_capacity[servers],
            compute_capacity=field.compute_capacity[servers],
            client_x=np.array(table["x"]),
            client_y=np.array(table["y"]),
            server_x=field.server_x[servers],
            server_y=field.server_y[servers],
            delay=np.empty((0, 0)),
            delay_per_km=field.delay_per_km,
            preferred=np.array(table["preferred"]) if named else np.empty(0, np.int32),
        )
        steps = Steps(_related(table, topic, degree, reading), cooperate=True)
        cluster = Cluster(np.arange(len(table), dtype=np.int32), servers, task)
        return pa.table({"client": table["client"], "home": place_cluster(cluster, steps)})

    return place


def _related(
    table: pa.Table, topic: npt.NDArray[np.int64], degree: npt.NDArray[np.int32], reading: Reading
) -> Related | None:
    if reading.related == 0:
        return None
    if reading.needs_factors:
        factors = _flat(table, "factors").reshape(len(table), -1)
        return lambda clients: most_related_by_factors(factors, reading.related)
    return lambda clients: most_related_exactly(offsets(degree), topic, reading.related)


def _flat(table: pa.Table, name: str) -> npt.NDArray[Any]:
    # A copy: compiled code for arrays that cannot be written to is other code, which the local run does not have ready.
    return np.array(table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False))


def _to_topics(blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def turn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            degree = batch.column("topic").value_lengths().to_numpy(zero_copy_only=False)
            start = np.cumsum(degree) - degree
            first = np.zeros(int(degree.sum()), np.int64)
            first[start] = 1  # topics ascend
            client, x, y = (
                np.repeat(batch.column(c).to_numpy(zero_copy_only=False), degree) for c in ("client", "x", "y")
            )
            topic, position = (batch.column(c).flatten().to_numpy(zero_copy_only=False) for c in ("topic", "position"))
            yield packed(blocks, topic, position.astype(np.int64), client, x, y, first)

    return turn


def _preferred(field: Field) -> Callable[[pa.Table], pa.Table]:
    def choose(table: pa.Table) -> pa.Table:
        found = unpacked(table["payload"], 6)
        topic, _, client, x, y, first = found[:, np.lexsort((found[1], found[0]))]
        _, start, owner = np.unique(topic, return_index=True, return_inverse=True)
        server = topic_servers(
            np.append(start, len(topic)).astype(np.int64),
            np.arange(len(topic), dtype=np.int32),
            x.view(np.float64),
            y.view(np.float64),
            field.server_x,
            field.server_y,
            field.delay_per_km,
            np.empty((0, 0)),
        )
        firsts = first > 0
        return pa.table({"client": client[firsts], "preferred": server[owner[firsts]]})

    return choose
