"""The registry of methods, and selectors such as ``reloc[k=8,cooperation=topic]``."""

import importlib
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from instances.errors import InputError, shown
from instances.solution import Solution

Solve = Callable[..., Solution]

# What every method is called with; its other keyword arguments are its parameters.
CALLING_CONVENTION = ("instance", "seed", "time_limit", "start", "on_progress")


@dataclass(frozen=True)
class Method:
    """One way to find homes.

    Attributes
    ----------
    name
        As in a selector.
    summary
        One line for people.
    proves
        ``nothing``, ``bound`` or ``optimality``.
    where
        ``module:function`` of its ``solve``; imported only when used.
    """

    name: str
    summary: str
    proves: Literal["nothing", "bound", "optimality"]
    where: str

    def load(self) -> Solve:
        """Import and return the function."""
        module, _, function = self.where.partition(":")
        loaded: Solve = getattr(importlib.import_module(module), function)
        return loaded

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters a selector may set, with their types and defaults."""
        signature = inspect.signature(self.load())
        return {name: spec for name, spec in signature.parameters.items() if name not in CALLING_CONVENTION}


METHODS = {
    method.name: method
    for method in (
        Method("random", "RA: a home uniformly at random", "nothing", "heuristics.random_homes:solve"),
        Method("nearest", "NS: the nearest server", "nothing", "heuristics.nearest:solve"),
    )
}


@dataclass(frozen=True)
class Selector:
    """A method with the parameters a user chose."""

    method: Method
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        inside = ",".join(f"{name}={value}" for name, value in sorted(self.settings.items()))
        return f"{self.method.name}[{inside}]" if inside else self.method.name


def select(text: str) -> Selector:
    """Parse a selector: a method's name and perhaps ``[parameter=value,...]``."""
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text)
    if match is None:
        raise InputError("method", f"expected name or name[parameter=value,...], got {shown(text)}")
    name, inside = match.groups()
    if name not in METHODS:
        raise InputError("method", f"expected one of {', '.join(METHODS)}, got {shown(name)}")
    method = METHODS[name]
    settings: dict[str, Any] = {}
    for part in (inside or "").split(","):
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = method.parameters()
        if not equals or key not in known:
            names = ", ".join(known) or "no parameters"
            raise InputError(f"method {name}", f"expected parameter=value with one of: {names}; got {shown(part)}")
        settings[key] = _converted(f"method {name}: {key}", known[key].annotation, value)
    return Selector(method, settings)


def _converted(label: str, wanted: Any, text: str) -> Any:
    """Return a parameter's text in the type that the method's signature states."""
    if get_origin(wanted) is Literal:
        if text not in get_args(wanted):
            raise InputError(label, f"expected one of {', '.join(get_args(wanted))}, got {shown(text)}")
        return text
    if wanted is bool:
        if text not in ("true", "false"):
            raise InputError(label, f"expected true or false, got {shown(text)}")
        return text == "true"
    try:
        # 2e6 is how people write a large count.
        return int(float(text)) if wanted is int and float(text).is_integer() else wanted(text)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(label, f"expected {getattr(wanted, '__name__', wanted)}, got {shown(text)}") from error
