"""Clients and their surroundings grouped by region: the input of tasks that change the homes of one region each."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.instance import PUBLISHES, SUBSCRIBES, Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.region_state import Surroundings
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.membership_roles import (
    ROLE_SCHEMA,
    lists_by_role,
    role_columns,
    roles_of,
    with_role,
    without_role,
)
from relocbench.spark.placement import Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CLIENT_COLUMNS = ["client", "x", "y", "home", "topic", "size"]
# Rows of clients have no slots; rows of slots have nothing but them.
REGION_SCHEMA = (
    "region int, client bigint, x double, y double, home int, topic array<bigint>, size array<int>, slots binary"
)


def region_rows(clients: "DataFrame", homes: "DataFrame", field: Field, region: IntArray) -> "DataFrame":
    """Group clients by the region of their home, and add the outside slots of their topics.

    Parameters
    ----------
    clients
        The dataset of :func:`spark.placement.place_field`.
    homes
        Columns ``client`` and ``home``.
    field
        The servers.
    region
        The region of each server.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows of ``REGION_SCHEMA``, with roles also with those of ``ROLE_SCHEMA``.
    """
    columns = [*CLIENT_COLUMNS, *role_columns(field.roles)]
    placed = clients.join(homes.select("client", "home"), "client").select(*columns)
    with_homes = placed.select("home", "topic", "size", *role_columns(field.roles))
    by_topic = with_homes.mapInArrow(_homes_by_topic(field.n_blocks), BLOCK_SCHEMA)
    slots = by_topic.groupBy("block").applyInArrow(_outside_slots(region), "region int, slots binary")
    schema = f"{REGION_SCHEMA}, {ROLE_SCHEMA}" if field.roles else REGION_SCHEMA
    rows = placed.mapInArrow(_add_region(region, columns), schema)
    return rows.unionByName(slots, allowMissingColumns=True)


def read_region(table: pa.Table, field: Field, region: IntArray, loads: FloatArray) -> tuple[
    npt.NDArray[np.int64], Instance, IntArray, Surroundings
]:  # fmt: skip
    """Read the rows of one region.

    Parameters
    ----------
    table
        The rows.
    field, region
        As for :func:`region_rows`.
    loads
        ``a``, ``v``, ``F`` and ``Q`` of every server (``4×L``).

    Returns
    -------
    ids
        The ids of the clients, sorted.
    instance, home, around
        The region as :class:`instances.region_state.RegionState` reads it. Topics are sorted by id.
    """
    number = table["region"][0].as_py()
    payload = table["slots"].drop_null()
    table = table.filter(table["client"].is_valid()).sort_by("client").combine_chunks()
    ids, x, y, home = (np.array(table[name].to_numpy()) for name in ("client", "x", "y", "home"))
    topic, size = (table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False) for name in ("topic", "size"))
    degree = table["topic"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    topic_ids, first, index = np.unique(topic, return_index=True, return_inverse=True)
    topic_size = size[first].astype(np.int64)
    roles = roles_of(table, size.astype(np.int64))
    order = np.argsort(index, kind="stable")
    owner = np.repeat(np.arange(len(ids), dtype=np.int32), degree)
    publishers, subscribers = lists_by_role(index[order], owner[order], roles.role[order], len(topic_ids))
    instance = Instance(
        name=f"region {number}",
        cloud_delay=field.cloud_delay,
        delay_per_km=field.delay_per_km,
        server_x=field.server_x,
        server_y=field.server_y,
        storage_capacity=field.storage_capacity,
        compute_capacity=field.compute_capacity,
        client_x=x,
        client_y=y,
        spool=field.spool_per_member * topic_size.astype(np.float64),
        publishers=publishers,
        subscribers=subscribers,
    )
    slot_topic, code, count = unpack(payload, 3)
    server, role = without_role(code)
    # A slot has an entry for each role.
    slot, entry = np.unique(np.searchsorted(topic_ids, slot_topic) * len(region) + server, return_inverse=True)

    def members(kept: npt.NDArray[np.bool_]) -> IntArray:
        return np.bincount(entry[kept], count[kept], len(slot)).astype(np.int32)

    around = Surroundings(
        own=np.flatnonzero(region == number).astype(np.int32),
        topic_size=topic_size,
        topic_publishers=roles.publishers[first],
        topic_subscribers=roles.subscribers[first],
        topic=(slot // len(region)).astype(np.int32),
        server=(slot % len(region)).astype(np.int32),
        only=members(role == PUBLISHES),
        both=members(role == (PUBLISHES | SUBSCRIBES)),
        subscribers=members((role & SUBSCRIBES) > 0),
        loads=loads,
    )
    return ids, instance, home.astype(np.int32), around


def _homes_by_topic(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that packs the homes and roles of members by topic."""

    def regroup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            home, topics = batch.column("home").to_numpy(zero_copy_only=False), batch.column("topic")
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            flat = topics.flatten().to_numpy(zero_copy_only=False)
            size = batch.column("size").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
            yield pack(n_blocks, flat, with_role(np.repeat(home, degree), roles_of(batch, size).role))

    return regroup


def _outside_slots(region: IntArray) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that lists, for each region of a topic, its members elsewhere."""
    servers = len(region)

    def list_slots(table: pa.Table) -> pa.Table:
        topic, code = unpack(table["payload"])
        ids, index = np.unique(topic, return_inverse=True)
        home, role = without_role(code)
        # A slot has an entry for each role.
        slot, count = np.unique(with_role(index * servers + home, role), return_counts=True)
        slot, slot_role = without_role(slot)
        slot_topic, slot_server = slot // servers, slot % servers
        slot_region = region[slot_server].astype(np.int64)
        n_regions = int(region.max()) + 1
        # The regions of each topic, and all pairs of one of them and a slot of the topic in another.
        touched = np.unique(slot_topic * n_regions + slot_region)
        start = np.searchsorted(slot_topic, np.arange(len(ids) + 1))
        owner = touched // n_regions
        sizes = (start[1:] - start[:-1])[owner]
        which = np.repeat(np.arange(len(touched)), sizes)
        place = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + start[owner][which]
        to = (touched % n_regions)[which]
        outside = slot_region[place] != to
        to, place = to[outside], place[outside]
        order = np.argsort(to, kind="stable")
        to, place = to[order], place[order]
        numbers, begin = np.unique(to, return_index=True)
        payload = [
            np.concatenate([ids[slot_topic[part]], with_role(slot_server, slot_role)[part], count[part]])
            .astype(np.int64)
            .tobytes()
            for part in np.split(place, begin[1:])
        ]
        return pa.table(
            {
                "region": pa.array(numbers, pa.int32()),
                "slots": pa.array(payload[: len(numbers)], pa.binary()),
            }
        )

    return list_slots


def _add_region(region: IntArray, names: list[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that adds the region of each client."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            number = region[batch.column("home").to_numpy(zero_copy_only=False)].astype(np.int32)
            none = pa.nulls(batch.num_rows, pa.binary())
            row = {name: batch.column(name) for name in names}
            # The columns of the schema in its order: slots stand before roles.
            client = [row.pop(name) for name in CLIENT_COLUMNS]
            columns = [pa.array(number), *client, none, *row.values()]
            yield pa.record_batch(columns, names=["region", *CLIENT_COLUMNS, "slots", *row])

    return add
