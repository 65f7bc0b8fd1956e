"""The model as it is written down, products and all, for Pyomo and SCIP."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.solvers.availability import require
from relocbench.formulations.solvers.pyomo_solver import Settings, limits_at, load_units, run_scip, solve_model
from relocbench.instances.evaluation import evaluate
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
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the bilinear model to global optimality with SCIP.

    Parameters
    ----------
    threads
        For SCIP's LP solver; SCIP itself has one.
    presolve
        Whether SCIP may simplify the model first.
    """
    require("method pyomo-direct", "pyomo", "pyscipopt")
    incumbent = Incumbent(instance, start, on_progress)

    def built(coefficients: Linearisation, check: Callable[[], None]) -> Any:
        model = build(coefficients, check)
        if start is not None:
            _begin_at(model, coefficients, incumbent)
        return model

    return solve_model(
        built, run_scip, incumbent, Settings(seed, time_limit, threads, presolve, log), started=start is not None
    )


def build(coefficients: Linearisation, check: Callable[[], None] = lambda: None) -> Any:
    """Return the Pyomo model.

    Binary ``x[m,l]``: ``l`` is the home of ``m``. Binary ``y[n,l]``: topic ``n`` is open on ``l``. ``θ_l ∈ [0,1]``.

        Σ_l x[m,l] = 1
        y[n,l] ≥ x[m,l] for m ∈ P_n
        θ_l·a_l ≤ A_l with a_l = Σ_n u_n·y[n,l]
        θ_l·v_l ≤ B_l with v_l = Σ_m U_m·x[m,l]

    minimise ``Σ w_m·dH[m,l]·x[m,l] + Σ_l (2·dC·F_l·(1 - θ_l) + θ_l·Q_l)`` with ``F_l = Σ_m f_m·x[m,l]`` and
    ``Q_l = Σ_{(m,r)} W[m,r]·x[m,l]·Σ_k dS[l,k]·x[r,k]``.

    Where the cloud is near, a lower ``θ`` may cost less, and it is held up by what limits it: binaries
    ``whole_l + stored_l + computed_l = 1`` with

        θ_l ≥ whole_l,  θ_l·a_l ≥ A_l·stored_l,  θ_l·v_l ≥ B_l·computed_l
        y[n,l] ≤ Σ_{m ∈ P_n} x[m,l]
        stored_l + computed_l ≤ Σ_{m: U_m > 0} x[m,l], or a capacity of 0 would let go of θ on a server without load.

    A server that processes everything whatever its clients has no ``θ``.
    """
    import pyomo.environ as pyo

    c = coefficients
    clients, servers, topics = range(c.n_clients), range(c.n_servers), range(len(c.spool))
    limited = np.flatnonzero(~c.surely_local).tolist()
    pinned = [] if c.cloud_is_far else limited
    loading = np.flatnonzero(c.demand > 0).tolist()
    spool, demand = c.spool.tolist(), c.demand.tolist()
    model = pyo.ConcreteModel()

    # Variables
    model.x = pyo.Var(clients, servers, domain=pyo.Binary)
    model.y = pyo.Var(topics, limited, domain=pyo.Binary)
    model.theta = pyo.Var(limited, bounds=(0, 1))
    model.whole = pyo.Var(pinned, domain=pyo.Binary)
    model.stored = pyo.Var(pinned, domain=pyo.Binary)
    model.computed = pyo.Var(pinned, domain=pyo.Binary)
    check()

    # Constraints
    stored_unit, computed_unit = load_units(c.storage_capacity, c.spool), load_units(c.compute_capacity, c.demand)
    room, power = (c.storage_capacity / stored_unit).tolist(), (c.compute_capacity / computed_unit).tolist()
    storage = {l: sum(spool[n] / stored_unit[l] * model.y[n, l] for n in topics) for l in limited}
    compute = {l: sum(demand[m] / computed_unit[l] * model.x[m, l] for m in loading) for l in limited}
    model.one_home = pyo.Constraint(clients, rule=lambda model, m: sum(model.x[m, l] for l in servers) == 1)
    model.open = pyo.ConstraintList()
    for l in limited:
        for n in topics:
            for m in c.publishers[n]:
                model.open.add(model.y[n, l] >= model.x[m, l])
        check()
    model.fits_storage = pyo.Constraint(limited, rule=lambda model, l: model.theta[l] * storage[l] <= room[l])
    model.fits_compute = pyo.Constraint(limited, rule=lambda model, l: model.theta[l] * compute[l] <= power[l])
    model.pin = pyo.ConstraintList()
    for l in pinned:
        theta, whole, stored, computed = (part[l] for part in (model.theta, model.whole, model.stored, model.computed))
        model.pin.add(whole + stored + computed == 1)
        model.pin.add(theta >= whole)
        model.pin.add(theta * storage[l] >= room[l] * stored)
        model.pin.add(theta * compute[l] >= power[l] * computed)
        model.pin.add(stored + computed <= sum(model.x[m, l] for m in loading))
        for n in topics:
            model.pin.add(model.y[n, l] <= sum(model.x[m, l] for m in c.publishers[n]))
        check()

    # Objective
    weight = (c.weight[:, None] * c.client_delay).tolist()
    publications, between = c.publications.tolist(), c.server_delay.tolist()
    reached: list[list[tuple[int, float]]] = [[] for _ in clients]
    for m, r, pair_weight in zip(c.sender.tolist(), c.receiver.tolist(), c.pair_weight.tolist(), strict=True):
        reached[m].append((r, pair_weight))
    costs = [sum(weight[m][l] * model.x[m, l] for m in clients for l in servers)]
    for l in servers:
        theta = model.theta[l] if l in limited else 1.0
        sent = sum(publications[m] * model.x[m, l] for m in clients)
        # Sums within products: one flat sum of all terms takes Pyomo's translation a time quadratic in their number.
        away = [sum(between[l][k] * model.x[r, k] for k in servers if between[l][k]) for r in clients]
        spread = sum(model.x[m, l] * sum(share * away[r] for r, share in reached[m]) for m in clients)
        costs.append(c.detour * sent * (1 - theta) + theta * spread)
        check()
    model.cost = pyo.Objective(expr=sum(costs))
    return model


def _begin_at(model: Any, coefficients: Linearisation, incumbent: Incumbent) -> None:
    """Give the variables the values that the homes in the incumbent mean."""
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
