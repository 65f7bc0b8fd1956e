"""Columns of lists in Parquet files: writing them, and reading them from files that may be damaged."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, reason
from relocbench.instances.kernels.ragged import FloatArray, Ragged, offsets


def one_list(values: pa.Array) -> pa.Array:
    """Return a column with one row, which is a list.

    Parameters
    ----------
    values
        The entries of the list.

    Returns
    -------
    pyarrow.Array
        The column.
    """
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


def list_of_lists(groups: Ragged) -> pa.Array:
    """Return lists of integers as a column, one row for each list.

    Parameters
    ----------
    groups
        The lists.

    Returns
    -------
    pyarrow.Array
        The column.
    """
    return pa.ListArray.from_arrays(pa.array(groups.start.astype(np.int32)), pa.array(groups.item))


@contextlib.contextmanager
def as_input_error(place: str) -> Iterator[None]:
    """Convert the exceptions that Arrow raises for a damaged file to an InputError that names the place.

    Parameters
    ----------
    place
        The part of the file; empty for the whole file.

    Yields
    ------
    None
        Nothing; the file is read inside the context.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        yield
    except InputError as error:
        raise error.inside(place) if place else error from error
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(place, f"cannot be read as Parquet ({reason(error)})") from error


def check_schema(found: pa.Schema, expected: pa.Schema) -> None:
    """Check that a file has all columns, each once and with a type that can be read.

    Parameters
    ----------
    found
        The columns of the file.
    expected
        The columns that it should have.

    Raises
    ------
    InputError
        If a column is missing, is there twice or has another type.
    """
    for field in expected:
        columns = found.get_all_field_indices(field.name)
        if len(columns) != 1:
            problem = "is there twice" if columns else "is missing"
            raise InputError(field.name, f"the column {problem}; expected one of type {field.type}")
        # Other programs may name the entries of a list differently or use wider integers.
        if not _similar(found.field(columns[0]).type, field.type):
            raise InputError(field.name, f"expected type {field.type}, got {found.field(columns[0]).type}")


def rows_of(file: pq.ParquetFile, group: int, schema: pa.Schema) -> Iterator[dict[str, pa.Scalar]]:
    """Read the rows of a row group one at a time, so that only one of them is in memory.

    Parameters
    ----------
    file
        The file.
    group
        The number of the row group.
    schema
        The columns to read.

    Yields
    ------
    dict
        The cells of a row by column.

    Raises
    ------
    InputError
        If the row group cannot be read.
    """
    place = f"row group {group}"
    with as_input_error(place):
        batches = file.iter_batches(1, [group], schema.names, use_threads=False)
    while True:
        with as_input_error(place):
            batch = next(batches, None)
            if batch is None:
                return
            batch.validate(full=True)  # Arrow does not check offsets and text when it reads them
        yield {name: batch[name][0] for name in schema.names}


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


def numbers_in(name: str, cell: pa.Scalar) -> FloatArray:
    """Return the numbers of a cell.

    Parameters
    ----------
    name
        The column, for error messages.
    cell
        The cell.

    Returns
    -------
    array
        The numbers.

    Raises
    ------
    InputError
        If there is a null among them.
    """
    if cell.values.null_count:
        raise InputError(name, "expected numbers, got a null among them")
    return np.asarray(cell.values.to_numpy(zero_copy_only=False), np.float64)


def matrix_in(name: str, cell: pa.Scalar, columns: int) -> FloatArray | None:
    """Return the matrix of a cell, which is stored row by row.

    Parameters
    ----------
    name, cell
        As for :func:`numbers_in`.
    columns
        The number of columns of the matrix.

    Returns
    -------
    array or None
        The matrix; None if the cell is null.

    Raises
    ------
    InputError
        If the numbers do not fill rows.
    """
    if not cell.is_valid:
        return None
    flat = numbers_in(name, cell)
    width = max(columns, 1)  # an instance without servers is rejected later
    if len(flat) % width:
        raise InputError(name, f"expected rows of {width} numbers, got {len(flat)} numbers")
    return flat.reshape(-1, width)


def members_in(name: str, cell: pa.Scalar) -> Ragged:
    """Return the lists of integers of a cell.

    Parameters
    ----------
    name, cell
        As for :func:`numbers_in`.

    Returns
    -------
    Ragged
        The lists.

    Raises
    ------
    InputError
        If there is a null among them, or an integer does not fit 32 bits.
    """
    lists = cell.values
    flat = lists.flatten()
    if lists.null_count or flat.null_count:
        raise InputError(name, "expected lists of clients, got a null among them")
    start = offsets(pc.list_value_length(lists).to_numpy(zero_copy_only=False))
    try:
        return Ragged(start, flat.to_numpy(zero_copy_only=False))
    except InputError as error:
        raise InputError(name, error.problem) from error
