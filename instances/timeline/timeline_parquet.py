"""The Parquet format for timelines: one row per epoch, and what all epochs share in the metadata of the file."""

import contextlib
import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, object_of, parse_value
from relocbench.instances.files.parquet_columns import (
    as_input_error,
    check_schema,
    list_of_lists,
    matrix_in,
    members_in,
    numbers_in,
    one_list,
    rows_of,
)
from relocbench.instances.files.parquet_sizes import LARGEST_FOOTER, PageSizes
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.network import make_network
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline, timeline_hash

FORMAT = "relocbench-timeline/1"
# The key of the metadata of a file under which everything is that all epochs share, as JSON.
METADATA_KEY = b"relocbench-timeline"
NUMBERS = pa.list_(pa.float64())
INDICES = pa.list_(pa.int32())
MEMBERS = pa.list_(INDICES)
SCHEMA = pa.schema(
    [
        pa.field("start", pa.float64(), nullable=False),
        pa.field("length", pa.float64(), nullable=False),
        pa.field("hash", pa.string(), nullable=False),
        pa.field("client", INDICES, nullable=False),
        pa.field("client_x", NUMBERS, nullable=False),
        pa.field("client_y", NUMBERS, nullable=False),
        pa.field("topic", INDICES, nullable=False),
        pa.field("spool", NUMBERS, nullable=False),
        pa.field("publishers", MEMBERS, nullable=False),
        pa.field("subscribers", MEMBERS, nullable=False),
        pa.field("client_server_delay", NUMBERS),  # the matrix row by row
    ]
)
HEADER = (
    *("format", "name", "hash", "epochs", "cloud_delay", "delay_per_km", "servers", "server_server_delay"),
    *("prices", "parameters"),
)
SERVER_FIELDS = {"x": "server_x", "y": "server_y", "storage": "storage_capacity", "compute": "compute_capacity"}
# A row group ends after this many values, or this many epochs. One group is in memory at a time.
VALUES_PER_GROUP = 1 << 19
EPOCHS_PER_GROUP = 64


def write_timeline(timeline: Timeline, path: str | Path) -> str:
    """Write a timeline to a Parquet file, epoch by epoch.

    Parameters
    ----------
    timeline
        The timeline.
    path
        The file; its name ends in ``.parquet``.

    Returns
    -------
    str
        The hash of the timeline.

    Raises
    ------
    InputError
        If the file cannot be written, the name has another ending, or the ids and parameters are too large.
    """
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(str(path), "expected a name ending in .parquet for a timeline")
    hashes: list[str] = []
    with written_whole(path) as temporary, pq.ParquetWriter(temporary, SCHEMA, compression="zstd") as writer:
        waiting: list[pa.Table] = []
        values = 0
        for epoch in timeline.epochs():
            waiting.append(_to_row(epoch))
            hashes.append(epoch.hash)
            values += _values(epoch.instance)
            if values >= VALUES_PER_GROUP or len(waiting) >= EPOCHS_PER_GROUP:
                writer.write_table(pa.concat_tables(waiting).combine_chunks())
                waiting, values = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting).combine_chunks())
        digest = timeline_hash(timeline.prices, hashes)
        writer.add_key_value_metadata({METADATA_KEY.decode(): _header(timeline, digest)})
    return digest


def _values(instance: Instance) -> int:
    """Return about how many values the row of an epoch has."""
    per_client = 3 + (0 if instance.client_server_delay is None else instance.n_servers)
    return per_client * instance.n_clients + len(instance.publishers.item) + len(instance.subscribers.item)


def _header(timeline: Timeline, digest: str) -> str:
    network = timeline.network
    header: dict[str, Any] = {
        "format": FORMAT,
        "name": timeline.name,
        "hash": digest,
        "epochs": timeline.n_epochs,
        "cloud_delay": network.cloud_delay,
        "delay_per_km": network.delay_per_km,
        "servers": {name: getattr(network, field).tolist() for name, field in SERVER_FIELDS.items()},
        "prices": dataclasses.asdict(timeline.prices),
        "parameters": dict(timeline.parameters),
    }
    if network.server_server_delay is not None:
        header["server_server_delay"] = network.server_server_delay.tolist()
    written = json.dumps(header)
    # The other half of the footer is for the row groups.
    if len(written) > LARGEST_FOOTER // 2:
        size = f"{LARGEST_FOOTER >> 21} MiB of ids, parameters and server_server_delay, got {len(written) >> 20}"
        raise InputError("parameters", f"expected at most {size}; use numbers instead of ids")
    return written


def _to_row(epoch: Epoch) -> pa.Table:
    instance = epoch.instance
    arrays = {
        "start": pa.array([epoch.start]),
        "length": pa.array([epoch.length]),
        "hash": pa.array([epoch.hash]),
        "client": one_list(pa.array(epoch.clients)),
        "topic": one_list(pa.array(epoch.topics)),
    }
    arrays |= {name: one_list(pa.array(getattr(instance, name))) for name in ("client_x", "client_y", "spool")}
    for name in ("publishers", "subscribers"):
        groups: Ragged = getattr(instance, name)
        arrays[name] = one_list(list_of_lists(Ragged(groups.start, epoch.clients[groups.item])))
    matrix = instance.client_server_delay
    arrays["client_server_delay"] = pa.nulls(1, NUMBERS) if matrix is None else one_list(pa.array(matrix.ravel()))
    return pa.table([arrays[field.name] for field in SCHEMA], schema=SCHEMA)


def read_timeline(path: str | Path) -> Timeline:
    """Read a timeline from a Parquet file. Its epochs are read from the file whenever they are needed.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Timeline
        The timeline.

    Raises
    ------
    InputError
        If the file cannot be read or is not a timeline. A wrong epoch is found when it is read; the message names the
        file, the row and the column.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> relocbench.write(relocbench.Timeline.static(instance, n_epochs=3), "still.parquet")
    >>> relocbench.read_timeline("still.parquet")
    <Timeline tiny-scarce-plain-0: 3 epochs, 4 servers>
    """
    path = Path(path)
    try:
        return _timeline(path)
    except InputError as error:
        raise error.inside(str(path)) from error


def is_timeline(path: str | Path) -> bool:
    """Return whether a file is a timeline, as far as its metadata say.

    Parameters
    ----------
    path
        Any name of a file.

    Returns
    -------
    bool
        False also if the file cannot be read.
    """
    try:
        with _opened(Path(path)) as (file, _):
            return METADATA_KEY in (file.metadata.metadata or {})
    except InputError:
        return False


def _timeline(path: Path) -> Timeline:
    with _opened(path) as (file, _):
        raw = (file.metadata.metadata or {}).get(METADATA_KEY)
        rows = file.metadata.num_rows
        if raw is None:
            problem = f"expected a timeline, the metadata {METADATA_KEY.decode()} are missing"
            raise InputError("", f"{problem}; `relocbench moving import` makes a timeline from CSV files")
        check_schema(file.schema_arrow, SCHEMA)
    header = object_of(parse_value(raw), FORMAT, HEADER)
    servers = Fields(header.value("servers"), "servers", tuple(SERVER_FIELDS))
    network = make_network(
        cloud_delay=header.number("cloud_delay"),
        delay_per_km=header.number("delay_per_km"),
        **{field: servers.numbers(name) for name, field in SERVER_FIELDS.items()},
        server_server_delay=header.matrix("server_server_delay") if "server_server_delay" in header else None,
    )
    stated = Fields(header.value("prices"), "prices", [spec.name for spec in dataclasses.fields(Prices)])
    prices = Prices(**{spec.name: stated.number(spec.name) for spec in dataclasses.fields(Prices)})
    if header.value("epochs") != rows:
        raise InputError("epochs", f"expected {rows}, the number of rows, got {shown(header.value('epochs'))}")
    timeline = Timeline(
        network,
        lambda: _epochs(path, network),
        rows,
        name=header.text("name"),
        prices=prices,
        parameters=header.value("parameters"),
        epoch_hashes=lambda: _hashes(path),
        place=f"{str(path).replace('{', '{{').replace('}', '}}')}: row {{}}",
    )
    if header.text("hash") != timeline.hash:
        found = shown(header.text("hash"), 18)
        raise InputError("hash", f"expected {timeline.hash[:16]}…, which the content has, got {found}")
    return timeline


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[tuple[pq.ParquetFile, PageSizes]]:
    """Open a Parquet file."""
    with as_input_error(""):
        source = pa.OSFile(str(path))
    with source:
        with as_input_error(""):
            file, sizes = pq.ParquetFile(source), PageSizes(source)
        yield file, sizes


def _hashes(path: Path) -> Iterator[str]:
    with _opened(path) as (file, sizes):
        for group in range(file.num_row_groups):
            with as_input_error(f"row group {group}"):
                sizes.check(group, "hash")
                found = file.read_row_group(group, ["hash"], use_threads=False).column("hash").to_pylist()
            if None in found:
                raise InputError(f"row group {group}: hash", "is missing (null)")
            yield from found


def _epochs(path: Path, network: Instance) -> Iterator[Epoch]:
    try:
        with _opened(path) as (file, sizes):
            number = 0
            for group in range(file.num_row_groups):
                with as_input_error(f"row group {group}"):
                    sizes.check(group)
                for row in rows_of(file, group, SCHEMA):
                    try:
                        yield _from_row(row, number, network)
                    except InputError as error:
                        raise error.inside(f"row {number}") from error
                    number += 1
    except InputError as error:
        raise error.inside(str(path)) from error


def _from_row(row: dict[str, pa.Scalar], number: int, network: Instance) -> Epoch:
    for field in SCHEMA:
        if not field.nullable and not row[field.name].is_valid:
            raise InputError(field.name, "is missing (null)")
    clients, topics = _indices("client", row["client"]), _indices("topic", row["topic"])
    if not len(clients):
        raise InputError("client", "expected at least one client, got none; leave the epoch out")
    instance = dataclasses.replace(
        network,
        client_x=_column("client_x", row, len(clients), "client"),
        client_y=_column("client_y", row, len(clients), "client"),
        spool=_column("spool", row, len(topics), "topic"),
        publishers=_present("publishers", row, clients, len(topics)),
        subscribers=_present("subscribers", row, clients, len(topics)),
        client_server_delay=matrix_in("client_server_delay", row["client_server_delay"], network.n_servers),
    )
    epoch = Epoch(number, row["start"].as_py(), row["length"].as_py(), clients, topics, instance)
    if epoch.hash != row["hash"].as_py():
        stated = shown(row["hash"].as_py(), 18)
        raise InputError("hash", f"expected {epoch.hash[:16]}…, which the content has, got {stated}")
    return epoch


def _indices(name: str, cell: pa.Scalar) -> IntArray:
    if cell.values.null_count:
        raise InputError(name, "expected numbers, got a null among them")
    found: IntArray = np.asarray(cell.values.to_numpy(zero_copy_only=False))
    return found


def _column(name: str, row: dict[str, pa.Scalar], count: int, what: str) -> FloatArray:
    values = numbers_in(name, row[name])
    if len(values) != count:
        raise InputError(name, f"expected {count} numbers, one for each {what}, got {len(values)}")
    return values


def _present(name: str, row: dict[str, pa.Scalar], clients: IntArray, topics: int) -> Ragged:
    """Return the members of each topic by their positions among the clients that are present."""
    members = members_in(name, row[name])
    if len(members) != topics:
        raise InputError(name, f"expected {topics} lists, one for each topic, got {len(members)}")
    order = np.argsort(clients, kind="stable")
    place = np.minimum(np.searchsorted(clients, members.item, sorter=order), len(clients) - 1)
    position = order[place].astype(np.int32)
    absent = clients[position] != members.item
    if absent.any():
        where = int(absent.argmax())
        topic = int(np.searchsorted(members.start, where, side="right")) - 1
        problem = f"expected a client that is present, got {members.item[where]}; add it to client, or remove it here"
        raise InputError(f"{name}[{topic}][{where - members.start[topic]}]", problem)
    return Ragged(members.start, position)
