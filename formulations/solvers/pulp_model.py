"""A mixed-integer linear model whose variables are all in ``[0, 1]``: written with PuLP, converted to arrays."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.ragged import FloatArray, IntArray

# The indices of a variable, for example ``(m, l)`` of ``x[m,l]``.
Key = tuple[int, ...]
# The variable of each key; None for a variable that is always 0.
Variables = dict[Key, Any]


class LinearModel:
    """A PuLP problem whose variables are all in ``[0, 1]``. A model must add ``x[m,l]`` first, client by client.

    A variable with an upper bound below 1 is replaced by its ratio to this bound, which is again in ``[0, 1]``. The
    tolerance of a solver then means the same for every variable. The rows are written for the variable itself.

    Parameters
    ----------
    name
        The name of the problem.

    Attributes
    ----------
    problem
        The PuLP problem.
    columns
        Its variables in the order in which they were added.
    """

    def __init__(self, name: str) -> None:
        import pulp

        self.problem = pulp.LpProblem(name)
        self.columns: list[Any] = []
        self._families: list[tuple[str, list[Key]]] = []
        self._upper: dict[Any, float] = {}
        self._senses = {"<=": pulp.LpConstraintLE, "=": pulp.LpConstraintEQ, ">=": pulp.LpConstraintGE}

    def variables(
        self, name: str, keys: list[Key], binary: bool = False, upper: Callable[..., float] | None = None
    ) -> Variables:
        """Add a family of variables.

        Parameters
        ----------
        name
            The name of the family, for example ``x``.
        keys
            The indices of each variable.
        binary
            Whether the variables are binary rather than continuous.
        upper
            The upper bound of each variable, as a function of its indices; None for 1. A variable with the bound 0 is
            not added.

        Returns
        -------
        dict
            The variable of each key; None for a variable that is always 0.
        """
        category = "Integer" if binary else "Continuous"
        bounds = {key: 1.0 if upper is None else float(upper(*key)) for key in keys}
        added: Variables = dict.fromkeys(keys)
        for key, bound in bounds.items():
            if bound > 0:
                added[key] = self.problem.add_variable("_".join([name, *map(str, key)]), 0, 1, category)
                self._upper[added[key]] = bound
                self.columns.append(added[key])
        self._families.append((name, [key for key in keys if added[key] is not None]))
        return added

    def _scaled(self, terms: Iterable[tuple[Any, float]]) -> list[tuple[Any, float]]:
        """Return the terms with a coefficient other than 0, for the variables as ratios to their upper bounds."""
        return [
            (variable, float(coefficient) * self._upper[variable])
            for variable, coefficient in terms
            if variable is not None and coefficient != 0
        ]

    def row(self, terms: Iterable[tuple[Any, float]], sense: Literal["<=", "=", ">="], right: float) -> None:
        """Add a linear constraint.

        The row is scaled such that its largest coefficient is 1. The absolute tolerance of a solver then means the same
        in every row. A row without nonzero coefficients is omitted.

        Parameters
        ----------
        terms
            Pairs of a variable and its coefficient. No variable may occur twice.
        sense
            The relation between the two sides.
        right
            The right-hand side.
        """
        import pulp

        terms = self._scaled(terms)
        if not terms:
            return
        largest = max(abs(coefficient) for _, coefficient in terms)
        expression = pulp.LpAffineExpression([(variable, coefficient / largest) for variable, coefficient in terms])
        self.problem.addConstraint(pulp.LpConstraint(expression, self._senses[sense], rhs=float(right) / largest))

    def minimise(self, terms: Iterable[tuple[Any, float]], constant: float) -> None:
        """Set the objective.

        Parameters
        ----------
        terms
            Pairs of a variable and its coefficient. The coefficients of a variable that occurs twice are added up.
        constant
            The constant of the objective.
        """
        import pulp

        total: dict[Any, float] = {}
        for variable, coefficient in self._scaled(terms):
            total[variable] = total.get(variable, 0.0) + coefficient
        self.problem.setObjective(pulp.LpAffineExpression(list(total.items()), constant=float(constant)))

    def value_of(self, name: str, key: Key, home: IntArray, theta: FloatArray) -> float:
        """Return the value of a variable in an assignment. Every model implements this for its variables.

        Parameters
        ----------
        name, key
            The family and the indices of the variable.
        home
            The assignment.
        theta
            ``θ`` of each server in this assignment.

        Returns
        -------
        float
            The value.
        """
        raise NotImplementedError

    def values(self, home: IntArray, theta: FloatArray) -> FloatArray:
        """Return the values of all variables in an assignment, for a warm start.

        Parameters
        ----------
        home, theta
            As for :meth:`value_of`.

        Returns
        -------
        array
            The values, in the order of ``columns``.
        """
        found = [self.value_of(name, key, home, theta) for name, keys in self._families for key in keys]
        ratios: FloatArray = np.array(found) / np.array([self._upper[column] for column in self.columns])
        return ratios.clip(max=1.0)


@dataclass(frozen=True, eq=False)
class Arrays:
    """A linear model as arrays: minimise ``offset + cost·v`` subject to ``low ≤ rows·v ≤ high``, ``0 ≤ v ≤ 1``.

    Attributes
    ----------
    cost, offset
        The coefficients and the constant of the objective.
    integral
        Which variables are binary.
    start, index, value
        The rows as a compressed sparse matrix: where each row starts, and the columns and values of its coefficients.
    low, high
        The lower and upper limits of the rows.
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
        """Convert a model.

        Parameters
        ----------
        model
            The model.

        Returns
        -------
        Arrays
            Its arrays.
        """
        column = {variable: i for i, variable in enumerate(model.columns)}
        objective, rows = model.problem.objective, model.problem.constraints()
        cost = np.zeros(len(column))
        for variable, coefficient in objective.items():
            cost[column[variable]] = coefficient
        return cls(
            cost=cost,
            offset=float(objective.constant),
            integral=np.array([variable.cat == "Integer" for variable in model.columns]),
            start=np.cumsum([0, *(len(row) for row in rows)], dtype=np.int32),
            index=np.array([column[variable] for row in rows for variable in row], np.int32),
            value=np.array([coefficient for row in rows for coefficient in row.values()], np.float64),
            low=np.array([-math.inf if (low := row.getLb()) is None else low for row in rows], np.float64),
            high=np.array([math.inf if (high := row.getUb()) is None else high for row in rows], np.float64),
        )

    def dual_bound(self, multipliers: npt.ArrayLike) -> float:
        """Return the lower bound that given multipliers prove, by weak duality.

        The bound is ``offset + Σ_i y_i·b_i + Σ_j min(0, (cost - y·rows)_j)``, where ``b_i`` is ``low_i`` if ``y_i > 0``
        and ``high_i`` if ``y_i < 0``. It is valid for any multipliers ``y``, so that the tolerances of a solver do not
        matter.

        Parameters
        ----------
        multipliers
            One multiplier per row. A multiplier of the wrong sign for its row is replaced by 0.

        Returns
        -------
        float
            The lower bound.
        """
        y = np.array(multipliers, np.float64)
        y[((y > 0) & np.isinf(self.low)) | ((y < 0) & np.isinf(self.high)) | ~np.isfinite(y)] = 0.0
        row = np.repeat(np.arange(len(y)), np.diff(self.start))
        reduced = self.cost - np.bincount(self.index, y[row] * self.value, len(self.cost))
        sides = np.where(y > 0, self.low, self.high)
        return float(self.offset + (y[y != 0] * sides[y != 0]).sum() + np.minimum(reduced, 0.0).sum())
