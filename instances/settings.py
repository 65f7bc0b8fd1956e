"""Settings that people write as text or as values, in the type that a signature states."""

from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from relocbench.instances.errors import InputError, shown

# ``int | float`` and ``int | Literal["auto"]`` are not of one type in every Python.
UNIONS = (UnionType, Union)


def setting(label: str, wanted: Any, value: object) -> Any:
    """Return a value as what is wanted: bool, int, float, str, a Literal, or a union of these."""
    for kind in get_args(wanted) if get_origin(wanted) in UNIONS else (wanted,):
        try:
            return _as(kind, value)
        except (ValueError, OverflowError):
            continue
    raise InputError(label, f"expected {expectation(wanted)}, got {shown(value)}")


def _as(kind: Any, value: object) -> Any:
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
        # 2e6 is how people write a large count.
        if not float(value).is_integer():
            raise ValueError
        return int(float(value))
    if kind is float:
        return float(value)
    if not isinstance(value, str):
        raise ValueError
    return value


def expectation(kind: Any) -> str:
    """Return in words what a setting of this type takes."""
    if get_origin(kind) in UNIONS:
        return " or ".join(map(expectation, get_args(kind)))
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    return {bool: "true or false", int: "a whole number", float: "a number", str: "text"}.get(kind, str(kind))
