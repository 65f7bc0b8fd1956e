"""The model with ``θ = min(1, A/a, B/v)`` as a disjunction, which Pyomo.GDP linearises, solved with HiGHS."""

import functools
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.solvers.availability import require, require_solver
from relocbench.formulations.solvers.pyomo_solver import (
    HIGHS_ERROR,
    Settings,
    limits_at,
    run_highs,
    run_licensed,
    solve_model,
)
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress, Solution


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    transform: Literal["bigm", "hull"] = "bigm",
    solver: Literal["highs", "gurobi", "cplex", "xpress"] = "highs",
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the disjunctive model with HiGHS.

    Parameters
    ----------
    instance, seed, time_limit
        As for every method. The time limit includes building the model.
    start
        A warm start; its cost is also the initial incumbent.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the last two improves.
    log
        Whether the solver prints its log.
    transform
        How Pyomo linearises the disjunctions: ``bigm`` relaxes rows with large constants, ``hull`` gives each disjunct
        its own copy of the variables.
    solver
        HiGHS, or a licensed solver where it is installed.
    threads
        The number of threads of the solver.
    presolve
        Whether the solver may simplify the model first.

    Returns
    -------
    Solution
        The best homes found and the lower bound.
    """
    require("method pyomo-gdp", "pyomo")
    require_solver(solver)
    incumbent = Incumbent(instance, start, on_progress)

    def build_started(coefficients: Linearisation, check: Callable[[], None]) -> Any:
        import pyomo.environ as pyo

        model = build(coefficients, check)
        if start is not None:
            _set_values(model, coefficients, incumbent)
        pyo.TransformationFactory(f"gdp.{transform}").apply_to(model)
        check()
        return model

    return solve_model(
        build_started,
        run_highs if solver == "highs" else functools.partial(run_licensed, solver),
        lambda scaled: HIGHS_ERROR * scaled.magnitude,
        incumbent,
        Settings(seed, time_limit, threads, presolve, log),
        started=start is not None,
    )


def build(coefficients: Linearisation, check: Callable[[], None] = lambda: None) -> Any:
    """Build the Pyomo model. Its disjunctions are not transformed yet.

    The variables are binary ``x[m,l]`` (``l`` is the home of ``m``), ``θ_l ∈ [0,1]``, and the products ``q[m,l] =
    θ_l·x[m,l]``, ``w[n,l] = θ_l·(n is open on l)`` and, for each pair with ``W[m,r] > 0``, ``z[m,r,l,k] =
    q[m,l]·x[r,k]``. The constraints define them exactly for every integral ``x``:

    - (G1) ``Σ_l x[m,l] = 1``
    - (G2) ``q[m,l] ≤ x[m,l]``, ``q[m,l] ≤ θ_l``, ``q[m,l] ≥ θ_l + x[m,l] - 1``
    - (G3) ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``, ``w[n,l] ≤ θ_l``, ``w[n,l] ≤ Σ_{m∈P_n} q[m,l]``
    - (G4) ``Σ_k z[m,r,l,k] = q[m,l]``, ``Σ_l z[m,r,l,k] ≤ x[r,k]``

    Then ``θ_l·a_l = Σ_n u_n·w[n,l]`` and ``θ_l·v_l = Σ_m U_m·q[m,l]``, and ``θ_l = min(1, A_l/a_l, B_l/v_l)`` is stated
    by

    - (G5) ``θ_l·a_l ≤ A_l``
    - (G6) ``θ_l·v_l ≤ B_l``
    - (G7) the disjunction of *whole*: ``θ_l = 1``; *stored*: ``θ_l·a_l ≥ A_l`` and ``Σ_{m: U_m>0} x[m,l] ≥ 1``;
    *computed*:
      ``θ_l·v_l ≥ B_l`` and ``Σ_{m: U_m>0} x[m,l] ≥ 1``

    The objective is ``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``.

    A server whose capacities exceed the total loads has ``q = x`` and no disjunction.

    Parameters
    ----------
    coefficients
        The coefficients of the instance.
    check
        Called regularly; it may raise an exception to stop the building.

    Returns
    -------
    pyomo.environ.ConcreteModel
        The model.
    """
    builder = _Builder(coefficients, check)
    builder.add_one_home()
    builder.add_products(check)
    builder.add_storage_capacity()
    builder.add_compute_capacity()
    builder.add_limits()
    builder.add_objective(check)
    return builder.model


# A variable in [0, 1] and its upper bound in the model, by which it is multiplied; None if it is always 0.
Scaled = tuple[Any, float] | None


class _Builder:
    """The Pyomo model with its variables, and one method for each constraint.

    A product of ``θ`` is replaced by its ratio to its upper bound, and each row is divided by its largest coefficient,
    so that the tolerance of the solver means the same for every variable and every row.
    """

    def __init__(self, coefficients: Linearisation, check: Callable[[], None]) -> None:
        import pyomo.environ as pyo

        self.pyo, self.c = pyo, coefficients
        c = coefficients
        self.clients, self.servers = range(c.n_clients), range(c.n_servers)
        self.topics, self.pairs = range(len(c.spool)), range(len(c.sender))
        self.limited = np.flatnonzero(~c.surely_local).tolist()
        self.loading = np.flatnonzero(c.demand > 0).tolist()
        self.sender, self.receiver = c.sender.tolist(), c.receiver.tolist()
        self.share: list[list[float]] = c.client_share.tolist()
        self.model = model = pyo.ConcreteModel()
        model.x = pyo.Var(self.clients, self.servers, domain=pyo.Binary)
        model.theta = pyo.Var(self.limited, bounds=(0, 1))
        model.q = pyo.Var(self.clients, self.limited, bounds=(0, 1))
        model.w = pyo.Var(self.topics, self.limited, bounds=(0, 1))
        model.z = pyo.VarList(bounds=(0, 1))
        self.x: list[list[Scaled]] = [[(model.x[m, l], 1.0) for l in self.servers] for m in self.clients]
        self.q: list[list[Scaled]] = [
            [self._times(model.q[m, l], self.share[m][l]) if l in self.limited else self.x[m][l] for l in self.servers]
            for m in self.clients
        ]
        topic_share: list[list[float]] = c.topic_share.tolist()
        self.w: dict[tuple[int, int], Scaled] = {
            (n, l): self._times(model.w[n, l], topic_share[n][l]) for n in self.topics for l in self.limited
        }
        self.z: list[list[list[Scaled]]] = []
        for p in self.pairs:
            m, r = self.sender[p], self.receiver[p]
            most = [
                [min(self.share[m][l], self.share[r][l]) if l == k else self.share[m][l] for k in self.servers]
                for l in self.servers
            ]
            self.z.append([[(model.z.add(), upper) if upper else None for upper in row] for row in most])
            check()

        # θ·load of each server.
        spool, demand = c.spool.tolist(), c.demand.tolist()
        self.stored = {l: [(self.w[n, l], spool[n]) for n in self.topics] for l in self.limited}
        self.computed = {l: [(self.q[m][l], demand[m]) for m in self.loading] for l in self.limited}

    def _times(self, variable: Any, upper: float) -> Scaled:
        """Return a variable with its upper bound; a variable that is always 0 is fixed and left out of all rows."""
        if upper == 0:
            variable.fix(0)
            return None
        return variable, upper

    def row(self, terms: list[tuple[Scaled, float]], sense: str, right: float = 0.0) -> Any:
        """Return the constraint ``Σ coefficient·variable ≤, = or ≥ right``, divided by its largest coefficient."""
        scaled = [(one[0], coefficient * one[1]) for one, coefficient in terms if one is not None and coefficient]
        if not scaled:
            return self.pyo.Constraint.Skip  # all variables of the row are 0, which satisfies it
        largest = max(abs(coefficient) for _, coefficient in scaled)
        left = sum(coefficient / largest * variable for variable, coefficient in scaled)
        right /= largest
        return left <= right if sense == "<=" else left >= right if sense == ">=" else left == right

    def add_one_home(self) -> None:
        """(G1) ``Σ_l x[m,l] = 1``: every client has one home."""
        self.model.one_home = self.pyo.Constraint(
            self.clients, rule=lambda model, m: sum(model.x[m, l] for l in self.servers) == 1
        )

    def add_products(self, check: Callable[[], None]) -> None:
        """Add (G2), (G3) and (G4), which define the products."""
        self.model.products = self.pyo.ConstraintList()
        for l in self.limited:
            for m in self.clients:
                self._add_local_share(m, l)
            for n in self.topics:
                self._add_open_topic(n, l)
            check()
        for p in self.pairs:
            self._add_messages(p)
            check()

    def _add_local_share(self, m: int, l: int) -> None:
        """(G2) ``q[m,l] ≤ x[m,l]``, ``q[m,l] ≤ θ_l``, ``q[m,l] ≥ θ_l + x[m,l] - 1``: ``q[m,l] = θ_l·x[m,l]``."""
        q, x, theta, products = self.q[m][l], self.x[m][l], (self.model.theta[l], 1.0), self.model.products
        products.add(self.row([(q, 1), (x, -1)], "<="))
        products.add(self.row([(q, 1), (theta, -1)], "<="))
        products.add(self.row([(q, 1), (theta, -1), (x, -1)], ">=", -1))

    def _add_open_topic(self, n: int, l: int) -> None:
        """(G3) ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``, ``w[n,l] ≤ θ_l``, ``w[n,l] ≤ Σ_{m∈P_n} q[m,l]``."""
        w, publishers, products = self.w[n, l], self.c.publishers[n], self.model.products
        for m in publishers:
            products.add(self.row([(w, 1), (self.q[m][l], -1)], ">="))
        products.add(self.row([(w, 1), ((self.model.theta[l], 1.0), -1)], "<="))
        products.add(self.row([(w, 1), *((self.q[m][l], -1) for m in publishers)], "<="))

    def _add_messages(self, p: int) -> None:
        """(G4) ``Σ_k z[m,r,l,k] = q[m,l]``, ``Σ_l z[m,r,l,k] ≤ x[r,k]`` for pair ``p``, which is ``(m, r)``."""
        z, products = self.z[p], self.model.products
        for l in self.servers:
            products.add(self.row([*((one, 1) for one in z[l]), (self.q[self.sender[p]][l], -1)], "="))
        for k in self.servers:
            products.add(self.row([*((z[l][k], 1) for l in self.servers), (self.x[self.receiver[p]][k], -1)], "<="))

    def add_storage_capacity(self) -> None:
        """(G5) ``θ_l·a_l ≤ A_l``."""
        self.model.fits_storage = self.pyo.Constraint(
            self.limited, rule=lambda _, l: self.row(self.stored[l], "<=", float(self.c.storage_capacity[l]))
        )

    def add_compute_capacity(self) -> None:
        """(G6) ``θ_l·v_l ≤ B_l``."""
        self.model.fits_compute = self.pyo.Constraint(
            self.limited, rule=lambda _, l: self.row(self.computed[l], "<=", float(self.c.compute_capacity[l]))
        )

    def add_limits(self) -> None:
        """(G7) The disjunction *whole*, *stored* or *computed*: nothing, storage or compute limits ``θ_l``.

        The last two require a client with ``U_m > 0`` on the server. Otherwise a capacity of 0 would satisfy them with
        any ``θ_l`` on a server without load. A client that makes ``θ_l`` negligible, which is then 0, satisfies them.
        """
        from pyomo.gdp import Disjunct, Disjunction

        model, limited, constraint = self.model, self.limited, self.pyo.Constraint
        loaded = {l: sum(model.x[m, l] for m in self.loading) for l in limited}
        model.whole, model.stored, model.computed = Disjunct(limited), Disjunct(limited), Disjunct(limited)
        for l in limited:
            storage, compute = float(self.c.storage_capacity[l]), float(self.c.compute_capacity[l])
            heavy = [self.x[m][l] for m in self.loading if self.share[m][l] == 0]
            stored = [*self.stored[l], *((x, storage) for x in heavy)]
            computed = [*self.computed[l], *((x, compute) for x in heavy)]
            model.whole[l].share = constraint(expr=model.theta[l] == 1)
            model.stored[l].share = constraint(expr=self.row(stored, ">=", storage))
            model.stored[l].used = constraint(expr=loaded[l] >= 1)
            model.computed[l].share = constraint(expr=self.row(computed, ">=", compute))
            model.computed[l].used = constraint(expr=loaded[l] >= 1)
        model.limit = Disjunction(limited, rule=lambda model, l: [model.whole[l], model.stored[l], model.computed[l]])

    def add_objective(self, check: Callable[[], None]) -> None:
        """``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``."""
        c, model, clients, servers = self.c, self.model, self.clients, self.servers
        weight = (c.weight[:, None] * c.client_delay).tolist()
        publications, between, pair_weight = c.publications.tolist(), c.server_delay.tolist(), c.pair_weight.tolist()
        costs = [weight[m][l] * model.x[m, l] for m in clients for l in servers]
        costs += [c.detour * publications[m] * (1 - self._total(self.q[m], [1.0] * len(servers))) for m in clients]
        for p in self.pairs:
            costs += [self._total(self.z[p][l], [pair_weight[p] * delay for delay in between[l]]) for l in servers]
            check()
        model.cost = self.pyo.Objective(expr=sum(costs))

    def _total(self, variables: list[Scaled], weights: list[float]) -> Any:
        """Return the weighted sum of variables as an expression."""
        pairs = zip(variables, weights, strict=True)
        return sum(weight * one[1] * one[0] for one, weight in pairs if one is not None and weight)


def _set_values(model: Any, coefficients: Linearisation, incumbent: Incumbent) -> None:
    """Set the values of the binaries to those of the incumbent, for a warm start."""
    home, limits = incumbent.home.tolist(), limits_at(coefficients, incumbent)
    for (m, l), x in model.x.items():
        x.set_value(int(home[m] == l))
    for name in ("whole", "stored", "computed"):
        for l, disjunct in getattr(model, name).items():
            disjunct.binary_indicator_var.set_value(int(limits[l] == name))
