"""Checks of the fields of an instance. Every error names the field and the expected value."""

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.kernels.ragged import FloatArray, Ragged, frozen

# Bounds on magnitudes. They are far beyond any real network and ensure that no sum or square of input values overflows.
LARGEST_COORDINATE = 1e9
LARGEST_DELAY = 1e12
LARGEST_CAPACITY = 1e15
LARGEST_SPOOL = 1e12

# The delays of all pairs of servers are kept in memory (200 MB at this number), even if the file does not list them.
LARGEST_SERVER_COUNT = 5_000


def checked_seed(seed: object) -> int:
    """Check a seed and return it as a plain int, so that equal seeds of different integer types give equal streams.

    Parameters
    ----------
    seed
        The value to check.

    Returns
    -------
    int
        The seed.

    Raises
    ------
    InputError
        If it is not a whole number from 0.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError("seed", f"expected a whole number from 0, got {shown(seed)}")
    return int(seed)


def checked_time_limit(value: object) -> float:
    """Check a time limit.

    Parameters
    ----------
    value
        Seconds.

    Returns
    -------
    float
        The same number.

    Raises
    ------
    InputError
        If it is not a number from 0 on.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not value >= 0:
        raise InputError("time_limit", f"expected seconds, a number from 0 on, got {shown(value)}")
    return float(value)


def text(label: str, value: object) -> str:
    """Check that a value is text that can be encoded as UTF-8.

    Parameters
    ----------
    label
        Name of the field for error messages.
    value
        The value.

    Returns
    -------
    str
        The text.

    Raises
    ------
    InputError
        If it is not text or contains a surrogate.
    """
    if not isinstance(value, str):
        raise InputError(label, f"expected text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can contain one half of a surrogate pair
        raise InputError(label, f"expected Unicode text, got the surrogate {shown(value[error.start])}") from error
    return value


def scalar(label: str, value: object) -> float:
    """Check one delay and return it as a float.

    Parameters
    ----------
    label
        Name of the field for error messages.
    value
        The value.

    Returns
    -------
    float
        The delay.

    Raises
    ------
    InputError
        If it is not a number from 0 to ``LARGEST_DELAY``.
    """
    array = _numbers(label, value)
    if array.ndim:
        raise InputError(label, f"expected a number, got {shown(value)}")
    number = float(array)
    if not 0 <= number <= LARGEST_DELAY:
        raise InputError(label, f"expected a number from 0 to {LARGEST_DELAY:g}, got {shown(number)}")
    return number


def column(
    label: str, values: object, length: int | None, low: float, high: float, entry: str | None = None
) -> FloatArray:
    """Check a list of numbers and return it as a read-only array.

    Parameters
    ----------
    label
        Name of the field for error messages.
    values
        The numbers.
    length
        Expected number of entries; None for any.
    low, high
        Least and largest permitted number.
    entry
        Name of a single entry for error messages, with ``{}`` for its index; by default ``label[{}]``.

    Returns
    -------
    array
        A copy in float64.

    Raises
    ------
    InputError
        If length, type or range are wrong.
    """
    array = _numbers(label, values)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "numbers" if length is None else f"{length} numbers"
        found = len(array) if array.ndim == 1 else f"shape {array.shape}"
        raise InputError(label, f"expected a list of {wanted}, got {found}")
    _check_range(entry or f"{label}[{{}}]", array, low, high)
    return frozen(array, np.float64)


def matrix(label: str, values: object, rows: int, columns: int) -> FloatArray:
    """Check a matrix of delays and return it as a read-only array.

    Parameters
    ----------
    label
        Name of the field for error messages.
    values
        The delays.
    rows, columns
        Expected shape.

    Returns
    -------
    array
        A copy in float64.

    Raises
    ------
    InputError
        If shape, type or range are wrong.
    """
    array = _numbers(label, values)
    if array.shape != (rows, columns):
        raise InputError(label, f"expected {rows} rows of {columns} numbers, got shape {array.shape}")
    _check_range(f"{label}[{{}}][{{}}]", array, 0, LARGEST_DELAY)
    return frozen(array, np.float64)


def _numbers(label: str, values: object) -> FloatArray:
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise InputError(label, f"expected numbers, got {shown(values)}") from error
    if array.dtype.kind not in "iuf" and not (array.size == 0 and array.dtype.kind != "O"):
        raise InputError(label, f"expected numbers, got {shown(values)}")
    return array.astype(np.float64)


def _check_range(entry: str, array: FloatArray, low: float, high: float) -> None:
    inside = (array >= low) & (array <= high)
    if not inside.all():
        where = tuple(int(i) for i in np.argwhere(~inside)[0])
        raise InputError(
            entry.format(*where), f"expected a number from {low:g} to {high:g}, got {shown(float(array[where]))}"
        )


def check_members(kind: str, groups: Ragged, clients: int) -> None:
    """Check that the clients of every topic exist and are different.

    Parameters
    ----------
    kind
        ``publishers`` or ``subscribers``, for error messages.
    groups
        For each topic its clients.
    clients
        Number of clients.

    Raises
    ------
    InputError
        If a client does not exist or is listed twice in a topic.
    """
    outside = (groups.item < 0) | (groups.item >= clients)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(
            _member_label(kind, groups, where), f"expected a client from 0 to {clients - 1}, got {groups.item[where]}"
        )
    key = groups.owner().astype(np.int64) * clients + groups.item
    order = np.argsort(key, kind="stable")
    repeated = np.flatnonzero(np.diff(key[order]) == 0)
    if len(repeated):
        where = int(order[repeated + 1].min())
        raise InputError(_member_label(kind, groups, where), f"client {groups.item[where]} is listed twice")


def _member_label(kind: str, groups: Ragged, where: int) -> str:
    topic = int(np.searchsorted(groups.start, where, side="right")) - 1
    return f"topics[{topic}].{kind}[{where - groups.start[topic]}]"


def plain_parameters(parameters: object) -> dict[str, Any]:
    """Check parameters and return a deep copy that consists of plain JSON values.

    Parameters
    ----------
    parameters
        A mapping of JSON values.

    Returns
    -------
    dict
        The copy.

    Raises
    ------
    InputError
        If it is not a mapping or contains a value that JSON cannot represent.
    """
    if not isinstance(parameters, Mapping):
        raise InputError("parameters", f"expected an object, got {shown(parameters)}")
    try:
        plain = json.loads(json.dumps(dict(parameters), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("parameters", f"expected plain JSON values ({reason(error)})") from error
    assert isinstance(plain, dict)
    return plain


def entity_ids(parameters: Mapping[str, Any], name: str, count: int) -> list[str | int]:
    """Return the ids of the clients or servers of an instance.

    Parameters
    ----------
    parameters
        The parameters of the instance.
    name
        ``client_ids`` or ``server_ids``.
    count
        The number of clients or servers.

    Returns
    -------
    list
        The ids that the parameters hold; without them the indices from 0.

    Raises
    ------
    InputError
        If the parameters hold something else than one id each: texts or whole numbers that are all different.
    """
    if name not in parameters:
        return list(range(count))
    ids = parameters[name]
    if not isinstance(ids, list) or len(ids) != count or not set(map(type, ids)) <= {str, int}:
        raise InputError(f"parameters.{name}", f"expected {count} texts or whole numbers, got {shown(ids)}")
    # Files of text do not tell 7 from "7", so these count as the same id.
    if (twice := first_repeated(map(str, ids))) is not None:
        raise InputError(f"parameters.{name}[{twice}]", f"{shown(ids[twice])} is listed twice")
    return list(ids)


def first_repeated(values: Iterable[Hashable]) -> int | None:
    """Return the position of the first value that occurs a second time.

    Parameters
    ----------
    values
        The values.

    Returns
    -------
    int or None
        The position of the second occurrence; None if all values are different.
    """
    seen: set[Hashable] = set()
    for position, value in enumerate(values):
        if value in seen:
            return position
        seen.add(value)
    return None
