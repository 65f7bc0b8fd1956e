"""Evaluation of an assignment at full scale: loads are summed per topic in blocks, distances per client."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, costs, topic_loads
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.role_weights import publications_and_weights
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.locations import Location
from relocbench.spark.membership_roles import role_columns, roles_of, with_role, without_role
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Number of the extra block that holds the sums over clients.
CLIENT_SUMS = -1


def evaluate_homes(clients: "DataFrame", homes: "DataFrame", field: Field, source: Location) -> Evaluation:
    """Evaluate an assignment.

    Parameters
    ----------
    clients
        The dataset of :func:`spark.placement.place_field`.
    homes
        Columns ``client`` and ``home``, with one row for each client.
    field
        Servers, delays and sizes.
    source
        The path of the homes, for error messages.

    Returns
    -------
    Evaluation
        The cost of the assignment.

    Raises
    ------
    InputError
        If the columns are missing or not integers, or if the number of homes is wrong. Tasks raise it for a client
        without a home, an unknown client or an unknown server.
    """
    kinds = dict(homes.dtypes)
    if kinds.get("client") not in ("bigint", "int") or kinds.get("home") not in ("bigint", "int"):
        raise InputError(str(source), f"expected whole numbers in columns client and home, got {sorted(kinds)}")
    joined = clients.select("client", "x", "y", "topic", "size", *role_columns(field.roles)).join(
        homes.selectExpr("CAST(client AS bigint) client", "CAST(home AS int) home"), "client", "full"
    )
    memberships = joined.mapInArrow(_sum_clients(field, str(source)), BLOCK_SCHEMA)
    parts = memberships.groupBy("block").applyInArrow(_sum_topics(field), BLOCK_SCHEMA).collect()
    distance, assigned, publications = 0.0, 0, 0
    loads = np.zeros((4, len(field.server_x)))
    for block, payload in sorted((row["block"], row["payload"]) for row in parts):
        part = np.frombuffer(payload)
        if block == CLIENT_SUMS:
            distance, assigned, publications = float(part[0]), int(part[1]), int(part[2])
        else:
            loads += part.reshape(loads.shape)
    if assigned != field.clients:
        raise InputError(str(source), f"expected one home for each of {field.clients} clients, got {assigned}")
    storage, compute, sent, spread = loads
    return costs(
        (storage, compute, sent, spread),
        distance,
        publications,
        field.storage_capacity,
        field.compute_capacity,
        field.cloud_delay,
    )


def _sum_clients(field: Field, source: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that checks homes, sums over clients and packs memberships by topic."""

    def sum_clients(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        distance, assigned, publications = 0.0, 0, 0
        for batch in batches:
            for name, problem in (("x", "is not one of the clients"), ("home", "has no home")):
                if batch.column(name).null_count:
                    client = batch.filter(batch.column(name).is_null()).column("client")[0].as_py()
                    raise InputError(source, f"client {client} {problem}")
            home = batch.column("home").to_numpy(zero_copy_only=False)
            invalid = (home < 0) | (home >= len(field.server_x))
            if invalid.any():
                client = batch.column("client")[int(invalid.argmax())].as_py()
                last = len(field.server_x) - 1
                raise InputError(
                    source, f"client {client}: expected a server from 0 to {last}, got {home[invalid.argmax()]}"
                )
            topics = batch.column("topic")
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            size = batch.column("size").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            owner = np.repeat(np.arange(len(home)), degree)
            roles = roles_of(batch, size)
            published, weight = publications_and_weights(
                owner, roles.role, size, roles.publishers, roles.subscribers, len(home)
            )
            x, y = (batch.column(c).to_numpy(zero_copy_only=False) for c in ("x", "y"))
            delay = _delays(x, y, home, field)
            distance += float(weight @ delay)
            assigned += len(home)
            publications += int(published.sum())
            yield pack(
                field.n_blocks,
                topics.flatten().to_numpy(zero_copy_only=False),
                with_role(home[owner], roles.role),
                size,
            )
        yield from _sums_table(CLIENT_SUMS, np.array([distance, assigned, publications], np.float64)).to_batches()

    return sum_clients


def _delays(x: FloatArray, y: FloatArray, home: IntArray, field: Field) -> FloatArray:
    dx, dy = x - field.server_x[home], y - field.server_y[home]
    return np.asarray(field.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)


def _sum_topics(field: Field) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that sums the loads of the servers over the topics of a block."""
    servers = np.arange(len(field.server_x))
    delay = _delays(field.server_x[:, None], field.server_y[:, None], servers[None, :].astype(np.int32), field)

    def sum_topics(table: pa.Table) -> pa.Table:
        block = table["block"][0].as_py()
        if block == CLIENT_SUMS:
            parts = [np.frombuffer(cell.as_buffer()) for cell in table["payload"]]
            return _sums_table(block, np.sum(parts, axis=0))
        entries = unpack(table["payload"], 3)
        topic, code, size = entries[:, np.lexsort((entries[1], entries[0]))]
        home, role = without_role(code)
        _, start = np.unique(topic, return_index=True)
        loads = topic_loads(
            np.append(start, len(topic)).astype(np.int64),
            np.arange(len(topic), dtype=np.int32),
            role.astype(np.int8),
            field.spool_per_member * size[start].astype(np.float64),
            delay,
            home.astype(np.int32),
        )
        return _sums_table(block, np.concatenate(loads))

    return sum_topics


def _sums_table(block: int, sums: FloatArray) -> pa.Table:
    return pa.table({"block": pa.array([block], pa.int32()), "payload": pa.array([sums.tobytes()], pa.binary())})
