"""The stages of the factorisation: what the task of one block does with the rows that it receives.

:mod:`spark.factors` explains blocks, tiles and messages.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# What a stage receives and sends: rows of the kinds below, for the task of a block.
ROW_SCHEMA = "block int, kind int, source int, size int, place binary, value binary"
# A tile (the indices of its entries in this block and in the block ``source``), a message (rows ``place`` of a matrix
# of ``size`` rows), the rows of ``V`` of a block of topics (``place`` may hold their Gram matrix), ids of clients, and
# a Gram matrix.
TILE, MESSAGE, STATE, IDS, GRAM = range(5)
_ROW_TYPES = {"block": pa.int32(), "kind": pa.int32(), "source": pa.int32(), "size": pa.int32()} | {
    "place": pa.binary(),
    "value": pa.binary(),
}
Stage = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class _Rows(NamedTuple):
    """The rows that the task of one block has received, each kind in the order of the source blocks."""

    block: int
    of_kind: dict[int, list[dict[str, Any]]]

    def total(self, columns: int) -> FloatArray:
        """Add the messages."""
        messages = self.of_kind[MESSAGE]
        total = np.zeros((messages[0]["size"] if messages else 0, columns))
        for message in messages:
            place = np.frombuffer(message["place"], np.int32)
            flat = np.frombuffer(message["value"], _number_type(message["value"], len(place) * columns))
            total[place] += flat.reshape(-1, columns)
        return total

    def state(self, columns: int) -> FloatArray:
        """Return the block's rows of ``V``."""
        return np.frombuffer(self.of_kind[STATE][0]["value"]).reshape(-1, columns)

    def messages(self, value: FloatArray, number: type[np.floating[Any]]) -> Iterator[tuple[Any, ...]]:
        """Multiply rows of this block by each tile."""
        from scipy.sparse import csr_array

        for tile in self.of_kind[TILE]:
            source = np.frombuffer(tile["place"], np.int32)
            place, row = _distinct(np.frombuffer(tile["value"], np.int32), tile["size"])
            product = csr_array((np.ones(len(row)), (row, source)), shape=(len(place), len(value))) @ value
            sent = product.astype(number).tobytes()
            yield tile["source"], MESSAGE, self.block, tile["size"], place.astype(np.int32).tobytes(), sent


def _number_type(value: bytes, numbers: int) -> type[np.floating[Any]]:
    return np.float32 if len(value) == 4 * numbers else np.float64


def _distinct(index: IntArray, size: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the distinct values, ascending, and the number of each entry among them."""
    if len(index) < size // 8:
        place, row = np.unique(index, return_inverse=True)
        return place.astype(np.int64), row
    present = np.zeros(size, np.bool_)
    present[index] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[index]


def _receive(batches: Iterator[pa.RecordBatch]) -> _Rows | None:
    of_kind: dict[int, list[dict[str, Any]]] = {kind: [] for kind in (TILE, MESSAGE, STATE, IDS)}
    block = None
    for batch in batches:
        columns = {name: batch.column(name) for name in ("kind", "source", "size")}
        for i in range(len(batch)):
            row = {name: column[i].as_py() for name, column in columns.items()}
            row |= {name: batch.column(name)[i].as_buffer() for name in ("place", "value")}
            of_kind[row["kind"]].append(row)
        if len(batch):
            block = batch.column("block")[0].as_py()
    for rows in of_kind.values():
        rows.sort(key=lambda row: int(row["source"]))
    return None if block is None else _Rows(block, of_kind)


def _send(rows: Iterator[tuple[Any, ...]]) -> Iterator[pa.RecordBatch]:
    for row in rows:
        columns = [pa.array([cell], kind) for cell, kind in zip(row, _ROW_TYPES.values(), strict=True)]
        yield pa.record_batch(columns, names=list(_ROW_TYPES))


def _state_row(block: int, value: FloatArray, with_gram: bool) -> tuple[Any, ...]:
    # With several threads the order of summation, and so the rounding, would depend on their number.
    with one_thread():
        gram = (value.T @ value).tobytes() if with_gram else b""
    return block, STATE, block, len(value), gram, value.tobytes()


def random_start(columns: int) -> Stage:
    """Return the stage that draws rows of ``V``.

    Parameters
    ----------
    columns
        The number of columns.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def draw(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for block, size in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                value = np.random.default_rng([0, block]).standard_normal((size, columns))
                yield from _send(iter([_state_row(block, value, with_gram=True)]))

    return draw


def send_start(rotation: FloatArray, number: type[np.floating[Any]]) -> Stage:
    """Return the stage that multiplies ``V·rotation`` by ``G``, on the side of the topics.

    Parameters
    ----------
    rotation
        The matrix to multiply ``V`` by.
    number
        The type of the numbers in the messages.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def start(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if (rows := _receive(batches)) is not None:
            with one_thread():
                value = rows.state(len(rotation)) @ rotation
            yield from _send(rows.messages(value, number))
            yield from _send(iter([_state_row(rows.block, value, with_gram=False)]))

    return start


def send_back(columns: int) -> Stage:
    """Return the stage that multiplies by ``Gᵀ``, on the side of the clients. It passes the rows of ``V`` through.

    Parameters
    ----------
    columns
        The number of columns.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if (rows := _receive(batches)) is not None:
            yield from _send(rows.messages(rows.total(columns), np.float32))
            for row in rows.of_kind[STATE]:
                state = row["value"].to_pybytes()
                yield from _send(iter([(rows.block, STATE, rows.block, row["size"], b"", state)]))

    return pass_on


def filter_rows(columns: int, root: float, scale: float, last: bool) -> Stage:
    """Return the stage that computes ``scale·(A - root)·V`` from the messages, and multiplies it by ``G`` again.

    Parameters
    ----------
    columns
        The number of columns.
    root, scale
        The root of the filter, and the scale of the result.
    last
        Whether this is the last stage of a round. It sends no messages.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def multiply(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if (rows := _receive(batches)) is not None:
            value = (rows.total(columns) - root * rows.state(columns)) * scale
            if not last:
                yield from _send(rows.messages(value, np.float32))
            yield from _send(iter([_state_row(rows.block, value, with_gram=last)]))

    return multiply


def gram_rows(columns: int) -> Stage:
    """Return the stage that computes the Gram matrix of a block of ``G·V``.

    Parameters
    ----------
    columns
        The number of columns.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def gram(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if (rows := _receive(batches)) is not None:
            value = rows.total(columns)
            with one_thread():
                square = value.T @ value
            yield from _send(iter([(rows.block, GRAM, rows.block, 0, b"", square.tobytes())]))

    return gram


def factor_rows(columns: int) -> Stage:
    """Return the stage that joins a block of ``F`` with the ids of the clients.

    Parameters
    ----------
    columns
        The number of columns.

    Returns
    -------
    callable
        A function for ``mapInArrow``.
    """

    def join(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _receive(batches)
        if rows is None or not rows.of_kind[IDS]:
            return
        client = np.sort(np.concatenate([np.frombuffer(row["value"], np.int64) for row in rows.of_kind[IDS]]))
        value = rows.total(columns)
        start = np.arange(len(client) + 1, dtype=np.int32) * columns
        factors = pa.ListArray.from_arrays(pa.array(start), pa.array(value.ravel()))
        yield pa.record_batch([pa.array(client), factors], names=["client", "factors"])

    return join
