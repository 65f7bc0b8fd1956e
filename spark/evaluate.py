"""What an assignment costs at full scale: loads summed topic by topic in blocks, distances client by client."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, costs, topic_loads
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.spark.blocks import SCHEMA, packed, unpacked
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The block in which the sums over clients travel.
SUMS = -1


def evaluate_homes(clients: "DataFrame", homes: "DataFrame", field: Field, source: Path) -> Evaluation:
    """Evaluate an assignment; each client must have one home.

    Parameters
    ----------
    clients
        Everybody's position and topics.
    homes
        Everybody's server.
    field
        Servers, delays, sizes.
    source
        Where the homes are, for messages.
    """
    given = dict(homes.dtypes)
    if given.get("client") not in ("bigint", "int") or given.get("home") not in ("bigint", "int"):
        raise InputError(str(source), f"expected whole numbers in columns client and home, got {sorted(given)}")
    together = clients.select("client", "x", "y", "topic", "size").join(
        homes.selectExpr("CAST(client AS bigint) client", "CAST(home AS int) home"), "client", "full"
    )
    entries = together.mapInArrow(_entries(field, str(source)), SCHEMA)
    parts = entries.groupBy("block").applyInArrow(_loads(field), SCHEMA).collect()
    distance, seen, publications = 0.0, 0, 0
    loads = np.zeros((4, len(field.server_x)))
    for block, payload in sorted((row["block"], row["payload"]) for row in parts):
        part = np.frombuffer(payload)
        if block == SUMS:
            distance, seen, publications = float(part[0]), int(part[1]), int(part[2])
        else:
            loads += part.reshape(loads.shape)
    if seen != field.clients:
        raise InputError(str(source), f"expected one home for each of {field.clients} clients, got {seen}")
    storage, compute, sent, spread = loads
    return costs(
        (storage, compute, sent, spread),
        distance,
        publications,
        field.storage_capacity,
        field.compute_capacity,
        field.cloud_delay,
    )


def _entries(field: Field, source: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def entries(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        distance, seen, publications = 0.0, 0, 0
        for batch in batches:
            for name, problem in (("x", "is not one of the clients"), ("home", "has no home")):
                if batch.column(name).null_count:
                    client = batch.filter(batch.column(name).is_null()).column("client")[0].as_py()
                    raise InputError(source, f"client {client} {problem}")
            home = batch.column("home").to_numpy(zero_copy_only=False)
            outside = (home < 0) | (home >= len(field.server_x))
            if outside.any():
                client = batch.column("client")[int(outside.argmax())].as_py()
                last = len(field.server_x) - 1
                raise InputError(
                    source, f"client {client}: expected a server from 0 to {last}, got {home[outside.argmax()]}"
                )
            topics = batch.column("topic")
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            size = batch.column("size").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            owner = np.repeat(np.arange(len(home)), degree)
            # Who publishes to and hears of a topic with others in it counts twice for it.
            heard = np.bincount(owner[size > 1], minlength=len(home))
            x, y = (batch.column(c).to_numpy(zero_copy_only=False) for c in ("x", "y"))
            delay = _delays(x, y, home, field)
            distance += float(2.0 * heard @ delay)
            seen += len(home)
            publications += int(heard.sum())
            yield packed(
                field.blocks,
                topics.flatten().to_numpy(zero_copy_only=False),
                home[owner].astype(np.int64),
                size,
            )
        sums = np.array([distance, seen, publications], np.float64).tobytes()
        yield pa.record_batch([pa.array([SUMS], pa.int32()), pa.array([sums], pa.binary())], names=["block", "payload"])

    return entries


def _delays(x: FloatArray, y: FloatArray, home: "np.typing.NDArray[np.int32]", field: Field) -> FloatArray:
    dx, dy = x - field.server_x[home], y - field.server_y[home]
    return np.asarray(field.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


def _loads(field: Field) -> Callable[[pa.Table], pa.Table]:
    every = np.arange(len(field.server_x))
    delay = _delays(field.server_x[:, None], field.server_y[:, None], every[None, :].astype(np.int32), field)

    def loads(table: pa.Table) -> pa.Table:
        block = table["block"][0].as_py()
        if block == SUMS:
            parts = [np.frombuffer(cell.as_buffer()) for cell in table["payload"]]
            return _part(block, np.sum(parts, axis=0))
        found = unpacked(table["payload"], 3)
        topic, home, size = found[:, np.lexsort((found[1], found[0]))]
        _, start = np.unique(topic, return_index=True)
        sums = topic_loads(
            np.append(start, len(topic)).astype(np.int64),
            np.arange(len(topic), dtype=np.int32),
            np.full(len(topic), PUBLISHES | SUBSCRIBES, np.int8),
            field.spool_per_member * size[start].astype(np.float64),
            delay,
            home.astype(np.int32),
        )
        return _part(block, np.concatenate(sums))

    return loads


def _part(block: int, numbers: FloatArray) -> pa.Table:
    return pa.table({"block": pa.array([block], pa.int32()), "payload": pa.array([numbers.tobytes()], pa.binary())})
