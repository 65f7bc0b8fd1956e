"""Many small records as a few large ones: what goes through a shuffle is a block of packed numbers, not a row each.

Rows cost Spark some 100 ns each way at every border between Java and Python and at every sort; a block of 100,000
pairs costs what one row costs. A record's block follows from its id alone, never from how the data is partitioned.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.files.edge_list import IdArray

SCHEMA = "block int, payload binary"
_ARROW = pa.schema([("block", pa.int32()), ("payload", pa.binary())])


def mixed(ids: IdArray, salt: int = 0) -> npt.NDArray[np.uint64]:
    """Return 64 well-mixed bits for each id (splitmix64): different for different ids, and for every salt others."""
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((2 * salt + 1) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)), np.uint64)


def block_of(ids: IdArray, blocks: int) -> npt.NDArray[np.uint16]:
    """Return the block that each id belongs to."""
    return (mixed(ids) % np.uint64(blocks)).astype(np.uint16)


def packed(blocks: int, key: IdArray, *others: npt.NDArray[Any]) -> pa.RecordBatch:
    """Return records of 64-bit numbers as one for each block of the key that has any."""
    block = block_of(key, blocks)
    order = np.argsort(block, kind="stable")  # 16 bits: sorted by counting
    count = np.bincount(block, minlength=blocks)
    end = np.cumsum(count)
    there = np.flatnonzero(count)
    columns = [np.ascontiguousarray(column[order]).view(np.int64) for column in (key, *others)]
    payload = [b"".join(column[end[b] - count[b] : end[b]].tobytes() for column in columns) for b in there]
    return pa.record_batch([pa.array(there, pa.int32()), pa.array(payload, pa.binary())], schema=_ARROW)


def unpacked(payload: pa.ChunkedArray, columns: int = 2) -> npt.NDArray[np.int64]:
    """Return the numbers of all records of a block, a row for each column; view those that are floats as such."""
    parts = [np.frombuffer(record.as_buffer(), np.int64).reshape(columns, -1) for record in payload]
    return np.concatenate(parts, axis=1) if parts else np.empty((columns, 0), np.int64)
