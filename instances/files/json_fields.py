"""Checked reading of JSON files: every problem becomes an error of one line that names the field."""

import json
import sys
import zlib
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.checks import text
from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.limited_file import LARGEST_TEXT, open_limited
from relocbench.instances.kernels.ragged import FloatArray

# The largest memory that a parsed file may need, in bytes: this number, and at most this multiple of the text above a
# start that small files may always need. By the estimate below, files of this project need 8 to 25 times their size,
# and a text of empty lists 45 times.
LARGEST_PARSED = 4 << 30
PARSED_RATIO = 32
PARSED_START = 64 << 20
# The memory in bytes that Python needs at most for an object, a list, a field, an entry, and half of a text, measured
# with CPython 3.11. Each is recognised by a character, which may also stand inside a text.
PARSED_COSTS = ((b"{", 210), (b"[", 90), (b":", 100), (b",", 40), (b'"', 30))
TOO_LARGE = "too large for the memory of this machine"


class Fields:
    """The fields of one JSON object, with access by type.

    Parameters
    ----------
    values
        The parsed object.
    label
        Name of the object in error messages: ``servers``, ``topics[3]``, or empty for the whole file.
    known
        The permitted fields. Any other field is an error, because it is most likely misspelt.
    """

    def __init__(self, values: object, label: str, known: Collection[str]) -> None:
        if not isinstance(values, dict):
            raise InputError(label, f"expected an object, got {shown(values)}")
        self._values: dict[str, Any] = values
        self._label = label
        for name in values:
            if name not in known:
                raise InputError(self.label(_brief(name)), f"unknown field; expected one of {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def label(self, name: str) -> str:
        """Return the full name of a field for error messages.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        str
            Such as ``servers.storage``.
        """
        return _joined(self._label, name)

    def value(self, name: str) -> Any:
        """Return a field of any type.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        object
            Its value.

        Raises
        ------
        InputError
            If the field is missing.
        """
        if name not in self._values:
            raise InputError(self.label(name), "is missing")
        return self._values[name]

    def text(self, name: str) -> str:
        """Return a text field.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        str
            The text.

        Raises
        ------
        InputError
            If the field is missing or not text.
        """
        return text(self.label(name), self.value(name))

    def number(self, name: str) -> float:
        """Return a numeric field.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        float
            A finite number.

        Raises
        ------
        InputError
            If the field is missing or not a finite number.
        """
        return float(_floats([self.value(name)], self.label(name))[0])

    def integer(self, name: str) -> int:
        """Return an integer field.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        int
            A whole number that fits 64 bits.

        Raises
        ------
        InputError
            If the field is missing or not such a number.
        """
        return int(whole_numbers([self.value(name)], self.label(name))[0])

    def entries(self, name: str) -> list[Any]:
        """Return a field that is a list of any values.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        list
            The list.

        Raises
        ------
        InputError
            If the field is missing or not a list.
        """
        value = self.value(name)
        if not isinstance(value, list):
            raise InputError(self.label(name), f"expected a list, got {shown(value)}")
        return value

    def numbers(self, name: str) -> FloatArray:
        """Return a field that is a list of numbers.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        array
            Finite numbers.

        Raises
        ------
        InputError
            If the field is missing or not a list of finite numbers.
        """
        return _floats(self.entries(name), f"{self.label(name)}[{{}}]")

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """Return a field that is a list of integers.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        array
            Whole numbers that fit 64 bits.

        Raises
        ------
        InputError
            If the field is missing or not a list of such numbers.
        """
        return whole_numbers(self.entries(name), f"{self.label(name)}[{{}}]")

    def matrix(self, name: str) -> FloatArray:
        """Return a field that is a list of lists of numbers, all of the same length.

        Parameters
        ----------
        name
            The field.

        Returns
        -------
        array of two dimensions
            Finite numbers.

        Raises
        ------
        InputError
            If the field is missing or not such a matrix.
        """
        rows = self.entries(name)
        for index, row in enumerate(rows):
            if not isinstance(row, list):
                raise InputError(f"{self.label(name)}[{index}]", f"expected a list, got {shown(row)}")
            if len(row) != len(rows[0]):
                raise InputError(f"{self.label(name)}[{index}]", f"expected {len(rows[0])} numbers, got {len(row)}")
        arrays = [_floats(row, f"{self.label(name)}[{i}][{{}}]") for i, row in enumerate(rows)]
        return np.array(arrays) if arrays else np.empty((0, 0))


def _floats(values: list[Any], entry: str) -> FloatArray:
    """Return a list as floats; ``entry`` is the name of an entry with ``{}`` for its index."""
    if not set(map(type, values)) <= {int, float}:
        where = next(i for i, value in enumerate(values) if type(value) not in (int, float))
        raise InputError(entry.format(where), f"expected a number, got {shown(values[where])}")
    try:
        array = np.array(values, np.float64)
    except OverflowError:
        where = next(i for i, value in enumerate(values) if abs(value) > sys.float_info.max)
        raise InputError(entry.format(where), f"expected a finite number, got {shown(values[where])}") from None
    if not np.isfinite(array).all():
        where = int(np.flatnonzero(~np.isfinite(array))[0])
        raise InputError(entry.format(where), f"expected a finite number, got {shown(values[where])}")
    return array


def whole_numbers(values: list[Any], entry: str) -> npt.NDArray[np.int64]:
    """Check a list of whole numbers and return it as an array.

    Parameters
    ----------
    values
        The list.
    entry
        Name of an entry for error messages, with ``{}`` for its index.

    Returns
    -------
    array
        The numbers as 64-bit integers.

    Raises
    ------
    InputError
        If an entry is not a whole number that fits 64 bits.
    """
    if not set(map(type, values)) <= {int}:
        where = next(i for i, value in enumerate(values) if type(value) is not int)
        raise InputError(entry.format(where), f"expected a whole number, got {shown(values[where])}")
    try:
        return np.array(values, np.int64)
    except OverflowError:
        where = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        problem = f"expected a whole number that fits 64 bits, got {shown(values[where])}"
        raise InputError(entry.format(where), problem) from None


def read_object(
    path: Path, wanted: str | tuple[str, ...], known: Collection[str], largest: int = LARGEST_TEXT
) -> Fields:
    """Read a JSON file that must contain an object of a given format.

    Parameters
    ----------
    path
        The file, compressed if its name ends in ``.gz``.
    wanted
        The expected value of the field ``format``, or several of them.
    known
        The permitted fields of the object.
    largest
        The largest size in bytes, decompressed.

    Returns
    -------
    Fields
        The object.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, is not JSON, or has another format or an unknown field. The message
        does not contain the path.
    """
    return object_of(read_value(path, largest), wanted, known)


def object_of(values: Any, wanted: str | tuple[str, ...], known: Collection[str]) -> Fields:
    """Return parsed JSON that must be an object of a given format.

    Parameters
    ----------
    values
        The parsed JSON.
    wanted, known
        As for :func:`read_object`.

    Returns
    -------
    Fields
        The object.

    Raises
    ------
    InputError
        If it is no object, or has another format or an unknown field.
    """
    formats = (wanted,) if isinstance(wanted, str) else wanted
    text = " or ".join(f'"{each}"' for each in formats)
    if not isinstance(values, dict):
        raise InputError("", f'expected an object with "format": {text}, got {shown(values)}')
    found = values.get("format")
    if found not in formats:
        problem = "it is missing" if "format" not in values else f"got {shown(found)}"
        raise InputError("format", f"expected {text}, {problem}")
    return Fields(values, "", known)


def read_value(path: Path, largest: int = LARGEST_TEXT) -> Any:
    """Read a JSON file with any content.

    Parameters
    ----------
    path
        The file, compressed if its name ends in ``.gz``.
    largest
        The largest size in bytes, decompressed.

    Returns
    -------
    object
        The parsed content.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, or is not JSON. The message does not contain the path.
    """
    return parse_value(_read_whole(path, largest))


def parse_value(raw: bytes) -> Any:
    """Parse JSON with any content.

    Parameters
    ----------
    raw
        The text in UTF-8.

    Returns
    -------
    object
        The parsed content.

    Raises
    ------
    InputError
        If it is not JSON, or its parsed form is too large.
    """
    try:
        _check_parsed_size(raw)
        content, is_empty = raw.decode("utf-8-sig"), not raw
        del raw  # a caller that keeps no reference has the text in memory only once
        return _parsed(content)
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise InputError("", f"expected UTF-8 text, got byte {byte:#04x} at {error.start}") from error
    except json.JSONDecodeError as error:
        if is_empty:
            raise InputError("", "expected JSON, the file is empty") from error
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("", f"not JSON at {place}: {error.msg} (is the file whole?)") from error
    except RecursionError:
        raise InputError("", "expected an object, got lists or objects nested too deeply") from None
    except MemoryError:
        raise InputError("", TOO_LARGE) from None


def _read_whole(path: Path, largest: int) -> bytes:
    try:
        with open_limited(path, largest) as file:
            # The file is read in pieces, because one call would first double its memory again and again.
            return b"".join(iter(lambda: file.read(1 << 20), b""))
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("", f"cannot be read ({reason(error)})") from error
    except MemoryError:
        raise InputError("", TOO_LARGE) from None


def _check_parsed_size(raw: bytes) -> None:
    """Refuse a text whose parsed form would need too much memory."""
    # A single character beyond ASCII can make Python store the whole text with four bytes per character.
    text = len(raw) * (1 if raw.isascii() else 4)
    size = 2 * text + sum(cost * raw.count(character) for character, cost in PARSED_COSTS)
    largest = min(LARGEST_PARSED, PARSED_START + PARSED_RATIO * len(raw))
    if size > largest:
        problem = f"expected JSON that needs at most {largest >> 20} MiB of memory, got one that needs {size >> 20}"
        hint = "too many lists or objects" if largest < LARGEST_PARSED else "store a large instance as Parquet"
        raise InputError("", f"{problem}; {hint}")


def _parsed(content: str) -> Any:
    """Parse JSON. Numbers such as NaN and 1e999 are kept, so that the check of their field can name it in the error."""
    repeated: list[tuple[dict[str, Any], str]] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        values = dict(pairs)
        if len(values) != len(pairs):
            repeated.append((values, Counter(name for name, _ in pairs).most_common(1)[0][0]))
        return values

    try:
        parsed = json.loads(content, object_pairs_hook=collect)
    except json.JSONDecodeError:
        raise
    except ValueError:  # Python refuses an integer with very many digits; the second attempt reads it as infinite
        parsed = json.loads(content, object_pairs_hook=collect, parse_int=_int_or_infinite)
    if repeated:
        # An earlier one may be inside a value that was itself repeated and dropped; the last one is part of the result.
        values, name = repeated[-1]
        raise InputError(_joined(_label_of(values, parsed), _brief(name)), "is given twice")
    return parsed


def _int_or_infinite(digits: str) -> float:
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def _label_of(wanted: object, whole: Any) -> str:
    """Return the name for error messages, such as ``topics[3]``, of an object inside another."""
    waiting: list[tuple[str, Any]] = [("", whole)]
    while waiting:
        label, value = waiting.pop()
        if value is wanted:
            return label
        if isinstance(value, dict):
            parts = [(_joined(label, _brief(name)), part) for name, part in value.items()]
        else:
            parts = [(f"{label}[{index}]", part) for index, part in enumerate(value)]
        waiting += [(name, part) for name, part in parts if isinstance(part, dict | list)]
    raise AssertionError("the object is not inside")


def _joined(label: str, name: str) -> str:
    return f"{label}.{name}" if label else name


def _brief(name: str) -> str:
    """Return the name of an unknown field for error messages: without quotes, truncated if long."""
    return shown(name)[1:-1]
