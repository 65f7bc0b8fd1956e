"""Positions at full scale: the driver places the servers; each client's position follows from its id and the seed."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.generators.paper_generator import (
    LARGEST_SPREAD,
    PaperParameters,
    to_millimetres,
)
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.checkpoints import INPUTS_KEY, read_dataset, read_record, run_once, write_dataset
from relocbench.spark.locations import Location, relative_to, remove
from relocbench.spark.membership_roles import ROLE_COLUMNS, ROLE_SCHEMA
from relocbench.spark.stages import STAGES_KEY, Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CLIENTS_SCHEMA = "client bigint, x double, y double, topic array<bigint>, position array<int>, size array<int>"
# The lower left and the upper right corner of the area in which clients are placed, in km.
Area: TypeAlias = tuple[FloatArray, FloatArray]
# Memberships per block, which one task sorts in memory.
BLOCK_MEMBERSHIPS = 1 << 19
MAX_BLOCKS = 4096
# The default parameters of the paper. Proportional capacities refer to them.
PAPER = PaperParameters()
# Entries of the record of `spark arrange` that a field needs.
ARRANGED_ENTRIES = ("lines", "topics", "memberships")


@dataclass(frozen=True, eq=False)
class Field:
    """A full-scale instance without its clients and topics. It is small enough to be sent to every task.

    Attributes
    ----------
    server_x, server_y, storage_capacity, compute_capacity
        As in :class:`instances.instance.Instance`.
    cloud_delay, delay_per_km, spool_per_member
        ``dC``, ``γ`` and ``p``.
    clients, topics, memberships
        The numbers of clients, topics and memberships.
    roles
        Whether the dataset of clients has the columns of :mod:`spark.membership_roles`. Otherwise every member
        publishes and subscribes.
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
    roles: bool = False

    @property
    def n_blocks(self) -> int:
        """The number of blocks of clients, and of topics. It depends on the memberships, not on partitions."""
        return _block_count(self.memberships)


class Choices(Protocol):
    """What :func:`place_field` asks the choices of a field; :class:`spark.field_choices.FieldChoices` answers."""

    @property
    def people(self) -> Path | None:
        """The file of the places of clients, if there is one."""

    def inputs(self) -> dict[str, Any]:
        """Return what the record of the field notes.

        Returns
        -------
        dict
            The choices that differ from the defaults.
        """

    def area(self, parameters: PaperParameters) -> Area:
        """Return the area in which clients are placed.

        Parameters
        ----------
        parameters
            The parameters of the field.

        Returns
        -------
        tuple of two arrays
            The lower left and the upper right corner.
        """

    def server_positions(self, parameters: PaperParameters, seed: int) -> FloatArray:
        """Place the servers.

        Parameters
        ----------
        parameters, seed
            As for :func:`place_field`.

        Returns
        -------
        array of shape (servers, 2)
            The positions in km.
        """

    def snapped(self, clients: "DataFrame", count: int) -> "DataFrame":
        """Move clients to the places of people.

        Parameters
        ----------
        clients
            The dataset of clients.
        count
            The number of clients.

        Returns
        -------
        pyspark.sql.DataFrame
            The same dataset with other positions.
        """

    def capacities(
        self, clients: "DataFrame", field: Field, demand: Callable[[], tuple[float, float]], proportional: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the capacities of the servers.

        Parameters
        ----------
        clients
            The dataset of clients.
        field
            The field with the capacities of the parameters.
        demand
            Returns ``Σ|C|`` over the topics with a publisher, and ``Σ|P|·|C|``.
        proportional
            As for :func:`place_field`.

        Returns
        -------
        tuple of two arrays
            Storage and compute capacities.
        """


def topics_folder(folder: Location) -> Location:
    """Find the dataset of topics.

    Parameters
    ----------
    folder
        A folder that ``relocbench spark arrange`` wrote.

    Returns
    -------
    pathlib.Path or RemotePath
        The dataset in that folder.

    Raises
    ------
    InputError
        If the folder holds no complete dataset of topics.
    """
    read_record(folder, "spark arrange", ARRANGED_ENTRIES)
    return folder / "topics"


def place_field(
    spark: "SparkSession",
    topics: Location,
    out: Location,
    parameters: PaperParameters,
    seed: int,
    proportional: bool,
    choices: Choices,
    stages: Stages,
) -> Field:
    """Place servers and clients, and write the dataset ``out/clients`` with the position and topics of each client.

    Parameters
    ----------
    spark
        The session.
    topics
        A folder that ``relocbench spark arrange`` wrote.
    out
        The folder to write to.
    parameters
        Servers, spread, capacities and delays. The parameters of topics are not used.
    seed
        The seed of the positions.
    proportional
        Whether the given capacities are multiplied by the ratio of topics, or of demand, per server to that of the
        paper.
    choices
        The rule of the capacities, and real places.
    stages
        Notes what the step uses.

    Returns
    -------
    Field
        The instance without clients and topics.

    Raises
    ------
    InputError
        If ``σ`` is too large for the field, or ``out`` was written with other inputs.
    """
    low, high = choices.area(parameters)
    shorter = float((high - low).min())
    if parameters.sigma > LARGEST_SPREAD * shorter:
        raise InputError("--sigma", f"expected at most {LARGEST_SPREAD * shorter:g} for a field of {shorter:g} km")
    arranged = read_record(topics, "spark arrange", ARRANGED_ENTRIES)
    inputs = field_inputs(arranged, parameters, seed, proportional, choices)

    def compute() -> dict[str, Any]:
        entries, used = stages.run(
            "field", lambda: _write_field(spark, topics, out, parameters, seed, proportional, choices, arranged)
        )
        return {**entries, STAGES_KEY: used}

    run_once(out, inputs, compute, earlier_form=earlier_field_inputs(topics, inputs))
    return read_field(out)


def field_inputs(
    arranged: dict[str, Any], parameters: PaperParameters, seed: int, proportional: bool, choices: Choices
) -> dict[str, Any]:
    """Return everything that determines the result of :func:`place_field`.

    Parameters
    ----------
    arranged
        The record of the topics.
    parameters, seed, proportional, choices
        As for :func:`place_field`.

    Returns
    -------
    dict
        The inputs of the step, for its record.
    """
    inputs = {"arranged": arranged[INPUTS_KEY], "seed": seed, "proportional": proportional}
    return inputs | {"parameters": asdict(parameters), **choices.inputs()}


def earlier_field_inputs(topics: Location, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs in the form of earlier versions, which recorded the folder of the topics too.

    Parameters
    ----------
    topics
        The folder of the topics.
    inputs
        The result of :func:`field_inputs`.

    Returns
    -------
    dict
        The inputs.
    """
    return {"topics": str(topics.resolve()) if isinstance(topics, Path) else str(topics), **inputs}


def read_field(folder: Location) -> Field:
    """Read what :func:`place_field` recorded.

    Parameters
    ----------
    folder
        The folder that it wrote.

    Returns
    -------
    Field
        The instance without clients and topics.
    """
    names = {name: name.removesuffix("_capacity") for name in Field.__dataclass_fields__ if name != "roles"}
    record = read_record(folder, "spark reloc", names.values())
    # The record stores the capacities under the keys `storage` and `compute`.
    values: dict[str, Any] = {name: record[entry] for name, entry in names.items()}
    values["roles"] = record.get("roles", False)  # a record of a field without roles does not have it
    for name in ("server_x", "server_y", "storage_capacity", "compute_capacity"):
        values[name] = np.array(values[name], np.float64)
    return Field(**values)


def _write_field(
    spark: "SparkSession",
    topics: Location,
    out: Location,
    parameters: PaperParameters,
    seed: int,
    proportional: bool,
    choices: Choices,
    arranged: dict[str, Any],
) -> dict[str, Any]:
    """Write the dataset of clients and return the entries of the record."""
    roles = bool(arranged[INPUTS_KEY].get("roles", False))
    group = memberships_by_client(_block_count(arranged["memberships"]))
    all_topics = read_dataset(spark, topics_folder(topics))
    memberships = all_topics.mapInArrow(group, BLOCK_SCHEMA)
    place = _place_clients(parameters.sigma, choices.area(parameters), seed, roles)
    schema = f"{CLIENTS_SCHEMA}, {ROLE_SCHEMA}" if roles else CLIENTS_SCHEMA
    clients = memberships.groupBy("block").applyInArrow(place, schema)
    snaps = choices.people is not None
    placed = out / ("scattered" if snaps else "clients")
    write_dataset(clients, placed)
    clients = read_dataset(spark, placed)
    n_clients = clients.count()
    if snaps:
        write_dataset(choices.snapped(clients, n_clients), out / "clients")
        remove(placed)
        clients = read_dataset(spark, out / "clients")
    servers = choices.server_positions(parameters, seed)
    field = Field(
        server_x=servers[:, 0],
        server_y=servers[:, 1],
        storage_capacity=np.full(parameters.servers, parameters.storage),
        compute_capacity=np.full(parameters.servers, parameters.compute),
        cloud_delay=parameters.cloud_delay,
        delay_per_km=parameters.delay_per_km,
        spool_per_member=parameters.spool_per_member,
        clients=n_clients,
        topics=arranged["topics"],
        memberships=arranged["memberships"],
        roles=roles,
    )

    def demand() -> tuple[float, float]:
        publishers = f"size(filter(roles, role -> (role & {PUBLISHES}) > 0))" if roles else "size(members)"
        sizes = all_topics.selectExpr("size(members) AS size", f"{publishers} AS publishers").where("publishers > 0")
        stored, processed = sizes.selectExpr("sum(size)", "sum(publishers * size)").collect()[0]
        return float(stored or 0), float(processed or 0)

    storage, compute = choices.capacities(clients, field, demand, proportional)
    entries = {name: getattr(field, name) for name in Field.__dataclass_fields__}
    del entries["storage_capacity"], entries["compute_capacity"]
    if not roles:
        del entries["roles"]  # as in the records of earlier versions
    entries |= {"server_x": field.server_x.tolist(), "server_y": field.server_y.tolist()}
    entries["topics_folder"] = relative_to(topics, out)
    return {**entries, "storage": storage.tolist(), "compute": compute.tolist()}


def _block_count(memberships: int) -> int:
    return min(MAX_BLOCKS, max(1, -(-memberships // BLOCK_MEMBERSHIPS)))


def memberships_by_client(n_blocks: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Create a function for ``mapInArrow`` that packs the memberships of topics into blocks by client.

    Parameters
    ----------
    n_blocks
        The number of blocks.

    Returns
    -------
    callable
        It maps topics to memberships: client, topic, position in the topic, size of the topic; with roles also the
        role, and the numbers of publishers and subscribers of the topic.
    """

    def regroup(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topic, members = batch.column(0).to_numpy(zero_copy_only=False), batch.column(1)
            client = members.flatten().to_numpy(zero_copy_only=False)
            size = members.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
            position = np.arange(len(client)) - np.repeat(np.cumsum(size) - size, size)
            columns = [np.repeat(topic, size), position, np.repeat(size, size)]
            if "roles" in batch.schema.names:
                role = batch.column("roles").flatten().to_numpy(zero_copy_only=False).astype(np.int64)
                owner = np.repeat(np.arange(len(size)), size)
                counts = (
                    np.bincount(owner[(role & part) > 0], minlength=len(size)) for part in (PUBLISHES, SUBSCRIBES)
                )
                columns += [role, *(count[owner] for count in counts)]
            yield pack(n_blocks, client, *columns)

    return regroup


def _place_clients(sigma: float, area: Area, seed: int, roles: bool) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that places the clients of a block."""

    def place(table: pa.Table) -> pa.Table:
        entries = unpack(table["payload"], 7 if roles else 4)
        client, topic, position, size, *of_roles = entries[:, np.lexsort((entries[1], entries[0]))]
        ids, first = np.unique(client, return_index=True)
        xy = positions(ids, topic[first], sigma, area, seed)
        start = pa.array(np.append(first, len(client)).astype(np.int32))
        return pa.table(
            {
                "client": ids,
                "x": xy[:, 0],
                "y": xy[:, 1],
                "topic": pa.ListArray.from_arrays(start, pa.array(topic)),
                "position": pa.ListArray.from_arrays(start, pa.array(position.astype(np.int32))),
                "size": pa.ListArray.from_arrays(start, pa.array(size.astype(np.int32))),
                **{
                    name: pa.ListArray.from_arrays(start, pa.array(column.astype(kind)))
                    for name, column, kind in zip(ROLE_COLUMNS, of_roles, (np.int8, np.int32, np.int32), strict=False)
                },
            }
        )

    return place


def positions(client: IdArray, first_topic: IdArray, sigma: float, area: Area, seed: int) -> FloatArray:
    """Draw the positions of clients as in the paper: Gaussian around the centre of the first topic, within the field.

    The centre of a topic follows from the topic's id and the seed. The offset of a client from that centre follows
    from the client's id and the seed.

    Parameters
    ----------
    client
        The ids of the clients.
    first_topic
        The id of each client's first topic.
    sigma
        The standard deviation ``σ`` in km.
    area
        The corners of the field.
    seed
        The seed of the positions.

    Returns
    -------
    numpy.ndarray
        One row ``(x, y)`` for each client, rounded to millimetres.
    """
    low, high = area
    centre = low + (high - low) * np.stack([_uniform(first_topic, "centre", seed, axis) for axis in (0, 1)], axis=1)
    xy = np.empty_like(centre)
    # Positions outside the field are drawn again.
    outside = np.arange(len(xy))
    attempt = 0
    while len(outside):
        length = sigma * np.sqrt(-2.0 * np.log1p(-_uniform(client[outside], "length", seed, attempt)))
        angle = 2.0 * math.pi * _uniform(client[outside], "turn", seed, attempt)
        xy[outside] = centre[outside] + np.stack([length * np.cos(angle), length * np.sin(angle)], axis=1)
        outside = outside[((xy[outside] < low) | (xy[outside] > high)).any(axis=1)]
        attempt += 1
    return to_millimetres(xy)


def _uniform(ids: IdArray, purpose: str, seed: int, number: int) -> npt.NDArray[np.float64]:
    """Return a number of the interval [0, 1) for each id."""
    salt = int(stream("spark", purpose, seed, number).integers(2**62))
    return np.asarray((hash_ids(ids, salt) >> np.uint64(11)).astype(np.float64) * 2.0**-53, np.float64)
