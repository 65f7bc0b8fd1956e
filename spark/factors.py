"""The factorisation of the client×topic incidence ``G`` at full scale: a randomized SVD whose sums have a fixed order.

``V`` (topics × columns) is multiplied by ``GᵀG`` and orthonormalised, some times over; then ``F = G·V``, turned so that
its columns are the strongest. Neither ``Z = G·Gᵀ`` nor any other product of clients and clients is formed, and nothing
longer than columns×columns comes to the driver.

Clients and topics are dealt into blocks by their ids. ``G`` is kept as tiles, one for each pair of blocks, and a
product is one message from each tile to the other side, added up there in the order of blocks: the factors are the same
to the last bit however the data is partitioned, whoever computes them.
"""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits

from relocbench.instances.kernels.ragged import FloatArray
from relocbench.spark.blocks import SCHEMA, block_of, packed, unpacked
from relocbench.spark.checkpoints import write_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FACTORS = "client bigint, factors array<double>"
TILES = "client_block int, topic_block int, clients int, topics int, client binary, topic binary"
MESSAGES = "block int, source int, size int, place binary, value binary"
DENSE = "block int, value binary, gram binary"
# Columns beyond those wanted: what lets a few rounds find the strongest.
MORE_COLUMNS = 8
# What is smaller than this share of the largest is the rounding of nothing.
NEGLIGIBLE = 1e-10


@contextlib.contextmanager
def factorised(
    clients: "DataFrame", topics: int, blocks: int, rank: int, rounds: int, work: Path
) -> Iterator["DataFrame"]:
    """Give ``F``, one row for each client.

    Parameters
    ----------
    clients
        Each client with its topics.
    topics
        How many there are.
    blocks
        How many blocks clients and topics are dealt into.
    rank
        Columns wanted.
    rounds
        How often ``GᵀG`` is applied; more come closer to the best factorisation of that rank.
    work
        Folder for what is needed meanwhile. Files rather than Spark's cache: a lost executor takes nothing with it, and
        the plan does not grow from round to round.
    """
    # As heuristics.relations has it: never as many columns as topics.
    rank = max(1, min(rank, topics - 1))
    columns = min(rank + MORE_COLUMNS, topics)
    tiles = _written(make_tiles(clients, blocks), work / "tiles")
    at_topics = _written(tiles.groupBy("topic_block").applyInArrow(_start(columns), DENSE), work / "topics-0")
    turn = _whitening(_gram(at_topics))
    for number in range(1, rounds + 1):
        at_clients = _written(_product(tiles, at_topics, "topic", turn), work / f"clients-{number}")
        shutil.rmtree(work / f"topics-{number - 1}")
        at_topics = _written(_product(tiles, at_clients, "client", np.eye(turn.shape[1])), work / f"topics-{number}")
        shutil.rmtree(work / f"clients-{number}")
        turn = _whitening(_gram(at_topics))
    at_clients = _written(_product(tiles, at_topics, "topic", turn), work / "clients")
    strongest = _eigenvectors(_gram(at_clients))[1][:, ::-1][:, :rank]
    ids = clients.select("client").mapInArrow(_ids(blocks), SCHEMA)
    yield ids.groupBy("block").cogroup(at_clients.groupBy("block")).applyInArrow(_rows(strongest), FACTORS)
    shutil.rmtree(work)


def make_tiles(clients: "DataFrame", blocks: int) -> "DataFrame":
    """Return ``G`` in tiles: the places, within the two blocks, of each client and each topic that belong together."""
    memberships = clients.select("client", "topic").mapInArrow(_memberships(blocks), SCHEMA)
    by_client = memberships.groupBy("block").applyInArrow(_client_tiles(blocks), TILES)
    return by_client.groupBy("topic_block").applyInArrow(_topic_tiles, TILES)


def _product(tiles: "DataFrame", dense: "DataFrame", side: str, turn: FloatArray) -> "DataFrame":
    """Return ``G`` (from the topics' side) or ``Gᵀ`` (from the clients') times ``dense·turn``, and its Gram matrix."""
    messages = tiles.groupBy(f"{side}_block").cogroup(dense.groupBy("block")).applyInArrow(_send(side, turn), MESSAGES)
    return messages.groupBy("block").applyInArrow(_add(turn.shape[1]), DENSE)


def _written(frame: "DataFrame", folder: Path) -> "DataFrame":
    write_step(frame, folder)
    return frame.sparkSession.read.parquet(str(folder.resolve()))


def _gram(dense: "DataFrame") -> FloatArray:
    """Return the sum of the blocks' Gram matrices, in the order of blocks."""
    grams = sorted((row["block"], row["gram"]) for row in dense.select("block", "gram").collect())
    flat = np.sum([np.frombuffer(gram) for _, gram in grams], axis=0)
    side = round(len(flat) ** 0.5)
    return np.asarray(flat.reshape(side, side), np.float64)


def _eigenvectors(gram: FloatArray) -> tuple[FloatArray, FloatArray]:
    with threadpool_limits(1):
        values, vectors = np.linalg.eigh(gram)
    return values, vectors


def _whitening(gram: FloatArray) -> FloatArray:
    """Return what makes the columns with this Gram matrix orthonormal."""
    values, vectors = _eigenvectors(gram)
    kept = values > NEGLIGIBLE * values[-1]
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]), np.float64)


def _ids(blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def deal(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield packed(blocks, batch.column(0).to_numpy(zero_copy_only=False))

    return deal


def _memberships(blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def deal(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topics = batch.column(1)
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            client = np.repeat(batch.column(0).to_numpy(zero_copy_only=False), degree)
            yield packed(blocks, client, topics.flatten().to_numpy(zero_copy_only=False))

    return deal


def _client_tiles(blocks: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function that numbers the clients of a block, by id, and cuts their memberships by block of topics."""

    def cut(table: pa.Table) -> pa.Table:
        client, topic = unpacked(table["payload"])
        found, place = np.unique(client, return_inverse=True)
        topic_block = block_of(topic, blocks)
        order = np.lexsort((topic, place, topic_block))
        bounds = np.searchsorted(topic_block[order], np.arange(blocks + 1))
        rows = []
        for b in range(blocks):
            entries = order[bounds[b] : bounds[b + 1]]
            if len(entries):
                # Topics by id as yet: their numbers are known when all tiles of their block are together.
                tile = (place[entries].astype(np.int32).tobytes(), topic[entries].tobytes())
                rows.append((table["block"][0].as_py(), b, len(found), 0, *tile))
        return _tile_table(rows)

    return cut


def _topic_tiles(table: pa.Table) -> pa.Table:
    """Return the tiles of a block of topics with its topics numbered, by id."""
    ids = [np.frombuffer(cell.as_buffer(), np.int64) for cell in table["topic"]]
    found = np.unique(np.concatenate(ids))
    rows = [
        (*row[:3], len(found), row[4], np.searchsorted(found, topic).astype(np.int32).tobytes())
        for row, topic in zip(zip(*(column.to_pylist() for column in table.columns), strict=True), ids, strict=True)
    ]
    return _tile_table(rows)


def _tile_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    kinds = (pa.int32(), pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
    names = ("client_block", "topic_block", "clients", "topics", "client", "topic")
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(kinds)
    return pa.table({n: pa.array(column, kind) for n, kind, column in zip(names, kinds, columns, strict=True)})


def _start(columns: int) -> Callable[[pa.Table], pa.Table]:
    def draw(table: pa.Table) -> pa.Table:
        block, size = table["topic_block"][0].as_py(), table["topics"][0].as_py()
        return _dense_table(block, np.random.default_rng([0, block]).standard_normal((size, columns)))

    return draw


def _send(side: str, turn: FloatArray) -> Callable[[pa.Table, pa.Table], pa.Table]:
    """Return a function that multiplies a block by its tiles: one message to the block at the other end of each."""
    other = "client" if side == "topic" else "topic"

    def send(tiles: pa.Table, dense: pa.Table) -> pa.Table:
        from scipy.sparse import csr_array

        block = dense["block"][0].as_py()
        with threadpool_limits(1):
            value = np.frombuffer(dense["value"][0].as_buffer()).reshape(-1, len(turn)) @ turn
        rows = []
        for tile in range(len(tiles)):
            here = np.frombuffer(tiles[side][tile].as_buffer(), np.int32)
            there = np.frombuffer(tiles[other][tile].as_buffer(), np.int32)
            place, row = np.unique(there, return_inverse=True)
            share = csr_array((np.ones(len(row)), (row, here)), shape=(len(place), len(value))) @ value
            size = tiles[f"{other}s"][tile].as_py()
            rows.append((tiles[f"{other}_block"][tile].as_py(), block, size, place.tobytes(), share.tobytes()))
        columns = list(zip(*rows, strict=True))
        kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary(), pa.binary())
        names = ("block", "source", "size", "place", "value")
        return pa.table({n: pa.array(column, kind) for n, kind, column in zip(names, kinds, columns, strict=True)})

    return send


def _add(columns: int) -> Callable[[pa.Table], pa.Table]:
    def add(table: pa.Table) -> pa.Table:
        table = table.sort_by("source")
        total = np.zeros((table["size"][0].as_py(), columns))
        for row in range(len(table)):
            place = np.frombuffer(table["place"][row].as_buffer(), np.int32)
            total[place] += np.frombuffer(table["value"][row].as_buffer()).reshape(-1, columns)
        return _dense_table(table["block"][0].as_py(), total)

    return add


def _dense_table(block: int, value: FloatArray) -> pa.Table:
    with threadpool_limits(1):  # the order of a sum depends on the number of threads
        gram = value.T @ value
    return pa.table(
        {
            "block": pa.array([block], pa.int32()),
            "value": pa.array([value.tobytes()], pa.binary()),
            "gram": pa.array([gram.tobytes()], pa.binary()),
        }
    )


def _rows(strongest: FloatArray) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def rows(ids: pa.Table, dense: pa.Table) -> pa.Table:
        client = np.sort(unpacked(ids["payload"], 1)[0])
        with threadpool_limits(1):
            value = np.frombuffer(dense["value"][0].as_buffer()).reshape(len(client), -1) @ strongest
        start = np.arange(len(client) + 1, dtype=np.int32) * strongest.shape[1]
        factors = pa.ListArray.from_arrays(pa.array(start), pa.array(value.ravel()))
        return pa.table({"client": client, "factors": factors})

    return rows
