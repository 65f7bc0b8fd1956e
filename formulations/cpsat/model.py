"""The integer model for CP-SAT: the basic and the strong model of docs/formulations.md in integers.

A share of 1 is ``G = 2^g``, a cost of 1 ms is ``2^(k+g)``, and a load of 1 is ``2^s``. In these units costs and loads
are rounded down and capacities up. The variables are

- ``x[m,l] ∈ {0,1}``: whether ``l`` is the home of ``m``; ``y[n,l] ∈ {0,1}``: whether topic ``n`` is open on ``l``
- ``θ_l``, ``q[m,l] = θ_l·x[m,l]``, ``w[n,l] = θ_l·y[n,l]`` and ``z[m,r,l,k] = θ_l·x[m,l]·x[r,k]``, all in ``0..G``

With ``a_l = Σ_n u_n·y[n,l]`` and ``v_l = Σ_m U_m·x[m,l]`` the constraints are

- (C1) ``Σ_l x[m,l] = 1``
- (C2) ``q[m,l] ≤ θ_l``, ``q[m,l] ≤ ⌈G·min(1, A_l/U_m, B_l/U_m)⌉·x[m,l]``, ``q[m,l] ≥ θ_l - G·(1 - x[m,l])``
- (C3) ``y[n,l] ≥ x[m,l]`` for ``m ∈ P_n``
- (C4) ``θ_l ≤ ⌊A_l·G / a_l⌋ + 1`` if ``a_l > 0``, ``θ_l ≤ ⌊B_l·G / v_l⌋ + 1`` if ``v_l > 0``
- (C5) if the cloud is near: ``θ_l ≥ min(G, ⌊A_l·G / a_l⌋, ⌊B_l·G / v_l⌋)``, with loads rounded up and capacities down
- (C6) ``Σ_k z[m,r,l,k] = q[m,l]``
- (C7) ``Σ_l z[m,r,l,k] ≤ G·x[r,k]``
- (C8) ``z[m,r,l,l] = z[r,m,l,l]``, which is one variable
- (C9) ``Σ_n u_n·w[n,l] ≤ A_l·G + Σ_n u_n``, ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``
- (C10) ``Σ_m U_m·q[m,l] ≤ B_l·G + Σ_m U_m``
- (C11) and (C12): (C10) and (C9) multiplied by each ``x[m,l]``

The objective is ``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ f_m·(G - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``.

The minimum is a lower bound on ``ΣD``. For any homes, the point with ``θ_l`` rounded up to the next integer is
feasible: (C4), (C9) and (C10) have a term that allows for this rounding. If the cloud is far, this point costs no more
than the homes. If the cloud is near, ``θ_l`` rounded down is feasible as well, and one of the two points costs no more
than the homes.

The lower bound is too small by at most ``2^-k`` for each client and pair, by ``2·dC·2^-g`` (or ``max dS·2^-g``) for
each publication, and by the effect of rounded loads on ``θ``. The last error is 0 if the spools are integers.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.formulations.incumbent import OutOfTimeError
from relocbench.formulations.integer_scaling import FLOAT_ERROR, bits_of, down, scale_exponent, up, whole_exponent
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# The number of bits of the objective and of products of a load and a share. CP-SAT computes larger sums, up to 63 bits.
MOST_BITS = 58
# The largest number of bits of a share.
SHARE_BITS = 28
# Loads that are not integers are rounded to this many bits. With more bits the propagation of CP-SAT moves bounds by
# single units for seconds, beyond the time limit. Model.exclude removes the effect of the rounding.
LOAD_BITS = 12


@dataclass(frozen=True)
class Scales:
    """The scales of the model, as exponents of two.

    Attributes
    ----------
    cost
        ``k``, of a cost coefficient.
    share
        ``g``, of a share.
    load
        ``s``, of a load.
    """

    cost: int
    share: int
    load: int

    @property
    def objective(self) -> int:
        """The exponent of the objective, ``k + g``."""
        return self.cost + self.share


def choose_scales(linear: Linearisation, cost: float, error: float) -> Scales:
    """Return scales for which the rounding error of the lower bound is at most ``error``, as far as 64 bits allow.

    Parameters
    ----------
    linear
        The coefficients of the instance.
    cost
        The cost of the incumbent.
    error
        The allowed error in ms; 0 for the finest scales.

    Returns
    -------
    Scales
        The scales.
    """
    allowed = max(error / 2, 1e-300)
    loads = np.concatenate([linear.spool, linear.demand])
    room = LOAD_BITS - bits_of(float(max(linear.spool.sum(), linear.demand.sum())))
    share = 0
    if not linear.surely_local.all():
        steepest = max(linear.detour, float(linear.server_delay.max(initial=0.0)))
        share = min(max(0, bits_of(steepest * float(linear.publications.sum()) / allowed)), SHARE_BITS)
    terms = linear.n_clients + len(linear.sender)
    # An upper bound on the cost of any assignment; it must fit into the bits as well.
    largest = float((linear.weight[:, None] * linear.client_delay).max(axis=1).sum())
    largest += linear.detour * float(linear.publications.sum())
    largest += float(linear.pair_weight.sum()) * float(linear.server_delay.max(initial=0.0)) * linear.n_servers
    cost = max(cost, largest)
    return Scales(scale_exponent(allowed, terms, cost, MOST_BITS - share), share, whole_exponent(loads, room))


@dataclass(frozen=True)
class Model:
    """A complete model with the variables that are needed to read and to extend it.

    Attributes
    ----------
    model
        The CP-SAT model.
    at
        ``x[m,l]``.
    share
        ``θ_l``; a constant on servers that have ``θ_l = 1`` in every assignment.
    scarce
        The servers that may have ``θ_l < 1``.
    loads
        For each client whether it adds to the loads of its home.
    near
        Whether the cloud is near, ``2·dC < max dS``.
    exponent
        ``g``, the exponent of a share.
    facts
        The size of the model.
    """

    model: Any
    at: list[list[Any]]
    share: list[Any]
    scarce: list[int]
    loads: list[bool]
    near: bool
    exponent: int
    facts: dict[str, float]

    def hint(self, home: IntArray) -> None:
        """Set the homes from which the solver starts.

        Parameters
        ----------
        home
            The homes.
        """
        self.model.clear_hints()
        for m, row in enumerate(self.at):
            for l, variable in enumerate(row):
                self.model.add_hint(variable, int(home[m] == l))

    def exclude(self, home: IntArray, shares: FloatArray) -> None:
        """Exclude an assignment whose cost is known, and add the exact ``θ`` that it implies for other assignments.

        A server that holds at least the clients that it holds here has at most the same ``θ``. A server that holds at
        most these clients has at least the same ``θ``. Neither depends on the rounding of loads.

        Parameters
        ----------
        home
            The assignment.
        shares
            ``θ`` of each server in the assignment.
        """
        self.model.add_bool_or([~self.at[m][l] for m, l in enumerate(home)])
        highest, lowest = up(shares * (1 + FLOAT_ERROR), self.exponent), down(shares * (1 - FLOAT_ERROR), self.exponent)
        for l in self.scarce:
            here = [row[l] for m, row in enumerate(self.at) if home[m] == l and self.loads[m]]
            others = [~row[l] for m, row in enumerate(self.at) if home[m] != l and self.loads[m]]
            self.model.add(self.share[l] <= int(highest[l])).only_enforce_if(here)
            if self.near:
                self.model.add(self.share[l] >= int(lowest[l])).only_enforce_if(others)


def build(linear: Linearisation, scales: Scales, most: int, conditioned: bool, deadline: float) -> Model:
    """Build the model.

    Parameters
    ----------
    linear
        The coefficients of the instance.
    scales
        The scales of the integers.
    most
        The cut-off: an upper limit on the objective.
    conditioned
        Whether to add (C11) and (C12), which correspond to (S3) and (S2) of the strong model.
    deadline
        The time limit, as a value of ``time.perf_counter``.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    OutOfTimeError
        If the deadline is reached first.
    """
    builder = _Builder(linear, scales, deadline)
    builder.add_variables()
    builder.add_one_home()
    builder.add_local_shares()
    builder.add_shares_of_loads()
    builder.add_pairs()
    builder.add_capacities()
    if conditioned:
        builder.add_conditioned_capacities()
    builder.add_objective(most)
    proto = builder.model.proto
    facts = {"variables": float(len(proto.variables)), "constraints": float(len(proto.constraints))}
    facts["binaries"] = float(sum(list(variable.domain) == [0, 1] for variable in proto.variables))
    return Model(
        builder.model,
        at=builder.at,
        share=builder.share,
        scarce=builder.scarce,
        loads=(linear.demand > 0).tolist(),
        near=not linear.cloud_is_far,
        exponent=scales.share,
        facts=facts,
    )


class _Builder:
    """The parts of the model. They must be added in the order of the methods below."""

    def __init__(self, linear: Linearisation, scales: Scales, deadline: float) -> None:
        from ortools.sat.python import cp_model

        self.linear, self.scales, self.deadline = linear, scales, deadline
        self.model = cp_model.CpModel()
        self.weighted_sum, self.total = cp_model.LinearExpr.weighted_sum, cp_model.LinearExpr.sum
        self.whole = 1 << scales.share
        self.clients, self.servers = range(linear.n_clients), range(linear.n_servers)
        self.scarce = [l for l in self.servers if not linear.surely_local[l]]
        self.all_local = not self.scarce
        self.spool = down(linear.spool, scales.load).tolist()
        self.demand = down(linear.demand, scales.load).tolist()
        # Capacities are cut at twice the total loads: larger values have the same effect but need more bits.
        most_stored, most_computed = 2 * linear.spool.sum(), 2 * linear.demand.sum()
        self.storage_capacity = up(
            np.minimum(linear.storage_capacity, most_stored), scales.load + scales.share
        ).tolist()
        self.compute_capacity = up(
            np.minimum(linear.compute_capacity, most_computed), scales.load + scales.share
        ).tolist()
        self.pairs = list(
            zip(linear.sender.tolist(), linear.receiver.tolist(), linear.pair_weight.tolist(), strict=True)
        )
        if not linear.server_delay.any():
            self.pairs = []

    def add_variables(self) -> None:
        """Add ``x``, ``θ`` and ``q``. The other variables are added with their constraints."""
        model, whole = self.model, self.whole
        self.at = [[model.new_bool_var(f"x[{m},{l}]") for l in self.servers] for m in self.clients]
        self.share = [model.new_int_var(0, whole, f"θ[{l}]") if l in self.scarce else whole for l in self.servers]
        most = np.minimum(up(self.linear.largest_share, self.scales.share), whole).tolist()
        self.processed = [
            [
                model.new_int_var(0, most[m][l], f"q[{m},{l}]") if l in self.scarce else whole * self.at[m][l]
                for l in self.servers
            ]
            for m in self.clients
        ]
        self.most_processed = most

    def add_one_home(self) -> None:
        """(C1) ``Σ_l x[m,l] = 1``."""
        for row in self.at:
            self.model.add_exactly_one(row)

    def add_local_shares(self) -> None:
        """(C2) ``q ≤ θ_l``, ``q ≤ ⌈G·min(1, A_l/U_m, B_l/U_m)⌉·x``, ``q ≥ θ_l - G·(1 - x)``: ``q = θ_l·x``."""
        for m in self.clients:
            for l in self.scarce:
                at, share, processed = self.at[m][l], self.share[l], self.processed[m][l]
                self.model.add(processed <= share)
                self.model.add(processed <= self.most_processed[m][l] * at)
                self.model.add(processed >= share - self.whole * (1 - at))

    def add_shares_of_loads(self) -> None:
        """Add (C3), (C4) and (C5), which define ``θ`` by the loads."""
        topics = range(len(self.spool))
        self.open = {(n, l): self.model.new_bool_var(f"y[{n},{l}]") for n in topics for l in self.scarce}
        for n, l in self.open:
            self._add_open_topic(n, l)
        for l in self.scarce:
            loaded = self.model.new_bool_var(f"loaded[{l}]")
            opened = [self.open[n, l] for n in topics]
            self.model.add_max_equality(loaded, [*opened, 0])
            stored = self.weighted_sum(opened, self.spool)
            computed = self.weighted_sum([self.at[m][l] for m in self.clients], self.demand)
            self._add_largest_share(l, self.storage_capacity[l], stored, sum(self.spool))
            self._add_largest_share(l, self.compute_capacity[l], computed, sum(self.demand))
            if not self.linear.cloud_is_far:
                self._add_smallest_share(l, loaded)

    def _add_open_topic(self, n: int, l: int) -> None:
        """(C3) ``y[n,l] ≥ x[m,l]`` for ``m ∈ P_n``; if the cloud is near, also ``y[n,l] ≤ Σ_{m∈P_n} x[m,l]``."""
        publishers = [self.at[m][l] for m in self.linear.publishers[n]]
        for at in publishers:
            self.model.add_implication(at, self.open[n, l])
        if not self.linear.cloud_is_far:
            self.model.add_bool_or([*publishers, ~self.open[n, l]])

    def _add_largest_share(self, l: int, capacity: int, load: Any, most: int) -> None:
        """(C4) ``θ_l ≤ ⌊capacity·G / load⌋ + 1`` if ``load > 0``; ``most`` is an upper bound on the load."""
        # A load that is rounded down to 0 does not limit the share.
        positive = self.model.new_bool_var("")
        self.model.add(load >= 1).only_enforce_if(positive)
        self.model.add(load <= 0).only_enforce_if(~positive)
        self.model.add(self.share[l] <= self._quotient(capacity, load, most) + 1).only_enforce_if(positive)

    def _quotient(self, capacity: int, load: Any, most: int) -> Any:
        """Return a variable equal to ``⌊capacity / max(1, load)⌋``; ``most`` is an upper bound on the load."""
        divisor = self.model.new_int_var(1, max(1, most), "")
        self.model.add_max_equality(divisor, [load, 1])
        quotient = self.model.new_int_var(0, capacity, "")
        self.model.add_division_equality(quotient, capacity, divisor)
        return quotient

    def _add_smallest_share(self, l: int, loaded: Any) -> None:
        """(C5) ``θ_l ≥ min(G, ⌊A_l·G / a_l⌋, ⌊B_l·G / v_l⌋)``, with loads rounded up and capacities down."""
        linear, scales, model = self.linear, self.scales, self.model
        spool, demand = up(linear.spool, scales.load).tolist(), up(linear.demand, scales.load).tolist()
        shift = scales.load + scales.share
        storage = int(down(min(linear.storage_capacity[l], 2 * linear.spool.sum()), shift))
        compute = int(down(min(linear.compute_capacity[l], 2 * linear.demand.sum()), shift))
        stored = self.weighted_sum([self.open[n, l] for n in range(len(spool))], spool)
        computed = self.weighted_sum([self.at[m][l] for m in self.clients], demand)
        limits = [self._quotient(storage, stored, sum(spool)), self._quotient(compute, computed, sum(demand))]
        least = model.new_int_var(0, self.whole, "")
        model.add_min_equality(least, [*limits, self.whole])
        model.add(self.share[l] >= least)
        model.add(self.share[l] == self.whole).only_enforce_if(~loaded)

    def add_pairs(self) -> None:
        """Add ``z`` with (C6), (C7) and (C8), and store its terms of the objective as (coefficient, variable)."""
        delay = self.linear.server_delay
        self.together: dict[tuple[int, int, int], Any] = {}
        self.pair_costs: list[tuple[int, Any]] = []
        pairs = self.pairs if not self.all_local else _undirected(self.pairs)
        for m, r, weight, back in ((*pair, 0.0) if len(pair) == 3 else pair for pair in pairs):
            if time.perf_counter() > self.deadline:
                raise OutOfTimeError
            costs = down(weight * delay + back * delay.T, self.scales.cost).tolist()
            flow = [[self._flow(m, r, l, k) for k in self.servers] for l in self.servers]
            self._add_messages_sent(m, flow)
            self._add_messages_received(r, flow)
            self.pair_costs += [(costs[l][k], flow[l][k]) for l in self.servers for k in self.servers if costs[l][k]]

    def _add_messages_sent(self, m: int, flow: list[list[Any]]) -> None:
        """(C6) ``Σ_k z[m,r,l,k] = q[m,l]``; ``flow[l][k]`` is ``z[m,r,l,k]``."""
        for l in self.servers:
            self.model.add(self.total(flow[l]) == self.processed[m][l])

    def _add_messages_received(self, r: int, flow: list[list[Any]]) -> None:
        """(C7) ``Σ_l z[m,r,l,k] ≤ G·x[r,k]``, with equality if every server has ``θ = 1``."""
        for k in self.servers:
            arriving = self.total([flow[l][k] for l in self.servers])
            if self.all_local:
                self.model.add(arriving == self.at[r][k])
            else:
                self.model.add(arriving <= self.whole * self.at[r][k])

    def _flow(self, m: int, r: int, l: int, k: int) -> Any:
        """(C8) ``z[m,r,l,l] = z[r,m,l,l]``: return ``z[m,r,l,k]``; both directions share one variable if ``l = k``."""
        if l != k:
            return self.model.new_int_var(0, self.most_processed[m][l], f"z[{m},{r},{l},{k}]")
        key = (min(m, r), max(m, r), l)
        if key not in self.together:
            most = min(self.most_processed[m][l], self.most_processed[r][l])
            self.together[key] = self.model.new_int_var(0, most, f"z[{m},{r},{l},{l}]")
        return self.together[key]

    def add_capacities(self) -> None:
        """Add (C9) and (C10) for each server that may have ``θ < 1``."""
        for l in self.scarce:
            self._add_storage_capacity(l)
            self._add_compute_capacity(l)

    def _add_storage_capacity(self, l: int) -> None:
        """(C9) ``Σ_n u_n·w[n,l] ≤ A_l·G + Σ_n u_n``, ``w[n,l] ≥ q[m,l]`` for ``m ∈ P_n``."""
        kept = [self.model.new_int_var(0, self.whole, f"w[{n},{l}]") for n in range(len(self.spool))]
        for n, publishers in enumerate(self.linear.publishers):
            for m in publishers:
                self.model.add(kept[n] >= self.processed[m][l])
        self.model.add(self.weighted_sum(kept, self.spool) <= self.storage_capacity[l] + sum(self.spool))

    def _add_compute_capacity(self, l: int) -> None:
        """(C10) ``Σ_m U_m·q[m,l] ≤ B_l·G + Σ_m U_m``."""
        processed = [self.processed[m][l] for m in self.clients]
        self.model.add(self.weighted_sum(processed, self.demand) <= self.compute_capacity[l] + sum(self.demand))

    def add_conditioned_capacities(self) -> None:
        """Add (C11) and (C12) for each client with a load and each server that may have ``θ < 1``."""
        partners: dict[int, set[int]] = {m: set() for m in self.clients}
        for m, r, *_ in self.pairs:
            partners[m].add(r)
            partners[r].add(m)
        for m in self.clients:
            if time.perf_counter() > self.deadline:
                raise OutOfTimeError
            for l in self.scarce if self.demand[m] else ():
                together = {r: self.together[min(m, r), max(m, r), l] for r in partners[m]}
                self._add_conditioned_compute(m, l, together)
                self._add_conditioned_storage(m, l, together)

    def _add_conditioned_compute(self, m: int, l: int, together: dict[int, Any]) -> None:
        """(C11) ``U_m·q[m,l] + Σ_r U_r·z[m,r,l,l] ≤ (B_l·G + rounding)·x[m,l]``, as (S3) of the strong model.

        ``together[r]`` is ``z[m,r,l,l]``.
        """
        terms = [self.processed[m][l], *together.values()]
        weights = [self.demand[m], *(self.demand[r] for r in together)]
        limit = (self.compute_capacity[l] + sum(weights)) * self.at[m][l]
        self.model.add(self.weighted_sum(terms, weights) <= limit)

    def _add_conditioned_storage(self, m: int, l: int, together: dict[int, Any]) -> None:
        """(C12) ``U_m·q[m,l] + Σ_{n: m∉P_n} u_n·ψ[n,m,l] ≤ (A_l·G + rounding)·x[m,l]``, as (S2) of the strong model.

        ``ψ[n,m,l] ≥ z[m,r,l,l]`` for ``r ∈ P_n``. With a single such ``r`` it is ``z[m,r,l,l]`` itself.
        """
        terms, weights = [self.processed[m][l]], [self.demand[m]]
        for n, publishers in enumerate(self.linear.publishers):
            others = [together[r] for r in publishers if r in together]
            if m in publishers or not others:
                continue
            kept = others[0]
            if len(others) > 1:
                kept = self.model.new_int_var(0, self.whole, f"ψ[{n},{m},{l}]")
                for other in others:
                    self.model.add(kept >= other)
            terms.append(kept)
            weights.append(self.spool[n])
        limit = (self.storage_capacity[l] + sum(weights)) * self.at[m][l]
        self.model.add(self.weighted_sum(terms, weights) <= limit)

    def add_objective(self, most: int) -> None:
        """``Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ f_m·(G - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]``, at most ``most``."""
        linear, scales = self.linear, self.scales
        near = down(linear.weight[:, None] * linear.client_delay, scales.objective).tolist()
        detour = down(linear.detour * linear.publications, scales.cost).tolist()
        terms: list[Any] = [self.at[m][l] for m in self.clients for l in self.servers]
        weights = [near[m][l] for m in self.clients for l in self.servers]
        for m in self.clients if self.scarce else ():
            terms += self.processed[m]
            weights += [-detour[m]] * len(self.servers)
        constant = sum(detour) * self.whole if self.scarce else 0
        terms += [variable for _, variable in self.pair_costs]
        weights += [coefficient for coefficient, _ in self.pair_costs]
        self.model.minimize(self.weighted_sum(terms, weights) + constant)
        self.model.proto.objective.domain.extend([-constant, most - constant])  # the domain excludes the constant


def _undirected(pairs: list[tuple[int, int, float]]) -> list[tuple[int, int, float, float]]:
    """Combine the two directions of each pair into ``(m, r, W[m,r], W[r,m])`` with ``m < r``."""
    weight = {(m, r): value for m, r, value in pairs}
    keys = sorted({(min(m, r), max(m, r)) for m, r in weight})
    return [(m, r, weight.get((m, r), 0.0), weight.get((r, m), 0.0)) for m, r in keys]
