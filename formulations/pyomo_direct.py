"""The bilinear model with the products of the objective as the paper writes them, in Pyomo, solved with SCIP."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.scaling import ScaledModel
from relocbench.formulations.solvers.availability import require
from relocbench.formulations.solvers.pyomo_solver import (
    SCIP_ERROR,
    Settings,
    limits_at,
    load_units,
    run_scip,
    solve_model,
)
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress, Solution

# Loads up to this multiple of a capacity count as being of its size.
LARGE_LOAD = 100.0
# SCIP cannot reliably tell a load from 0 that is below this share of the largest one: its tolerance is 10⁻⁷.
LEAST_LOAD = 1e-4


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the bilinear model to global optimality with SCIP.

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
    threads
        The number of threads of SCIP's LP solver; SCIP itself uses one.
    presolve
        Whether SCIP may simplify the model first.

    Returns
    -------
    Solution
        The best homes found and the lower bound.
    """
    require("method pyomo-direct", "pyomo", "pyscipopt")
    incumbent = Incumbent(instance, start, on_progress)

    def build_started(coefficients: Linearisation, check: Callable[[], None]) -> Any:
        model = build(coefficients, check)
        if start is not None:
            _set_values(model, coefficients, incumbent)
        return model

    return solve_model(
        build_started,
        run_scip,
        _error,
        incumbent,
        Settings(seed, time_limit, threads, presolve, log),
        started=start is not None,
    )


def _error(scaled: ScaledModel) -> float:
    """Return what the tolerances of SCIP can do to a bound, in units of the model.

    A tolerance on a binary of (D3) or (D4) counts as often as its load exceeds the capacity of the server. If loads
    differ too much, SCIP cannot tell the smallest of a row from 0, and no bound is used.
    """
    c = scaled.linear
    if not c.surely_local.all():
        for loads in (c.spool, c.demand):
            positive = loads[loads > 0]
            if positive.min(initial=np.inf) < LEAST_LOAD * positive.max(initial=0.0):
                return math.inf
    units = load_units(c.storage_capacity, c.spool), load_units(c.compute_capacity, c.demand)
    ratios = [
        np.where(share > 0, load[:, None] / unit, 0.0).max(initial=0.0)
        for share, load, unit in zip((c.topic_share, c.client_share), (c.spool, c.demand), units, strict=True)
    ]
    return SCIP_ERROR * scaled.magnitude * max(1.0, float(max(ratios)) / LARGE_LOAD)


def build(coefficients: Linearisation, check: Callable[[], None] = lambda: None) -> Any:
    """Build the Pyomo model.

    The variables are binary ``x[m,l]`` (``l`` is the home of ``m``), binary ``y[n,l]`` (topic ``n`` is open on ``l``)
    and ``θ_l ∈ [0,1]``. With ``a_l = Σ_n u_n·y[n,l]`` and ``v_l = Σ_m U_m·x[m,l]`` the constraints are

    - (D1) ``Σ_l x[m,l] = 1``
    - (D2) ``y[n,l] ≥ x[m,l]`` for ``m ∈ P_n``
    - (D3) ``θ_l·a_l ≤ A_l``
    - (D4) ``θ_l·v_l ≤ B_l``

    The objective is ``Σ w_m·dH[m,l]·x[m,l] + Σ_l (2·dC·F_l·(1 - θ_l) + θ_l·Q_l)`` with ``F_l = Σ_m f_m·x[m,l]`` and
    ``Q_l = Σ_{(m,r)} W[m,r]·x[m,l]·Σ_k dS[l,k]·x[r,k]``.

    If the cloud is near (``2·dC < max dS``), a smaller ``θ`` may cost less. Then three binaries ``whole_l``,
    ``stored_l`` and ``computed_l`` state what limits ``θ_l``:

    - (D5) ``whole_l + stored_l + computed_l = 1``
    - (D6) ``θ_l ≥ whole_l``
    - (D7) ``θ_l·a_l ≥ A_l·stored_l``
    - (D8) ``θ_l·v_l ≥ B_l·computed_l``
    - (D9) ``stored_l + computed_l ≤ Σ_{m: U_m>0} x[m,l]``
    - (D10) ``y[n,l] ≤ Σ_{m∈P_n} x[m,l]``

    A server whose capacities exceed the total loads has no variable ``θ_l``.

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
    builder = _Builder(coefficients)
    check()
    builder.add_one_home()
    builder.add_open_topics(check)
    builder.add_storage_capacity()
    builder.add_compute_capacity()
    builder.add_negligible_shares()
    builder.add_near_cloud_constraints(check)
    builder.add_objective(check)
    return builder.model


class _Builder:
    """The Pyomo model with its variables, and one method for each constraint."""

    def __init__(self, coefficients: Linearisation) -> None:
        import pyomo.environ as pyo

        self.pyo, self.c = pyo, coefficients
        c = coefficients
        self.clients, self.servers, self.topics = range(c.n_clients), range(c.n_servers), range(len(c.spool))
        self.limited = np.flatnonzero(~c.surely_local).tolist()
        self.near = [] if c.cloud_is_far else self.limited
        self.loading = np.flatnonzero(c.demand > 0).tolist()
        self.model = model = pyo.ConcreteModel()
        model.x = pyo.Var(self.clients, self.servers, domain=pyo.Binary)
        model.y = pyo.Var(self.topics, self.limited, domain=pyo.Binary)
        model.theta = pyo.Var(self.limited, bounds=(0, 1))
        model.whole = pyo.Var(self.near, domain=pyo.Binary)
        model.stored = pyo.Var(self.near, domain=pyo.Binary)
        model.computed = pyo.Var(self.near, domain=pyo.Binary)

        # Loads and capacities of each server, in the units of load_units.
        spool, demand = c.spool.tolist(), c.demand.tolist()
        stored_unit, computed_unit = load_units(c.storage_capacity, c.spool), load_units(c.compute_capacity, c.demand)
        self.storage_capacity = (c.storage_capacity / stored_unit).tolist()
        self.compute_capacity = (c.compute_capacity / computed_unit).tolist()
        # A client or a topic that makes θ negligible is not part of the loads: with it θ is 0.
        self.heavy = {l: [m for m in self.loading if c.client_share[m, l] == 0] for l in self.limited}
        self.storage_load = {
            l: sum(spool[n] / stored_unit[l] * model.y[n, l] for n in self.topics if c.topic_share[n, l] > 0)
            for l in self.limited
        }
        self.compute_load = {
            l: sum(demand[m] / computed_unit[l] * model.x[m, l] for m in self.loading if m not in self.heavy[l])
            for l in self.limited
        }

    def add_one_home(self) -> None:
        """(D1) ``Σ_l x[m,l] = 1``: every client has one home."""
        self.model.one_home = self.pyo.Constraint(
            self.clients, rule=lambda model, m: sum(model.x[m, l] for l in self.servers) == 1
        )

    def add_open_topics(self, check: Callable[[], None]) -> None:
        """(D2) ``y[n,l] ≥ x[m,l]`` for ``m ∈ P_n``: a topic is open where one of its publishers is."""
        self.model.open = self.pyo.ConstraintList()
        for l in self.limited:
            for n in self.topics:
                for m in self.c.publishers[n]:
                    self.model.open.add(self.model.y[n, l] >= self.model.x[m, l])
            check()

    def add_storage_capacity(self) -> None:
        """(D3) ``θ_l·a_l ≤ A_l``."""
        self.model.fits_storage = self.pyo.Constraint(
            self.limited, rule=lambda model, l: self._fits(l, self.storage_load[l], self.storage_capacity[l])
        )

    def add_compute_capacity(self) -> None:
        """(D4) ``θ_l·v_l ≤ B_l``."""
        self.model.fits_compute = self.pyo.Constraint(
            self.limited, rule=lambda model, l: self._fits(l, self.compute_load[l], self.compute_capacity[l])
        )

    def _fits(self, l: int, load: Any, capacity: float) -> Any:
        # A sum without terms is the number 0.
        return self.pyo.Constraint.Skip if isinstance(load, int) else self.model.theta[l] * load <= capacity

    def add_negligible_shares(self) -> None:
        """``θ_l ≤ 1 - x[m,l]`` if client ``m`` alone makes ``θ_l`` negligible."""
        self.model.negligible = self.pyo.ConstraintList()
        for l in self.limited:
            for m in self.heavy[l]:
                self.model.negligible.add(self.model.theta[l] <= 1 - self.model.x[m, l])

    def add_near_cloud_constraints(self, check: Callable[[], None]) -> None:
        """Add (D5) to (D10) for each server that may have ``θ < 1``, if the cloud is near."""
        self.model.pin = self.pyo.ConstraintList()
        for l in self.near:
            self._add_one_limit(l)
            self._add_no_limit(l)
            self._add_storage_limit(l)
            self._add_compute_limit(l)
            self._add_limit_needs_load(l)
            for n in self.topics:
                self._add_closed_topic(n, l)
            check()

    def _add_one_limit(self, l: int) -> None:
        """(D5) ``whole_l + stored_l + computed_l = 1``: nothing, storage or compute limits ``θ_l``."""
        model = self.model
        model.pin.add(model.whole[l] + model.stored[l] + model.computed[l] == 1)

    def _add_no_limit(self, l: int) -> None:
        """(D6) ``θ_l ≥ whole_l``: if nothing limits ``θ_l``, it is 1."""
        self.model.pin.add(self.model.theta[l] >= self.model.whole[l])

    def _add_storage_limit(self, l: int) -> None:
        """(D7) ``θ_l·a_l ≥ A_l·stored_l``."""
        model, capacity = self.model, self.storage_capacity[l]
        load = model.theta[l] * self.storage_load[l] + capacity * self._heavy_clients(l)
        model.pin.add(load >= capacity * model.stored[l])

    def _add_compute_limit(self, l: int) -> None:
        """(D8) ``θ_l·v_l ≥ B_l·computed_l``."""
        model, capacity = self.model, self.compute_capacity[l]
        load = model.theta[l] * self.compute_load[l] + capacity * self._heavy_clients(l)
        model.pin.add(load >= capacity * model.computed[l])

    def _heavy_clients(self, l: int) -> Any:
        """Return the number of clients on the server that make ``θ_l`` negligible. They satisfy (D7) and (D8)."""
        return sum(self.model.x[m, l] for m in self.heavy[l])

    def _add_limit_needs_load(self, l: int) -> None:
        """(D9) ``stored_l + computed_l ≤ Σ_{m: U_m>0} x[m,l]``: a server without load has ``θ_l = 1``.

        Without this constraint a capacity of 0 would satisfy (D7) or (D8) with any ``θ_l``.
        """
        model = self.model
        model.pin.add(model.stored[l] + model.computed[l] <= sum(model.x[m, l] for m in self.loading))

    def _add_closed_topic(self, n: int, l: int) -> None:
        """(D10) ``y[n,l] ≤ Σ_{m∈P_n} x[m,l]``: a topic is closed where it has no publisher."""
        self.model.pin.add(self.model.y[n, l] <= sum(self.model.x[m, l] for m in self.c.publishers[n]))

    def add_objective(self, check: Callable[[], None]) -> None:
        """``Σ w_m·dH[m,l]·x[m,l] + Σ_l (2·dC·F_l·(1 - θ_l) + θ_l·Q_l)``."""
        c, model, clients, servers = self.c, self.model, self.clients, self.servers
        weight = (c.weight[:, None] * c.client_delay).tolist()
        publications, between = c.publications.tolist(), c.server_delay.tolist()
        receivers: list[list[tuple[int, float]]] = [[] for _ in clients]
        for m, r, pair_weight in zip(c.sender.tolist(), c.receiver.tolist(), c.pair_weight.tolist(), strict=True):
            receivers[m].append((r, pair_weight))
        costs = [sum(weight[m][l] * model.x[m, l] for m in clients for l in servers)]
        for l in servers:
            theta = model.theta[l] if l in self.limited else 1.0
            sent = sum(publications[m] * model.x[m, l] for m in clients)
            # Nested sums: Pyomo's translation of one flat sum takes time quadratic in the number of its terms.
            delay_to = [sum(between[l][k] * model.x[r, k] for k in servers if between[l][k]) for r in clients]
            spread = sum(model.x[m, l] * sum(share * delay_to[r] for r, share in receivers[m]) for m in clients)
            costs.append(c.detour * sent * (1 - theta) + theta * spread)
            check()
        model.cost = self.pyo.Objective(expr=sum(costs))


def _set_values(model: Any, coefficients: Linearisation, incumbent: Incumbent) -> None:
    """Set the values of all variables to those of the incumbent, for a warm start."""
    home, theta = incumbent.home.tolist(), evaluate(incumbent.instance, incumbent.home).theta.tolist()
    limits = limits_at(coefficients, incumbent)
    for (m, l), x in model.x.items():
        x.set_value(int(home[m] == l))
    for (n, l), y in model.y.items():
        y.set_value(int(any(home[m] == l for m in coefficients.publishers[n])))
    for l, share in model.theta.items():
        share.set_value(theta[l])
    for name in ("whole", "stored", "computed"):
        for l, limit in getattr(model, name).items():
            limit.set_value(int(limits[l] == name))
