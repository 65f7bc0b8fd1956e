"""The answers of solvers that have read a model file: the homes in them, and the objective that they claim.

The format is recognised by the content. docs/benchmarking.md lists the formats and the names of the variables.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.formulations.model_files.export import MODELS, labels_of, require_model
from relocbench.formulations.model_files.network_file import value_names
from relocbench.formulations.solvers.availability import require
from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.limited_file import open_limited
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, frozen

# A binary may differ from 0 or 1 by this much. Solvers allow less.
INTEGRALITY = 1e-3
# The largest answer in bytes.
LARGEST = 1 << 28
# x_2_0 as this project writes it, x[2,0] and x(2_0) as Pyomo does.
_HOME = re.compile(r"x[_\[(](\d+)[_,](\d+)[\])]?")
_NAME = re.compile(r"([A-Za-z]+)(?:[_\[(][\d_,]+[\])]?)?")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_OBJECTIVE = re.compile(rf"objective(?:\s+value)?\s*[:=]?\s+({_NUMBER})\s*$", re.IGNORECASE | re.MULTILINE)
# The names of the variables of each linear model. The disjunctions of pyomo-gdp have names that Pyomo makes.
_FAMILIES = {
    "milp-basic": {"x", "theta", "q", "w", "z", "s", "constant"},
    "milp-strong": {"x", "theta", "q", "w", "z", "s", "phi", "tau", "constant"},
    "pyomo-direct": {"x", "y", "theta", "whole", "stored", "computed", "nlobjvar"},
}


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer of a solver.

    Attributes
    ----------
    home
        One server per client.
    objective
        The objective that the file claims, in units of the model; None if it claims none.
    """

    home: IntArray
    objective: float | None


def read_answer(path: str | Path, instance: Instance, method: str, settings: Mapping[str, Any]) -> Answer:
    """Read the answer of a solver to the model of an instance.

    Parameters
    ----------
    path
        The file of the solver.
    instance
        The problem.
    method, settings
        As for :func:`formulations.model_files.export.export_model`.

    Returns
    -------
    Answer
        The homes and the claimed objective. Nothing is verified.

    Raises
    ------
    InputError
        If the file cannot be read, contains no solution of this model, or does not give every client one home.
    """
    require_model(method)
    path = Path(path)
    try:
        with open_limited(path, LARGEST) as stream:
            data = stream.read()
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error
    try:
        if MODELS[method] == ("cpsat-proto",):
            return _read_cpsat(data, instance)
        text = data.decode(errors="replace")
        if MODELS[method] == ("cfn",):
            return _read_toulbar2(text, instance, settings)
        return _read_linear(text, instance, method)
    except InputError as error:
        raise error.inside(str(path)) from error


def _read_linear(text: str, instance: Instance, method: str) -> Answer:
    """Read names with values, in the format of HiGHS, SCIP, CBC, CPLEX, or one pair per line."""
    shape = instance.n_clients, instance.n_servers
    share = np.zeros(shape)
    parts: Callable[[str], Iterable[tuple[str, str]]] = _pairs
    if text.startswith("<?xml") or "<CPLEXSolution" in text:
        parts = _xml_pairs
    elif re.search(r"^Model status\b|^# Columns", text, re.MULTILINE):
        parts = _highs_pairs
    elif re.match(r".* objective value ", text):
        parts = _cbc_pairs
    known, found = _FAMILIES.get(method), False
    for name, value in parts(text):
        number = _number(name, value)
        match = _HOME.fullmatch(name)
        if match is None:
            family = _NAME.fullmatch(name)
            if known is not None and (family is None or family[1] not in known or family[1] == "x"):
                raise InputError(shown(name), f"is not a variable of {method}; its homes are x_0_0 to {_last(shape)}")
            continue
        m, l = int(match[1]), int(match[2])
        if m >= shape[0] or l >= shape[1]:
            raise InputError(shown(name), f"is not a variable of this instance; its homes are x_0_0 to {_last(shape)}")
        share[m, l], found = number, True
    if not found:
        status = re.search(r"(?:status:?\s+|^)([^\n]*(?:infeasible|unbounded|no solution|time)[^\n]*)", text, re.I)
        detail = f"; the file says {shown(status[1].strip())}" if status else ""
        raise InputError("", f"contains no values of the variables x_0_0 to {_last(shape)}{detail}")
    return Answer(_homes(share), _objective(text))


def _last(shape: tuple[int, int]) -> str:
    return f"x_{shape[0] - 1}_{shape[1] - 1}"


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    """Yield the pairs of SCIP's format (with the coefficient of the objective behind), and of plain pairs."""
    for line in text.splitlines():
        words = line.split("#")[0].split()
        if len(words) >= 2 and not re.match(r"\s*(solution status|objective|no solution|=obj=)", line, re.I):
            yield words[0], words[1]


def _highs_pairs(text: str) -> Iterable[tuple[str, str]]:
    """Yield the primal values of HiGHS, and not its rows and dual values."""
    match = re.search(r"^# Columns \d+\n(.*?)(?=^#|\Z)", text, re.MULTILINE | re.DOTALL)
    return _pairs(match[1]) if match else ()


def _cbc_pairs(text: str) -> Iterable[tuple[str, str]]:
    """Yield the values of CBC: index, name, value, reduced cost; with two stars where a limit is violated."""
    for line in text.splitlines()[1:]:
        words = line.replace("**", "").split()
        if len(words) >= 3 and not re.fullmatch(r"r\d+|objective", words[1]):
            yield words[1], words[2]


def _xml_pairs(text: str) -> Iterable[tuple[str, str]]:
    """Yield the values of CPLEX."""
    for element in re.findall(r"<variable\s[^>]*>", text):
        found = dict(re.findall(r"(\w+)=\"([^\"]*)\"", element))
        if "name" in found and "value" in found:
            yield found["name"], found["value"]


def _objective(text: str) -> float | None:
    match = re.search(rf'objectiveValue="({_NUMBER})"', text) or _OBJECTIVE.search(text)
    return float(match[1]) if match else None


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(shown(name), f"expected a number, got {shown(text)}") from None


def _homes(share: FloatArray) -> IntArray:
    """Return the homes that ``x`` states."""
    for m, row in enumerate(share):
        fractional = np.flatnonzero(~(np.abs(row - np.rint(row)) <= INTEGRALITY))
        if len(fractional):
            l = int(fractional[0])
            raise InputError(
                f"x_{m}_{l}", f"expected 0 or 1, got {float(row[l]):g}; a linear relaxation does not give homes"
            )
        here = np.flatnonzero(np.rint(row) != 0)
        if not len(here):
            raise InputError("", f"there is no home for client {m}: none of x_{m}_0 to x_{m}_{len(row) - 1} is 1")
        if len(here) > 1:
            raise InputError("", f"there are two homes for client {m}: x_{m}_{here[0]} and x_{m}_{here[1]} are not 0")
        if np.rint(row[here[0]]) != 1:
            raise InputError(f"x_{m}_{here[0]}", f"expected 0 or 1, got {float(row[here[0]]):g}")
    return frozen(share.argmax(axis=1), np.int32)


def _read_cpsat(data: bytes, instance: Instance) -> Answer:
    """Read a ``CpSolverResponse`` in text or in binary form. The first variables are those of ``x``."""
    values, objective, status = _cpsat_text(data) or _cpsat_binary(data)
    count = instance.n_clients * instance.n_servers
    if not values:
        raise InputError("", f"contains no solution; its status is {status}")
    if len(values) < count:
        raise InputError("solution", f"expected at least {count} values, one for each x[m,l], got {len(values)}")
    return Answer(_homes(np.array(values[:count], np.float64).reshape(instance.n_clients, -1)), objective)


def _cpsat_text(data: bytes) -> tuple[Sequence[int], float | None, str] | None:
    if not re.search(rb"(?m)^(status|solution|objective_value): ?", data[: 1 << 16]):
        return None
    text = data.decode(errors="replace")
    status = re.search(r"^status: ?(\w+)", text, re.MULTILINE)
    objective = re.search(rf"^objective_value: ?({_NUMBER})", text, re.MULTILINE)
    listed = re.findall(r"^solution: ?\[?([-\d, ]+)", text, re.MULTILINE)
    values = [int(one) for part in listed for one in part.replace(",", " ").split()]
    return values, float(objective[1]) if objective else None, status[1] if status else "UNKNOWN"


def _cpsat_binary(data: bytes) -> tuple[Sequence[int], float | None, str]:
    require("reading a binary response of CP-SAT", "ortools")
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped, unused-ignore]
    from ortools.sat import cp_model_pb2

    response = cp_model_pb2.CpSolverResponse()
    try:
        response.ParseFromString(data)
    except DecodeError:
        raise InputError("", "expected a CpSolverResponse of CP-SAT, in text or binary form") from None
    status = cp_model_pb2.CpSolverStatus.Name(response.status)
    return list(response.solution), response.objective_value, status


def _read_toulbar2(text: str, instance: Instance, settings: Mapping[str, Any]) -> Answer:
    """Read indices of values, names of values, or ``home_0=s1_level2``, all in the order of the variables."""
    labels = labels_of(instance, settings)
    names = value_names(labels)
    index = {name: i for i, name in enumerate(names)}
    solutions = [line.split() for line in text.splitlines() if line.split() and not line.startswith(("#", "New "))]
    if not solutions:
        raise InputError("", "contains no solution of toulbar2")
    words = solutions[-1]  # with several solutions, the last one is the best
    named = [word.partition("=") for word in words if "=" in word]
    if named:
        given = {name: value for name, _, value in named}
        homes = [f"home_{m}" for m in range(instance.n_clients)]
        if absent := [name for name in homes if name not in given]:
            raise InputError("", f"there is no home for client {absent[0].partition('_')[2]}: {absent[0]} has no value")
        words = [given[name] for name in homes]
    if len(words) < instance.n_clients:
        raise InputError("", f"there is no home for client {len(words)}: expected a value for each variable")
    found = []
    for m, word in enumerate(words[: instance.n_clients]):
        value = int(word) if word.isdecimal() else index.get(word, -1)
        if not 0 <= value < len(names):
            expected = f"a value such as {names[0]}, or an index from 0 to {len(names) - 1}"
            raise InputError(f"home_{m}", f"expected {expected}, got {shown(word)}")
        found.append(int(labels.server[value]))
    return Answer(frozen(found, np.int32), _objective(text))
