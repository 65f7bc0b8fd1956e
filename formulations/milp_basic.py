"""The basic mixed-integer linear model, with a variable for every product: exact, but weak where capacities bind."""

from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.solvers.pulp_model import Key, LinearModel, Variables
from relocbench.formulations.solvers.pulp_solver import SolverName, run
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
    solver: SolverName = "highs",
    relax: bool = False,
    threads: int = 1,
    presolve: bool = True,
) -> Solution:
    """Solve the basic model.

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
    return run(BasicModel, incumbent, solver, seed, time_limit, start is not None, threads, presolve, relax, log)


class BasicModel(LinearModel):
    """The basic model of an instance.

    All variables are in ``[0, 1]``:

    - ``x[m,l]``, binary: whether ``l`` is the home of ``m``
    - ``θ[l]``: the share of its load that server ``l`` processes itself
    - ``q[m,l] = θ_l·x[m,l]``
    - ``w[n,l] = θ_l·y[n,l]``, where ``y[n,l]`` is 1 if topic ``n`` is open on ``l``; ``y`` itself is not needed
    - ``z[m,r,l,k] = θ_l·x[m,l]·x[r,k]`` for each pair with ``W[m,r] > 0``

    The constraints are:

    - (B1) ``Σ_l x[m,l] = 1``
    - (B2) ``q[m,l] ≤ x[m,l]``, ``q[m,l] ≤ θ_l``, ``q[m,l] ≥ θ_l + x[m,l] - 1``
    - (B3) ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``
    - (B4) ``Σ_n u_n·w[n,l] ≤ A_l``
    - (B5) ``Σ_m U_m·q[m,l] ≤ B_l``
    - (B6) ``Σ_k z[m,r,l,k] = q[m,l]``
    - (B7) ``Σ_l z[m,r,l,k] ≤ x[r,k]``

    The objective is ``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``.

    A server whose capacities exceed the total loads has ``θ_l = 1`` and ``q = x``, and needs none of (B2) to (B5).

    If the cloud is near (``2·dC < max dS``), a small ``θ`` may cost less, but (B2) to (B5) only bound it from above.
    Then one of three binaries ``s[l,·]`` states what limits ``θ_l``:

    - (N1) ``s[l,0] + s[l,1] + s[l,2] = 1``
    - (N2) nothing: ``θ_l ≥ s[l,0]``
    - (N3) the storage capacity: ``Σ_n u_n·w[n,l] ≥ A_l·s[l,1]``
    - (N4) the compute capacity: ``Σ_m U_m·q[m,l] ≥ B_l·s[l,2]``
    - (N5) ``s[l,1] ≤ Σ_{m: U_m>0} x[m,l]`` and ``s[l,2] ≤ Σ_{m: U_m>0} x[m,l]``
    - (N6) ``w[n,l] ≤ θ_l`` and ``w[n,l] ≤ Σ_{m∈P_n} q[m,l]``
    """

    name = "milp_basic"

    def __init__(self, coefficients: Linearisation) -> None:
        super().__init__(self.name)
        self.data = coefficients
        self.clients, self.servers = range(coefficients.n_clients), range(coefficients.n_servers)
        self.topics = range(len(coefficients.spool))
        self.limited = [l for l in self.servers if not coefficients.surely_local[l]]
        # A client that neither has publications nor loads its home does not depend on θ, so it needs no q.
        self.active = [m for m in self.clients if coefficients.publications[m] > 0 or coefficients.demand[m] > 0]
        self.pairs = list(zip(coefficients.sender.tolist(), coefficients.receiver.tolist(), strict=True))
        self._client_share: list[list[float]] = coefficients.client_share.tolist()
        self._topic_share: list[list[float]] = coefficients.topic_share.tolist()
        self._add_variables()
        self._add_constraints()
        if not coefficients.cloud_is_far:
            self._add_near_cloud_constraints()
        self._set_objective()

    def _add_variables(self) -> None:
        """Add the variables; ``q`` is ``x`` on servers that have ``θ_l = 1`` in every assignment."""
        self.x: Variables = self.variables("x", [(m, l) for m in self.clients for l in self.servers], binary=True)
        self.theta: Variables = self.variables("theta", [(l,) for l in self.limited])
        self.q: Variables = {(m, l): self.x[m, l] for m in self.active for l in self.servers}
        self.q |= self.variables("q", [(m, l) for m in self.active for l in self.limited], upper=self.most_local)
        self.w: Variables = self.variables(
            "w", [(n, l) for n in self.topics for l in self.limited], upper=self.most_stored
        )
        self.z: Variables = self.variables(
            "z",
            [(m, r, l, k) for m, r in self.pairs for l in self.servers for k in self.servers],
            upper=lambda m, r, l, k: self.most_local(m, l) if k != l else self.most_local(m, l, r),
        )
        near = [] if self.data.cloud_is_far else self.limited
        self.s: Variables = self.variables("s", [(l, limit) for l in near for limit in range(3)], binary=True)

    def most_local(self, m: int, l: int, r: int | None = None) -> float:
        """Return an upper bound on ``θ_l`` if ``l`` is the home of one or two clients; 0 if the bound is negligible.

        Parameters
        ----------
        m, l
            The client and the server.
        r
            The second client, or None.

        Returns
        -------
        float
            The upper bound.
        """
        share = self._client_share
        return share[m][l] if r is None else min(share[m][l], share[r][l])

    def most_stored(self, n: int, l: int) -> float:
        """Return an upper bound on ``θ_l`` if topic ``n`` is open on ``l``; 0 if the bound is negligible.

        Parameters
        ----------
        n, l
            The topic and the server.

        Returns
        -------
        float
            The upper bound.
        """
        return self._topic_share[n][l]

    def _add_constraints(self) -> None:
        for m in self.clients:
            self._add_one_home(m)
        for l in self.limited:
            for m in self.active:
                self._add_local_share(m, l)
            for n in self.topics:
                self._add_open_topic(n, l)
            self._add_storage_capacity(l)
            self._add_compute_capacity(l)
        for m, r in self.pairs:
            self._add_messages_sent(m, r)
            self._add_messages_received(m, r)

    def _add_one_home(self, m: int) -> None:
        """(B1) ``Σ_l x[m,l] = 1``: every client has one home."""
        self.row([(self.x[m, l], 1) for l in self.servers], "=", 1)

    def _add_local_share(self, m: int, l: int) -> None:
        """(B2) ``q[m,l] ≤ x[m,l]``, ``q[m,l] ≤ θ_l``, ``q[m,l] ≥ θ_l + x[m,l] - 1``: ``q[m,l] = θ_l·x[m,l]``."""
        q, x, theta = self.q[m, l], self.x[m, l], self.theta[l,]
        self.row([(q, 1), (x, -1)], "<=", 0)
        self.row([(q, 1), (theta, -1)], "<=", 0)
        self.row([(q, 1), (theta, -1), (x, -1)], ">=", -1)

    def _add_open_topic(self, n: int, l: int) -> None:
        """(B3) ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``: a topic is open where one of its publishers is."""
        for m in self.data.publishers[n]:
            self.row([(self.w[n, l], 1), (self.q[m, l], -1)], ">=", 0)

    def _add_storage_capacity(self, l: int) -> None:
        """(B4) ``Σ_n u_n·w[n,l] ≤ A_l``: ``θ_l·a_l ≤ A_l``."""
        self.row(self._stored(l), "<=", self.data.storage_capacity[l])

    def _add_compute_capacity(self, l: int) -> None:
        """(B5) ``Σ_m U_m·q[m,l] ≤ B_l``: ``θ_l·v_l ≤ B_l``."""
        self.row(self._computed(l), "<=", self.data.compute_capacity[l])

    def _add_messages_sent(self, m: int, r: int) -> None:
        """(B6) ``Σ_k z[m,r,l,k] = q[m,l]``: the messages from ``m`` to ``r`` start at the home of ``m``."""
        for l in self.servers:
            self.row([*((self.z[m, r, l, k], 1) for k in self.servers), (self.q[m, l], -1)], "=", 0)

    def _add_messages_received(self, m: int, r: int) -> None:
        """(B7) ``Σ_l z[m,r,l,k] ≤ x[r,k]``: the messages from ``m`` to ``r`` arrive at the home of ``r``."""
        for k in self.servers:
            self.row([*((self.z[m, r, l, k], 1) for l in self.servers), (self.x[r, k], -1)], "<=", 0)

    def _add_near_cloud_constraints(self) -> None:
        for l in self.limited:
            self._add_one_limit(l)
            self._add_no_limit(l)
            self._add_storage_limit(l)
            self._add_compute_limit(l)
            self._add_limit_needs_load(l)
            for n in self.topics:
                self._add_closed_topic(n, l)

    def _add_one_limit(self, l: int) -> None:
        """(N1) ``s[l,0] + s[l,1] + s[l,2] = 1``: nothing, storage or compute limits ``θ_l``."""
        self.row([(self.s[l, limit], 1) for limit in range(3)], "=", 1)

    def _add_no_limit(self, l: int) -> None:
        """(N2) ``θ_l ≥ s[l,0]``: if nothing limits ``θ_l``, it is 1."""
        self.row([(self.theta[l,], 1), (self.s[l, 0], -1)], ">=", 0)

    def _add_storage_limit(self, l: int) -> None:
        """(N3) ``Σ_n u_n·w[n,l] ≥ A_l·s[l,1]``: if storage limits ``θ_l``, then ``θ_l·a_l = A_l``."""
        capacity = self.data.storage_capacity[l]
        self.row([*self._stored(l), *self._heavy(l, capacity), (self.s[l, 1], -capacity)], ">=", 0)

    def _add_compute_limit(self, l: int) -> None:
        """(N4) ``Σ_m U_m·q[m,l] ≥ B_l·s[l,2]``: if compute limits ``θ_l``, then ``θ_l·v_l = B_l``."""
        capacity = self.data.compute_capacity[l]
        self.row([*self._computed(l), *self._heavy(l, capacity), (self.s[l, 2], -capacity)], ">=", 0)

    def _heavy(self, l: int, capacity: float) -> list[tuple[Any, float]]:
        """Return the terms of (N3) and (N4) for clients that make ``θ_l`` negligible, which is then 0.

        One of them on the server satisfies both rows; the sum of the other loads would not.
        """
        share = self.data.client_share
        return [(self.x[m, l], capacity) for m in self.active if share[m, l] == 0]

    def _add_limit_needs_load(self, l: int) -> None:
        """(N5) ``s[l,1], s[l,2] ≤ Σ_{m: U_m>0} x[m,l]``: nothing limits a server without load, even of capacity 0."""
        loading = [m for m in self.clients if self.data.demand[m] > 0]
        for limit in (1, 2):
            self.row([(self.s[l, limit], 1), *((self.x[m, l], -1) for m in loading)], "<=", 0)

    def _add_closed_topic(self, n: int, l: int) -> None:
        """(N6) ``w[n,l] ≤ θ_l``, ``w[n,l] ≤ Σ_{m∈P_n} q[m,l]``: a topic is closed where it has no publisher."""
        w = self.w[n, l]
        self.row([(w, 1), (self.theta[l,], -1)], "<=", 0)
        self.row([(w, 1), *((self.q[m, l], -1) for m in self.data.publishers[n])], "<=", 0)

    def _set_objective(self) -> None:
        """``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ_m f_m·(1 - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``."""
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
        """Return the terms of ``Σ_n u_n·w[n,l]``."""
        return [(self.w[n, l], self.data.spool[n]) for n in self.topics]

    def values(self, home: IntArray, theta: FloatArray) -> FloatArray:
        """Return the values of all variables in an assignment, with ``θ = 0`` where it is negligible.

        Parameters
        ----------
        home, theta
            As for :meth:`LinearModel.values`.

        Returns
        -------
        array
            The values, in the order of ``columns``.
        """
        share = np.array(theta, np.float64)
        share[[l for m, l in enumerate(home) if self.data.client_share[m, l] == 0]] = 0.0
        return super().values(home, share)

    def _computed(self, l: int) -> list[tuple[Any, float]]:
        """Return the terms of ``Σ_m U_m·q[m,l]``."""
        return [(self.q[m, l], self.data.demand[m]) for m in self.active]

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

        Raises
        ------
        KeyError
            If the model has no variable of that name.
        """
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
            case "s", (l, limit):
                return float(limit == self._limit(l, home))
        raise KeyError(name)

    def _open(self, n: int, l: int, home: IntArray) -> bool:
        """Return whether topic ``n`` is open on server ``l``."""
        return any(home[m] == l for m in self.data.publishers[n])

    def _limit(self, l: int, home: IntArray) -> int:
        """Return what limits ``θ_l``: 0 for nothing (``θ_l = 1``), 1 for storage, 2 for compute."""
        stored = sum(self.data.spool[n] for n in self.topics if self._open(n, l, home))
        computed = float(self.data.demand[np.asarray(home) == l].sum())
        if stored <= self.data.storage_capacity[l] and computed <= self.data.compute_capacity[l]:
            return 0
        return 1 if self.data.storage_capacity[l] * computed <= self.data.compute_capacity[l] * stored else 2
