"""Where everybody is at full scale: servers placed by the driver, a position for each client by its id and the seed."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.files.edge_list import IdArray
from relocbench.instances.generators.paper_generator import (
    LARGEST_SPREAD,
    PaperParameters,
    place_servers,
    to_millimetres,
)
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.blocks import SCHEMA, mixed, packed, unpacked
from relocbench.spark.checkpoints import once, read_note, write_step

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLIENTS = "client bigint, x double, y double, topic array<bigint>, position array<int>, size array<int>"
# Memberships that a task sorts at once.
BLOCK_MEMBERSHIPS = 1 << 19
LARGEST_BLOCKS = 4096
# The paper's, whose share of the load a server's capacity is by default.
PAPER = PaperParameters()


@dataclass(frozen=True, eq=False)
class Field:
    """The small part of an instance, which everybody gets: servers, delays, sizes.

    Attributes
    ----------
    server_x, server_y, storage_capacity, compute_capacity
        As in an instance.
    cloud_delay, delay_per_km, spool_per_member
        ``dC``, ``γ``, ``p``.
    clients, topics, memberships
        How many there are.
    """

    server_x: FloatArray
    server_y: FloatArray
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    cloud_delay: float
    delay_per_km: float
    spool_per_member: float
    clients: int
    topics: int
    memberships: int

    @property
    def blocks(self) -> int:
        """How many blocks clients and topics are dealt into: a matter of size, not of partitions."""
        return min(LARGEST_BLOCKS, max(1, -(-self.memberships // BLOCK_MEMBERSHIPS)))


def topics_folder(place: Path) -> Path:
    """Return the dataset of topics in a folder that ``arrange`` wrote."""
    read_note(place)
    return place / "topics"


def place_field(
    spark: "SparkSession", topics: Path, out: Path, parameters: PaperParameters, seed: int, proportional: bool
) -> Field:
    """Write ``out/clients``: everybody's position and topics; return the rest.

    Parameters
    ----------
    spark
        The session.
    topics
        A folder that ``arrange`` wrote.
    out
        Folder to write to.
    parameters
        Servers, spread, capacities, delays; what they say of topics is not used.
    seed
        Decides positions.
    proportional
        Whether the capacities are, instead, the paper's times the load that a server has on average, compared with the
        paper's: as tight as the paper's instances.
    """
    if parameters.sigma > LARGEST_SPREAD * parameters.field_km:
        most = LARGEST_SPREAD * parameters.field_km
        raise InputError("--sigma", f"expected at most {most:g} for a field of {parameters.field_km:g} km")
    arranged = read_note(topics)
    asked = {"topics": str(topics.resolve()), "arranged": arranged["asked"], "seed": seed}
    asked |= {"proportional": proportional, "parameters": asdict(parameters)}
    once(out, asked, lambda: _make(spark, topics, out, parameters, seed, proportional, arranged))
    return read_field(out)


def read_field(folder: Path) -> Field:
    """Read what :func:`place_field` noted."""
    note = read_note(folder)
    content: dict[str, Any] = {name: note[name.removesuffix("_capacity")] for name in Field.__dataclass_fields__}
    for name in ("server_x", "server_y", "storage_capacity", "compute_capacity"):
        content[name] = np.array(content[name], np.float64)
    return Field(**content)


def _make(
    spark: "SparkSession",
    topics: Path,
    out: Path,
    parameters: PaperParameters,
    seed: int,
    proportional: bool,
    arranged: dict[str, Any],
) -> dict[str, Any]:
    blocks = min(LARGEST_BLOCKS, max(1, -(-arranged["memberships"] // BLOCK_MEMBERSHIPS)))
    memberships = spark.read.parquet(str(topics_folder(topics).resolve())).mapInArrow(by_client(blocks), SCHEMA)
    write_step(memberships.groupBy("block").applyInArrow(_placed(parameters, seed), CLIENTS), out / "clients")
    clients = spark.read.parquet(str((out / "clients").resolve())).count()
    servers = place_servers(parameters, stream("spark", "servers", seed))
    share = arranged["topics"] / PAPER.topics * PAPER.servers / parameters.servers if proportional else 1.0
    return {
        "server_x": servers[:, 0].tolist(),
        "server_y": servers[:, 1].tolist(),
        "storage": [parameters.storage * share] * parameters.servers,
        "compute": [parameters.compute * share] * parameters.servers,
        "cloud_delay": parameters.cloud_delay,
        "delay_per_km": parameters.delay_per_km,
        "spool_per_member": parameters.spool_per_member,
        "clients": clients,
        "topics": arranged["topics"],
        "memberships": arranged["memberships"],
    }


def by_client(blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function that turns topics into memberships (client, topic, place in the topic, size of the topic)."""

    def turn(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topic, members = batch.column(0).to_numpy(zero_copy_only=False), batch.column(1)
            client = members.flatten().to_numpy(zero_copy_only=False)
            size = members.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
            position = np.arange(len(client)) - np.repeat(np.cumsum(size) - size, size)
            yield packed(blocks, client, np.repeat(topic, size), position, np.repeat(size, size))

    return turn


def _placed(parameters: PaperParameters, seed: int) -> Callable[[pa.Table], pa.Table]:
    def place(table: pa.Table) -> pa.Table:
        client, topic, position, size = unpacked(table["payload"], 4)
        order = np.lexsort((topic, client))
        client, topic, position, size = client[order], topic[order], position[order], size[order]
        found, first = np.unique(client, return_index=True)
        at = positions(found, topic[first], parameters.sigma, parameters.field_km, seed)
        start = pa.array(np.append(first, len(client)).astype(np.int32))
        return pa.table(
            {
                "client": found,
                "x": at[:, 0],
                "y": at[:, 1],
                "topic": pa.ListArray.from_arrays(start, pa.array(topic)),
                "position": pa.ListArray.from_arrays(start, pa.array(position.astype(np.int32))),
                "size": pa.ListArray.from_arrays(start, pa.array(size.astype(np.int32))),
            }
        )

    return place


def positions(client: IdArray, first_topic: IdArray, sigma: float, field_km: float, seed: int) -> FloatArray:
    """Return where clients are: as in the paper, Gaussian around the centre of the first topic, within the field.

    A topic's centre follows from its id and the seed, a client's place around it from the client's id and the seed.
    """
    around = field_km * np.stack([_uniform(first_topic, "centre", seed, axis) for axis in (0, 1)], axis=1)
    at = np.empty_like(around)
    missing = np.arange(len(at))
    attempt = 0
    while len(missing):
        length = sigma * np.sqrt(-2.0 * np.log1p(-_uniform(client[missing], "length", seed, attempt)))
        turn = 2.0 * math.pi * _uniform(client[missing], "turn", seed, attempt)
        at[missing] = around[missing] + np.stack([length * np.cos(turn), length * np.sin(turn)], axis=1)
        missing = missing[((at[missing] < 0.0) | (at[missing] > field_km)).any(axis=1)]
        attempt += 1
    return to_millimetres(at)


def _uniform(ids: IdArray, what: str, seed: int, number: int) -> npt.NDArray[np.float64]:
    """Return a number from 0 up to but not including 1 for each id."""
    salt = int(stream("spark", what, seed, number).integers(2**62))
    return np.asarray((mixed(ids, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53, np.float64)
