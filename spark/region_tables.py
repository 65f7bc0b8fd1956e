"""Clients and their surroundings grouped by region: the input of tasks that change the homes of one region each."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged, offsets
from relocbench.instances.region_state import Surroundings
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
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
        Rows of ``REGION_SCHEMA``.
    """
    placed = clients.join(homes.select("client", "home"), "client").select(*CLIENT_COLUMNS)
    by_topic = placed.select("home", "topic").mapInArrow(_homes_by_topic(field.n_blocks), BLOCK_SCHEMA)
    slots = by_topic.groupBy("block").applyInArrow(_outside_slots(region), "region int, slots binary")
    rows = placed.mapInArrow(_add_region(region), REGION_SCHEMA)
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
    order = np.argsort(index, kind="stable")
    members = Ragged(
        offsets(np.bincount(index, minlength=len(topic_ids))),
        np.repeat(np.arange(len(ids), dtype=np.int32), degree)[order],
    )
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
        publishers=members,
        subscribers=members,
    )
    slot_topic, server, count = unpack(payload, 3)
    order = np.lexsort((server, slot_topic))
    around = Surroundings(
        own=np.flatnonzero(region == number).astype(np.int32),
        topic_size=topic_size.astype(np.int32),
        topic=np.searchsorted(topic_ids, slot_topic[order]).astype(np.int32),
        server=server[order].astype(np.int32),
        count=count[order].astype(np.int32),
        loads=loads,
    )
    return ids, instance, home.astype(np.int32), around


def _homes_by_topic(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that packs the homes of members by topic."""

    def regroup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            home, topics = batch.column(0).to_numpy(zero_copy_only=False), batch.column(1)
            degree = topics.value_lengths().to_numpy(zero_copy_only=False)
            flat = topics.flatten().to_numpy(zero_copy_only=False)
            yield pack(n_blocks, flat, np.repeat(home, degree).astype(np.int64))

    return regroup


def _outside_slots(region: IntArray) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that lists, for each region of a topic, its members elsewhere."""
    servers = len(region)

    def list_slots(table: pa.Table) -> pa.Table:
        topic, home = unpack(table["payload"])
        ids, index = np.unique(topic, return_inverse=True)
        slot, count = np.unique(index * servers + home, return_counts=True)
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
            np.concatenate([ids[slot_topic[part]], slot_server[part], count[part]]).astype(np.int64).tobytes()
            for part in np.split(place, begin[1:])
        ]
        return pa.table(
            {
                "region": pa.array(numbers, pa.int32()),
                "slots": pa.array(payload[: len(numbers)], pa.binary()),
            }
        )

    return list_slots


def _add_region(region: IntArray) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for ``mapInArrow`` that adds the region of each client."""

    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            number = region[batch.column("home").to_numpy(zero_copy_only=False)].astype(np.int32)
            none = pa.nulls(batch.num_rows, pa.binary())
            columns = [pa.array(number), *(batch.column(name) for name in CLIENT_COLUMNS), none]
            yield pa.record_batch(columns, names=["region", *CLIENT_COLUMNS, "slots"])

    return add
