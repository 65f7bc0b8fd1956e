"""Exact models as files, and how the objective of a file translates to ``ΣD`` in ms.

A file holds the model that the method of the same name solves first. Its coefficients are scaled as in
:mod:`formulations.scaling`, with the cost of the nearest servers as ``Z``, but no delay to the cloud is cut: a file is
not solved a second time.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.formulations.cfn.levels import Levels
from relocbench.formulations.cfn.network import Labels
from relocbench.formulations.cfn.network import build as build_network
from relocbench.formulations.cfn.network import labels_of as network_labels
from relocbench.formulations.cpsat import model as cpsat_model
from relocbench.formulations.incumbent import LEAST_COEFFICIENT, slack
from relocbench.formulations.integer_scaling import scale_exponent, upper_limit, whole_exponent
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.milp_basic import BasicModel
from relocbench.formulations.milp_strong import StrongModel
from relocbench.formulations.model_files.linear_file import lp_lines, mps_lines
from relocbench.formulations.model_files.network_file import cfn_lines, wcsp_lines
from relocbench.formulations.scaling import NOTHING, Negligible, ScaledModel, scale
from relocbench.formulations.solvers import pulp_solver, pyomo_solver
from relocbench.formulations.solvers.availability import require
from relocbench.formulations.solvers.pulp_model import Arrays
from relocbench.instances.errors import InputError, one_of
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.instance import Instance
from relocbench.instances.nearest_server import nearest_server

FORMAT = "relocbench-model/1"
# The formats with the endings of their files. A .pb file is binary, .pbtxt and .txt are text.
FORMATS = {
    "mps": (".mps",),
    "lp": (".lp",),
    "nl": (".nl",),
    "cpsat-proto": (".pb", ".pbtxt", ".txt"),
    "cfn": (".cfn", ".wcsp"),
}
# The formats of each model.
MODELS = {
    "milp-basic": ("mps", "lp"),
    "milp-strong": ("mps", "lp"),
    "pyomo-direct": ("nl",),
    "pyomo-gdp": ("lp", "nl"),
    "cpsat": ("cpsat-proto",),
    "cfn": ("cfn",),
}
# The libraries that build each model.
NEEDS = {"milp-basic": "pulp", "milp-strong": "pulp", "pyomo-direct": "pyomo", "pyomo-gdp": "pyomo", "cpsat": "ortools"}
# The tolerance of solvers with their own settings, which may change an objective by this share of the magnitude.
SOLVER_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Translation:
    """How the objective of a model file translates to ``ΣD``.

    Attributes
    ----------
    unit_ms
        ``ΣD`` in ms is this number times the objective.
    exact_up_to_ms
        ``Z``: the model is right for all assignments that cost at most this.
    loss_ms
        What the shares of ``θ`` that count as 0 may cost. A lower bound on the objective, times ``unit_ms``, minus this
        is a lower bound on ``ΣD``.
    below_ms
        How far the objective of an assignment may be below its ``ΣD`` because the model rounds; None without a limit.
    above_ms
        How far a solver's objective may be above ``ΣD`` because of its tolerances.
    """

    unit_ms: float
    exact_up_to_ms: float
    loss_ms: float
    below_ms: float | None
    above_ms: float

    def to_ms(self, objective: float) -> float:
        """Convert an objective of the file.

        Parameters
        ----------
        objective
            The value in units of the model.

        Returns
        -------
        float
            ``ΣD`` in ms.
        """
        return objective * self.unit_ms

    def agrees(self, claimed_ms: float, cost: float) -> bool:
        """Return whether a claimed objective is explained by the model and the tolerances of solvers.

        Parameters
        ----------
        claimed_ms
            The objective, in ms.
        cost
            ``ΣD`` of the same homes.

        Returns
        -------
        bool
            Whether the difference is explained.
        """
        below = math.inf if self.below_ms is None else self.below_ms + self.above_ms
        margin = slack(cost)
        return cost - below - margin <= claimed_ms <= cost + self.above_ms + margin


@dataclass(frozen=True)
class Exported:
    """A model file.

    Attributes
    ----------
    variables, constraints
        The size of the model; for a network the number of its variables and of its functions and rows.
    translation
        How its objective translates.
    files
        The paths that were written, the model first.
    warning
        One line about what solvers may do wrong with this model; empty if nothing is to be expected.
    """

    variables: int
    constraints: int
    translation: Translation
    files: tuple[str, ...]
    warning: str = ""


def require_model(method: str) -> None:
    """Check that a method has a model that can be exported.

    Parameters
    ----------
    method
        The name of the method.

    Raises
    ------
    InputError
        If it has none, or the library that builds it is not installed.
    """
    if method not in MODELS:
        raise InputError("--model", f"{one_of(MODELS, method)} (other methods have no model in one file)")
    if method in NEEDS:
        require(f"model {method}", NEEDS[method])


def choose_format(method: str, path: Path, name: str | None) -> str:
    """Return the format of a model file.

    Parameters
    ----------
    method
        The name of the method.
    path
        The file.
    name
        The format that was asked for; None to take it from the ending of the file.

    Returns
    -------
    str
        One of ``FORMATS``.

    Raises
    ------
    InputError
        If the model has no such format, or the ending does not belong to it.
    """
    known = MODELS[method]
    if name is None:
        found = [one for one in known if path.name.endswith(FORMATS[one])]
        if not found:
            endings = [ending for one in known for ending in FORMATS[one]]
            raise InputError("--out", f"expected a name ending in {' or '.join(endings)} for {method}, got {path.name}")
        return found[0]
    if name not in known:
        raise InputError("--format", f"{one_of(known, name)} for {method}")
    if not path.name.endswith(FORMATS[name]):
        raise InputError("--out", f"expected a name ending in {' or '.join(FORMATS[name])}, got {path.name}")
    return name


def export_model(
    instance: Instance, method: str, settings: Mapping[str, Any], path: Path, name: str | None = None
) -> Exported:
    """Write the model of an instance to a file, and its translation to a second one with ``.json`` at the end.

    Parameters
    ----------
    instance
        The problem.
    method, settings
        The method, and its parameters that change the model: ``condition``, ``relax``, ``transform``, ``conditioned``,
        ``levels``. Parameters of a solver have no effect.
    path, name
        As for :func:`choose_format`.

    Returns
    -------
    Exported
        The size of the model and its translation.

    Raises
    ------
    InputError
        If there is no such model or format, or the file cannot be written.
    """
    require_model(method)
    kind = choose_format(method, path, name)
    scaled = _scaled(instance, method)
    translation, build = _translation(scaled, method), _BUILDERS[method]
    about = [
        f"relocbench model {method} of instance {' '.join(instance.name.split()) or 'without a name'}",
        f"instance hash {instance.hash}",
        f"total delay in ms = {translation.unit_ms!r} * objective, for assignments of at most "
        f"{translation.exact_up_to_ms!r} ms",
        "x_m_l = 1 if server l is the home of client m, both counted from 0",
    ]
    sizes, writers, warning = build(scaled, settings, kind, path, about)
    for suffix, write in writers.items():
        target = path if not suffix else path.with_name(f"{path.stem}{suffix}")
        with written_whole(target) as temporary:
            write(temporary)
    side = path.with_name(f"{path.name}.json")
    record = {
        "format": FORMAT,
        "instance": instance.hash,
        "name": instance.name,
        "model": method,
        "settings": dict(settings),
        "clients": instance.n_clients,
        "servers": instance.n_servers,
        **asdict(translation),
        "relaxation": translation.below_ms is None,
    }
    with written_whole(side) as temporary:
        temporary.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    files = [path, *(path.with_name(f"{path.stem}{suffix}") for suffix in writers if suffix), side]
    return Exported(*sizes, translation, tuple(map(str, files)), warning)


def translation_of(instance: Instance, method: str) -> Translation:
    """Return the translation of a model without building the model.

    Parameters
    ----------
    instance
        The problem.
    method
        The method.

    Returns
    -------
    Translation
        The translation.
    """
    return _translation(_scaled(instance, method), method)


def labels_of(instance: Instance, settings: Mapping[str, Any]) -> Labels:
    """Return the labels of the clients in the network of an instance.

    Parameters
    ----------
    instance
        The problem.
    settings
        As for :func:`export_model`.

    Returns
    -------
    Labels
        The labels.
    """
    return network_labels(_levels(_scaled(instance, "cfn"), settings))


def _scaled(instance: Instance, method: str) -> ScaledModel:
    cost = evaluate(instance, nearest_server(instance)).objective
    if cost == 0:
        raise InputError("instance", "the nearest servers cost 0, which is optimal; there is no model to solve")
    negligible = {
        "milp-basic": Negligible(pulp_solver.NEGLIGIBLE_COST, pulp_solver.LEAST_SHARE * pulp_solver.TOLERANCE),
        "pyomo-direct": pyomo_solver.NEGLIGIBLE,
        "cpsat": NOTHING,
        "cfn": NOTHING,
    }
    negligible |= {"milp-strong": negligible["milp-basic"], "pyomo-gdp": negligible["pyomo-direct"]}
    return scale(linearise(instance), cost, math.inf, negligible[method])


def _translation(scaled: ScaledModel, method: str) -> Translation:
    unit, below, above = scaled.unit, scaled.to_cost(scaled.loss), SOLVER_TOLERANCE * scaled.to_cost(scaled.magnitude)
    rounding: float | None = below
    if method == "cpsat":
        scales, linear = _cpsat_scales(scaled), scaled.linear
        unit, above = math.ldexp(scaled.unit, -scales.objective), 0.0
        loads = np.concatenate([linear.spool, linear.demand])
        exact_loads = linear.surely_local.all() or whole_exponent(loads, scales.load + 1) <= scales.load
        steepest = max(linear.detour, float(linear.server_delay.max(initial=0.0))) * float(linear.publications.sum())
        terms = 2 * linear.n_clients + len(linear.sender) * (1 + 2 * linear.n_servers)
        error = math.ldexp(terms, -scales.cost) + math.ldexp(2 * steepest, -scales.share)
        rounding = scaled.to_cost(error) if exact_loads else None
    elif method == "cfn":
        unit, rounding, above = math.ldexp(scaled.unit, -_network_scale(scaled)[0]), None, 0.0
    return Translation(unit, scaled.cost, scaled.to_cost(scaled.loss), rounding, above)


# What a builder returns: the numbers of variables and constraints; for each file a function that writes it, by the
# ending that replaces that of the model ("" for the model itself); and a warning.
Built = tuple[tuple[int, int], dict[str, Callable[[Path], object]], str]


def _build_linear(build: Callable[..., Any]) -> Callable[..., Built]:
    def built(scaled: ScaledModel, settings: Mapping[str, Any], kind: str, path: Path, about: list[str]) -> Built:
        chosen = {"condition": settings["condition"]} if "condition" in settings else {}
        model = build(scaled.linear, **chosen)
        arrays, names = Arrays.of(model), [column.name for column in model.columns]
        lines = {"mps": mps_lines, "lp": lp_lines}[kind](arrays, names, about, bool(settings.get("relax", False)))
        sizes = np.abs(arrays.value)
        least = float(sizes[sizes > 0].min(initial=1.0))
        warning = ""
        if least < LEAST_COEFFICIENT * pulp_solver.TOLERANCE:
            warning = f"the smallest coefficient is {least:.2g}; solvers may take it for 0 and report a false optimum"
        return (len(names) + 1, len(arrays.low)), {"": lambda file: _write_lines(file, lines)}, warning

    return built


def _build_cpsat(scaled: ScaledModel, settings: Mapping[str, Any], kind: str, path: Path, about: list[str]) -> Built:
    scales = _cpsat_scales(scaled)
    cutoff = scaled.to_model(scaled.cost + slack(scaled.cost))
    conditioned = bool(settings.get("conditioned", True))
    most = upper_limit(cutoff, scales.objective)
    made = cpsat_model.build(scaled.linear, scales, most, conditioned, math.inf)
    made.model.name = "; ".join(about[:3])

    def write(file: Path) -> None:
        if path.suffix == ".pb":
            made.model.export_to_file(str(file))
        else:
            file.write_text(str(made.model.proto), encoding="utf-8")

    return (int(made.facts["variables"]), int(made.facts["constraints"])), {"": write}, ""


def _cpsat_scales(scaled: ScaledModel) -> cpsat_model.Scales:
    linear = scaled.linear
    least = max(linear.least_distance_cost, SOLVER_TOLERANCE * scaled.to_model(scaled.cost))
    return cpsat_model.choose_scales(linear, scaled.to_model(scaled.cost), slack(least) / 2)


def _build_cfn(scaled: ScaledModel, settings: Mapping[str, Any], kind: str, path: Path, about: list[str]) -> Built:
    exponent, limit = _network_scale(scaled)
    network, labels = build_network(scaled.linear, _levels(scaled, settings), exponent, limit, [], math.inf)
    is_json = path.suffix == ".cfn"
    lines = cfn_lines(network, labels, scaled.linear.n_clients, limit) if is_json else wcsp_lines(network, limit)
    sizes = len(network.domains), len(network.functions) + len(network.rows)
    return sizes, {"": lambda file: _write_lines(file, lines)}, ""


def _levels(scaled: ScaledModel, settings: Mapping[str, Any]) -> Levels:
    return Levels(scaled.linear, max(int(settings.get("levels", 4)), 1))


def _network_scale(scaled: ScaledModel) -> tuple[int, int]:
    """Return the exponent of the costs, and the upper limit."""
    linear, cutoff = scaled.linear, scaled.to_model(scaled.cost + slack(scaled.cost))
    allowed = slack(max(linear.least_distance_cost, scaled.to_model(0.1 * scaled.cost))) / 4
    exponent = scale_exponent(allowed, linear.n_clients + len(linear.sender), cutoff, 51)
    return exponent, upper_limit(cutoff, exponent) + 1


def _build_pyomo(module: str) -> Callable[..., Built]:
    def built(scaled: ScaledModel, settings: Mapping[str, Any], kind: str, path: Path, about: list[str]) -> Built:
        import importlib

        import pyomo.environ as pyo

        model = importlib.import_module(f"relocbench.formulations.{module}").build(scaled.linear)
        if module == "pyomo_gdp":
            pyo.TransformationFactory(f"gdp.{settings.get('transform', 'bigm')}").apply_to(model)
        sizes = model.nvariables(), model.nconstraints()
        if kind == "lp":
            return sizes, {"": lambda file: _write_pyomo_lp(model, file, about)}, ""
        from pyomo.repn.plugins.nl_writer import NLWriter

        label, found = _Labeller(), {}

        def write(file: Path) -> None:
            with file.open("w", encoding="utf-8", newline="") as stream:
                # Pyomo would otherwise leave out variables that follow from others, and so homes.
                found["info"] = NLWriter().write(model, stream, linear_presolve=False)

        def write_names(kept: str) -> Callable[[Path], None]:
            return lambda file: _write_lines(file, (label(one) for one in getattr(found["info"], kept)))

        return sizes, {"": write, ".col": write_names("variables"), ".row": write_names("constraints")}, ""

    return built


def _write_pyomo_lp(model: Any, file: Path, about: Iterable[str]) -> None:
    from pyomo.repn.plugins.lp_writer import LPWriter

    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(f"\\ {line}\n" for line in about)
        LPWriter().write(model, stream, labeler=_Labeller())


class _Labeller:
    """Names Pyomo's variables and rows as in the other files: ``x_0_1`` instead of ``x[0,1]``."""

    def __init__(self) -> None:
        self._known: dict[int, str] = {}
        self._used: set[str] = set()

    def __call__(self, component: Any) -> str:
        if id(component) not in self._known:
            name = plain = re.sub(r"\W+", "_", component.name).strip("_")
            count = 1
            while name in self._used:
                count += 1
                name = f"{plain}_{count}"
            self._used.add(name)
            self._known[id(component)] = name
        return self._known[id(component)]


def _write_lines(file: Path, lines: Iterable[str]) -> None:
    with file.open("w", encoding="utf-8", newline="\n") as stream:
        for line in lines:
            stream.write(line)
            stream.write("\n")


_BUILDERS: dict[str, Callable[..., Built]] = {
    "milp-basic": _build_linear(BasicModel),
    "milp-strong": _build_linear(StrongModel),
    "pyomo-direct": _build_pyomo("pyomo_direct"),
    "pyomo-gdp": _build_pyomo("pyomo_gdp"),
    "cpsat": _build_cpsat,
    "cfn": _build_cfn,
}
