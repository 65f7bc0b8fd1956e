"""Tables from lists, columns, arrays, DataFrames or CSV files, in one form.

DataFrames and Arrow tables are recognised by what they offer, so that neither pandas nor pyarrow is imported.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from relocbench.instances.checks import first_repeated
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.csv_rows import csv_rows
from relocbench.instances.kernels.ragged import FloatArray

Id = str | int
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length.

    Attributes
    ----------
    label
        Name of the table in error messages: ``servers``, or the path of a file.
    columns
        The values by the name of the column in lower case.
    count
        The number of rows.
    index
        The index of a DataFrame that is more than row numbers; otherwise None.
    lines
        For a file the line number of each row; otherwise empty.
    """

    label: str
    columns: Mapping[str, Sequence[Any]]
    count: int
    index: Sequence[Any] | None = None
    lines: Sequence[int] = ()

    def place(self, row: int, column: str) -> str:
        """Return the name of a cell for error messages.

        Parameters
        ----------
        row, column
            The cell.

        Returns
        -------
        str
            Such as ``servers[3].x``, or ``servers.csv: line 5: x`` for a file.
        """
        return f"{self.label}: line {self.lines[row]}: {column}" if self.lines else f"{self.label}[{row}].{column}"

    def find(self, *names: str) -> str | None:
        """Return the first of several names that is a column.

        Parameters
        ----------
        *names
            The names.

        Returns
        -------
        str or None
            The name; None if there is no such column.
        """
        return next((name for name in names if name in self.columns), None)

    def numbers(self, name: str) -> FloatArray:
        """Return a column of numbers.

        Parameters
        ----------
        name
            The column.

        Returns
        -------
        array
            The numbers as float64.

        Raises
        ------
        InputError
            If a value is not a finite number; the message names row and column.
        """
        return np.array(self.converted(name, number), np.float64)

    def converted(self, name: str, convert: Callable[[object], T]) -> list[T]:
        """Return a column with every value converted.

        Parameters
        ----------
        name
            The column.
        convert
            Converts a value, or raises ValueError with the expected value as its text.

        Returns
        -------
        list
            The converted values.

        Raises
        ------
        InputError
            If a value cannot be converted; the message names row and column.
        """
        found = []
        for row, value in enumerate(self.columns[name]):
            try:
                found.append(convert(value))
            except (ValueError, TypeError) as error:
                problem = "is missing" if is_missing(value) else f"expected {error}, got {shown(value)}"
                raise InputError(self.place(row, name), problem) from None
        return found

    def ids(self, *names: str) -> list[Id] | None:
        """Return the ids of the rows.

        Parameters
        ----------
        *names
            Columns that may contain ids. The first that exists is used. The column ``name`` is used only if all its
            values are different.

        Returns
        -------
        list or None
            Texts or whole numbers, all different; None if the table has none.

        Raises
        ------
        InputError
            If an id is missing or occurs twice; the message names row and column.
        """
        name = self.find(*names)
        if name is None and self.index is None:
            return None
        table = self if name is not None else Table(self.label, {"index": self.index or ()}, self.count)
        column = name or "index"
        found = table.converted(column, as_id)
        twice = first_repeated(map(str, found))
        if twice is None:
            return found
        if column == "name":
            return None
        raise InputError(table.place(twice, column), f"{shown(found[twice])} is listed twice")


def number(value: object) -> float:
    """Convert a cell to a finite number.

    Parameters
    ----------
    value
        A number, or the text of one.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ValueError
        If it is none; the text says what is expected.
    """
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        found = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        raise ValueError("a number") from None
    if not np.isfinite(found):
        raise ValueError("a finite number")
    return found


def as_id(value: object) -> Id:
    """Convert a cell to an id.

    Parameters
    ----------
    value
        A text or a whole number; a float such as 3.0 counts as one.

    Returns
    -------
    str or int
        The id.

    Raises
    ------
    ValueError
        If it is none; the text says what is expected.
    """
    if isinstance(value, str) and value:
        return value
    if (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and value == value // 1
    ):
        return int(value)
    raise ValueError("a text or a whole number")


def read_table(path: str | Path) -> Table:
    """Read a CSV file with a header.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    Table
        The texts of its cells.

    Raises
    ------
    InputError
        If the file cannot be read, or a name occurs twice in the header.
    """
    try:
        rows = csv_rows(Path(path))
        header = [name.lower() for name in next(rows)[1]]
        if (twice := first_repeated(header)) is not None:
            raise InputError("", f"the column {shown(header[twice])} is listed twice")
        lines: list[int] = []
        columns: dict[str, list[str]] = {name: [] for name in header}
        for line, row in rows:
            lines.append(line)
            for position, name in enumerate(header):
                columns[name].append(row[position] if position < len(row) else "")
    except InputError as error:
        raise error.inside(str(path)) from error
    return Table(str(path), columns, len(lines), lines=lines)


def as_table(value: Any, label: str, positions: Sequence[str]) -> Table:
    """Convert a table of any accepted form.

    Parameters
    ----------
    value
        A :class:`Table`, a DataFrame, an Arrow table, a mapping of columns, an array with a row per entry, or a list of
        mappings or of tuples.
    label
        Name of the table for error messages.
    positions
        The names of the columns of arrays and tuples, by position. Later ones may be absent.

    Returns
    -------
    Table
        The table.

    Raises
    ------
    InputError
        If the value has another form, or its columns have different lengths.
    """
    if isinstance(value, Table):
        return value
    if hasattr(value, "to_pydict"):  # an Arrow table
        return _of_columns(value.to_pydict(), label)
    if isinstance(value, np.ndarray) and value.dtype.names:
        return _of_columns({name: value[name] for name in value.dtype.names}, label)
    if isinstance(value, Mapping):
        return _of_columns(value, label)
    if is_table(value):  # a DataFrame
        index = list(getattr(value, "index", range(len(value))))
        is_default = index == list(range(len(value)))
        return _of_columns({name: value[name] for name in value.columns}, label, None if is_default else index)
    return _of_rows(list_of(value, label), label, positions)


def is_table(value: object) -> bool:
    """Return whether a value has named columns, unlike a list of rows.

    Parameters
    ----------
    value
        Any value.

    Returns
    -------
    bool
        Whether it is a :class:`Table`, a DataFrame, an Arrow table, a structured array or a mapping of columns.
    """
    has_names = isinstance(value, np.ndarray) and value.dtype.names is not None
    return has_names or isinstance(value, Mapping) or hasattr(value, "columns")


def list_of(value: Any, label: str) -> list[Any]:
    """Return the entries of a list, an array or another iterable.

    Parameters
    ----------
    value
        The list.
    label
        Its name for error messages.

    Returns
    -------
    list
        The entries.

    Raises
    ------
    InputError
        If the value has no entries, or is a text.
    """
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        raise InputError(label, f"expected a list, got {shown(value)}")
    return list(value)


def _of_columns(columns: Mapping[Any, Any], label: str, index: Sequence[Any] | None = None) -> Table:
    lists = {}
    for name, values in columns.items():
        lists[str(name).lower()] = list_of(values, f"{label}.{name}")
    lengths = {name: len(values) for name, values in lists.items()}
    count = max(lengths.values(), default=0)
    for name, length in lengths.items():
        if length != count:
            raise InputError(f"{label}.{name}", f"expected {count} values as in other columns, got {length}")
    return Table(label, lists, count, index)


def _of_rows(rows: list[Any], label: str, positions: Sequence[str]) -> Table:
    columns: dict[str, list[Any]] = {}
    for number_of_row, row in enumerate(rows):
        if isinstance(row, Mapping):
            cells = {str(name).lower(): value for name, value in row.items()}
        elif isinstance(row, Sequence | np.ndarray) and not isinstance(row, str | bytes):
            if len(row) > len(positions):
                expected = f"at most {len(positions)} values ({', '.join(positions)})"
                raise InputError(f"{label}[{number_of_row}]", f"expected {expected}, got {len(row)}")
            cells = dict(zip(positions, row, strict=False))
        else:
            raise InputError(f"{label}[{number_of_row}]", f"expected a mapping or a tuple, got {shown(row)}")
        for name, value in cells.items():
            columns.setdefault(name, [None] * len(rows))[number_of_row] = value
    return Table(label, columns, len(rows))


def is_missing(value: object) -> bool:
    """Return whether a cell is empty, in one of the forms in which data frames mark it.

    Parameters
    ----------
    value
        The content of the cell.

    Returns
    -------
    bool
        Whether it is None, an empty text, NaN or the NA of pandas.
    """
    try:
        return value is None or bool(value == "") or bool(value != value)
    except TypeError:  # the NA of pandas has no truth value
        return True
