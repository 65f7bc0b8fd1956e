"""Factorisation of the client×topic incidence ``G`` at full scale: subspace iteration with a Chebyshev filter.

``V`` (topics × columns) spans the subspace. A round multiplies it by a polynomial of ``A = GᵀG`` that is small up to
the least Ritz value and large above it, and then finds the Ritz vectors in the new subspace (Rayleigh-Ritz). Rounds end
when the squared norm of the factors has converged. Then ``F = G·V``. Neither ``Z = G·Gᵀ`` nor any other product of
clients and clients is formed. The driver receives matrices of columns×columns only.

Clients and topics are divided into blocks by their ids, and ``G`` is stored as tiles, one for each pair of blocks. A
stage has one task for each block of clients, or of topics. The task adds the messages of the other side in the order of
their source blocks, multiplies the sum by its tiles and sends one message for each tile. Therefore the factors are
identical to the last bit for any number of partitions and executors.
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from relocbench.heuristics.readings import Factorised
from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.spark.blocks import BLOCK_SCHEMA, block_of, pack, unpack
from relocbench.spark.checkpoints import read_dataset, run_once, write_dataset
from relocbench.spark.factor_stages import (
    IDS,
    ROW_SCHEMA,
    TILE,
    Stage,
    factor_rows,
    filter_rows,
    gram_rows,
    random_start,
    send_back,
    send_start,
)
from relocbench.spark.locations import Location, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FACTORS_SCHEMA = "client bigint, factors array<double>"
TILE_SCHEMA = "client_block int, topic_block int, clients int, topics int, client binary, topic binary"
# Columns in addition to the rank (oversampling). The filter is small up to the Ritz value of the last one.
OVERSAMPLING = 8
# The largest degree of the filter, and its largest value where it is small up to 1. A larger value would make the
# columns of V almost parallel.
DEGREE = 6
LARGEST_FILTER = 1e4
# The share of the squared norm of the best factors that may be missing in the end.
TOLERANCE = 1e-3
# Eigenvalues below this share of the largest are rounding errors of zero.
NEGLIGIBLE = 1e-10
# A block has at least this many memberships, so that a task is worth its start. Up to ``FIRST_BLOCKS`` blocks, a block
# has no more: several cores can then work on graphs of middle size.
LEAST_BLOCK = 1 << 15
FIRST_BLOCKS = 8


@dataclass(frozen=True, eq=False)
class Factors:
    """The factors and how far they have converged.

    Attributes
    ----------
    rows
        Columns ``client`` and ``factors``.
    rounds
        The number of rounds.
    captured
        The squared norm of the factors, which is at most that of the best factors of the same rank.
    missing
        The estimated share of the squared norm that is missing.
    """

    rows: "DataFrame"
    rounds: int
    captured: float
    missing: float

    @property
    def converged(self) -> bool:
        """Whether the missing share is at most ``TOLERANCE``."""
        return self.missing <= TOLERANCE


class _Ritz(NamedTuple):
    """The Ritz values of ``A`` in the subspace, the largest first, and the matrix ``R``: ``V·R`` has the vectors."""

    values: FloatArray
    rotation: FloatArray


def factor_blocks(memberships: int, field_blocks: int) -> int:
    """Return the number of blocks of the factorisation. It depends on the memberships, not on partitions.

    Parameters
    ----------
    memberships
        The number of memberships.
    field_blocks
        The number of blocks of the other steps, :attr:`spark.placement.Field.n_blocks`.

    Returns
    -------
    int
        The number of blocks of clients, and of topics.
    """
    return max(field_blocks, min(FIRST_BLOCKS, -(-memberships // LEAST_BLOCK)))


@contextlib.contextmanager
def factorise(
    clients: "DataFrame",
    topics: int,
    n_blocks: int,
    rank: int,
    rounds: int,
    work: Location,
    factorised: Factorised = "Z",
) -> Iterator[Factors]:
    """Compute the factors ``F``.

    Parameters
    ----------
    clients
        Each client with its topics.
    topics
        The number of topics.
    n_blocks
        The number of blocks of clients, and of topics.
    rank
        The number of columns of ``F``.
    rounds
        The largest number of rounds.
    work
        Folder for intermediate results, removed in the end. If the computation is stopped, the next call continues
        after the last complete round.
    factorised
        As for :func:`heuristics.relations.svd_factors`.

    Yields
    ------
    Factors
        The factors. They must be written before the context ends.
    """
    spark = clients.sparkSession
    # As in heuristics.relations, there are always fewer columns than topics.
    rank = max(1, min(rank, topics - 1))
    columns = min(rank + OVERSAMPLING, topics)
    inputs = {"topics": topics, "blocks": n_blocks, "columns": columns}
    run_once(work / "tiles", inputs, lambda: _written(make_tiles(clients, n_blocks), work / "tiles" / "rows"))
    tiles = _Tiles(spark, work / "tiles" / "rows", n_blocks)
    captured: list[float] = []
    ritz: _Ritz | None = None
    number = 0
    while True:
        ritz = _round(tiles, work, number, inputs, ritz)
        captured.append(float(ritz.values[:rank].sum()))
        remove(work / f"round-{number - 1}" / "rows")
        missing = 0.0 if columns == topics else missing_share(captured)
        if missing <= TOLERANCE or number == rounds:
            break
        number += 1
    rotation = ritz.rotation[:, :rank]
    if factorised == "incidence":
        # The columns of F have the lengths Σ, and the Ritz values are their squares.
        values = ritz.values[:rank]
        kept = values > NEGLIGIBLE * values[0]
        rotation = rotation * np.where(kept, np.where(kept, values, 1.0) ** -0.25, 0.0)
    ids = clients.select("client").mapInArrow(_pack_ids(n_blocks), BLOCK_SCHEMA)
    found = ids.selectExpr("block", f"{IDS} kind", "0 source", "0 size", "payload place", "payload value")
    state = read_dataset(spark, work / f"round-{number}" / "rows")
    sent = tiles.stage("topic", state, send_start(rotation, np.float64))
    rows = _by_block(sent.unionByName(found), n_blocks).mapInArrow(factor_rows(rotation.shape[1]), FACTORS_SCHEMA)
    yield Factors(rows, number, captured[-1], missing)
    remove(work)


def missing_share(captured: list[float]) -> float:
    """Estimate the share of the squared norm of the best factors that the last round does not have.

    The gains of later rounds are taken for a geometric series with the ratio of the last two gains, and the sum is
    doubled: the slowest directions come last, so that the ratio grows.

    Parameters
    ----------
    captured
        The squared norm after each round.

    Returns
    -------
    float
        The share; infinite while there are fewer than three rounds or the gains do not decrease.
    """
    if len(captured) < 3:
        return math.inf
    before, last = captured[-2] - captured[-3], captured[-1] - captured[-2]
    if last <= 1e-12 * captured[-1]:
        return 0.0
    if last >= before:
        return math.inf
    ratio = max(last / before, 0.1)
    return 2.0 * last * ratio / (1.0 - ratio) / captured[-1]


def filter_roots(values: FloatArray) -> FloatArray:
    """Return the roots of the filter: those of a Chebyshev polynomial on the interval from 0 to the least Ritz value.

    Parameters
    ----------
    values
        The Ritz values, the largest first.

    Returns
    -------
    array
        At most ``DEGREE`` roots.
    """
    half = values[-1] / 2.0
    if half <= NEGLIGIBLE * values[0]:
        return np.zeros(1)
    growth = math.acosh(max(values[0] / half - 1.0, 1.0 + 1e-9))
    degree = max(1, min(DEGREE, int(math.log(2.0 * LARGEST_FILTER) / growth)))
    return np.asarray(half + half * np.cos((2.0 * np.arange(degree) + 1.0) * math.pi / (2.0 * degree)), np.float64)


def make_tiles(clients: "DataFrame", n_blocks: int) -> "DataFrame":
    """Divide ``G`` into tiles.

    Parameters
    ----------
    clients, n_blocks
        As for :func:`factorise`.

    Returns
    -------
    pyspark.sql.DataFrame
        One row for each pair of blocks with a membership. ``client`` and ``topic`` hold the index of each
        membership's client and topic within the two blocks; ``clients`` and ``topics`` are the sizes of the blocks.
    """
    memberships = clients.select("client", "topic").mapInArrow(_pack_memberships(n_blocks), BLOCK_SCHEMA)
    by_client = memberships.groupBy("block").applyInArrow(_client_tiles(n_blocks), TILE_SCHEMA)
    return by_client.groupBy("topic_block").applyInArrow(_topic_tiles, TILE_SCHEMA)


class _Tiles(NamedTuple):
    """The tiles in a folder, and the stages that multiply by them."""

    spark: "SparkSession"
    folder: Location
    n_blocks: int

    def stage(self, side: str, incoming: "DataFrame", work: Stage) -> "DataFrame":
        """Run a stage with one task for each block of clients or of topics."""
        other = "client" if side == "topic" else "topic"
        tiles = read_dataset(self.spark, self.folder).selectExpr(
            f"{side}_block block",
            f"{TILE} kind",
            f"{other}_block source",
            f"{other}s size",
            f"{side} place",
            f"{other} value",
        )
        return _by_block(tiles.unionByName(incoming), self.n_blocks).mapInArrow(work, ROW_SCHEMA)

    def random_start(self, columns: int) -> "DataFrame":
        """Return random rows of ``V``."""
        tiles = read_dataset(self.spark, self.folder)
        sizes = tiles.groupBy("topic_block").agg({"topics": "max"}).toDF("block", "topics")
        return _by_block(sizes, self.n_blocks).mapInArrow(random_start(columns), ROW_SCHEMA)


def _by_block(frame: "DataFrame", n_blocks: int) -> "DataFrame":
    """Send the rows of each block to one task. The number of tasks is fixed, so that Spark does not merge them."""
    return frame.repartitionById(n_blocks, "block")


def _round(tiles: _Tiles, work: Location, number: int, inputs: dict[str, int], before: _Ritz | None) -> _Ritz:
    """Run a round unless an earlier call has done so. Round 0 only draws ``V``."""
    folder = work / f"round-{number}"

    def compute() -> dict[str, Any]:
        if before is None:
            rows = tiles.random_start(inputs["columns"])
        else:
            earlier = read_dataset(tiles.spark, work / f"round-{number - 1}" / "rows")
            roots = filter_roots(before.values)
            rows = tiles.stage("topic", earlier, send_start(before.rotation, np.float32))
            for i, root in enumerate(roots):
                rows = tiles.stage("client", rows, send_back(before.rotation.shape[1]))
                scale = 1.0 / (before.values[0] - root)
                rows = tiles.stage(
                    "topic", rows, filter_rows(before.rotation.shape[1], root, scale, i == len(roots) - 1)
                )
        write_dataset(rows, folder / "rows")
        written = read_dataset(tiles.spark, folder / "rows")
        topic_gram = _sum_grams(written, "place")
        sent = tiles.stage("topic", written, send_start(np.eye(len(topic_gram)), np.float64))
        client_gram = _sum_grams(
            _by_block(sent, tiles.n_blocks).mapInArrow(gram_rows(len(topic_gram)), ROW_SCHEMA), "value"
        )
        return {"topic_gram": topic_gram.tolist(), "client_gram": client_gram.tolist()}

    record, _ = run_once(folder, {**inputs, "round": number}, compute)
    return _rayleigh_ritz(np.array(record["topic_gram"]), np.array(record["client_gram"]))


def _written(frame: "DataFrame", folder: Location) -> dict[str, Any]:
    write_dataset(frame, folder)
    return {}


def _sum_grams(rows: "DataFrame", column: str) -> FloatArray:
    """Sum the Gram matrices of the blocks, in the order of the blocks."""
    grams = sorted((row["block"], row[column]) for row in rows.select("block", column).collect())
    flat = np.sum([np.frombuffer(gram) for _, gram in grams], axis=0)
    side = round(len(flat) ** 0.5)
    return np.asarray(flat.reshape(side, side), np.float64)


def _rayleigh_ritz(topic_gram: FloatArray, client_gram: FloatArray) -> _Ritz:
    """Return the Ritz values and vectors, given the Gram matrices of ``V`` and of ``G·V``."""
    length = np.sqrt(np.diag(topic_gram))
    scale = np.where(length > 0.0, 1.0 / np.where(length > 0.0, length, 1.0), 0.0)
    with one_thread():
        values, vectors = np.linalg.eigh(scale[:, None] * topic_gram * scale)
        kept = values > NEGLIGIBLE * values[-1]
        orthonormal = scale[:, None] * (vectors[:, kept] / np.sqrt(values[kept]))
        ritz, rotation = np.linalg.eigh(orthonormal.T @ client_gram @ orthonormal)
        return _Ritz(np.maximum(ritz[::-1], 0.0), (orthonormal @ rotation)[:, ::-1].copy())


def _pack_ids(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack_ids(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pack(n_blocks, batch.column(0).to_numpy(zero_copy_only=False))

    return pack_ids


def _pack_memberships(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def pack_memberships(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topics = batch.column(1)
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            client = np.repeat(batch.column(0).to_numpy(zero_copy_only=False), degree)
            yield pack(n_blocks, client, topics.flatten().to_numpy(zero_copy_only=False))

    return pack_memberships


def _client_tiles(n_blocks: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function that numbers the clients of a block by id and splits their memberships by block of topics."""

    def split(table: pa.Table) -> pa.Table:
        client, topic = unpack(table["payload"])
        ids, index = np.unique(client, return_inverse=True)
        topic_block = block_of(topic, n_blocks)
        order = np.lexsort((topic, index, topic_block))
        bounds = np.searchsorted(topic_block[order], np.arange(n_blocks + 1))
        rows = []
        for b in range(n_blocks):
            entries = order[bounds[b] : bounds[b + 1]]
            if len(entries):
                # Topics are still ids. _topic_tiles numbers them, because it has all tiles of a block of topics.
                tile = (index[entries].astype(np.int32).tobytes(), topic[entries].tobytes())
                rows.append((table["block"][0].as_py(), b, len(ids), 0, *tile))
        return _tile_table(rows)

    return split


def _topic_tiles(table: pa.Table) -> pa.Table:
    """Assign numbers to the topics of a block by id, in all tiles of the block."""
    topics = [np.frombuffer(cell.as_buffer(), np.int64) for cell in table["topic"]]
    ids = np.unique(np.concatenate(topics))
    rows = [
        (*row[:3], len(ids), row[4], np.searchsorted(ids, topic).astype(np.int32).tobytes())
        for row, topic in zip(zip(*(column.to_pylist() for column in table.columns), strict=True), topics, strict=True)
    ]
    return _tile_table(rows)


def _tile_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = (pa.int32(), pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
    names = ("client_block", "topic_block", "clients", "topics", "client", "topic")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return pa.table({n: pa.array(column, kind) for n, kind, column in zip(names, kinds, columns, strict=True)})
