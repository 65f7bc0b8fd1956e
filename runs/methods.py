"""The registry of methods: to add one, add a line to ``METHODS``."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relocbench.formulations.solvers.availability import missing
from relocbench.instances.settings import expectation
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
            name: {"default": setting_text(spec.default), "expects": expectation(spec.annotation)}
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
            "relocbench.runs.certify:solve",
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


def setting_text(value: Any) -> str:
    """Return a value as a selector writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
