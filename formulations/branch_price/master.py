"""The master problem of branch and price: one client set for each server, each client in one set.

The pairs ``(m, r)`` with ``W[m,r] > 0`` are divided into *groups* of pairs with the same receiver ``r``: either those
whose clients share the same topics, or every pair is a group. Variables: ``λ[l,S]`` for each column found so far
(server ``l`` is the home of the clients ``S``), and ``z[g,l,k]`` for the messages of a group from ``l`` to another
server ``k``. Constraints, with their dual variables in brackets:

    Σ_{l, S∋m} λ[l,S] = 1                                                    for each client m        [π_m]
    Σ_S λ[l,S] = 1                                                           for each server l        [σ_l]
    Σ_{k≠l} z[g,l,k] ≥ Σ_S θ_l(S)·λ[l,S]·Σ_{(m,r)∈g, m∈S, r∉S} W[m,r]        for each group, server   [≥ 0]
    Σ_{l≠k} z[g,l,k] ≤ Σ_S λ[k,S]·Σ_{(m,r)∈g, r∈S, m∉S} W[m,r]               for each group, server   [η ≤ 0]

Objective: minimise ``Σ λ[l,S]·( Σ_{m∈S} w_m·dH[m,l] + 2·dC·(1-θ_l(S))·Σ_{m∈S} f_m ) + Σ dS[l,k]·z[g,l,k]``.

For integral ``λ`` this is ``ΣD``, for every distance of the cloud: every column has its exact ``θ``, and all messages
of a group go to the home of its receiver. The dual variables of a pair are ``H[m,r,k] = W[m,r]·η[g,k]``. For *any*
``π`` and ``H ≤ 0``, with ``G[m,r,l] = min_{k≠l} (W[m,r]·dS[l,k] - H[m,r,k])``, a lower bound on ``ΣD`` is

    Σ_m π_m + Σ_l min_S value_l(S),    value_l as in :mod:`formulations.branch_price.pricing` with
    fixed:  w_m·dH[m,l] - π_m + 2·dC·f_m + Σ_s H[s,m,l]  per client,  -(H[m,r,l] + H[r,m,l])  per pair
    local:  -2·dC·f_m + Σ_r G[m,r,l]                     per client,  -(G[m,r,l] + G[r,m,l])  per pair
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.formulations.branch_price.pricing_problem import BoolArray, PricingProblem, theta_of
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, IntArray


class MasterSolution(NamedTuple):
    """A solution of the master problem with the columns found so far, and its dual variables.

    Attributes
    ----------
    value
        The objective. It is a lower bound only when no column of negative reduced cost exists.
    shares
        ``x[m,l] = Σ_{S∋m} λ[l,S]``.
    client_dual, server_dual
        ``π`` and ``σ``.
    receiver_dual
        ``H``, one row per pair.
    row_dual
        The dual variables of all rows.
    """

    value: float
    shares: FloatArray
    client_dual: FloatArray
    server_dual: FloatArray
    receiver_dual: FloatArray
    row_dual: FloatArray

    def midpoint(self, other: "MasterSolution") -> "MasterSolution":
        """Move the dual variables half-way to those of another solution.

        Parameters
        ----------
        other
            The other solution.

        Returns
        -------
        MasterSolution
            This solution with the means of both ``π`` and of both ``H``.
        """
        return self._replace(
            client_dual=0.5 * (self.client_dual + other.client_dual),
            receiver_dual=0.5 * (self.receiver_dual + other.receiver_dual),
        )


class Master:
    """The master problem, to which columns are added one by one.

    Parameters
    ----------
    model
        The coefficients of the instance.
    grouped
        Whether the messages to one receiver from clients that share the same topics with it form a group. Otherwise
        every pair is a group: the bound is stronger, and the problem is larger.
    """

    def __init__(self, model: Linearisation, *, grouped: bool) -> None:
        import highspy

        self.model = model
        self._infinity = highspy.kHighsInf
        self._status_optimal = highspy.HighsModelStatus.kOptimal
        self._status_time_limit = highspy.HighsModelStatus.kTimeLimit
        clients, servers = model.n_clients, model.n_servers
        self._group = _message_groups(model) if grouped else np.arange(len(model.sender), dtype=np.int32)
        self._n_groups = groups = int(self._group.max(initial=-1)) + 1
        self._group_receiver = np.zeros(groups, np.int64)
        self._group_receiver[self._group] = model.receiver
        self._sender_row = clients + servers + np.arange(groups * servers).reshape(groups, servers)
        self._receiver_row = self._sender_row + groups * servers
        self._build_neighbour_lists()
        self._columns: list[tuple[int, BoolArray]] = []
        self._known: set[tuple[int, bytes]] = set()

        self._highs = highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        highs.setOptionValue("threads", 1)
        ones = np.ones(clients + servers)
        zeros, infinite = np.zeros(groups * servers), np.full(groups * servers, np.inf)
        lower, upper = np.concatenate([ones, zeros, -infinite]), np.concatenate([ones, infinite, zeros])
        rows = len(lower)
        highs.addRows(rows, lower, upper, 0, np.zeros(rows, np.int32), np.zeros(0, np.int32), np.zeros(0))
        # The variables z: group, server of the sender, server of the receiver.
        flow, here, there = (axis.ravel() for axis in np.indices((groups, servers, servers)))
        apart = here != there
        flow, here, there = flow[apart], here[apart], there[apart]
        self._flow_group, self._here, self._there = flow, here, there
        cost = model.server_delay[here, there]
        ends = np.stack([self._sender_row[flow, here], self._receiver_row[flow, there]], axis=1)
        self._add_to_highs(cost, np.arange(len(cost)) * 2, ends.ravel(), np.ones(ends.size))
        self._n_flows = len(cost)

    @property
    def size(self) -> tuple[int, int]:
        """The numbers of variables and constraints."""
        return self._n_flows + len(self._columns), self._highs.getNumRow()

    def add(self, server: int, client_set: BoolArray) -> bool:
        """Add a column unless it is there already.

        Parameters
        ----------
        server, client_set
            The server and the flags of the clients whose home it is.

        Returns
        -------
        bool
            Whether the column is new.
        """
        key = (server, client_set.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        cost, row, value = self._column(server, client_set)
        self._add_to_highs(np.array([cost]), np.zeros(1), row, value)
        self._columns.append((server, client_set.copy()))
        return True

    def add_all(self, other: "Master") -> None:
        """Add the columns of another master problem of the same model.

        Parameters
        ----------
        other
            The other master problem.
        """
        for server, client_set in other._columns:
            self.add(server, client_set)

    def _column(self, server: int, client_set: BoolArray) -> tuple[float, npt.NDArray[Any], FloatArray]:
        """Return the cost of a column, its rows and its coefficients in them."""
        model = self.model
        members = np.flatnonzero(client_set)
        theta = theta_of(self._unpriced_problem(server), members)
        cost = float(
            (model.weight[members] * model.client_delay[members, server]).sum()
            + model.detour * (1 - theta) * model.publications[members].sum()
        )
        out = np.flatnonzero(client_set[model.sender] & ~client_set[model.receiver])
        into = np.flatnonzero(client_set[model.receiver] & ~client_set[model.sender])
        sent, received = (
            np.bincount(self._group[pairs], model.pair_weight[pairs], self._n_groups) for pairs in (out, into)
        )
        out, into = np.flatnonzero(sent), np.flatnonzero(received)
        row = np.concatenate(
            [members, [model.n_clients + server], self._sender_row[out, server], self._receiver_row[into, server]]
        )
        value = np.concatenate([np.ones(len(members) + 1), -theta * sent[out], -received[into]])
        return cost, row, value

    def reduced_cost(self, solution: MasterSolution, server: int, client_set: BoolArray) -> float:
        """Compute the reduced cost of a column.

        Parameters
        ----------
        solution
            The solution whose dual variables are used.
        server, client_set
            The column.

        Returns
        -------
        float
            The reduced cost; a column below 0 can improve the solution.
        """
        cost, row, value = self._column(server, client_set)
        return cost - float(value @ solution.row_dual[row])

    def solve(self, allowed: BoolArray, seconds: float) -> MasterSolution | None:
        """Solve the master problem at a node of the branch-and-bound tree.

        Parameters
        ----------
        allowed
            The homes each client may have (``M×L``). The columns of at least one assignment with these homes must have
            been added.
        seconds
            The time limit.

        Returns
        -------
        MasterSolution or None
            The optimal solution; None if the time limit was reached.

        Raises
        ------
        RuntimeError
            If HiGHS fails.
        """
        model = self.model
        fixed = allowed & (allowed.sum(axis=1) == 1)[:, None]
        server = np.array([l for l, _ in self._columns])
        members = np.array([client_set for _, client_set in self._columns])
        usable_columns = ~(members & ~allowed.T[server]).any(axis=1) & ~(fixed.T[server] & ~members).any(axis=1)
        may_send = np.zeros((self._n_groups, model.n_servers), np.bool_)
        np.logical_or.at(may_send, self._group, allowed[model.sender])
        may_receive = allowed[self._group_receiver]
        usable_flows = may_send[self._flow_group, self._here] & may_receive[self._flow_group, self._there]
        usable = np.concatenate([usable_flows, usable_columns])
        highs = self._highs
        columns = np.arange(len(usable), dtype=np.int32)
        highs.changeColsBounds(len(usable), columns, np.zeros(len(usable)), np.where(usable, np.inf, 0.0))
        highs.setOptionValue("time_limit", highs.getRunTime() + seconds)
        highs.run()
        status = highs.getModelStatus()
        if status not in (self._status_optimal, self._status_time_limit):
            highs.clearSolver()  # solve again without the basis that HiGHS failed from
            highs.run()
            status = highs.getModelStatus()
        if status == self._status_time_limit:
            return None
        if status != self._status_optimal:
            raise RuntimeError(f"HiGHS ended the master problem with status {highs.modelStatusToString(status)}")
        solution = highs.getSolution()
        dual, primal = np.array(solution.row_dual), np.array(solution.col_value)
        shares = np.zeros((model.n_clients, model.n_servers))
        np.add.at(shares.T, server, primal[self._n_flows :, None] * members)
        return MasterSolution(
            value=float(highs.getInfo().objective_function_value),
            shares=shares,
            client_dual=dual[: model.n_clients],
            server_dual=dual[model.n_clients : model.n_clients + model.n_servers],
            receiver_dual=model.pair_weight[:, None] * np.minimum(0.0, dual[self._receiver_row])[self._group],
            row_dual=dual,
        )

    def pricing_problem(self, solution: MasterSolution, allowed: BoolArray, server: int) -> PricingProblem:
        """Build the pricing problem of a server.

        Parameters
        ----------
        solution
            The solution whose dual variables are used.
        allowed
            The homes each client may have (``M×L``).
        server
            The server.

        Returns
        -------
        PricingProblem
            Its coefficients are those of the formulas at the top of this module.
        """
        model = self.model
        receiver_dual = solution.receiver_dual
        others = np.arange(model.n_servers) != server
        # The minimum is taken over the receiver's allowed homes only. A receiver without another home is in the set of
        # this server, so nothing is sent to it from here.
        cost = model.pair_weight[:, None] * model.server_delay[server, others][None, :] - receiver_dual[:, others]
        cost = np.where(allowed[model.receiver][:, others], cost, np.inf)
        sender_dual = cost.min(axis=1, initial=np.inf)
        sender_dual[~np.isfinite(sender_dual)] = 0.0
        detour = model.detour * model.publications
        # The additional 0 is for pairs that send in one direction only.
        dual_here, dual_sent = np.append(receiver_dual[:, server], 0.0), np.append(sender_dual, 0.0)
        return self._unpriced_problem(server)._replace(
            fixed=model.weight * model.client_delay[:, server]
            - solution.client_dual
            + detour
            + np.bincount(model.receiver, dual_here[:-1], model.n_clients),
            local=np.bincount(model.sender, sender_dual, model.n_clients) - detour,
            pair_fixed=-dual_here[self._edges].sum(axis=1),
            pair_local=-dual_sent[self._edges].sum(axis=1),
        )

    def _build_neighbour_lists(self) -> None:
        """Arrange the pairs as neighbour lists, with both directions of a pair in one entry."""
        model = self.model
        found: list[dict[int, list[int]]] = [{} for _ in range(model.n_clients)]
        for pair, (m, r) in enumerate(zip(model.sender.tolist(), model.receiver.tolist(), strict=True)):
            found[m].setdefault(r, []).append(pair)
            found[r].setdefault(m, []).append(pair)
        no_pair = len(model.sender)  # stands for a direction in which nothing is sent
        self._start = np.cumsum([0, *map(len, found)]).astype(np.int64)
        self._neighbour = np.array([r for ends in found for r in ends], np.int64)
        self._edges = np.array([(*edges, no_pair)[:2] for ends in found for edges in ends.values()], np.int64).reshape(
            -1, 2
        )
        topics = model.client_topics
        self._topic_start = np.cumsum([0, *map(len, topics)]).astype(np.int64)
        self._topic = np.array([n for own in topics for n in own], np.int64)

    def _unpriced_problem(self, server: int) -> PricingProblem:
        """Return the pricing problem of a server with all values 0; only its loads are set."""
        model = self.model
        per_client, per_pair = np.zeros(model.n_clients), np.zeros(len(self._neighbour))
        return PricingProblem(
            fixed=per_client,
            local=per_client,
            start=self._start,
            neighbour=self._neighbour,
            pair_fixed=per_pair,
            pair_local=per_pair,
            demand=model.demand,
            topic_start=self._topic_start,
            topic=self._topic,
            spool=model.spool,
            storage_capacity=float(model.storage_capacity[server]),
            compute_capacity=float(model.compute_capacity[server]),
        )

    def _add_to_highs(
        self, cost: FloatArray, start: npt.NDArray[Any], row: npt.NDArray[Any], value: FloatArray
    ) -> None:
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


def _message_groups(model: Linearisation) -> IntArray:
    """Return the group of each pair: pairs with the same receiver whose clients share the same topics."""
    topics = [frozenset(own) for own in model.client_topics]
    number: dict[tuple[int, frozenset[int]], int] = {}
    groups = [
        number.setdefault((r, topics[m] & topics[r]), len(number))
        for m, r in zip(model.sender.tolist(), model.receiver.tolist(), strict=True)
    ]
    return np.array(groups, np.int32)
