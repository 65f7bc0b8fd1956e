"""Reading JSON that somebody else wrote: every surprise becomes one line that names the file and the field."""

import gzip
import json
import zlib
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from instances.errors import InputError, shown
from instances.groups import FloatArray

# Uncompressed. The parsed form takes some ten times as much memory; larger instances belong into Parquet.
LARGEST_JSON = 1 << 30


class Fields:
    """The fields of one JSON object, handed out by type.

    Parameters
    ----------
    values
        The object, as parsed.
    label
        How errors call it: ``servers``, ``topics[3]``, or nothing for the whole file.
    known
        The fields it may have; any other is refused, since it is most likely a misspelt one.
    """

    def __init__(self, values: object, label: str, known: Collection[str]) -> None:
        if not isinstance(values, dict):
            raise InputError(label, f"expected an object, got {shown(values)}")
        self._values: dict[str, Any] = values
        self._label = label
        for name in values:
            if name not in known:
                raise InputError(self.label(shown(name)[1:-1]), f"unknown field; expected one of {', '.join(known)}")

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def label(self, name: str) -> str:
        """Return the full name of a field."""
        return f"{self._label}.{name}" if self._label else name

    def value(self, name: str) -> Any:
        """Return a field of whatever type."""
        if name not in self._values:
            raise InputError(self.label(name), "is missing")
        return self._values[name]

    def text(self, name: str) -> str:
        """Return a string."""
        value = self.value(name)
        if not isinstance(value, str):
            raise InputError(self.label(name), f"expected text, got {shown(value)}")
        return value

    def number(self, name: str) -> float:
        """Return a finite number."""
        return float(self._floats(name, [self.value(name)], self.label(name))[0])

    def integer(self, name: str) -> int:
        """Return a whole number that fits 64 bits."""
        value = self.value(name)
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise InputError(self.label(name), f"expected a whole number, got {shown(value)}")
        return value

    def entries(self, name: str) -> list[Any]:
        """Return a list of whatever."""
        value = self.value(name)
        if not isinstance(value, list):
            raise InputError(self.label(name), f"expected a list, got {shown(value)}")
        return value

    def numbers(self, name: str) -> FloatArray:
        """Return a list of finite numbers."""
        return self._floats(name, self.entries(name), f"{self.label(name)}[{{}}]")

    def integers(self, name: str) -> npt.NDArray[np.int64]:
        """Return a list of whole numbers."""
        return whole_numbers(self.entries(name), f"{self.label(name)}[{{}}]")

    def matrix(self, name: str) -> FloatArray:
        """Return a list of lists of numbers, all of one length."""
        rows = self.entries(name)
        for index, row in enumerate(rows):
            if not isinstance(row, list):
                raise InputError(f"{self.label(name)}[{index}]", f"expected a list, got {shown(row)}")
            if len(row) != len(rows[0]):
                raise InputError(f"{self.label(name)}[{index}]", f"expected {len(rows[0])} numbers, got {len(row)}")
        arrays = [self._floats(name, row, f"{self.label(name)}[{i}][{{}}]") for i, row in enumerate(rows)]
        return np.array(arrays) if arrays else np.empty((0, 0))

    def _floats(self, name: str, values: list[Any], entry: str) -> FloatArray:
        if not set(map(type, values)) <= {int, float}:
            where = next(i for i, value in enumerate(values) if type(value) not in (int, float))
            raise InputError(entry.format(where), f"expected a number, got {shown(values[where])}")
        try:
            array = np.array(values, np.float64)
        except OverflowError as error:
            raise InputError(self.label(name), "expected numbers of ordinary size, got one beyond 1e308") from error
        if not np.isfinite(array).all():
            where = int(np.flatnonzero(~np.isfinite(array))[0])
            raise InputError(entry.format(where), f"expected a finite number, got {shown(values[where])}")
        return array


def whole_numbers(values: list[Any], entry: str) -> npt.NDArray[np.int64]:
    """Return a list as integers; ``entry`` is the name of an element with ``{}`` for its index."""
    if not set(map(type, values)) <= {int}:
        where = next(i for i, value in enumerate(values) if type(value) is not int)
        raise InputError(entry.format(where), f"expected a whole number, got {shown(values[where])}")
    try:
        return np.array(values, np.int64)
    except OverflowError:
        where = next(i for i, value in enumerate(values) if not -(2**63) <= value < 2**63)
        raise InputError(entry.format(where), f"expected a whole number, got {shown(values[where])}") from None


def read_object(path: Path, wanted: str, known: Collection[str]) -> Fields:
    """Read a JSON file (``.gz`` too) that must be an object of the given format."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            raw = file.read(LARGEST_JSON + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InputError("", f"cannot be read ({reason})") from error
    if len(raw) > LARGEST_JSON:
        raise InputError("", f"expected at most {LARGEST_JSON >> 20} MiB of JSON, got more; use Parquet")
    try:
        values = json.loads(raw.decode("utf-8-sig"), parse_constant=_refuse, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        raise InputError("", f"expected UTF-8 text, got byte {raw[error.start]:#04x} at {error.start}") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError("", f"not JSON at {place}: {error.msg} (is the file whole?)") from error
    except RecursionError:
        raise InputError("", "nested too deeply") from None
    except InputError:
        raise
    except ValueError as error:  # an integer of thousands of digits
        raise InputError("", f"not usable JSON ({error})") from error
    if not isinstance(values, dict):
        raise InputError("", f'expected an object with "format": "{wanted}", got {shown(values)}')
    found = values.get("format")
    if found != wanted:
        problem = "it is missing" if "format" not in values else f"got {shown(found)}"
        raise InputError("format", f'expected "{wanted}", {problem}')
    return Fields(values, "", known)


def _refuse(constant: str) -> NoReturn:
    raise InputError("", f"expected finite numbers only, got {constant}")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(shown(twice)[1:-1], "is given twice")
    return values
