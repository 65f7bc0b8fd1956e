"""Linear models as files in the MPS and the LP format.

Numbers are written with all their digits. The constant of the objective is the cost of a variable ``constant`` that is
fixed to 1, because solvers disagree on the sign of a constant in an MPS file. Rows are named ``r1``, ``r2``, ….
"""

import math
from collections.abc import Iterable, Iterator, Sequence

from relocbench.formulations.solvers.pulp_model import Arrays

# The variable that is fixed to 1.
CONSTANT = "constant"
# The longest line of an LP file. Some solvers accept no more than 255 characters.
LONGEST_LINE = 200


def mps_lines(arrays: Arrays, names: Sequence[str], about: Iterable[str], relax: bool) -> Iterator[str]:
    """Write a linear model in the free MPS format.

    Parameters
    ----------
    arrays
        The model.
    names
        The name of each variable.
    about
        Comments for the start of the file.
    relax
        Whether all variables are continuous.

    Yields
    ------
    str
        The lines, without line breaks.
    """
    yield from (f"* {line}" for line in about)
    yield from ("NAME relocbench", "ROWS", " N objective")
    kinds = [_sense(low, high) for low, high in zip(arrays.low, arrays.high, strict=True)]
    yield from (f" {kind} r{i}" for i, (kind, _) in enumerate(kinds, 1))
    yield "COLUMNS"
    columns: list[list[tuple[int, float]]] = [[] for _ in names]
    for i in range(len(kinds)):
        for j, value in _row(arrays, i):
            columns[j].append((i, value))
    inside = False
    for name, column, cost, integral in zip(names, columns, arrays.cost.tolist(), arrays.integral, strict=True):
        if (integral and not relax) != inside:
            inside = not inside
            yield f" MARKER 'MARKER' '{'INTORG' if inside else 'INTEND'}'"
        yield f" {name} objective {cost!r}"
        yield from (f" {name} r{i + 1} {value!r}" for i, value in column)
    if inside:
        yield " MARKER 'MARKER' 'INTEND'"
    yield from (f" {CONSTANT} objective {arrays.offset!r}", "RHS")
    yield from (f" RHS r{i} {right!r}" for i, (_, right) in enumerate(kinds, 1) if right)
    yield "BOUNDS"
    yield from (f" UP BND {name} 1" for name in names)
    yield from (f" FX BND {CONSTANT} 1", "ENDATA")


def lp_lines(arrays: Arrays, names: Sequence[str], about: Iterable[str], relax: bool) -> Iterator[str]:
    """Write a linear model in the LP format of CPLEX, which most solvers read.

    Parameters
    ----------
    arrays, names, about, relax
        As for :func:`mps_lines`.

    Yields
    ------
    str
        The lines, without line breaks.
    """
    yield from (f"\\ {line}" for line in about)
    yield "Minimize"
    costs = [(name, cost) for name, cost in zip(names, arrays.cost.tolist(), strict=True) if cost]
    yield from _folded("objective:", [*costs, (CONSTANT, arrays.offset)])
    yield "Subject To"
    operators = {"L": "<=", "G": ">=", "E": "="}
    for i, (low, high) in enumerate(zip(arrays.low, arrays.high, strict=True)):
        kind, right = _sense(low, high)
        terms = [(names[j], value) for j, value in _row(arrays, i)]
        yield from _folded(f"r{i + 1}:", terms, f"{operators[kind]} {right!r}")
    yield "Bounds"
    yield from (f" 0 <= {name} <= 1" for name in names)
    yield f" {CONSTANT} = 1"
    if not relax:
        yield "Binaries"
        yield from (f" {name}" for name, integral in zip(names, arrays.integral, strict=True) if integral)
    yield "End"


def _sense(low: float, high: float) -> tuple[str, float]:
    """Return the sense of a row, as MPS names it, and its right-hand side."""
    if low == high:
        return "E", float(low)
    return ("L", float(high)) if math.isinf(low) else ("G", float(low))


def _row(arrays: Arrays, i: int) -> list[tuple[int, float]]:
    part = slice(arrays.start[i], arrays.start[i + 1])
    return list(zip(arrays.index[part].tolist(), arrays.value[part].tolist(), strict=True))


def _folded(label: str, terms: Iterable[tuple[str, float]], end: str = "") -> Iterator[str]:
    """Yield an expression in lines that are not too long."""
    line = f" {label}"
    for word in (*(f"{'-' if value < 0 else '+'} {abs(value)!r} {name}" for name, value in terms), end):
        if len(line) + len(word) >= LONGEST_LINE:
            yield line
            line = " "
        line = f"{line} {word}"
    yield line.rstrip()
