"""Factorisation of the client×topic incidence ``G`` at full scale: a randomized SVD with a fixed order of summation.

The matrix ``V`` (topics × columns) is multiplied by ``GᵀG`` and orthonormalised, several times. Then ``F = G·V`` is
rotated so that its first columns have the largest singular values. Neither ``Z = G·Gᵀ`` nor any other product of
clients and clients is formed. The driver receives matrices of columns×columns only.

Clients and topics are divided into blocks by their ids. ``G`` is stored as tiles, one for each pair of blocks. In a
product each tile sends one message to the block on the other side, and that block adds its messages in the order of
their source blocks. Therefore the factors are identical to the last bit for any number of partitions and executors.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relocbench.heuristics.readings import Factorised
from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.spark.blocks import BLOCK_SCHEMA, block_of, pack, unpack
from relocbench.spark.checkpoints import read_dataset, write_dataset
from relocbench.spark.locations import Location, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FACTORS_SCHEMA = "client bigint, factors array<double>"
TILE_SCHEMA = "client_block int, topic_block int, clients int, topics int, client binary, topic binary"
MESSAGE_SCHEMA = "block int, source int, size int, place binary, value binary"
# A block of a dense matrix: its rows, and their Gram matrix.
DENSE_SCHEMA = "block int, value binary, gram binary"
# Columns in addition to the rank (oversampling). They let few rounds find the largest singular values.
OVERSAMPLING = 8
# Eigenvalues below this share of the largest are rounding errors of zero.
NEGLIGIBLE = 1e-10


@contextlib.contextmanager
def factorise(
    clients: "DataFrame",
    topics: int,
    n_blocks: int,
    rank: int,
    rounds: int,
    work: Location,
    factorised: Factorised = "Z",
) -> Iterator["DataFrame"]:
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
        How often ``GᵀG`` is applied. More rounds come closer to the best factorisation of that rank.
    work
        Folder for intermediate results, removed in the end. They are files rather than entries of Spark's cache: a
        lost executor does not lose them, and Spark's query plan does not grow from round to round.
    factorised
        As for :func:`heuristics.relations.svd_factors`.

    Yields
    ------
    pyspark.sql.DataFrame
        Columns ``client`` and ``factors``. It must be written before the context ends.
    """
    # As in heuristics.relations, there are always fewer columns than topics.
    rank = max(1, min(rank, topics - 1))
    columns = min(rank + OVERSAMPLING, topics)
    tiles = _checkpoint(make_tiles(clients, n_blocks), work / "tiles")
    start = tiles.groupBy("topic_block").applyInArrow(_random_start(columns), DENSE_SCHEMA)
    topic_side = _checkpoint(start, work / "topics-0")
    transform = _orthonormalising(_gram(topic_side))
    for number in range(1, rounds + 1):
        client_side = _checkpoint(_product(tiles, topic_side, "topic", transform), work / f"clients-{number}")
        remove(work / f"topics-{number - 1}")
        identity = np.eye(transform.shape[1])
        topic_side = _checkpoint(_product(tiles, client_side, "client", identity), work / f"topics-{number}")
        remove(work / f"clients-{number}")
        transform = _orthonormalising(_gram(topic_side))
    client_side = _checkpoint(_product(tiles, topic_side, "topic", transform), work / "clients")
    values, vectors = _eigenvectors(_gram(client_side))
    rotation = vectors[:, ::-1][:, :rank]
    if factorised == "incidence":
        # The columns of F have the lengths Σ, and ``values`` are their squares.
        kept = values > NEGLIGIBLE * values[-1]
        rotation = rotation * np.where(kept, np.where(kept, values, 1.0) ** -0.25, 0.0)[::-1][:rank]
    ids = clients.select("client").mapInArrow(_pack_ids(n_blocks), BLOCK_SCHEMA)
    rows = _factor_rows(rotation)
    yield ids.groupBy("block").cogroup(client_side.groupBy("block")).applyInArrow(rows, FACTORS_SCHEMA)
    remove(work)


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


def _product(tiles: "DataFrame", dense: "DataFrame", side: str, transform: FloatArray) -> "DataFrame":
    """Multiply ``dense·transform`` by ``G`` if ``dense`` has rows for topics, by ``Gᵀ`` if it has rows for clients."""
    pairs = tiles.groupBy(f"{side}_block").cogroup(dense.groupBy("block"))
    messages = pairs.applyInArrow(_send_messages(side, transform), MESSAGE_SCHEMA)
    return messages.groupBy("block").applyInArrow(_add_messages(transform.shape[1]), DENSE_SCHEMA)


def _checkpoint(frame: "DataFrame", folder: Location) -> "DataFrame":
    write_dataset(frame, folder)
    return read_dataset(frame.sparkSession, folder)


def _gram(dense: "DataFrame") -> FloatArray:
    """Sum the Gram matrices of the blocks, in the order of the blocks."""
    grams = sorted((row["block"], row["gram"]) for row in dense.select("block", "gram").collect())
    flat = np.sum([np.frombuffer(gram) for _, gram in grams], axis=0)
    side = round(len(flat) ** 0.5)
    return np.asarray(flat.reshape(side, side), np.float64)


def _eigenvectors(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    with one_thread():
        values, vectors = np.linalg.eigh(gram)
    return values, vectors


def _orthonormalising(gram: FloatArray) -> FloatArray:
    """Return the matrix ``T`` that makes the columns of ``X·T`` orthonormal, given the Gram matrix of ``X``."""
    values, vectors = _eigenvectors(gram)
    kept = values > NEGLIGIBLE * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]), np.float64)


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


def _random_start(columns: int) -> Callable[[pa.Table], pa.Table]:
    def draw(table: pa.Table) -> pa.Table:
        block, size = table["topic_block"][0].as_py(), table["topics"][0].as_py()
        return _dense_table(block, np.random.default_rng([0, block]).standard_normal((size, columns)))

    return draw


def _send_messages(side: str, transform: FloatArray) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return a function that multiplies a block by each of its tiles and sends the product to the other block."""
    other = "client" if side == "topic" else "topic"

    def send(tiles: pa.Table, dense: pa.Table) -> pa.Table:
        from scipy.sparse import csr_array

        block = dense["block"][0].as_py()
        with one_thread():
            value = np.frombuffer(dense["value"][0].as_buffer()).reshape(-1, len(transform)) @ transform
        rows = []
        for tile in range(len(tiles)):
            source_index = np.frombuffer(tiles[side][tile].as_buffer(), np.int32)
            target_index = np.frombuffer(tiles[other][tile].as_buffer(), np.int32)
            place, row = np.unique(target_index, return_inverse=True)
            product = csr_array((np.ones(len(row)), (row, source_index)), shape=(len(place), len(value))) @ value
            size = tiles[f"{other}s"][tile].as_py()
            rows.append((tiles[f"{other}_block"][tile].as_py(), block, size, place.tobytes(), product.tobytes()))
        columns = list(zip(*rows, strict=True))
        kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
        names = ("block", "source", "size", "place", "value")
        return pa.table({n: pa.array(column, kind) for n, kind, column in zip(names, kinds, columns, strict=True)})

    return send


def _add_messages(columns: int) -> Callable[[pa.Table], pa.Table]:
    def add(table: pa.Table) -> pa.Table:
        table = table.sort_by("source")
        total = np.zeros((table["size"][0].as_py(), columns))
        for row in range(len(table)):
            place = np.frombuffer(table["place"][row].as_buffer(), np.int32)
            total[place] += np.frombuffer(table["value"][row].as_buffer()).reshape(-1, columns)
        return _dense_table(table["block"][0].as_py(), total)

    return add


def _dense_table(block: int, value: FloatArray) -> pa.Table:
    # With several threads the order of summation, and so the rounding, would depend on their number.
    with one_thread():
        gram = value.T @ value
    return pa.table(
        {
            "block": pa.array([block], pa.int32()),
            "value": pa.array([value.tobytes()], pa.binary()),
            "gram": pa.array([gram.tobytes()], pa.binary()),
        }
    )


def _factor_rows(rotation: FloatArray) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return a function that rotates a block of ``F`` and joins its rows with the ids of the clients."""

    def rotate(ids: pa.Table, dense: pa.Table) -> pa.Table:
        client = np.sort(unpack(ids["payload"], 1)[0])
        with one_thread():
            value = np.frombuffer(dense["value"][0].as_buffer()).reshape(len(client), -1) @ rotation
        start = np.arange(len(client) + 1, dtype=np.int32) * rotation.shape[1]
        factors = pa.ListArray.from_arrays(pa.array(start), pa.array(value.ravel()))
        return pa.table({"client": client, "factors": factors})

    return rotate
