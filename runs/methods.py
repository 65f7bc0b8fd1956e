"""The registry of the methods of this project.

To add a method, write one module with a function

    solve(instance, *, seed, time_limit, <parameters with types and defaults>) -> Solution

and add one line to ``METHODS`` below. The command, the selectors, the reports and the tests then know the method.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from relocbench.formulations.solvers.availability import missing
from relocbench.instances.settings import expectation
from relocbench.instances.solution import Solution
from relocbench.runs.method_code import project_code
from relocbench.runs.start_homes import StartHomes

Solve = Callable[..., Solution]
Proves = Literal["nothing", "bound", "optimality"]
PROVES: tuple[Proves, ...] = ("nothing", "bound", "optimality")

# The arguments with a fixed meaning. Every method gets ``instance``, ``seed`` and ``time_limit``. If its function has
# them, it also gets ``start`` (homes to begin with), ``on_progress`` (called with every improvement) and ``log``
# (whether the solver may print its log). All other arguments are parameters of the method.
RESERVED_ARGUMENTS = ("instance", "seed", "time_limit", "start", "on_progress", "log")


@dataclass(frozen=True)
class Method:
    """A method of this project, which finds a home for every client.

    Attributes
    ----------
    name
        The name in a selector.
    summary
        One line for the list of methods.
    proves
        ``nothing``, ``bound`` (a lower bound) or ``optimality``.
    where
        ``module:function`` of its ``solve``. The module is imported when the method is first used.
    needs
        The modules of the extra ``solvers`` that the method imports.
    """

    name: str
    summary: str
    proves: Proves
    where: str
    needs: tuple[str, ...] = ()

    @property
    def is_external(self) -> bool:
        """Whether the method belongs to other people's code."""
        return False

    def unavailable(self) -> str | None:
        """Return why the method cannot run on this machine.

        Returns
        -------
        str or None
            The modules that are missing and how to install them; None if the method can run.
        """
        return missing(*self.needs)

    def load(self) -> Solve:
        """Import the function.

        Returns
        -------
        Solve
            The function ``solve`` of the method.
        """
        module, _, function = self.where.partition(":")
        loaded: Solve = getattr(importlib.import_module(module), function)
        return loaded

    def version(self) -> str:
        """Return the version of the method's code.

        Returns
        -------
        str
            As in :mod:`runs.method_code`.
        """
        return project_code(self.where.partition(":")[0])

    def takes(self, argument: str) -> bool:
        """Return whether the function has an argument.

        Parameters
        ----------
        argument
            The name of the argument.

        Returns
        -------
        bool
            Whether the function has it.
        """
        return argument in inspect.signature(self.load()).parameters

    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Return the parameters that a selector may set.

        Returns
        -------
        Mapping
            For each name the parameter with its type and its default.
        """
        signature = inspect.signature(self.load())
        return {name: spec for name, spec in signature.parameters.items() if name not in RESERVED_ARGUMENTS}

    def described_parameters(self) -> dict[str, dict[str, str]]:
        """Return the parameters that a selector may set, as text.

        Returns
        -------
        dict
            For each name the ``default``, as a selector writes it, and what the parameter ``expects``.
        """
        described = {
            name: {"default": setting_text(spec.default), "expects": expectation(spec.annotation)}
            for name, spec in self.parameters().items()
        }
        if self.takes("start"):
            described["start"] = {"default": "nearest", "expects": "another method's selector or a file of homes"}
        return described


@dataclass(frozen=True)
class Selector:
    """A method with chosen parameters, and perhaps homes that it starts from.

    Attributes
    ----------
    method
        The method.
    settings
        The parameters that were set; the others have their defaults.
    start
        The homes to start from, or the method that finds them; None for the method's own start.
    """

    method: Method
    settings: Mapping[str, Any]
    start: "Selector | StartHomes | None" = None

    @property
    def _stages(self) -> "list[Selector]":
        """The selector itself, and those of the methods whose homes it starts from."""
        return [self, *(self.start._stages if isinstance(self.start, Selector) else [])]

    @property
    def runs_external_code(self) -> bool:
        """Whether the method, or the one that it starts from, is code of other people."""
        return any(stage.method.is_external for stage in self._stages)

    @property
    def is_isolated(self) -> bool:
        """Whether a single run has a process of its own: code of other people, and solvers that may crash."""
        return any(stage.method.is_external or stage.method.proves != "nothing" for stage in self._stages)

    @property
    def threads(self) -> int:
        """The setting ``threads``, or the method's default; 1 for a method without this parameter."""
        known = self.method.parameters()
        threads = self.settings.get("threads", known["threads"].default if "threads" in known else 1)
        return threads if isinstance(threads, int) and threads > 0 else 1

    def load(self) -> None:
        """Import the method and the one that it starts from."""
        for stage in self._stages:
            stage.method.load()

    def version(self) -> str:
        """Return the version of the code that the selector runs.

        Returns
        -------
        str
            That of the method and, if there is one, that of its start.
        """
        start = "" if self.start is None else f", start {self.start.version()}"
        return f"{self.method.version()}{start}"

    def __str__(self) -> str:
        settings = {name: setting_text(value) for name, value in self.settings.items()}
        if self.start is not None:
            settings["start"] = str(self.start)
        inside = ",".join(f"{name}={value}" for name, value in sorted(settings.items()))
        return f"{self.method.name}[{inside}]" if inside else self.method.name


METHODS = {
    method.name: method
    for method in (
        # To add a method, add a line here: name, summary, what it proves, module:function, modules that it needs.
        Method("random", "RA: a random home for each client", "nothing", "relocbench.heuristics.random_homes:solve"),
        Method("nearest", "NS: the nearest server for each client", "nothing", "relocbench.heuristics.nearest:solve"),
        Method("otos", "OTOS: one server per topic, then cooperation", "nothing", "relocbench.heuristics.otos:solve"),
        Method("reloc", "RELOC: the paper's heuristic", "nothing", "relocbench.heuristics.reloc:solve"),
        Method(
            "adaptive",
            "our own heuristic: steps of RELOC, each taken where it lowers the delay",
            "nothing",
            "relocbench.heuristics.adaptive:solve",
        ),
        Method("anneal", "simulated annealing, the best heuristic", "nothing", "relocbench.heuristics.anneal:solve"),
        Method(
            "enumerate",
            "enumeration of all assignments, at most 10^9",
            "optimality",
            "relocbench.formulations.enumeration:solve",
        ),
        Method(
            "milp-basic",
            "MILP in which each product of variables is linearised",
            "optimality",
            "relocbench.formulations.milp_basic:solve",
            ("pulp",),
        ),
        Method(
            "milp-strong",
            "MILP with capacity constraints conditioned on each client's home",
            "optimality",
            "relocbench.formulations.milp_strong:solve",
            ("pulp",),
        ),
        Method(
            "pyomo-direct",
            "the paper's bilinear model, solved by SCIP",
            "optimality",
            "relocbench.formulations.pyomo_direct:solve",
            ("pyomo", "pyscipopt"),
        ),
        Method(
            "pyomo-gdp",
            "θ as a disjunction, linearised by Pyomo, solved by HiGHS",
            "optimality",
            "relocbench.formulations.pyomo_gdp:solve",
            ("pyomo", "highspy"),
        ),
        Method(
            "cpsat",
            "constraint programming over integers, solved by CP-SAT",
            "optimality",
            "relocbench.formulations.cpsat.solve:solve",
            ("ortools",),
        ),
        Method(
            "branch-price",
            "branch and price with one column per set of contents of a server; the strongest exact method",
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
            "cost function network, solved by toulbar2",
            "optimality",
            "relocbench.formulations.cfn.solve:solve",
            ("pytoulbar2",),
        ),
    )
}


def setting_text(value: Any) -> str:
    """Return the value of a parameter as a selector writes it.

    Parameters
    ----------
    value
        The value.

    Returns
    -------
    str
        Its text; ``true`` or ``false`` for a bool.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
