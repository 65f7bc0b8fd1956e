"""The strong mixed-integer linear model: capacities conditioned on each client, much tighter where capacities bind."""

import functools
from typing import Any, Literal

import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.milp_basic import BasicModel
from relocbench.formulations.solvers.pulp_model import Key, Variables
from relocbench.formulations.solvers.pulp_solver import SolverName, run
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
    solver: SolverName = "highs",
    condition: Condition = "everywhere",
    relax: bool = False,
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the strong model.

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
    solver
        HiGHS, SCIP, the CBC that comes with PuLP, or a licensed solver where it is installed.
    condition
        ``together`` conditions the load of a server on each client of that server. ``everywhere`` also conditions it on
        the clients of the other servers, which gives a tighter and larger model.
    relax
        Whether to solve only the linear relaxation. Its value is a lower bound; rounding it gives the homes.
    threads
        The number of threads of the solver.
    presolve
        Whether the solver may simplify the model first.

    Returns
    -------
    Solution
        The best homes found and the lower bound.
    """
    incumbent = Incumbent(instance, start, on_progress)
    build = functools.partial(StrongModel, condition=condition)
    return run(build, incumbent, solver, seed, time_limit, start is not None, threads, presolve, relax, log)


class StrongModel(BasicModel):
    """The basic model with its capacity constraints multiplied by every ``x[m,l]``.

    The products are linearised with ``z[m,r,l,l] = θ_l·x[m,l]·x[r,l]``, which the basic model has for every pair with
    messages. The terms of other pairs are omitted; this is valid because they are not negative. The new variables are

    - ``φ[n,k,m,l] = θ_k·y[n,k]·x[m,l]``; if ``m ∈ P_n`` and ``l = k``, this is ``q[m,l]``
    - ``τ[k,m,l] = θ_k·x[m,l]``; if ``l = k``, this is ``q[m,l]``

    For each server whose capacities do not exceed the total loads:

    - (S1) ``q[m,l] ≤ min(1, A_l/U_m, B_l/U_m)·x[m,l]``
    - (S2) ``Σ_n u_n·φ[n,l,m,l] ≤ A_l·x[m,l]``, ``φ[n,l,m,l] ≥ z[m,r,l,l]`` for ``r ∈ P_n``
    - (S3) ``U_m·q[m,l] + Σ_{r≠m} U_r·z[m,r,l,l] ≤ B_l·x[m,l]``
    - (S4) ``z[m,r,l,l] = z[r,m,l,l]``

    If ``m`` and ``r`` are both on ``l``, then ``θ_l ≤ σ = min(1, A_l/(u of the topics of both), B_l/(U_m + U_r))``.
    With ``σ < 1``, (S5) follows from ``z[m,r,l,l] ≤ σ·x[m,l]·x[r,l]`` and ``x[m,l]·x[r,l] = x[m,l] - Σ_{k≠l}
    x[m,l]·x[r,k]``, because ``z[m,r,l,k] ≤ x[m,l]·x[r,k]``:

    - (S5) ``z[m,r,l,l] ≤ σ·(x[m,l] - Σ_{k≠l} z[m,r,l,k])``, which is equivalent to
      ``(1-σ)·z[m,r,l,l] ≤ σ·(x[m,l] - q[m,l])``, and ``z[m,r,l,l] ≤ σ·(x[r,l] - Σ_{k≠l} z[m,r,k,l])``

    With ``condition="everywhere"`` the storage of a server ``k`` is also conditioned on clients of other servers. Every
    client has exactly one home, so the storage load splits exactly by the home of any client, even of one that does not
    publish to the topic:

    - (S6) ``Σ_n u_n·φ[n,k,m,l] ≤ A_k·x[m,l]``, ``φ[n,k,m,l] ≥ z[r,m,k,l]`` for ``r ∈ P_n``, ``φ[n,k,m,l] ≤ τ[k,m,l]``,
      ``Σ_l φ[n,k,m,l] = w[n,k]``, ``Σ_l τ[k,m,l] = θ_k``, ``τ[k,m,l] ≤ x[m,l]``

    If ``m`` is on ``l`` and topic ``n`` with ``m ∉ P_n`` is open there, both loads are at least ``U_m + u_n``, which
    gives another ``σ``:

    - (S7) ``(1-σ)·φ[n,l,m,l] ≤ σ·(x[m,l] - q[m,l])`` where ``m ∉ P_n``
    """

    name = "milp_strong"

    def __init__(self, coefficients: Linearisation, condition: Condition = "everywhere") -> None:
        super().__init__(coefficients)
        self.everywhere = condition == "everywhere"
        self._topics_of = [set(topics) for topics in coefficients.client_topics]
        self._add_products()
        self._add_largest_shares()
        # The rows of (S2) and (S6) follow the order of φ. The order of rows can decide which optimum a solver returns.
        for n, k, m, l in self.phi:
            if k != l:
                self._add_topic_elsewhere(n, k, m, l)
            elif n not in self._topics_of[m]:
                self._add_topic_together(n, m, l)
        for k, m, l in dict.fromkeys(key[1:] for key in self.phi):
            if k == l:
                self._add_storage_together(m, l)
            else:
                self._add_storage_elsewhere(k, m, l)
        self._add_compute_together()
        self._add_symmetry()
        self._add_pair_limits()
        if self.everywhere:
            self._add_split_by_home()
            self._add_topic_limits()

    def together(self, m: int, r: int, l: int) -> Any | None:
        """Return the variable ``z[m,r,l,l]`` or ``z[r,m,l,l]``.

        Parameters
        ----------
        m, r
            Two clients.
        l
            A server.

        Returns
        -------
        variable or None
            The variable; None if there are no messages between the clients.
        """
        return self.z.get((m, r, l, l), self.z.get((r, m, l, l)))

    def _add_products(self) -> None:
        """Add ``φ`` and ``τ``."""

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
            upper=lambda n, k, m, l: min(self.most_stored(n, k), self.most_local(m, l) if k == l else 1.0),
        )
        self.tau: Variables = {}
        if self.everywhere:
            self.tau |= {(k, m, k): self.q[m, k] for m in self.active for k in self.limited}
            self.tau |= self.variables("tau", [(k, m, l) for k, m, l in places if k != l])

    def _add_largest_shares(self) -> None:
        """(S1) ``q[m,l] ≤ min(1, A_l/U_m, B_l/U_m)·x[m,l]``: the load of ``m`` alone limits ``θ_l``."""
        share = self.data.largest_share
        for l in self.limited:
            for m in self.active:
                if share[m, l] < 1:
                    self.row([(self.q[m, l], 1), (self.x[m, l], -share[m, l])], "<=", 0)

    def _add_topic_together(self, n: int, m: int, l: int) -> None:
        """(S2) ``φ[n,l,m,l] ≥ z[m,r,l,l]`` for ``r ∈ P_n``, where ``m ∉ P_n``."""
        for r in self.data.publishers[n]:
            z = self.together(m, r, l)
            if z is not None:
                self.row([(self.phi[n, l, m, l], 1), (z, -1)], ">=", 0)

    def _add_storage_together(self, m: int, l: int) -> None:
        """(S2) ``Σ_n u_n·φ[n,l,m,l] ≤ A_l·x[m,l]``: (B4) multiplied by ``x[m,l]``."""
        # The topics of m all have φ = q. Their coefficients are added up, so that no variable occurs twice in the row.
        own = sum(self.data.spool[n] for n in self._topics_of[m])
        others, capacity = self._stored_given(l, m, l), self.data.storage_capacity[l]
        self.row([(self.q[m, l], own), *others, (self.x[m, l], -capacity)], "<=", 0)

    def _add_topic_elsewhere(self, n: int, k: int, m: int, l: int) -> None:
        """(S6) ``φ[n,k,m,l] ≥ z[r,m,k,l]`` for ``r ∈ P_n``, where ``k ≠ l``."""
        for r in self.data.publishers[n]:
            z = self.z.get((r, m, k, l))
            if z is not None:
                self.row([(self.phi[n, k, m, l], 1), (z, -1)], ">=", 0)

    def _add_storage_elsewhere(self, k: int, m: int, l: int) -> None:
        """(S6) ``Σ_n u_n·φ[n,k,m,l] ≤ A_k·x[m,l]``, where ``k ≠ l``: (B4) of server ``k`` multiplied by ``x[m,l]``."""
        self.row([*self._stored_given(k, m, l), (self.x[m, l], -self.data.storage_capacity[k])], "<=", 0)

    def _add_compute_together(self) -> None:
        """(S3) ``U_m·q[m,l] + Σ_{r≠m} U_r·z[m,r,l,l] ≤ B_l·x[m,l]``: (B5) multiplied by ``x[m,l]``."""
        demand = self.data.demand
        for l in self.limited:
            for m in self.active:
                pairs = [(r, self.together(m, r, l)) for r in self.active if r != m]
                others = [(z, demand[r]) for r, z in pairs if z is not None]
                self.row([(self.q[m, l], demand[m]), *others, (self.x[m, l], -self.data.compute_capacity[l])], "<=", 0)

    def _add_symmetry(self) -> None:
        """(S4) ``z[m,r,l,l] = z[r,m,l,l]``."""
        for m, r in self.pairs:
            for l in self.servers:
                if m < r and (r, m, l, l) in self.z:
                    self.row([(self.z[m, r, l, l], 1), (self.z[r, m, l, l], -1)], "=", 0)

    def _add_pair_limits(self) -> None:
        """(S5) ``(1-σ)·z[m,r,l,l] ≤ σ·(x[m,l] - q[m,l])`` and ``z[m,r,l,l] ≤ σ·(x[r,l] - Σ_{k≠l} z[m,r,k,l])``."""
        x, q, z, demand = self.x, self.q, self.z, self.data.demand
        for m, r in self.pairs:
            both = float(self.data.spool[list(self._topics_of[m] | self._topics_of[r])].sum())
            for l in self.limited:
                share = self._largest_share(l, both, demand[m] + demand[r])
                if share == 1:
                    continue
                together, elsewhere = z[m, r, l, l], [k for k in self.servers if k != l]
                self.row([(together, 1 - share), (x[m, l], -share), (q[m, l], share)], "<=", 0)
                self.row([(together, 1), (x[r, l], -share), *((z[m, r, k, l], share) for k in elsewhere)], "<=", 0)

    def _add_split_by_home(self) -> None:
        """(S6) ``Σ_l τ[k,m,l] = θ_k``, ``Σ_l φ[n,k,m,l] = w[n,k]``, ``φ[n,k,m,l] ≤ τ[k,m,l] ≤ x[m,l]``."""
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

    def _add_topic_limits(self) -> None:
        """(S7) ``(1-σ)·φ[n,l,m,l] ≤ σ·(x[m,l] - q[m,l])`` where ``m ∉ P_n``."""
        for l in self.limited:
            for m in self.active:
                for n in self.topics:
                    load = self.data.demand[m] + self.data.spool[n]
                    share = self._largest_share(l, load, load)
                    if share < 1 and n not in self._topics_of[m]:
                        phi = self.phi[n, l, m, l]
                        self.row([(phi, 1 - share), (self.x[m, l], -share), (self.q[m, l], share)], "<=", 0)

    def _stored_given(self, k: int, m: int, l: int) -> list[tuple[Any, float]]:
        """Return the terms of ``Σ_n u_n·φ[n,k,m,l]`` whose ``φ`` is not ``q[m,l]``."""
        keys = [(n, k, m, l) for n in self.topics if k != l or n not in self._topics_of[m]]
        return [(self.phi[key], self.data.spool[key[0]]) for key in keys if key in self.phi]

    def _largest_share(self, l: int, stored: float, computed: float) -> float:
        """Return ``σ``, the upper bound on ``θ_l`` if at least these loads are on the server."""
        by_storage = self.data.storage_capacity[l] / stored if stored > self.data.storage_capacity[l] else 1.0
        by_compute = self.data.compute_capacity[l] / computed if computed > self.data.compute_capacity[l] else 1.0
        return float(min(by_storage, by_compute))

    def value_of(self, name: str, key: Key, home: IntArray, theta: FloatArray) -> float:
        """Return the value of a variable in an assignment.

        Parameters
        ----------
        name, key, home, theta
            As for :meth:`LinearModel.value_of`.

        Returns
        -------
        float
            The value.
        """
        match name, key:
            case "phi", (n, k, m, l):
                return float(theta[k] * (home[m] == l and self._open(n, k, home)))
            case "tau", (k, m, l):
                return float(theta[k] * (home[m] == l))
        return super().value_of(name, key, home, theta)
