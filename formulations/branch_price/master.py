"""The linear program over contents: each server gets one, each client is in one.

Variables: ``λ[l,S]`` for the contents ``S`` of server ``l`` that were found so far, and ``z[m,r,l,k]`` for the
messages of client ``m`` at ``l`` to client ``r`` at another server ``k``, for every pair with ``W[m,r] > 0``.
Constraints, with their prices in brackets:

    Σ_{l, S∋m} λ[l,S] = 1                                      for each client m        [π_m]
    Σ_S λ[l,S] = 1                                             for each server l        [σ_l]
    Σ_{k≠l} z[m,r,l,k] ≥ Σ_{S∋m, S∌r} θ_l(S)·λ[l,S]            for each pair, server    [G ≥ 0]
    Σ_{l≠k} z[m,r,l,k] ≤ Σ_{S∋r, S∌m} λ[k,S]                   for each pair, server    [H ≤ 0]

Objective: minimise ``Σ λ[l,S]·( Σ_{m∈S} w_m·dH[m,l] + 2·dC·(1-θ_l(S))·Σ_{m∈S} f_m ) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``.

For integral ``λ`` this is ``ΣD``, whatever the cloud's distance, as every content carries its exact ``θ``. For *any*
``π`` and ``H ≤ 0``, with ``G[m,r,l] = min_{k≠l} (W[m,r]·dS[l,k] - H[m,r,k])``, a lower bound on ``ΣD`` is

    Σ_m π_m + Σ_l min_S value_l(S),    value_l as in :mod:`formulations.branch_price.pricing` with
    fixed:  w_m·dH[m,l] - π_m + 2·dC·f_m + Σ_s H[s,m,l]  per client,  -(H[m,r,l] + H[r,m,l])  per pair
    local:  -2·dC·f_m + Σ_r G[m,r,l]                     per client,  -(G[m,r,l] + G[r,m,l])  per pair
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.formulations.branch_price.pricing import Flags, Prices, share
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray


class Point(NamedTuple):
    """A solution of the linear program.

    Attributes
    ----------
    value
        Its objective; no bound before no better content can be found.
    shares
        ``x[m,l] = Σ_{S∋m} λ[l,S]``.
    client_price, server_price
        ``π`` and ``σ``.
    receiver_price
        ``H``, a row for each pair.
    dual
        All prices, row by row.
    """

    value: float
    shares: FloatArray
    client_price: FloatArray
    server_price: FloatArray
    receiver_price: FloatArray
    dual: FloatArray

    def between(self, other: "Point") -> "Point":
        """Return this point with prices half-way to another's."""
        return self._replace(
            client_price=0.5 * (self.client_price + other.client_price),
            receiver_price=0.5 * (self.receiver_price + other.receiver_price),
        )


class Master:
    """The linear program, growing content by content; those of one assignment are enough to begin with."""

    def __init__(self, model: Linearisation) -> None:
        import highspy

        self.model = model
        self._infinity = highspy.kHighsInf
        self._optimal, self._too_late = highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kTimeLimit
        clients, servers, pairs = model.n_clients, model.n_servers, len(model.sender)
        self._sending = clients + servers + np.arange(pairs * servers).reshape(pairs, servers)
        self._receiving = self._sending + pairs * servers
        self._neighbours()
        self._columns: list[tuple[int, Flags]] = []
        self._known: set[tuple[int, bytes]] = set()

        self._highs = highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        ones, none, endless = np.ones(clients + servers), np.zeros(pairs * servers), np.full(pairs * servers, np.inf)
        lower, upper = np.concatenate([ones, none, -endless]), np.concatenate([ones, endless, none])
        rows = len(lower)
        highs.addRows(rows, lower, upper, 0, np.zeros(rows, np.int32), np.zeros(0, np.int32), np.zeros(0))
        pair, here, there = (axis.ravel() for axis in np.indices((pairs, servers, servers)))
        apart = here != there
        self._pair, self._here, self._there = pair[apart], here[apart], there[apart]
        cost = model.pair_weight[self._pair] * model.server_delay[self._here, self._there]
        ends = np.stack([self._sending[self._pair, self._here], self._receiving[self._pair, self._there]], axis=1)
        self._add_columns(cost, np.arange(len(cost)) * 2, ends.ravel(), np.ones(ends.size))
        self._first = len(cost)

    @property
    def size(self) -> tuple[int, int]:
        """Variables and constraints."""
        return self._first + len(self._columns), self._highs.getNumRow()

    def add(self, server: int, inside: Flags) -> bool:
        """Add a content; tell whether it is new."""
        key = (server, inside.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        cost, row, value = self._column(server, inside)
        self._add_columns(np.array([cost]), np.zeros(1), row, value)
        self._columns.append((server, inside.copy()))
        return True

    def _column(self, server: int, inside: Flags) -> tuple[float, npt.NDArray[Any], FloatArray]:
        """Return the cost of a content, and the rows it is in with its coefficients."""
        model = self.model
        members = np.flatnonzero(inside)
        theta = share(self._loads(server), members)
        cost = float(
            (model.weight[members] * model.client_delay[members, server]).sum()
            + model.detour * (1 - theta) * model.publications[members].sum()
        )
        out = np.flatnonzero(inside[model.sender] & ~inside[model.receiver])
        into = np.flatnonzero(inside[model.receiver] & ~inside[model.sender])
        row = np.concatenate(
            [members, [model.n_clients + server], self._sending[out, server], self._receiving[into, server]]
        )
        value = np.concatenate([np.ones(len(members) + 1), np.full(len(out), -theta), np.full(len(into), -1.0)])
        return cost, row, value

    def reduced_cost(self, point: Point, server: int, inside: Flags) -> float:
        """Return what a content would lower the value of a point by (below 0), to first order."""
        cost, row, value = self._column(server, inside)
        return cost - float(value @ point.dual[row])

    def solve(self, allowed: Flags, seconds: float) -> Point | None:
        """Solve with the homes that are allowed (``M×L``); None if the time did not suffice.

        The contents of some assignment with these homes must have been added.
        """
        model = self.model
        fixed = allowed & (allowed.sum(axis=1) == 1)[:, None]
        server = np.array([l for l, _ in self._columns])
        inside = np.array([flags for _, flags in self._columns])
        fits = ~(inside & ~allowed.T[server]).any(axis=1) & ~(fixed.T[server] & ~inside).any(axis=1)
        flows = allowed[model.sender[self._pair], self._here] & allowed[model.receiver[self._pair], self._there]
        usable = np.concatenate([flows, fits])
        highs = self._highs
        columns = np.arange(len(usable), dtype=np.int32)
        highs.changeColsBounds(len(usable), columns, np.zeros(len(usable)), np.where(usable, np.inf, 0.0))
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        status = highs.getModelStatus()
        if status not in (self._optimal, self._too_late):
            highs.clearSolver()  # once more, without the basis that led nowhere
            highs.run()
            status = highs.getModelStatus()
        if status == self._too_late:
            return None
        if status != self._optimal:
            raise RuntimeError(f"HiGHS ended the linear program over contents as {highs.modelStatusToString(status)}")
        solution = highs.getSolution()
        dual, primal = np.array(solution.row_dual), np.array(solution.col_value)
        shares = np.zeros((model.n_clients, model.n_servers))
        np.add.at(shares.T, server, primal[self._first :, None] * inside)
        return Point(
            value=float(highs.getInfo().objective_function_value),
            shares=shares,
            client_price=dual[: model.n_clients],
            server_price=dual[model.n_clients : model.n_clients + model.n_servers],
            receiver_price=np.minimum(0.0, dual[self._receiving]),
            dual=dual,
        )

    def prices(self, point: Point, allowed: Flags, server: int) -> Prices:
        """Return what clients are worth on a server at a point's prices."""
        model = self.model
        hear = point.receiver_price
        others = np.arange(model.n_servers) != server
        # A client that may be nowhere else is in the content by force: nothing is sent to it from there.
        cost = model.pair_weight[:, None] * model.server_delay[server, others][None, :] - hear[:, others]
        cost = np.where(allowed[model.receiver][:, others], cost, np.inf)
        send = cost.min(axis=1, initial=np.inf)
        send[~np.isfinite(send)] = 0.0
        detour = model.detour * model.publications
        here = np.append(hear[:, server], 0.0)
        sent = np.append(send, 0.0)
        return self._loads(server)._replace(
            fixed=model.weight * model.client_delay[:, server]
            - point.client_price
            + detour
            + np.bincount(model.receiver, here[:-1], model.n_clients),
            local=np.bincount(model.sender, send, model.n_clients) - detour,
            pair_fixed=-here[self._edges].sum(axis=1),
            pair_local=-sent[self._edges].sum(axis=1),
        )

    def _neighbours(self) -> None:
        """Arrange the pairs as lists of neighbours, both directions of a pair in one entry."""
        model = self.model
        found: list[dict[int, list[int]]] = [{} for _ in range(model.n_clients)]
        for pair, (m, r) in enumerate(zip(model.sender.tolist(), model.receiver.tolist(), strict=True)):
            found[m].setdefault(r, []).append(pair)
            found[r].setdefault(m, []).append(pair)
        nobody = len(model.sender)  # stands for the direction that is missing
        self._start = np.cumsum([0, *map(len, found)]).astype(np.int64)
        self._neighbour = np.array([r for ends in found for r in ends], np.int64)
        self._edges = np.array([(*edges, nobody)[:2] for ends in found for edges in ends.values()], np.int64).reshape(
            -1, 2
        )
        topics = model.client_topics
        self._topic_start = np.cumsum([0, *map(len, topics)]).astype(np.int64)
        self._topic = np.array([n for some in topics for n in some], np.int64)

    def _loads(self, server: int) -> Prices:
        """Return prices of nothing: what a server's loads come from."""
        model = self.model
        nothing, no_pair = np.zeros(model.n_clients), np.zeros(len(self._neighbour))
        return Prices(
            fixed=nothing,
            local=nothing,
            start=self._start,
            neighbour=self._neighbour,
            pair_fixed=no_pair,
            pair_local=no_pair,
            demand=model.demand,
            topic_start=self._topic_start,
            topic=self._topic,
            spool=model.spool,
            storage_capacity=float(model.storage_capacity[server]),
            compute_capacity=float(model.compute_capacity[server]),
        )

    def _add_columns(self, cost: FloatArray, start: npt.NDArray[Any], row: npt.NDArray[Any], value: FloatArray) -> None:
        count = len(cost)
        self._highs.addCols(
            count,
            cost,
            np.zeros(count),
            np.full(count, self._infinity),
            len(row),
            start.astype(np.int32),
            row.astype(np.int32),
            value,
        )
