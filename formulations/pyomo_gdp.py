"""The share processed locally as a disjunction that Pyomo.GDP linearises, for HiGHS."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.solvers.availability import require
from relocbench.formulations.solvers.pyomo_solver import Settings, limits_at, load_units, run_highs, solve_model
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
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the disjunctive model with HiGHS.

    Parameters
    ----------
    transform
        How Pyomo writes the disjunctions as linear rows: ``bigm`` switches rows off with constants, ``hull`` gives
        each disjunct its own copy of the variables.
    threads
        Threads of HiGHS.
    presolve
        Whether HiGHS may simplify the model first.
    """
    require("method pyomo-gdp", "pyomo", "highspy")
    incumbent = Incumbent(instance, start, on_progress)

    def built(coefficients: Linearisation, check: Callable[[], None]) -> Any:
        import pyomo.environ as pyo

        model = build(coefficients, check)
        if start is not None:
            _begin_at(model, coefficients, incumbent)
        pyo.TransformationFactory(f"gdp.{transform}").apply_to(model)
        check()
        return model

    return solve_model(
        built, run_highs, incumbent, Settings(seed, time_limit, threads, presolve, log), started=start is not None
    )


def build(coefficients: Linearisation, check: Callable[[], None] = lambda: None) -> Any:
    """Return the Pyomo model, its disjunctions not yet transformed.

    Binary ``x[m,l]``: ``l`` is the home of ``m``; ``Σ_l x[m,l] = 1``. ``θ_l ∈ [0,1]``. The products are linear rows,
    exact for every integral ``x``:

        q[m,l] = θ_l·x[m,l]:       q ≤ x[m,l],  q ≤ θ_l,  q ≥ θ_l + x[m,l] - 1
        w[n,l] = θ_l·(n open on l):  w ≥ q[m,l] for m ∈ P_n,  w ≤ θ_l,  w ≤ Σ_{m ∈ P_n} q[m,l]
        z[m,r,l,k] = q[m,l]·x[r,k]:  Σ_k z[m,r,l,k] = q[m,l],  Σ_l z[m,r,l,k] ≤ x[r,k],  for every pair with W[m,r] > 0

    so that ``θ_l·a_l = Σ_n u_n·w[n,l]`` and ``θ_l·v_l = Σ_m U_m·q[m,l]``. ``θ_l = min(1, A_l/a_l, B_l/v_l)`` is: never
    ``θ_l·a_l > A_l`` nor ``θ_l·v_l > B_l``, and

        whole:     θ_l = 1
        or stored:    θ_l·a_l = A_l and some client with U_m > 0 is here
        or computed:  θ_l·v_l = B_l and some client with U_m > 0 is here

    (with a capacity of 0 the equation alone would let go of ``θ`` on a server without load.)

    minimise ``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``

    A server that processes everything whatever its clients has ``q = x`` and no disjunction.
    """
    import pyomo.environ as pyo
    from pyomo.gdp import Disjunct, Disjunction

    c = coefficients
    clients, servers, topics, pairs = range(c.n_clients), range(c.n_servers), range(len(c.spool)), range(len(c.sender))
    limited = np.flatnonzero(~c.surely_local).tolist()
    loading = np.flatnonzero(c.demand > 0).tolist()
    sender, receiver = c.sender.tolist(), c.receiver.tolist()
    model = pyo.ConcreteModel()

    # Variables
    model.x = pyo.Var(clients, servers, domain=pyo.Binary)
    model.theta = pyo.Var(limited, bounds=(0, 1))
    model.q = pyo.Var(clients, limited, bounds=(0, 1))
    model.w = pyo.Var(topics, limited, bounds=(0, 1))
    model.z = pyo.VarList(bounds=(0, 1))
    z = []
    for _ in pairs:
        z.append([[model.z.add() for _ in servers] for _ in servers])
        check()
    q = [[model.q[m, l] if l in limited else model.x[m, l] for l in servers] for m in clients]

    # Constraints
    model.one_home = pyo.Constraint(clients, rule=lambda model, m: sum(model.x[m, l] for l in servers) == 1)
    model.products = pyo.ConstraintList()
    for l in limited:
        for m in clients:
            model.products.add(q[m][l] <= model.x[m, l])
            model.products.add(q[m][l] <= model.theta[l])
            model.products.add(q[m][l] >= model.theta[l] + model.x[m, l] - 1)
        for n in topics:
            for m in c.publishers[n]:
                model.products.add(model.w[n, l] >= q[m][l])
            model.products.add(model.w[n, l] <= model.theta[l])
            model.products.add(model.w[n, l] <= sum(q[m][l] for m in c.publishers[n]))
        check()
    for p in pairs:
        for l in servers:
            model.products.add(sum(z[p][l]) == q[sender[p]][l])
        for k in servers:
            model.products.add(sum(z[p][l][k] for l in servers) <= model.x[receiver[p], k])
        check()

    spool, demand = c.spool.tolist(), c.demand.tolist()
    stored_unit, computed_unit = load_units(c.storage_capacity, c.spool), load_units(c.compute_capacity, c.demand)
    room, power = (c.storage_capacity / stored_unit).tolist(), (c.compute_capacity / computed_unit).tolist()
    storage = {l: sum(spool[n] / stored_unit[l] * model.w[n, l] for n in topics) for l in limited}
    compute = {l: sum(demand[m] / computed_unit[l] * q[m][l] for m in loading) for l in limited}
    used = {l: sum(model.x[m, l] for m in loading) for l in limited}
    model.fits_storage = pyo.Constraint(limited, rule=lambda model, l: storage[l] <= room[l])
    model.fits_compute = pyo.Constraint(limited, rule=lambda model, l: compute[l] <= power[l])
    model.whole, model.stored, model.computed = Disjunct(limited), Disjunct(limited), Disjunct(limited)
    for l in limited:
        model.whole[l].share = pyo.Constraint(expr=model.theta[l] == 1)
        model.stored[l].share = pyo.Constraint(expr=storage[l] >= room[l])
        model.stored[l].used = pyo.Constraint(expr=used[l] >= 1)
        model.computed[l].share = pyo.Constraint(expr=compute[l] >= power[l])
        model.computed[l].used = pyo.Constraint(expr=used[l] >= 1)
    model.limit = Disjunction(limited, rule=lambda model, l: [model.whole[l], model.stored[l], model.computed[l]])

    # Objective
    weight = (c.weight[:, None] * c.client_delay).tolist()
    publications, between, pair_weight = c.publications.tolist(), c.server_delay.tolist(), c.pair_weight.tolist()
    costs = [weight[m][l] * model.x[m, l] for m in clients for l in servers]
    costs += [c.detour * publications[m] * (1 - sum(q[m])) for m in clients]
    for p in pairs:
        costs += [pair_weight[p] * between[l][k] * z[p][l][k] for l in servers for k in servers if between[l][k]]
        check()
    model.cost = pyo.Objective(expr=sum(costs))
    return model


def _begin_at(model: Any, coefficients: Linearisation, incumbent: Incumbent) -> None:
    """Give the binaries the values that the homes in the incumbent mean."""
    home, limits = incumbent.home.tolist(), limits_at(coefficients, incumbent)
    for (m, l), x in model.x.items():
        x.set_value(int(home[m] == l))
    for name in ("whole", "stored", "computed"):
        for l, disjunct in getattr(model, name).items():
            disjunct.binary_indicator_var.set_value(int(limits[l] == name))
