"""The Parquet format for many instances: one row per instance, with columns of lists."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.instance_json import FORMAT
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
from relocbench.instances.files.parquet_sizes import PageSizes
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray

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
    arrays |= {column: one_list(pa.array(getattr(instance, name))) for name, column in COLUMNS.items()}
    for name in ("publishers", "subscribers"):
        arrays[name] = one_list(list_of_lists(getattr(instance, name)))
    for name in ("client_server_delay", "server_server_delay"):
        matrix: FloatArray | None = getattr(instance, name)
        arrays[name] = pa.nulls(1, NUMBERS) if matrix is None else one_list(pa.array(matrix.ravel()))
    return pa.table([arrays[field.name] for field in SCHEMA], schema=SCHEMA)


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
    with as_input_error(""):
        source = pa.OSFile(str(path))
    with source:
        with as_input_error(""):
            file = pq.ParquetFile(source)
            sizes = PageSizes(source)
            check_schema(file.schema_arrow, SCHEMA)
        number = 0
        for group in range(file.num_row_groups):
            with as_input_error(f"row group {group}"):
                if name is not None:
                    sizes.check(group, "name")
                    # Few at a time, because a dictionary can repeat a long text in every row.
                    batches = file.iter_batches(16, [group], ["name"], use_threads=False)
                    names = [found for batch in batches for found in batch["name"].to_pylist()]
                    if name not in names:
                        number += len(names)
                        continue
                sizes.check(group)
            for row in rows_of(file, group, SCHEMA):
                if name is None or row["name"].as_py() == name:
                    try:
                        yield _from_row(row)
                    except InputError as error:
                        raise error.inside(f"row {number}") from error
                number += 1
        if number == 0:
            raise InputError("", "expected at least one instance, the file has no rows")


def _from_row(row: dict[str, pa.Scalar]) -> Instance:
    for field in SCHEMA:
        if not field.nullable and not row[field.name].is_valid:
            raise InputError(field.name, "is missing (null)")
    stated = row["format"].as_py()
    if stated != FORMAT:
        raise InputError("format", f'expected "{FORMAT}", got {shown(stated)}')
    columns = {name: numbers_in(column, row[column]) for name, column in COLUMNS.items()}
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
        publishers=members_in("publishers", row["publishers"]),
        subscribers=members_in("subscribers", row["subscribers"]),
        client_server_delay=matrix_in("client_server_delay", row["client_server_delay"], servers),
        server_server_delay=matrix_in("server_server_delay", row["server_server_delay"], servers),
        parameters=parameters,
    )
    if instance.hash != row["hash"].as_py():
        stated = shown(row["hash"].as_py(), 18)
        raise InputError("hash", f"expected {instance.hash[:16]}…, which the content has, got {stated}")
    return instance
