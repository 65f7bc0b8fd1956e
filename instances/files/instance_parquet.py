"""The Parquet format for many instances: one row per instance, with columns of lists."""

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.instance_json import FORMAT
from relocbench.instances.files.parquet_sizes import PageSizes
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged, offsets

NUMBERS = pa.list_(pa.float64())
MEMBERS = pa.list_(pa.list_(pa.int32()))
SCHEMA = pa.schema(
    [
        pa.field("format", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("hash", pa.string(), nullable=False),
        pa.field("cloud_delay", pa.float64(), nullable=False),
        pa.field("delay_per_km", pa.float64(), nullable=False),
        pa.field("server_x", NUMBERS, nullable=False),
        pa.field("server_y", NUMBERS, nullable=False),
        pa.field("storage", NUMBERS, nullable=False),
        pa.field("compute", NUMBERS, nullable=False),
        pa.field("client_x", NUMBERS, nullable=False),
        pa.field("client_y", NUMBERS, nullable=False),
        pa.field("spool", NUMBERS, nullable=False),
        pa.field("publishers", MEMBERS, nullable=False),
        pa.field("subscribers", MEMBERS, nullable=False),
        pa.field("client_server_delay", NUMBERS),  # the matrix row by row
        pa.field("server_server_delay", NUMBERS),
        pa.field("parameters", pa.string(), nullable=False),  # JSON
    ]
)
# For fields of an instance, the column of the file that contains each.
COLUMNS = {
    "server_x": "server_x",
    "server_y": "server_y",
    "storage_capacity": "storage",
    "compute_capacity": "compute",
    "client_x": "client_x",
    "client_y": "client_y",
    "spool": "spool",
}


def write_rows(instances: Iterable[Instance], path: str | Path) -> int:
    """Write instances to a Parquet file.

    Each instance is a row group of its own, so that it can be read without the others.

    Parameters
    ----------
    instances
        The instances.
    path
        The file.

    Returns
    -------
    int
        The number of instances.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    count = 0
    with written_whole(path) as temporary, pq.ParquetWriter(temporary, SCHEMA, compression="zstd") as writer:
        for instance in instances:
            writer.write_table(to_row(instance))
            count += 1
    return count


def to_row(instance: Instance) -> pa.Table:
    """Return an instance as a table of one row.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    pyarrow.Table
        The row, with the columns of ``SCHEMA``.
    """
    values: dict[str, Any] = {
        "format": FORMAT,
        "name": instance.name,
        "hash": instance.hash,
        "cloud_delay": instance.cloud_delay,
        "delay_per_km": instance.delay_per_km,
        "parameters": json.dumps(dict(instance.parameters)),
    }
    arrays = {name: pa.array([value], SCHEMA.field(name).type) for name, value in values.items()}
    arrays |= {column: _one_list(pa.array(getattr(instance, name))) for name, column in COLUMNS.items()}
    for name in ("publishers", "subscribers"):
        groups: Ragged = getattr(instance, name)
        inner = pa.ListArray.from_arrays(pa.array(groups.start.astype(np.int32)), pa.array(groups.item))
        arrays[name] = _one_list(inner)
    for name in ("client_server_delay", "server_server_delay"):
        matrix: FloatArray | None = getattr(instance, name)
        arrays[name] = pa.nulls(1, NUMBERS) if matrix is None else _one_list(pa.array(matrix.ravel()))
    return pa.table([arrays[field.name] for field in SCHEMA], schema=SCHEMA)


def _one_list(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def read_rows(path: Path, name: str | None = None) -> Iterator[Instance]:
    """Read instances one after the other.

    Parameters
    ----------
    path
        The file.
    name
        If given, only instances of this name are read, and other row groups are skipped.

    Yields
    ------
    Instance
        The instances in the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read or a row is not a valid instance; the message names the row and the column.
    """
    with _as_input_error(""):
        source = pa.OSFile(str(path))
    with source:
        with _as_input_error(""):
            file = pq.ParquetFile(source)
            sizes = PageSizes(source)
            _check_schema(file.schema_arrow)
        number = 0
        for group in range(file.num_row_groups):
            with _as_input_error(f"row group {group}"):
                if name is not None:
                    sizes.check(group, "name")
                    # Few at a time, because a dictionary can repeat a long text in every row.
                    batches = file.iter_batches(16, [group], ["name"], use_threads=False)
                    names = [found for batch in batches for found in batch["name"].to_pylist()]
                    if name not in names:
                        number += len(names)
                        continue
                sizes.check(group)
            for row in _rows(file, group):
                if name is None or row["name"].as_py() == name:
                    try:
                        yield _from_row(row)
                    except InputError as error:
                        raise error.inside(f"row {number}") from error
                number += 1
        if number == 0:
            raise InputError("", "expected at least one instance, the file has no rows")


@contextlib.contextmanager
def _as_input_error(place: str) -> Iterator[None]:
    """Convert the exceptions that Arrow raises for a damaged file to an InputError that names the place."""
    try:
        yield
    except InputError as error:
        raise error.inside(place) if place else error from error
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(place, f"cannot be read as Parquet ({reason(error)})") from error


def _check_schema(found: pa.Schema) -> None:
    for field in SCHEMA:
        columns = found.get_all_field_indices(field.name)
        if len(columns) != 1:
            problem = "is there twice" if columns else "is missing"
            raise InputError(field.name, f"the column {problem}; expected one of type {field.type}")
        # Other programs may name the entries of a list differently or use wider integers.
        if not _similar(found.field(columns[0]).type, field.type):
            raise InputError(field.name, f"expected type {field.type}, got {found.field(columns[0]).type}")


def _rows(file: pq.ParquetFile, group: int) -> Iterator[dict[str, pa.Scalar]]:
    """Read the rows of a row group one at a time, so that only one of them is in memory."""
    place = f"row group {group}"
    with _as_input_error(place):
        batches = file.iter_batches(1, [group], SCHEMA.names, use_threads=False)
    while True:
        with _as_input_error(place):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)  # Arrow does not check offsets and text when it reads them
        yield {name: batch[name][0] for name in SCHEMA.names}


def _similar(found: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_list(wanted):
        return (pa.types.is_list(found) or pa.types.is_large_list(found)) and _similar(
            found.value_type, wanted.value_type
        )
    if pa.types.is_integer(wanted):
        return bool(pa.types.is_signed_integer(found))
    if pa.types.is_string(wanted):
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    return bool(found == wanted)


def _from_row(row: dict[str, pa.Scalar]) -> Instance:
    for field in SCHEMA:
        if not field.nullable and not row[field.name].is_valid:
            raise InputError(field.name, "is missing (null)")
    stated = row["format"].as_py()
    if stated != FORMAT:
        raise InputError("format", f'expected "{FORMAT}", got {shown(stated)}')
    columns = {name: _numbers(column, row[column]) for name, column in COLUMNS.items()}
    servers = len(columns["server_x"])
    try:
        parameters = json.loads(row["parameters"].as_py())
    except (ValueError, RecursionError) as error:
        raise InputError("parameters", f"expected JSON ({reason(error)})") from error
    instance = Instance(
        name=row["name"].as_py(),
        cloud_delay=row["cloud_delay"].as_py(),
        delay_per_km=row["delay_per_km"].as_py(),
        **columns,
        publishers=_members("publishers", row["publishers"]),
        subscribers=_members("subscribers", row["subscribers"]),
        client_server_delay=_matrix("client_server_delay", row["client_server_delay"], servers),
        server_server_delay=_matrix("server_server_delay", row["server_server_delay"], servers),
        parameters=parameters,
    )
    if instance.hash != row["hash"].as_py():
        stated = shown(row["hash"].as_py(), 18)
        raise InputError("hash", f"expected {instance.hash[:16]}…, which the content has, got {stated}")
    return instance


def _numbers(name: str, cell: pa.Scalar) -> FloatArray:
    if cell.values.null_count:
        raise InputError(name, "expected numbers, got a null among them")
    return np.asarray(cell.values.to_numpy(zero_copy_only=False), np.float64)


def _matrix(name: str, cell: pa.Scalar, columns: int) -> FloatArray | None:
    if not cell.is_valid:
        return None
    flat = _numbers(name, cell)
    width = max(columns, 1)  # an instance without servers is rejected later
    if len(flat) % width:
        raise InputError(name, f"expected rows of {width} numbers, got {len(flat)} numbers")
    return flat.reshape(-1, width)


def _members(name: str, cell: pa.Scalar) -> Ragged:
    lists = cell.values
    flat = lists.flatten()
    if lists.null_count or flat.null_count:
        raise InputError(name, "expected lists of clients, got a null among them")
    start = offsets(pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    try:
        return Ragged(start, flat.to_numpy(zero_copy_only=False))
    except InputError as error:
        raise InputError(name, error.problem) from error
