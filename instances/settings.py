"""Conversion of settings, given as text or as values, to their declared types."""

import math
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from relocbench.instances.errors import InputError, shown

# Depending on the Python version, ``int | float`` and ``int | Literal["auto"]`` have different types.
UNIONS = (UnionType, Union)


@dataclass(frozen=True)
class Range:
    """The range of a setting, as in ``Annotated[int, Range(1)]``.

    Attributes
    ----------
    low, high
        The ends.
    excludes_low
        Whether the lower end itself is outside.
    """

    low: float
    high: float = math.inf
    excludes_low: bool = False

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high and not (self.excludes_low and value == self.low)

    def __str__(self) -> str:
        end = f" to {self.high:g}" if self.high < math.inf else ""
        return f"{'above' if self.excludes_low else 'from'} {self.low:g}{end}"


def setting(label: str, wanted: Any, value: object) -> Any:
    """Convert a value to a type.

    Parameters
    ----------
    label
        Name of the setting for error messages.
    wanted
        bool, int, float, str, a Literal, or a union of these. Of a union the first type that fits is used. A number may
        be annotated with its :class:`Range`.
    value
        The value, possibly as text.

    Returns
    -------
    object
        The value in the wanted type.

    Raises
    ------
    InputError
        If the value cannot be converted, or is out of range.
    """
    for kind in get_args(wanted) if get_origin(wanted) in UNIONS else (wanted,):
        try:
            return _converted(kind, value)
        except (ValueError, OverflowError):
            continue
    raise InputError(label, f"expected {expectation(wanted)}, got {shown(value)}")


def _converted(kind: Any, value: object) -> Any:
    if get_origin(kind) is Annotated:
        number = _converted(get_args(kind)[0], value)
        if any(number not in limits for limits in _ranges(kind)):
            raise ValueError
        return number
    if get_origin(kind) is Literal:
        return get_args(kind)[get_args(kind).index(value)]
    if kind is bool:
        return bool([False, True, "false", "true"].index(value if isinstance(value, bool | str) else "neither") % 2)
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError
    if kind is int:
        if isinstance(value, str) and value.lstrip("+-").isdecimal():
            return int(value)
        if isinstance(value, int):
            return value
        # Large counts are often written as 2e6.
        if not float(value).is_integer():
            raise ValueError
        return int(float(value))
    if kind is float:
        return float(value)
    if not isinstance(value, str):
        raise ValueError
    return value


def _ranges(annotated: Any) -> list[Range]:
    """Return the ranges among the annotations of a type, which may have others, too."""
    return [mark for mark in annotated.__metadata__ if isinstance(mark, Range)]


def expectation(kind: Any) -> str:
    """Describe the values that a setting of a type accepts.

    Parameters
    ----------
    kind
        The type, as for :func:`setting`.

    Returns
    -------
    str
        The description for "expected …".
    """
    if get_origin(kind) in UNIONS:
        return " or ".join(map(expectation, get_args(kind)))
    if get_origin(kind) is Annotated:
        return " ".join([expectation(get_args(kind)[0]), *map(str, _ranges(kind))])
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(kind, str(kind))
