"""The linear model that writes every product out: exact, small, and weak where capacities bind."""

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation, linearise
from relocbench.formulations.solvers.pulp_model import Key, LinearModel, Variables
from relocbench.formulations.solvers.pulp_solver import run
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.solution import Progress, Solution


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    solver: Literal["highs", "cbc", "scip"] = "highs",
    relax: bool = False,
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the basic model.

    Parameters
    ----------
    solver
        HiGHS, the CBC inside PuLP, or SCIP.
    relax
        Whether to solve the linear relaxation only: its value is a bound, its largest shares are the homes.
    threads, presolve
        For the solver.
    """
    incumbent = Incumbent(instance, start, on_progress)
    model = BasicModel(linearise(instance))
    warm = None if start is None else incumbent.home
    return run(model, incumbent, solver, seed, time_limit, warm, threads, presolve, relax, log)


class BasicModel(LinearModel):
    """The basic model of an instance.

    Variables, all in ``[0, 1]``, with what they stand for:

    - ``x[m,l]``, binary: ``l`` is the home of ``m``; ``θ[l]``
    - ``q[m,l] = θ_l·x[m,l]``
    - ``w[n,l] = θ_l·y[n,l]``, where ``y[n,l]`` says whether topic ``n`` is open on ``l``
    - ``z[m,r,l,k] = θ_l·x[m,l]·x[r,k]``, where ``W[m,r] > 0``

    Constraints:

    - ``Σ_l x[m,l] = 1``
    - ``q[m,l] ≤ x[m,l]``, ``q[m,l] ≤ θ_l``, ``q[m,l] ≥ θ_l + x[m,l] - 1``
    - ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``, ``Σ_n u_n·w[n,l] ≤ A_l``, ``Σ_m U_m·q[m,l] ≤ B_l``
    - ``Σ_k z[m,r,l,k] = q[m,l]``, ``Σ_l z[m,r,l,k] ≤ x[r,k]``

    Objective: ``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``

    A server that takes every load processes everything itself: there ``θ_l = 1``, ``q`` is ``x``, and no row about
    capacities is needed.

    Where the cloud is near (``2·dC < max dS``) a small ``θ`` may be worth having, and the rows above only keep it from
    being too large. There one of three binaries ``s[l,·]`` says why it is not smaller:

    - ``s[l,0] + s[l,1] + s[l,2] = 1``
    - all fits: ``θ_l ≥ s[l,0]``
    - storage binds: ``Σ_n u_n·w[n,l] ≥ A_l·s[l,1]``, with ``w[n,l] ≤ Σ_{m∈P_n} q[m,l]`` and ``w[n,l] ≤ θ_l``
    - compute binds: ``Σ_m U_m·q[m,l] ≥ B_l·s[l,2]``
    - ``s[l,1], s[l,2] ≤ Σ_{m: U_m>0} x[m,l]``: nothing binds on an empty server, however small its capacity
    """

    name = "milp_basic"

    def __init__(self, coefficients: Linearisation) -> None:
        super().__init__(self.name)
        self.data = coefficients
        self.clients, self.servers = range(coefficients.n_clients), range(coefficients.n_servers)
        self.topics = range(len(coefficients.spool))
        self.limited = [l for l in self.servers if not coefficients.surely_local[l]]
        # A client that neither publishes to anybody nor loads its home has no share to speak of.
        self.active = [m for m in self.clients if coefficients.publications[m] > 0 or coefficients.demand[m] > 0]
        self.pairs = list(zip(coefficients.sender.tolist(), coefficients.receiver.tolist(), strict=True))
        self._add_variables()
        self._add_constraints()
        if not coefficients.cloud_is_far:
            self._add_constraints_of_a_near_cloud()
        self._set_objective()

    def _add_variables(self) -> None:
        self.x: Variables = self.variables("x", [(m, l) for m in self.clients for l in self.servers], binary=True)
        self.theta: Variables = self.variables("theta", [(l,) for l in self.limited])
        self.q: Variables = {(m, l): self.x[m, l] for m in self.active for l in self.servers}
        self.q |= self.variables("q", [(m, l) for m in self.active for l in self.limited])
        self.w: Variables = self.variables("w", [(n, l) for n in self.topics for l in self.limited])
        self.z: Variables = self.variables(
            "z", [(m, r, l, k) for m, r in self.pairs for l in self.servers for k in self.servers]
        )
        near = [] if self.data.cloud_is_far else self.limited
        self.s: Variables = self.variables("s", [(l, reason) for l in near for reason in range(3)], binary=True)

    def _add_constraints(self) -> None:
        x, theta, q, w, z = self.x, self.theta, self.q, self.w, self.z
        for m in self.clients:
            self.row([(x[m, l], 1) for l in self.servers], "=", 1)
        for l in self.limited:
            for m in self.active:
                self.row([(q[m, l], 1), (x[m, l], -1)], "<=", 0)
                self.row([(q[m, l], 1), (theta[l,], -1)], "<=", 0)
                self.row([(q[m, l], 1), (theta[l,], -1), (x[m, l], -1)], ">=", -1)
            for n in self.topics:
                for m in self.data.publishers[n]:
                    self.row([(w[n, l], 1), (q[m, l], -1)], ">=", 0)
            self.row(self._stored(l), "<=", self.data.storage_capacity[l])
            self.row(self._computed(l), "<=", self.data.compute_capacity[l])
        for m, r in self.pairs:
            for l in self.servers:
                self.row([*((z[m, r, l, k], 1) for k in self.servers), (q[m, l], -1)], "=", 0)
            for k in self.servers:
                self.row([*((z[m, r, l, k], 1) for l in self.servers), (x[r, k], -1)], "<=", 0)

    def _add_constraints_of_a_near_cloud(self) -> None:
        x, theta, q, w, s = self.x, self.theta, self.q, self.w, self.s
        loading = [m for m in self.clients if self.data.demand[m] > 0]
        for l in self.limited:
            self.row([(s[l, reason], 1) for reason in range(3)], "=", 1)
            self.row([(theta[l,], 1), (s[l, 0], -1)], ">=", 0)
            self.row([*self._stored(l), (s[l, 1], -self.data.storage_capacity[l])], ">=", 0)
            self.row([*self._computed(l), (s[l, 2], -self.data.compute_capacity[l])], ">=", 0)
            for reason in (1, 2):
                self.row([(s[l, reason], 1), *((x[m, l], -1) for m in loading)], "<=", 0)
            for n in self.topics:
                self.row([(w[n, l], 1), (theta[l,], -1)], "<=", 0)
                self.row([(w[n, l], 1), *((q[m, l], -1) for m in self.data.publishers[n])], "<=", 0)

    def _set_objective(self) -> None:
        data, x, q, z = self.data, self.x, self.q, self.z
        terms = [(x[m, l], data.weight[m] * data.client_delay[m, l]) for m in self.clients for l in self.servers]
        terms += [(q[m, l], -data.detour * data.publications[m]) for m in self.active for l in self.servers]
        terms += [
            (z[m, r, l, k], weight * data.server_delay[l, k])
            for (m, r), weight in zip(self.pairs, data.pair_weight, strict=True)
            for l in self.servers
            for k in self.servers
        ]
        self.minimise(terms, data.detour * data.publications.sum())

    def _stored(self, l: int) -> list[tuple[Any, float]]:
        return [(self.w[n, l], self.data.spool[n]) for n in self.topics]

    def _computed(self, l: int) -> list[tuple[Any, float]]:
        return [(self.q[m, l], self.data.demand[m]) for m in self.active]

    def worth(self, name: str, key: Key, home: IntArray, theta: FloatArray) -> float:
        """Return the value of a variable, given the homes and the ``θ`` they lead to."""
        match name, key:
            case "x", (m, l):
                return float(home[m] == l)
            case "theta", (l,):
                return float(theta[l])
            case "q", (m, l):
                return float(theta[l] * (home[m] == l))
            case "w", (n, l):
                return float(theta[l] * self._open(n, l, home))
            case "z", (m, r, l, k):
                return float(theta[l] * (home[m] == l and home[r] == k))
            case "s", (l, reason):
                return float(reason == self._reason(l, home))
        raise KeyError(name)

    def _open(self, n: int, l: int, home: IntArray) -> bool:
        return any(home[m] == l for m in self.data.publishers[n])

    def _reason(self, l: int, home: IntArray) -> int:
        """Return what keeps ``θ_l`` from being larger: 0 nothing (it is 1), 1 storage, 2 compute."""
        stored = sum(self.data.spool[n] for n in self.topics if self._open(n, l, home))
        computed = float(self.data.demand[np.asarray(home) == l].sum())
        if stored <= self.data.storage_capacity[l] and computed <= self.data.compute_capacity[l]:
            return 0
        return 1 if self.data.storage_capacity[l] * computed <= self.data.compute_capacity[l] * stored else 2
