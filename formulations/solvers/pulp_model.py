"""A linear model over the unit box: written in PuLP, read off as arrays."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.ragged import FloatArray, IntArray

Key = tuple[int, ...]
Variables = dict[Key, Any]


class LinearModel:
    """A PuLP problem, all of whose variables lie in ``[0, 1]``; the first are ``x[m,l]``, client by client.

    Attributes
    ----------
    problem
        The problem.
    columns
        Its variables in the order of their making.
    """

    def __init__(self, name: str) -> None:
        import pulp

        self.problem = pulp.LpProblem(name)
        self.columns: list[Any] = []
        self._made: list[tuple[str, list[Key]]] = []
        self._senses = {"<=": pulp.LpConstraintLE, "=": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}

    def variables(self, name: str, keys: list[Key], binary: bool = False) -> Variables:
        """Add a variable for each key."""
        category = "Integer" if binary else "Continuous"
        made = {key: self.problem.add_variable("_".join([name, *map(str, key)]), 0, 1, category) for key in keys}
        self.columns += made.values()
        self._made.append((name, keys))
        return made

    def row(self, terms: Iterable[tuple[Any, float]], sense: Literal["<=", "=", ">="], right: float) -> None:
        """Add a constraint.

        Its largest coefficient is made 1, so that a solver's tolerance means the same in every row.
        """
        import pulp

        terms = [(variable, float(coefficient)) for variable, coefficient in terms if coefficient != 0]
        if not terms:
            return
        largest = max(abs(coefficient) for _, coefficient in terms)
        expression = pulp.LpAffineExpression([(variable, coefficient / largest) for variable, coefficient in terms])
        self.problem.addConstraint(pulp.LpConstraint(expression, self._senses[sense], rhs=float(right) / largest))

    def minimise(self, terms: Iterable[tuple[Any, float]], constant: float) -> None:
        """Set the objective."""
        import pulp

        total: dict[Any, float] = {}
        for variable, coefficient in terms:
            total[variable] = total.get(variable, 0.0) + float(coefficient)
        self.problem.setObjective(pulp.LpAffineExpression(list(total.items()), constant=float(constant)))

    def worth(self, name: str, key: Key, home: IntArray, theta: FloatArray) -> float:
        """Return the value of a variable, given the homes and the ``θ`` they lead to."""
        raise NotImplementedError

    def values(self, home: IntArray, theta: FloatArray) -> FloatArray:
        """Return the values of all variables, given the homes and the ``θ`` they lead to."""
        return np.array([self.worth(name, key, home, theta) for name, keys in self._made for key in keys])


@dataclass(frozen=True, eq=False)
class Arrays:
    """A linear model as solvers take it: minimise ``offset + cost·v`` with ``low ≤ rows·v ≤ high``, ``0 ≤ v ≤ 1``.

    ``start``, ``index`` and ``value`` hold the rows one after the other.
    """

    cost: FloatArray
    offset: float
    integral: npt.NDArray[np.bool_]
    start: npt.NDArray[np.int32]
    index: npt.NDArray[np.int32]
    value: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, model: LinearModel) -> "Arrays":
        """Read the arrays off a PuLP problem."""
        place = {variable: i for i, variable in enumerate(model.columns)}
        objective, rows = model.problem.objective, model.problem.constraints()
        cost = np.zeros(len(place))
        for variable, coefficient in objective.items():
            cost[place[variable]] = coefficient
        return cls(
            cost=cost,
            offset=float(objective.constant),
            integral=np.array([variable.cat == "Integer" for variable in model.columns]),
            start=np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32),
            index=np.array([place[variable] for row in rows for variable in row], np.int32),
            value=np.array([coefficient for row in rows for coefficient in row.values()], np.float64),
            low=np.array([-math.inf if (low := row.getLb()) is None else low for row in rows], np.float64),
            high=np.array([math.inf if (high := row.getUb()) is None else high for row in rows], np.float64),
        )

    def dual_bound(self, multipliers: npt.ArrayLike) -> float:
        """Return the lower bound that any multipliers of the rows prove, whatever tolerance they come with.

        ``offset + Σ_i y_i·(low_i or high_i, by the sign of y_i) + Σ_j min(0, (cost - y·rows)_j)``
        """
        y = np.array(multipliers, np.float64)
        y[((y > 0) & np.isinf(self.low)) | ((y < 0) & np.isinf(self.high)) | ~np.isfinite(y)] = 0.0
        row = np.repeat(np.arange(len(y)), np.diff(self.start))
        reduced = self.cost - np.bincount(self.index, y[row] * self.value, len(self.cost))
        sides = np.where(y > 0, self.low, self.high)
        return float(self.offset + (y[y != 0] * sides[y != 0]).sum() + np.minimum(reduced, 0.0).sum())
