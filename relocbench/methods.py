"""The registry of methods, and selectors such as ``reloc[k=8,cooperation=topic]``."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relocbench.formulations.solvers.availability import missing
from relocbench.instances.errors import InputError, shown
from relocbench.instances.settings import expectation, setting
from relocbench.instances.solution import Solution

Solve = Callable[..., Solution]

# What every method is called with, where it takes it; its other keyword arguments are its parameters.
# ``log``: whether the solver behind a method may print what it does.
CALLING_CONVENTION = ("instance", "seed", "time_limit", "start", "on_progress", "log")


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
    needs
        Modules of the extra ``solvers`` that it cannot do without.
    """

    name: str
    summary: str
    proves: Literal["nothing", "bound", "optimality"]
    where: str
    needs: tuple[str, ...] = ()

    @property
    def ours(self) -> bool:
        """Whether it is part of this project."""
        return True

    def unavailable(self) -> str | None:
        """Return why the method cannot run here, if it cannot."""
        return missing(*self.needs)

    def load(self) -> Solve:
        """Import and return the function."""
        module, _, function = self.where.partition(":")
        loaded: Solve = getattr(importlib.import_module(module), function)
        return loaded

    def takes(self, argument: str) -> bool:
        """Tell whether the function has an argument of that name."""
        return argument in inspect.signature(self.load()).parameters

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters a selector may set, with their types and defaults."""
        signature = inspect.signature(self.load())
        return {name: spec for name, spec in signature.parameters.items() if name not in CALLING_CONVENTION}

    def described(self) -> dict[str, dict[str, str]]:
        """Return what a selector may set, as it would write it: the default, and what is expected."""
        told = {
            name: {"default": _text(spec.default), "expects": expectation(spec.annotation)}
            for name, spec in self.parameters().items()
        }
        if self.takes("start"):
            told["start"] = {"default": "nearest", "expects": "another method's selector"}
        return told


METHODS = {
    method.name: method
    for method in (
        Method("random", "RA: a home uniformly at random", "nothing", "relocbench.heuristics.random_homes:solve"),
        Method("nearest", "NS: the nearest server", "nothing", "relocbench.heuristics.nearest:solve"),
        Method("otos", "OTOS: one server a topic, with cooperation", "nothing", "relocbench.heuristics.otos:solve"),
        Method("reloc", "RELOC: the paper's heuristic", "nothing", "relocbench.heuristics.reloc:solve"),
        Method("anneal", "simulated annealing, the strong reference", "nothing", "relocbench.heuristics.anneal:solve"),
        Method(
            "enumerate",
            "every assignment, up to a thousand million",
            "optimality",
            "relocbench.formulations.enumeration:solve",
        ),
        Method(
            "milp-basic",
            "linear model, product by product",
            "optimality",
            "relocbench.formulations.milp_basic:solve",
            ("pulp",),
        ),
        Method(
            "milp-strong",
            "linear model with capacities conditioned on each client",
            "optimality",
            "relocbench.formulations.milp_strong:solve",
            ("pulp",),
        ),
        Method(
            "pyomo-direct",
            "the bilinear model as the paper writes it, by SCIP",
            "optimality",
            "relocbench.formulations.pyomo_direct:solve",
            ("pyomo", "pyscipopt"),
        ),
        Method(
            "pyomo-gdp",
            "θ as a disjunction, linearised by Pyomo, by HiGHS",
            "optimality",
            "relocbench.formulations.pyomo_gdp:solve",
            ("pyomo", "highspy"),
        ),
        Method(
            "cpsat",
            "constraint programming on whole numbers",
            "optimality",
            "relocbench.formulations.cpsat.solve:solve",
            ("ortools",),
        ),
        Method(
            "branch-price",
            "column generation over what a server holds, the strongest here",
            "optimality",
            "relocbench.formulations.branch_price.solve:solve",
            ("highspy",),
        ),
        Method(
            "bound",
            "relaxation, annealing and branching, with a verified certificate; for every size",
            "bound",
            "relocbench.certifying:solve",
        ),
        Method(
            "cfn",
            "cost function network, by toulbar2",
            "optimality",
            "relocbench.formulations.cfn.solve:solve",
            ("pytoulbar2",),
        ),
    )
}


@dataclass(frozen=True)
class Selector:
    """A method with the parameters a user chose, and perhaps another whose homes it starts from."""

    method: Method
    settings: Mapping[str, Any]
    start: "Selector | None" = None

    def __str__(self) -> str:
        shown_settings = {name: _text(value) for name, value in self.settings.items()}
        if self.start is not None:
            shown_settings["start"] = str(self.start)
        inside = ",".join(f"{name}={value}" for name, value in sorted(shown_settings.items()))
        return f"{self.method.name}[{inside}]" if inside else self.method.name


def select(text: str) -> Selector:
    """Parse a selector: a method's name and perhaps ``[parameter=value,...]``.

    A method that takes a start accepts ``start=`` with another selector: ``anneal[start=reloc[k=8],moves=2e6]``.
    """
    match = re.fullmatch(r"\s*([\w-]+)\s*(?:\[(.*)\])?\s*", text)
    if match is None:
        raise InputError("method", f"expected name or name[parameter=value,...], got {shown(text)}")
    name, inside = match.groups()
    if name not in METHODS:
        raise InputError("method", f"expected one of {', '.join(METHODS)}, got {shown(name)}")
    return configured(METHODS[name], inside or "")


def configured(method: Method, inside: str) -> Selector:
    """Return a method with the parameters that stand between the brackets of a selector."""
    settings: dict[str, Any] = {}
    start: Selector | None = None
    for part in _split(inside):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        known = method.parameters()
        if key in settings or (key == "start" and start is not None):
            raise InputError(f"method {method.name}", f"{key} is given twice")
        if equals and key == "start" and method.takes("start"):
            start = select(value)
        elif equals and key in known:
            settings[key] = setting(f"method {method.name}: {key}", known[key].annotation, value)
        else:
            names = ", ".join([*known, *(["start"] if method.takes("start") else [])]) or "no parameters"
            problem = f"expected parameter=value with one of: {names}; got {shown(part)}"
            raise InputError(f"method {method.name}", problem)
    return Selector(method, settings, start)


def select_many(texts: Iterable[str]) -> list[Selector]:
    """Parse lists of selectors between commas; one that is there twice is meant once."""
    selectors = [select(part) for text in texts for part in _split(text)]
    return list({str(selector): selector for selector in selectors}.values())


def refuse_absent(selectors: Iterable[Selector]) -> None:
    """Refuse methods that cannot run here."""
    for selector in selectors:
        if reason := selector.method.unavailable():
            raise InputError(f"method {selector.method.name}", reason)


def _split(inside: str) -> list[str]:
    """Split at the commas that stand in no inner brackets."""
    parts, depth = [""], 0
    for character in inside:
        depth += (character == "[") - (character == "]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
