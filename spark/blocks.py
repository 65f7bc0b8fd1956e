"""Blocks: many small records packed into a few large ones before they go through a shuffle.

Spark needs about 100 ns per row at every transfer between Java and Python and at every sort. A block of 100,000 pairs
costs as much as a single row. The block of a record follows from its id alone, never from the partitions of the data.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.kernels.id_hash import IdArray, hash_ids

BLOCK_SCHEMA = "block int, payload binary"
_ARROW_SCHEMA = pa.schema([("block", pa.int32()), ("payload", pa.binary())])


def block_of(ids: IdArray, n_blocks: int) -> npt.NDArray[np.uint16]:
    """Compute the block that each id belongs to.

    Parameters
    ----------
    ids
        Ids of clients or topics.
    n_blocks
        The number of blocks, at most 65,536.

    Returns
    -------
    numpy.ndarray
        The block number of each id.
    """
    return (hash_ids(ids) % np.uint64(n_blocks)).astype(np.uint16)


def pack(n_blocks: int, key: IdArray, *others: npt.NDArray[Any]) -> pa.RecordBatch:
    """Pack records of 64-bit numbers into one row per block.

    Parameters
    ----------
    n_blocks
        The number of blocks.
    key
        The first column. It determines the block of each record.
    *others
        Further columns of 64-bit integers or floats.

    Returns
    -------
    pyarrow.RecordBatch
        One row of ``BLOCK_SCHEMA`` for each block that has at least one record.
    """
    block = block_of(key, n_blocks)
    order = np.argsort(block, kind="stable")  # a radix sort, because block numbers have 16 bits
    count = np.bincount(block, minlength=n_blocks)
    end = np.cumsum(count)
    nonempty = np.flatnonzero(count)
    columns = [np.ascontiguousarray(column[order]).view(np.int64) for column in (key, *others)]
    payload = [b"".join(column[end[b] - count[b] : end[b]].tobytes() for column in columns) for b in nonempty]
    return pa.record_batch([pa.array(nonempty, pa.int32()), pa.array(payload, pa.binary())], schema=_ARROW_SCHEMA)


def unpack(payload: pa.ChunkedArray, columns: int = 2) -> npt.NDArray[np.int64]:
    """Unpack the records of one block.

    Parameters
    ----------
    payload
        All payloads of the block.
    columns
        The number of columns that :func:`pack` received, the key included.

    Returns
    -------
    numpy.ndarray
        One row for each column. Columns of floats have to be viewed as ``float64``.
    """
    parts = [np.frombuffer(record.as_buffer(), np.int64).reshape(columns, -1) for record in payload]
    return np.concatenate(parts, axis=1) if parts else np.empty((columns, 0), np.int64)
