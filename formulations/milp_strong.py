"""The basic linear model with its capacities conditioned on each client: far tighter where capacities bind."""

from typing import Any, Literal

import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation, linearise
from relocbench.formulations.milp_basic import BasicModel
from relocbench.formulations.solvers.pulp_model import Key, Variables
from relocbench.formulations.solvers.pulp_solver import run
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.solution import Progress, Solution

Condition = Literal["together", "everywhere"]


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    solver: Literal["highs", "cbc", "scip"] = "highs",
    condition: Condition = "everywhere",
    relax: bool = False,
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the strong model.

    Parameters
    ----------
    solver
        HiGHS, the CBC inside PuLP, or SCIP.
    condition
        Whether the load of a server is conditioned on each client that is there (``together``), or on each client
        wherever it is: the tighter model, and the larger one.
    relax
        Whether to solve the linear relaxation only: its value is a bound, its largest shares are the homes.
    threads, presolve
        For the solver.
    """
    incumbent = Incumbent(instance, start, on_progress)
    model = StrongModel(linearise(instance), condition)
    warm = None if start is None else incumbent.home
    return run(model, incumbent, solver, seed, time_limit, warm, threads, presolve, relax, log)


class StrongModel(BasicModel):
    """The basic model and, multiplied by every ``x[m,l]``, its capacity rows.

    ``z[m,r,l,l] = θ_l·x[m,l]·x[r,l]`` says that ``m`` and ``r`` are together on ``l``; it is there for every pair with
    messages between them. Terms of other pairs are left out: they are not negative. New are

    - ``φ[n,k,m,l] = θ_k·y[n,k]·x[m,l]``, where ``m ∉ P_n`` or ``l ≠ k``; else it is ``q[m,l]``
    - ``τ[k,m,l] = θ_k·x[m,l]``, where ``l ≠ k``; else it is ``q[m,l]``

    For servers that have a limit:

    - (S1) ``q[m,l] ≤ min(1, A_l/U_m, B_l/U_m)·x[m,l]``
    - (S2) ``Σ_n u_n·φ[n,l,m,l] ≤ A_l·x[m,l]``, ``φ[n,l,m,l] ≥ z[m,r,l,l]`` for ``r ∈ P_n``
    - (S3) ``U_m·q[m,l] + Σ_{r≠m} U_r·z[m,r,l,l] ≤ B_l·x[m,l]``
    - (S4) ``z[m,r,l,l] = z[r,m,l,l]``

    Two that are together leave at most ``σ = min(1, A_l/(u of the topics of both), B_l/(U_m + U_r))`` of ``θ_l``; a
    client and a topic of others, which take ``U_m + u_n`` at least, likewise. From ``z[m,r,l,l] ≤ σ·x[m,l]·x[r,l]`` and
    ``x[m,l]·x[r,l] = x[m,l] - Σ_{k≠l} x[m,l]·x[r,k]``, where products with a ``θ`` are smaller, follows if ``σ < 1``:

    - (S5) ``z[m,r,l,l] ≤ σ·(x[m,l] - Σ_{k≠l} z[m,r,l,k])``, the same as ``(1-σ)·z[m,r,l,l] ≤ σ·(x[m,l] - q[m,l])``,
      and ``z[m,r,l,l] ≤ σ·(x[r,l] - Σ_{k≠l} z[m,r,k,l])``

    With ``condition="everywhere"`` the storage of a server ``k`` is also conditioned on clients that are elsewhere. As
    every client is somewhere, what is stored splits up exactly, also by clients that have nothing to do with the topic:

    - (S6) ``Σ_n u_n·φ[n,k,m,l] ≤ A_k·x[m,l]``, ``φ[n,k,m,l] ≥ z[r,m,k,l]`` for ``r ∈ P_n``, ``φ[n,k,m,l] ≤ τ[k,m,l]``,
      ``Σ_l φ[n,k,m,l] = w[n,k]``, ``Σ_l τ[k,m,l] = θ_k``, ``τ[k,m,l] ≤ x[m,l]``
    - (S7) ``(1-σ)·φ[n,l,m,l] ≤ σ·(x[m,l] - q[m,l])`` where ``m ∉ P_n``
    """

    name = "milp_strong"

    def __init__(self, coefficients: Linearisation, condition: Condition = "everywhere") -> None:
        super().__init__(coefficients)
        self.everywhere = condition == "everywhere"
        self._topics_of = [set(topics) for topics in coefficients.client_topics]
        self._add_products()
        self._condition_shares()
        self._condition_storage()
        self._condition_compute()
        self._join_pairs()
        self._limit_pairs()
        if self.everywhere:
            self._split_by_client()
            self._limit_client_and_topic()

    def together(self, m: int, r: int, l: int) -> Any | None:
        """Return the variable that says how much of ``m`` and ``r`` is on ``l``, if there is one."""
        return self.z.get((m, r, l, l), self.z.get((r, m, l, l)))

    def _add_products(self) -> None:
        def needed(n: int, k: int, m: int, l: int) -> bool:
            if self.everywhere:
                return True
            return k == l and any(self.together(m, r, l) is not None for r in self.data.publishers[n] if r != m)

        places = [(k, m, l) for k in self.limited for m in self.active for l in self.servers]
        self.phi: Variables = {
            (n, k, m, k): self.q[m, k] for m in self.active for n in self._topics_of[m] for k in self.limited
        }
        self.phi |= self.variables(
            "phi",
            [
                (n, k, m, l)
                for n in self.topics
                for k, m, l in places
                if (n, k, m, l) not in self.phi and needed(n, k, m, l)
            ],
        )
        self.tau: Variables = {}
        if self.everywhere:
            self.tau |= {(k, m, k): self.q[m, k] for m in self.active for k in self.limited}
            self.tau |= self.variables("tau", [(k, m, l) for k, m, l in places if k != l])

    def _condition_shares(self) -> None:
        share = self.data.largest_share
        for l in self.limited:
            for m in self.active:
                if share[m, l] < 1:
                    self.row([(self.q[m, l], 1), (self.x[m, l], -share[m, l])], "<=", 0)

    def _condition_storage(self) -> None:
        """Add (S2) and the same rows of (S6)."""
        stored: dict[Key, list[tuple[Any, float]]] = {}
        for (n, k, m, l), phi in self.phi.items():
            stored.setdefault((k, m, l), []).append((phi, self.data.spool[n]))
            if k == l and n in self._topics_of[m]:
                continue
            for r in self.data.publishers[n]:
                z = self.together(m, r, l) if k == l else self.z.get((r, m, k, l))
                if z is not None:
                    self.row([(phi, 1), (z, -1)], ">=", 0)
        for (k, m, l), terms in stored.items():
            # What is stored for m takes one variable, so that no row names a variable twice.
            own = sum(spool for phi, spool in terms if phi is self.q[m, l])
            others = [(phi, spool) for phi, spool in terms if phi is not self.q[m, l]]
            self.row([(self.q[m, l], own), *others, (self.x[m, l], -self.data.storage_capacity[k])], "<=", 0)

    def _condition_compute(self) -> None:
        demand = self.data.demand
        for l in self.limited:
            for m in self.active:
                beside = [(r, self.together(m, r, l)) for r in self.active if r != m]
                others = [(z, demand[r]) for r, z in beside if z is not None]
                self.row([(self.q[m, l], demand[m]), *others, (self.x[m, l], -self.data.compute_capacity[l])], "<=", 0)

    def _join_pairs(self) -> None:
        for m, r in self.pairs:
            for l in self.servers:
                if m < r and (r, m, l, l) in self.z:
                    self.row([(self.z[m, r, l, l], 1), (self.z[r, m, l, l], -1)], "=", 0)

    def _limit_pairs(self) -> None:
        x, q, z, demand = self.x, self.q, self.z, self.data.demand
        for m, r in self.pairs:
            both = float(self.data.spool[list(self._topics_of[m] | self._topics_of[r])].sum())
            for l in self.limited:
                share = self._share(l, both, demand[m] + demand[r])
                if share == 1:
                    continue
                beside, elsewhere = z[m, r, l, l], [k for k in self.servers if k != l]
                self.row([(beside, 1 - share), (x[m, l], -share), (q[m, l], share)], "<=", 0)
                self.row([(beside, 1), (x[r, l], -share), *((z[m, r, k, l], share) for k in elsewhere)], "<=", 0)

    def _split_by_client(self) -> None:
        x, theta, w, phi, tau = self.x, self.theta, self.w, self.phi, self.tau
        for k in self.limited:
            for m in self.active:
                self.row([*((tau[k, m, l], 1) for l in self.servers), (theta[k,], -1)], "=", 0)
                for n in self.topics:
                    self.row([*((phi[n, k, m, l], 1) for l in self.servers), (w[n, k], -1)], "=", 0)
                for l in self.servers:
                    if k != l:
                        self.row([(tau[k, m, l], 1), (x[m, l], -1)], "<=", 0)
                    for n in self.topics:
                        if k != l or n not in self._topics_of[m]:
                            self.row([(phi[n, k, m, l], 1), (tau[k, m, l], -1)], "<=", 0)

    def _limit_client_and_topic(self) -> None:
        for l in self.limited:
            for m in self.active:
                for n in self.topics:
                    load = self.data.demand[m] + self.data.spool[n]
                    share = self._share(l, load, load)
                    if share < 1 and n not in self._topics_of[m]:
                        phi = self.phi[n, l, m, l]
                        self.row([(phi, 1 - share), (self.x[m, l], -share), (self.q[m, l], share)], "<=", 0)

    def _share(self, l: int, stored: float, computed: float) -> float:
        """Return the most of ``θ_l`` that a load leaves."""
        by_storage = self.data.storage_capacity[l] / stored if stored > self.data.storage_capacity[l] else 1.0
        by_compute = self.data.compute_capacity[l] / computed if computed > self.data.compute_capacity[l] else 1.0
        return float(min(by_storage, by_compute))

    def worth(self, name: str, key: Key, home: IntArray, theta: FloatArray) -> float:
        """Return the value of a variable, given the homes and the ``θ`` they lead to."""
        match name, key:
            case "phi", (n, k, m, l):
                return float(theta[k] * (home[m] == l and self._open(n, k, home)))
            case "tau", (k, m, l):
                return float(theta[k] * (home[m] == l))
        return super().worth(name, key, home, theta)
