"""What a field of an instance may hold; every refusal names the field and what is expected."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.kernels.ragged import FloatArray, Ragged, frozen

# Bounds on magnitudes, far beyond any network, so that no sum or square of input values can overflow.
LARGEST_COORDINATE = 1e9
LARGEST_DELAY = 1e12
LARGEST_CAPACITY = 1e15
LARGEST_SPOOL = 1e12

# All pairs of servers have a delay in memory (200 MB at this number), whether or not the file spells them out.
LARGEST_SERVER_COUNT = 5_000


def text(label: str, value: object) -> str:
    """Return text that every file and terminal can take."""
    if not isinstance(value, str):
        raise InputError(label, f"expected text, got {shown(value)}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # JSON can spell one half of a pair of surrogates
        raise InputError(label, f"expected Unicode text, got the surrogate {shown(value[error.start])}") from error
    return value


def scalar(label: str, value: object) -> float:
    """Return one delay as a float."""
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
    """Return a list of numbers between ``low`` and ``high`` as a read-only array."""
    array = _numbers(label, values)
    if array.ndim != 1 or (length is not None and len(array) != length):
        wanted = "numbers" if length is None else f"{length} numbers"
        found = len(array) if array.ndim == 1 else f"shape {array.shape}"
        raise InputError(label, f"expected a list of {wanted}, got {found}")
    _check_range(entry or f"{label}[{{}}]", array, low, high)
    return frozen(array, np.float64)


def matrix(label: str, values: object, rows: int, columns: int) -> FloatArray:
    """Return a matrix of delays as a read-only array."""
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
    fine = (array >= low) & (array <= high)
    if not fine.all():
        where = tuple(int(i) for i in np.argwhere(~fine)[0])
        raise InputError(
            entry.format(*where), f"expected a number from {low:g} to {high:g}, got {shown(float(array[where]))}"
        )


def check_members(kind: str, groups: Ragged, clients: int) -> None:
    """Refuse clients that do not exist or are in a topic twice."""
    outside = (groups.item < 0) | (groups.item >= clients)
    if outside.any():
        where = int(outside.argmax())
        raise InputError(
            _member_label(kind, groups, where), f"expected a client from 0 to {clients - 1}, got {groups.item[where]}"
        )
    key = groups.owner().astype(np.int64) * clients + groups.item
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(np.diff(key[order]) == 0)
    if len(again):
        where = int(order[again + 1].min())
        raise InputError(_member_label(kind, groups, where), f"client {groups.item[where]} is listed twice")


def _member_label(kind: str, groups: Ragged, where: int) -> str:
    topic = int(np.searchsorted(groups.start, where, side="right")) - 1
    return f"topics[{topic}].{kind}[{where - groups.start[topic]}]"


def plain_parameters(parameters: object) -> dict[str, Any]:
    """Return a deep copy made of plain JSON values."""
    if not isinstance(parameters, Mapping):
        raise InputError("parameters", f"expected an object, got {shown(parameters)}")
    try:
        plain = json.loads(json.dumps(dict(parameters), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("parameters", f"expected plain JSON values ({reason(error)})") from error
    assert isinstance(plain, dict)
    return plain
