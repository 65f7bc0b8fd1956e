"""A home for every client at full scale: the methods of the paper. RELOC runs each cluster as one task."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.heuristics import otos
from relocbench.heuristics.clusters import divide_servers, nearest_centroid
from relocbench.heuristics.readings import READINGS, Reading
from relocbench.heuristics.relations import most_related_exactly
from relocbench.heuristics.reloc import Related, Steps, cluster_ties, factor_relations, loop_rules, place_cluster
from relocbench.heuristics.reloc_loop import Rules
from relocbench.heuristics.reloc_tasks import Cluster, Visits, make_task
from relocbench.instances.errors import InputError
from relocbench.instances.instance import PUBLISHES
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.nearest_server import nearest_by_distance
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.membership_roles import role_columns, roles_of
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Method = Literal["reloc", "nearest", "random", "otos"]
HOMES_SCHEMA = "client bigint, home int"


# The reading of the first version, whose records name only a part of it. Records of it mean this reading.
IMPLIED_READING = asdict(READINGS["pseudocode"])


@dataclass(frozen=True, kw_only=True)
class RelocOptions(Reading):
    """Options of RELOC at full scale: a reading of Algorithm 1, with the meaning that it has in the local method.

    Attributes
    ----------
    k
        The number of clusters ``K``.
    related
        The number of related clients ``M′``.
    rounds
        The largest number of rounds of the factorisation. It ends earlier when it has converged.
    seed
        The seed of K-means and of everything that is ``random``.
    """

    k: int = 4
    related: int = 100
    rounds: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if self.relation == "nmf":
            raise InputError("--relation", "expected svd or exact, got nmf: it is computed by the local method only")
        if not self.diagonal:
            raise InputError("--diagonal", "expected true, got false: it is computed by the local method only")
        if self.rank == "full":
            raise InputError("--rank", "expected a number, got full: --relation exact has the scores of full rank")
        for name, least in (("k", 1), ("related", 0), ("rank", 1), ("rounds", 1)):
            if getattr(self, name) < least:
                raise InputError(f"--{name}", f"expected at least {least}, got {getattr(self, name)}")
        super().__post_init__()

    def require_fewer_clusters_than(self, servers: int | None) -> None:
        """Refuse as many clusters as servers.

        Parameters
        ----------
        servers
            The number of servers; None if the method has no clusters.

        Raises
        ------
        InputError
            If there are as many clusters, or more.
        """
        if servers is not None and self.k >= servers:
            problem = (
                f"expected less than the number of servers, {servers}, got {self.k}: with a cluster for each server"
            )
            raise InputError("--k", f"{problem} RELOC is NS (--method nearest)")

    @property
    def needs_factors(self) -> bool:
        """Whether relations are scored by factors."""
        return self.relation == "svd" and self.related > 0

    @property
    def columns(self) -> int:
        """The number of columns of the factorisation."""
        assert self.rank != "full"
        return self.rank

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> "RelocOptions":
        """Return the options that a record holds.

        Parameters
        ----------
        record
            The inputs of a step of RELOC.

        Returns
        -------
        RelocOptions
            The options.
        """
        values = IMPLIED_READING | dict(record)
        return cls(**{name: values[name] for name in cls.__dataclass_fields__})

    def visits(self, client_id: IdArray | None = None, topic_id: IdArray | None = None) -> Visits:
        """Return the order of topics and clients.

        Parameters
        ----------
        client_id, topic_id
            As for :class:`heuristics.reloc_tasks.Visits`.

        Returns
        -------
        Visits
            The order.
        """
        return Visits(self.topic_order, self.client_order, self.seed, client_id, topic_id)


def nearest_homes(clients: "DataFrame", field: Field) -> "DataFrame":
    """Assign every client to its nearest server.

    Parameters
    ----------
    clients
        The dataset of :func:`spark.placement.place_field`.
    field
        Servers and delays.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``client`` and ``home``.
    """

    def nearest(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        return nearest_by_distance(x, y, field.server_x, field.server_y, field.delay_per_km)

    return clients.select("client", "x", "y").mapInArrow(_add_column(nearest, "home"), HOMES_SCHEMA)


def random_homes(clients: "DataFrame", field: Field, seed: int) -> "DataFrame":
    """Assign every client to a random server, which its id and the seed determine.

    Parameters
    ----------
    clients, field
        As for :func:`nearest_homes`.
    seed
        The seed of the draws.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``client`` and ``home``.
    """
    servers = np.uint64(len(field.server_x))

    def choose(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        # Scaling the upper 32 bits makes all servers equally likely to within 2⁻³².
        return (((hash_ids(client, seed) >> np.uint64(32)) * servers) >> np.uint64(32)).astype(np.int32)

    return clients.select("client", "x", "y").mapInArrow(_add_column(choose, "home"), HOMES_SCHEMA)


def reloc_homes(clients: "DataFrame", factors: "DataFrame | None", field: Field, options: RelocOptions) -> "DataFrame":
    """Assign every client to a server with RELOC. Each cluster is one task.

    Parameters
    ----------
    clients, field
        As for :func:`nearest_homes`.
    factors
        The factors of :func:`spark.factors.factorise`, or None if the options need no factors.
    options
        The options of RELOC.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``client`` and ``home``.
    """
    server_cluster, centroid = divide_servers(field.server_x, field.server_y, options.k, options.seed)
    rank = _ranks_by_size(clients, centroid)

    def cluster(client: npt.NDArray[np.int64], x: FloatArray, y: FloatArray) -> IntArray:
        return rank[nearest_centroid(x, y, centroid)]

    selected = clients.select(*_placed_columns(field))
    schema = ", ".join([*(f"{name} {kind}" for name, kind in selected.dtypes), "cluster int"])
    clustered = selected.mapInArrow(_add_column(cluster, "cluster", keep_all=True), schema)
    names = [*selected.columns, "cluster"]
    if factors is not None:
        clustered = clustered.join(factors, "client")
        names.append("factors")
    place = _cluster_placement(field, rank[server_cluster], options, loop_rules(options))
    # Spark starts tasks in the order of their numbers, so the largest cluster, whose number is now 0, comes first. The
    # number of tasks is fixed: otherwise Spark would hash clusters into partitions and merge small partitions.
    return clustered.select(*names).repartitionById(len(rank), "cluster").mapInArrow(_whole(place), HOMES_SCHEMA)


def otos_homes(clients: "DataFrame", field: Field) -> "DataFrame":
    """Assign every client to a server with OTOS.

    The servers of the topics are chosen in parallel. The loop over all clients is a single task, because the
    cooperation step may move a client to any server.

    Parameters
    ----------
    clients, field
        As for :func:`nearest_homes`.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``client`` and ``home``.
    """
    memberships = clients.select("client", "x", "y", "topic", "position")
    by_topic = memberships.mapInArrow(_memberships_by_topic(field.n_blocks), BLOCK_SCHEMA)
    preferred = by_topic.groupBy("block").applyInArrow(_preferred_servers(field), "client bigint, preferred int")
    joined = clients.select(*_placed_columns(field)).join(preferred, "client").selectExpr("*", "0 AS cluster")
    one_cluster = np.zeros(len(field.server_x), np.int32)
    place = _cluster_placement(field, one_cluster, RelocOptions(k=1, related=0), otos.loop_rules())
    return joined.groupBy("cluster").applyInArrow(place, HOMES_SCHEMA)


def _placed_columns(field: Field) -> list[str]:
    """Return the columns of the dataset of clients that the placement of a cluster needs."""
    return ["client", "x", "y", "topic", "position", "size", *role_columns(field.roles)]


def _ranks_by_size(clients: "DataFrame", centroid: FloatArray) -> IntArray:
    """Return the rank of each cluster by its number of clients; the largest has rank 0."""

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        sizes = np.zeros(len(centroid), np.int64)
        for batch in batches:
            x, y = (batch.column(c).to_numpy(zero_copy_only=False) for c in ("x", "y"))
            sizes += np.bincount(nearest_centroid(x, y, centroid), minlength=len(centroid))
        found = np.flatnonzero(sizes)
        yield pa.record_batch([pa.array(found.astype(np.int32)), pa.array(sizes[found])], names=["cluster", "clients"])

    total = np.zeros(len(centroid), np.int64)
    for row in clients.select("x", "y").mapInArrow(count, "cluster int, clients bigint").collect():
        total[row["cluster"]] += row["clients"]
    rank = np.empty(len(total), np.int32)
    rank[np.argsort(-total, kind="stable")] = np.arange(len(total), dtype=np.int32)
    return rank


def _whole(place: Callable[[pa.Table], pa.Table]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that places all rows of a partition together."""

    def place_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = [batch for batch in batches if len(batch)]
        if received:
            yield from place(pa.Table.from_batches(received)).to_batches()

    return place_all


def _add_column(
    compute: Callable[[npt.NDArray[np.int64], FloatArray, FloatArray], IntArray], name: str, keep_all: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that adds a column computed from the id and position of each client.

    Of the other columns all are kept, or only ``client``.
    """

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            column = compute(*(batch.column(c).to_numpy(zero_copy_only=False) for c in ("client", "x", "y")))
            kept = batch.schema.names if keep_all else ["client"]
            yield pa.record_batch([*(batch.column(c) for c in kept), pa.array(column)], names=[*kept, name])

    return add


def _cluster_placement(
    field: Field, server_cluster: IntArray, options: RelocOptions, rules: Rules
) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that places the clients of one cluster."""

    def place(table: pa.Table) -> pa.Table:
        table = table.combine_chunks().sort_by("client")
        servers = np.flatnonzero(server_cluster == table["cluster"][0].as_py()).astype(np.int32)
        degree = table["topic"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
        topic, position, size = (_flatten(table, name) for name in ("topic", "position", "size"))
        # The given order of Algorithm 1: topics in the order of their ids, members in their order within the topic.
        order = np.lexsort((position, topic))
        has_preferred = "preferred" in table.column_names
        client_id = _column(table, "client")
        task = make_task(
            options.visits(),
            client_id=client_id,
            entry_client=np.repeat(np.arange(len(table), dtype=np.int32), degree)[order],
            entry_topic=topic[order],
            entry_size=size[order],
            entry_publishes=(roles_of(table, size).role[order] & PUBLISHES) > 0,
            entry_spool=field.spool_per_member * size[order].astype(np.float64),
            storage_capacity=field.storage_capacity[servers],
            compute_capacity=field.compute_capacity[servers],
            client_x=_column(table, "x"),
            client_y=_column(table, "y"),
            server_x=field.server_x[servers],
            server_y=field.server_y[servers],
            delay=np.empty((0, 0)),
            delay_per_km=field.delay_per_km,
            preferred=_column(table, "preferred") if has_preferred else np.empty(0, np.int32),
        )
        steps = Steps(_relation_finder(table, topic, degree, options), rules)
        cluster = Cluster(np.arange(len(table), dtype=np.int32), servers, task, client_id)
        return pa.table({"client": table["client"], "home": place_cluster(cluster, steps)})

    return place


def _relation_finder(
    table: pa.Table, topic: npt.NDArray[np.int64], degree: npt.NDArray[np.int32], options: RelocOptions
) -> Related | None:
    if options.related == 0:
        return None
    if options.needs_factors:
        factors = _flatten(table, "factors").reshape(len(table), -1)
        return factor_relations(factors, options, options.related, options.seed)
    start = offsets(degree)
    return lambda cluster: most_related_exactly(
        start, topic, options.related, cluster_ties(cluster, options, options.seed)
    )


# The copies make arrays writable. numba would compile the kernels anew for read-only arrays.
def _column(table: pa.Table, name: str) -> npt.NDArray[Any]:
    # Of the column itself, np.array makes no copy: it takes the read-only array that the column returns.
    return np.array(table[name].to_numpy())


def _flatten(table: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.array(table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False))


def _memberships_by_topic(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that packs the memberships of clients into blocks by topic."""

    def regroup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            degree = batch.column("topic").value_lengths().to_numpy(zero_copy_only=False)
            start = np.cumsum(degree) - degree
            is_first = np.zeros(int(degree.sum()), np.int64)
            is_first[start] = 1  # the topics of a client are sorted by id
            client, x, y = (
                np.repeat(batch.column(c).to_numpy(zero_copy_only=False), degree) for c in ("client", "x", "y")
            )
            topic, position = (batch.column(c).flatten().to_numpy(zero_copy_only=False) for c in ("topic", "position"))
            yield pack(n_blocks, topic, position.astype(np.int64), client, x, y, is_first)

    return regroup


def _preferred_servers(field: Field) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow``: the server of each client's first topic, for the topics of a block."""

    def choose(table: pa.Table) -> pa.Table:
        entries = unpack(table["payload"], 6)
        topic, _, client, x, y, is_first = entries[:, np.lexsort((entries[1], entries[0]))]
        _, start, topic_index = np.unique(topic, return_index=True, return_inverse=True)
        server = otos.topic_servers(
            np.append(start, len(topic)).astype(np.int64),
            np.arange(len(topic), dtype=np.int32),
            x.view(np.float64),
            y.view(np.float64),
            field.server_x,
            field.server_y,
            field.delay_per_km,
            np.empty((0, 0)),
        )
        first = is_first > 0
        return pa.table({"client": client[first], "preferred": server[topic_index[first]]})

    return choose
