"""The model for CP-SAT: docs/formulations.md 2 and 3 in whole numbers.

A share of 1 is ``G = 2^g``, a cost of 1 ms is ``2^(k+g)``, a load of 1 is ``2^s``. In these units, with costs and loads
rounded down and capacities up:

    x[m,l], y[n,l] ∈ {0,1},  θ_l, q[m,l], w[n,l], z[m,r,l,k] ∈ 0..G

    Σ_l x[m,l] = 1,  y[n,l] ≥ x[m,l] for m ∈ P_n
    q[m,l] = θ_l·x[m,l]:               q ≤ θ_l,  q ≤ x·⌈G·min(1, A_l/U_m, B_l/U_m)⌉,  q ≥ θ_l - G·(1 - x)
    z[m,r,l,k] = θ_l·x[m,l]·x[r,k]:    Σ_k z[m,r,l,k] = q[m,l],  Σ_l z[m,r,l,k] ≤ G·x[r,k],  z[m,r,l,l] = z[r,m,l,l]
    θ_l ≤ ⌊A_l·G / a_l⌋ + 1,  θ_l ≤ ⌊B_l·G / v_l⌋ + 1  where the server is loaded at all
    Σ_n u_n·w[n,l] ≤ A_l·G + Σu,  Σ_m U_m·q[m,l] ≤ B_l·G + ΣU,  w[n,l] ≥ q[m,l]; the same conditioned on each client

    minimise  Σ w_m·dH[m,l]·x[m,l] + 2·dC·Σ f_m·(G - Σ_l q[m,l]) + Σ W[m,r]·dS[l,k]·z[m,r,l,k]

For any homes the point with ``θ_l`` rounded up to the grid is allowed (whence the ``+1`` and ``+Σu``) and, where the
cloud is far, costs no more than the homes do. Where it is near, ``θ_l`` is also held above its value rounded down, so
that both neighbours on the grid are allowed, of which one costs no more. Either way the minimum is a lower bound on
``ΣD``; it is off by at most ``2^-k`` for each client and pair, by ``2·dC·2^-g`` (or ``max dS·2^-g``) for each
publication, and by what a rounding of the loads makes of ``θ``, which is nothing where spools are whole.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.formulations.incumbent import OutOfTimeError
from relocbench.formulations.integer_scaling import FLOAT_ERROR, bits_of, down, scale_exponent, up, whole_exponent
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# The objective, and products of a load and a share, stay below this many bits: CP-SAT's own sums need room up to 63.
MOST_BITS = 58
SHARE_BITS = 28
# Loads that are not whole are rounded to this many bits. More make propagation creep: bounds then move by single units
# for seconds, past the time limit. What is lost is given back by Model.learn.
LOAD_BITS = 12


@dataclass(frozen=True)
class Scales:
    """Exponents of two: of a cost coefficient (``k``), of a share (``g``), of a load (``s``)."""

    cost: int
    share: int
    load: int

    @property
    def objective(self) -> int:
        """Of the objective."""
        return self.cost + self.share


def choose_scales(linear: Linearisation, cost: float, error: float) -> Scales:
    """Return scales with which rounding makes a bound at most so much too low, as far as 64 bits allow.

    Parameters
    ----------
    cost
        Of the best homes known.
    error
        In ms; 0 for the finest scales there are.
    """
    allowed = max(error / 2, 1e-300)
    loads = np.concatenate([linear.spool, linear.demand])
    room = LOAD_BITS - bits_of(float(max(linear.spool.sum(), linear.demand.sum())))
    share = 0
    if not linear.surely_local.all():
        steepest = max(linear.detour, float(linear.server_delay.max(initial=0.0)))
        share = min(max(0, bits_of(steepest * float(linear.publications.sum()) / allowed)), SHARE_BITS)
    terms = linear.n_clients + len(linear.sender)
    # What no sum of coefficients exceeds, be the assignment ever so bad: 64 bits must hold that, too.
    largest = float((linear.weight[:, None] * linear.client_delay).max(axis=1).sum())
    largest += linear.detour * float(linear.publications.sum())
    largest += float(linear.pair_weight.sum()) * float(linear.server_delay.max(initial=0.0)) * linear.n_servers
    cost = max(cost, largest)
    return Scales(scale_exponent(allowed, terms, cost, MOST_BITS - share), share, whole_exponent(loads, room))


@dataclass(frozen=True)
class Model:
    """A built model, the variables that its users read, and what it takes to add to it."""

    model: Any
    at: list[list[Any]]
    share: list[Any]
    scarce: list[int]
    loads: list[bool]
    near: bool
    exponent: int
    facts: dict[str, float]

    def hint(self, home: IntArray) -> None:
        """Let the solver start from these homes."""
        self.model.clear_hints()
        for m, row in enumerate(self.at):
            for l, variable in enumerate(row):
                self.model.add_hint(variable, int(home[m] == l))

    def learn(self, home: IntArray, shares: FloatArray) -> None:
        """Exclude an assignment whose cost is known, and state what it says of others.

        A server with all the clients that it has here, or more, has at most the share that it has here, whatever the
        rounding of loads; and with no others, at least that share.
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
    most
        Assignments with an objective above this are of no interest.
    conditioned
        Whether to add the rows of docs/formulations.md 3.
    deadline
        By ``time.perf_counter``.

    Raises
    ------
    OutOfTimeError
        If the deadline comes first.
    """
    builder = _Builder(linear, scales, deadline)
    builder.add_variables()
    builder.add_homes()
    builder.add_shares()
    builder.add_loads()
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
    """The parts of the model, to be added in the order in which they are written here."""

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
        # Room beyond all there is to hold is no room worth a bit.
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
        """``x``, ``θ``, ``q``; those of loads and pairs come with their constraints."""
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

    def add_homes(self) -> None:
        """One home for each client."""
        for row in self.at:
            self.model.add_exactly_one(row)

    def add_shares(self) -> None:
        """``q = θ·x``."""
        for m in self.clients:
            for l in self.scarce:
                at, share, processed = self.at[m][l], self.share[l], self.processed[m][l]
                self.model.add(processed <= share)
                self.model.add(processed <= self.most_processed[m][l] * at)
                self.model.add(processed >= share - self.whole * (1 - at))

    def add_loads(self) -> None:
        """``θ`` from the loads, by whole division; from both sides where the cloud is near."""
        model = self.model
        topics = range(len(self.spool))
        self.open = {(n, l): model.new_bool_var(f"y[{n},{l}]") for n in topics for l in self.scarce}
        for (n, l), is_open in self.open.items():
            members = [self.at[m][l] for m in self.linear.publishers[n]]
            for at in members:
                model.add_implication(at, is_open)
            if not self.linear.cloud_is_far:
                model.add_bool_or([*members, ~is_open])
        for l in self.scarce:
            loaded = model.new_bool_var(f"loaded[{l}]")
            opened = [self.open[n, l] for n in topics]
            model.add_max_equality(loaded, [*opened, 0])
            stored = self.weighted_sum(opened, self.spool)
            computed = self.weighted_sum([self.at[m][l] for m in self.clients], self.demand)
            for capacity, load, most in (
                (self.storage_capacity[l], stored, sum(self.spool)),
                (self.compute_capacity[l], computed, sum(self.demand)),
            ):
                # A load that is rounded down to nothing says nothing about the share.
                some = model.new_bool_var("")
                model.add(load >= 1).only_enforce_if(some)
                model.add(load <= 0).only_enforce_if(~some)
                model.add(self.share[l] <= self._quotient(capacity, load, most) + 1).only_enforce_if(some)
            if not self.linear.cloud_is_far:
                self._hold_above(l, loaded)

    def _quotient(self, capacity: int, load: Any, most: int) -> Any:
        """Return ``⌊capacity / max(1, load)⌋``, cut at a share of 1."""
        divisor = self.model.new_int_var(1, max(1, most), "")
        self.model.add_max_equality(divisor, [load, 1])
        quotient = self.model.new_int_var(0, capacity, "")
        self.model.add_division_equality(quotient, capacity, divisor)
        return quotient

    def _hold_above(self, l: int, loaded: Any) -> None:
        """``θ_l ≥ min(1, A/a, B/v)``, rounded down: loads up, capacities down."""
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
        """``z``: what of a sender's messages goes from which server to which; kept as (coefficient, variable)."""
        model, delay = self.model, self.linear.server_delay
        self.together: dict[tuple[int, int, int], Any] = {}
        self.pair_costs: list[tuple[int, Any]] = []
        pairs = self.pairs if not self.all_local else _undirected(self.pairs)
        for m, r, weight, back in ((*pair, 0.0) if len(pair) == 3 else pair for pair in pairs):
            if time.perf_counter() > self.deadline:
                raise OutOfTimeError
            costs = down(weight * delay + back * delay.T, self.scales.cost).tolist()
            flow = [[self._flow(m, r, l, k) for k in self.servers] for l in self.servers]
            for l in self.servers:
                model.add(self.total(flow[l]) == self.processed[m][l])
            for k in self.servers:
                arriving = self.total([flow[l][k] for l in self.servers])
                if self.all_local:
                    model.add(arriving == self.at[r][k])
                else:
                    model.add(arriving <= self.whole * self.at[r][k])
            self.pair_costs += [(costs[l][k], flow[l][k]) for l in self.servers for k in self.servers if costs[l][k]]

    def _flow(self, m: int, r: int, l: int, k: int) -> Any:
        """Return a new ``z[m,r,l,k]``, or the one there is: on one server, both directions are the same number."""
        if l != k:
            return self.model.new_int_var(0, self.most_processed[m][l], f"z[{m},{r},{l},{k}]")
        key = (min(m, r), max(m, r), l)
        if key not in self.together:
            most = min(self.most_processed[m][l], self.most_processed[r][l])
            self.together[key] = self.model.new_int_var(0, most, f"z[{m},{r},{l},{l}]")
        return self.together[key]

    def add_capacities(self) -> None:
        """Fit what all clients of a server have processed into it."""
        model = self.model
        for l in self.scarce:
            kept = [model.new_int_var(0, self.whole, f"w[{n},{l}]") for n in range(len(self.spool))]
            for n, publishers in enumerate(self.linear.publishers):
                for m in publishers:
                    model.add(kept[n] >= self.processed[m][l])
            model.add(self.weighted_sum(kept, self.spool) <= self.storage_capacity[l] + sum(self.spool))
            processed = [self.processed[m][l] for m in self.clients]
            model.add(self.weighted_sum(processed, self.demand) <= self.compute_capacity[l] + sum(self.demand))

    def add_conditioned_capacities(self) -> None:
        """Multiply the same rows by ``x[m,l]``, with the products that the pairs have brought."""
        model = self.model
        partners: dict[int, set[int]] = {m: set() for m in self.clients}
        for m, r, *_ in self.pairs:
            partners[m].add(r)
            partners[r].add(m)
        for m in self.clients:
            if time.perf_counter() > self.deadline:
                raise OutOfTimeError
            for l in self.scarce if self.demand[m] else ():
                at, processed = self.at[m][l], self.processed[m][l]
                beside = {r: self.together[min(m, r), max(m, r), l] for r in partners[m]}
                terms, weights = [processed, *beside.values()], [self.demand[m], *(self.demand[r] for r in beside)]
                model.add(self.weighted_sum(terms, weights) <= (self.compute_capacity[l] + sum(weights)) * at)
                terms, weights = [processed], [self.demand[m]]
                for n, publishers in enumerate(self.linear.publishers):
                    others = [beside[r] for r in publishers if r in beside]
                    if m in publishers or not others:
                        continue
                    kept = others[0]
                    if len(others) > 1:
                        kept = model.new_int_var(0, self.whole, f"ψ[{n},{m},{l}]")
                        for other in others:
                            model.add(kept >= other)
                    terms.append(kept)
                    weights.append(self.spool[n])
                model.add(self.weighted_sum(terms, weights) <= (self.storage_capacity[l] + sum(weights)) * at)

    def add_objective(self, most: int) -> None:
        """``ΣD`` in units of ``2^-(k+g)``."""
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
        self.model.proto.objective.domain.extend([-constant, most - constant])  # of the sum without its constant


def _undirected(pairs: list[tuple[int, int, float]]) -> list[tuple[int, int, float, float]]:
    """Join the two directions of a pair: ``(m, r, W[m,r], W[r,m])`` with ``m < r``."""
    weight = {(m, r): value for m, r, value in pairs}
    keys = sorted({(min(m, r), max(m, r)) for m, r in weight})
    return [(m, r, weight.get((m, r), 0.0), weight.get((r, m), 0.0)) for m, r in keys]
