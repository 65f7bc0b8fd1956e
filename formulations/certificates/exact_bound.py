"""The lower bound that a dual proves, in whole numbers; why it is one is in docs/certificates.md."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from relocbench.formulations.certificates.certificate import LARGEST_NUMBER, MOST_BITS, Dual
from relocbench.formulations.certificates.integer_problem import (
    Bools,
    Rounded,
    Whole,
    WholeProblem,
    floor_shift,
    rounded_delays,
    whole,
)
from relocbench.formulations.certificates.packed_arrays import Array, unpacked
from relocbench.formulations.certificates.region import ONE, THETA_BITS, State, restricted, settled, theta_range
from relocbench.instances.errors import InputError, shown

# Entries of the largest array at a time, a pair of homes of an edge each: few enough to stay near the processor.
ENTRIES = 1 << 15
# Numbers below this can be added and subtracted a few times within 64 bits.
SAFE_BITS = 58
# Costs are computed in units this fine where 64 bits allow it, however coarse the dual's own are.
FINE_BITS = 40


class DualBound:
    """What a dual proves of a state.

    Parameters
    ----------
    problem, state, dual
        The dual is checked: :class:`instances.errors.InputError` says what is wrong with it.
    long
        Compute with Python integers even where 64 bits are enough.

    Attributes
    ----------
    total
        No assignment of the state costs less than this, in units of ``2^-unit``.
    """

    def __init__(self, problem: WholeProblem, state: State, dual: Dual, long: bool = False) -> None:
        self._problem, self._state, self._dual = problem, state, dual
        self._read(dual)
        self._check_shares()
        self.unit, most_bits = self._choose_unit()
        self.long = long or most_bits > SAFE_BITS
        self._kind = np.dtype(object if self.long else np.int64)
        self._apart = 1 << max(most_bits, SAFE_BITS) + 3
        # The entry behind the last is that of homes without a message.
        self._given: Whole = np.append(self._messages.astype(self._kind) << (self.unit - dual.bits), 0)
        self._arrange()

        charges, constant = self._charges()
        self._unary: Whole = self._product(problem.weight[:, None], problem.distance) + charges.astype(self._kind)
        for edges in self._chunks():
            _, first, second = self._completed(edges)
            self._collect(self._unary, edges, first, second)
        self._least: Whole = np.where(state.allowed, self._unary, self._apart).min(axis=1)
        self.total: int = sum(self._least.tolist()) + constant

    @property
    def value(self) -> Fraction:
        """The bound."""
        return Fraction(self.total, 1 << self.unit)

    def _read(self, dual: Dual) -> None:
        problem, servers = self._problem, self._problem.n_servers
        for name, bits in (("bits", dual.bits), ("multiplier_bits", dual.multiplier_bits)):
            if not 0 <= bits <= MOST_BITS:
                raise InputError(name, f"expected a number from 0 to {MOST_BITS}, got {shown(bits)}")
        active = unpacked(dual.active, (problem.n_clients, servers), "active")
        self._active = _truths(active, "active")
        self._hard = _truths(whole(_numbers(dual.hard, servers, "hard")), "hard")
        self._price_bits = dual.multiplier_bits + problem.load_bits
        self._alpha = whole(_numbers(dual.alpha, servers, "alpha"))
        self._beta = whole(_numbers(dual.beta, servers, "beta"))
        count = self._active.sum(axis=1)[problem.first]
        self._message_start = np.cumsum(count) - count
        self._messages = unpacked(dual.messages, (int(count.sum()),), "messages")
        entry, self._share_server = np.nonzero(self._active[problem.publisher_client])
        self._share_client, self._share_topic = problem.publisher_client[entry], problem.publisher_topic[entry]
        self._shares = unpacked(dual.shares, (len(entry),), "shares")

    def _check_shares(self) -> None:
        """Refuse shares below 0 or above the price of their topic: ``Σ_m λ[m,n,l] ≤ α_l·u_n``."""
        problem = self._problem
        if (self._shares < 0).any():
            where = int((self._shares < 0).argmax())
            raise InputError(f"shares[{where}]", f"expected a number from 0, got {self._shares[where]}")
        place = self._share_topic, self._share_server
        total = _sums((problem.n_topics, problem.n_servers), place, self._shares)
        if (total > self._priced(problem.spool[:, None] * self._alpha[None, :], self._dual.bits)).any():
            raise InputError("shares", "expected no more than the price of each topic, got more")

    def _choose_unit(self) -> tuple[int, int]:
        """Return the unit to compute in, and how many bits are then enough for everything."""
        problem, bits = self._problem, self._dual.bits

        def power(exponent: int) -> int:
            return 1 << max(exponent + bits, 0)

        pair = sum(power(weight.bits + problem.between.bits) for weight in problem.edge_weights)
        given = max(int(self._messages.max(initial=0)), -int(self._messages.min(initial=0)))
        price = self._priced(max(self._alpha + self._beta) * max(problem.demand), bits, upwards=True)
        detour = math.ceil(problem.detour * int(problem.publications.max()) * (1 << bits))
        spread = problem.degree * power(problem.sent.bits + problem.between.bits)
        home = power(problem.weight.bits + problem.distance.bits) + 2 * price + detour + spread
        most_bits = (2 * (home + (problem.degree + 4) * (3 * pair + given))).bit_length()
        finer = max(0, min(FINE_BITS - bits, SAFE_BITS - most_bits))
        return bits + finer, most_bits + finer

    def _priced(self, load: Any, unit: int, upwards: bool = False) -> Any:
        """Return multiplier times load in units of ``2^-unit``, rounded; of a number or an array of Python integers."""
        return -((-load << unit) >> self._price_bits) if upwards else (load << unit) >> self._price_bits

    def _charges(self) -> tuple[Whole, int]:
        """Return what loads add to the cost of each home (``M×L``) and, once, to the bound."""
        problem, state, unit = self._problem, self._state, self.unit
        least, most = theta_range(problem, state)
        counted = ~state.open[self._share_topic, self._share_server]
        place = self._share_client, self._share_server
        local = _sums(state.allowed.shape, place, np.where(counted, self._shares, 0)) << (unit - self._dual.bits)
        local += self._priced(problem.demand[:, None] * self._beta[None, :], unit)
        constant = 0
        for l in range(problem.n_servers):
            if self._hard[l] and not least[l]:
                raise InputError("hard", f"expected 0 for server {l}, which may do nothing itself")
            opened = state.open[:, l]
            constant += self._priced(self._alpha[l] * sum(problem.spool[opened]), unit)
            paid = self._alpha[l] * problem.storage_capacity[l] + self._beta[l] * problem.compute_capacity[l]
            share = least[l] if self._hard[l] else ONE
            constant += (-paid << THETA_BITS + unit) // (share << self._price_bits)
            if least[l] == ONE:
                continue
            remote = self._delegating(l)
            thetas = least[l], most[:, l]
            if self._hard[l]:
                # Linear in θ, so one of its ends is the least.
                ends = [((ONE - theta) * remote) >> THETA_BITS for theta in thetas]
                local[:, l] += np.minimum(*ends)
            else:
                remote = remote - self._priced(self._alpha[l] * problem.topic_sums(opened), unit, upwards=True)
                ends = [(theta * local[:, l] + (ONE - theta) * remote) >> THETA_BITS for theta in thetas]
                local[:, l] = np.minimum(*ends)
        return local, constant

    def _delegating(self, server: int) -> Whole:
        """Return what delegating all of a client costs at least, beyond processing it at the server (or below that)."""
        problem = self._problem
        far = np.where(self._state.allowed, problem.server_delay[server][None, :], 0.0).max(axis=1)
        saved: Whole = np.zeros(problem.n_clients, self._kind)
        np.add.at(saved, problem.sender, self._product(problem.sent, rounded_delays(far, True)[problem.receiver], -1))
        above, below = problem.detour.numerator << self.unit, problem.detour.denominator
        cost: Whole = whole([above * f // below for f in problem.publications.tolist()]) - saved.astype(object)
        return cost

    def _product(self, one: Rounded, other: Rounded, sign: int = 1) -> Whole:
        """Return products in units of ``2^-unit``, rounded down, or up with a sign of -1."""
        mantissa = one.mantissa.astype(self._kind) * other.mantissa.astype(self._kind)
        shifted = floor_shift(sign * mantissa, one.exponent + other.exponent + self.unit)
        return sign * shifted

    def _arrange(self) -> None:
        """Order each client's homes (active first, then the others allowed) and the edges (few homes first).

        Active homes that are not allowed are passed over; where no other is left, all allowed ones count as active.
        """
        problem, allowed = self._problem, self._state.allowed
        usable = self._active & allowed
        usable[~usable.any(axis=1)] = allowed[~usable.any(axis=1)]
        self._table = np.argsort(np.where(usable, 0, np.where(allowed, 1, 2)), axis=1, kind="stable")
        self._n_active, self._n_allowed = usable.sum(axis=1), allowed.sum(axis=1)
        self._rank = np.cumsum(self._active, axis=1) - 1
        self._order = np.lexsort((self._n_allowed[problem.second], self._n_allowed[problem.first]))

    def _chunks(self) -> Iterator[Array]:
        """Yield all edges, few enough at a time, with about the same number of homes."""
        problem = self._problem
        rows, columns = self._n_allowed[problem.first[self._order]], self._n_allowed[problem.second[self._order]]
        begin = 0
        while begin < len(rows):
            end = int(np.searchsorted(rows, rows[begin], side="right"))
            most = max(1, ENTRIES // int(rows[begin] * columns[begin:end].max()))
            end = min(end, begin + most)
            yield self._order[begin:end]
            begin = end

    def _ends(self, edges: Array) -> tuple[Array, Array, Array, Array, Bools]:
        """Return, for edges, both ends' clients, their homes side by side, and which of the second end's are there."""
        i, j = self._problem.first[edges], self._problem.second[edges]
        rows, columns = int(self._n_allowed[i[0]]), int(self._n_allowed[j].max())
        real = np.arange(columns)[None, :] < self._n_allowed[j][:, None]
        return i, j, self._table[i, :rows], self._table[j, :columns], real

    def _pair_costs(self, edges: Array) -> Whole:
        """Return what each pair of homes of each edge costs; beyond everything where there is no such pair."""
        _, _, home_i, home_j, real = self._ends(edges)
        here, there = home_i[:, :, None], home_j[:, None, :]
        cost: Whole = np.zeros((len(edges), home_i.shape[1], home_j.shape[1]), self._kind)
        for weight, place in zip(self._problem.edge_weights, ((here, there), (there, here)), strict=False):
            part = weight[edges]
            part = Rounded(part.mantissa[:, None, None], part.exponent[:, None, None])
            cost += self._product(part, self._problem.between[place])
        if not real.all():
            cost[np.broadcast_to(~real[:, None, :], cost.shape)] = self._apart
        return cost

    def _completed(self, edges: Array) -> tuple[Whole, Whole, Whole]:
        """Return the costs of pairs and the messages to both ends, completed: no pair costs less than it passes on."""
        cost = self._pair_costs(edges)
        i, j, home_i, _, real = self._ends(edges)
        count_i, count_j = self._n_active[i], self._n_active[j]
        rows, columns = int(count_i.max()), int(count_j.max())
        given = np.arange(home_i.shape[1])[None, :] < count_i[:, None]
        place = self._message_start[edges][:, None] + self._rank[i[:, None], home_i]
        first: Whole = self._given[np.where(given & self._active[i[:, None], home_i], place, -1)]
        if int(count_i.min()) < home_i.shape[1]:
            # To the second end's active homes, from the first end's; and back to those that no message was given for.
            rest = cost[:, :rows, :columns] - first[:, :rows, None]
            rest[~given[:, :rows]] = self._apart
            rest = cost[:, :, :columns] - rest.min(axis=1)[:, None, :]
            inactive = np.arange(columns)[None, :] >= count_j[:, None]
            rest[np.broadcast_to(inactive[:, None, :], rest.shape)] = self._apart
            first = np.where(given, first, rest.min(axis=2))
        return cost, first, np.where(real, (cost - first[:, :, None]).min(axis=1), 0)

    def _collect(self, table: Whole, edges: Array, first: Whole, second: Whole) -> None:
        """Add what edges give to the homes of both ends."""
        i, j, home_i, home_j, _ = self._ends(edges)
        np.add.at(table, (i[:, None], home_i), first)
        np.add.at(table, (j[:, None], home_j), second)

    def dropped(self, claim: Fraction) -> Bools:
        """Tell which homes (``M×L``) no assignment of the state can have that costs less than the claim.

        With a home an assignment costs at least: the bound, what the home is dearer than its client's cheapest, and for
        each edge the least that the pair and the other end are dearer than the cheapest.
        """
        problem, allowed = self._problem, self._state.allowed
        missing = -((-claim.numerator << self.unit) // claim.denominator) - self.total
        if missing <= 0:
            return allowed.copy()
        # Beyond what is missing, more makes no difference: cut off there, the numbers stay small.
        if not self.long and missing * (problem.degree + 2) >= 1 << SAFE_BITS:
            return DualBound(problem, self._state, self._dual, long=True).dropped(claim)
        dearer = np.where(allowed, np.minimum(self._unary - self._least[:, None], missing), 0)
        star = dearer.copy()
        for edges in self._chunks():
            cost, first, second = self._completed(edges)
            i, j, home_i, home_j, real = self._ends(edges)
            slack = np.minimum(cost - first[:, :, None] - second[:, None, :], missing)
            at_i, at_j = dearer[i[:, None], home_i], dearer[j[:, None], home_j]
            to_i = np.minimum((slack + at_j[:, None, :]).min(axis=2), missing)
            to_j = np.minimum((slack + at_i[:, :, None]).min(axis=1), missing)
            self._collect(star, edges, to_i, np.where(real, to_j, 0))
        return (star >= missing).astype(np.bool_) & allowed


def after_dual(problem: WholeProblem, state: State, dual: Dual, claim: Fraction) -> tuple[Fraction, State | None]:
    """Return the bound that a dual proves of a state, and what remains to be proved; None if that is nothing."""
    bound = DualBound(problem, state, dual)
    if bound.value >= claim:
        return bound.value, None
    if not dual.fix:
        return bound.value, state
    return bound.value, settled(problem, restricted(problem, state, ~bound.dropped(claim)))


def _sums(shape: tuple[int, ...], place: tuple[Array, ...], values: Array) -> Whole:
    """Add numbers from 0 on that belong to the same place, without overflow."""
    kind = np.dtype(object if int(values.max(initial=0)) * len(values) >= 1 << 62 else np.int64)
    total = np.zeros(shape, kind)
    np.add.at(total, place, values.astype(kind))
    return total.astype(object)


def _numbers(values: Sequence[int], count: int, label: str) -> list[int]:
    if len(values) != count:
        raise InputError(label, f"expected {count} numbers, got {len(values)}")
    for index, value in enumerate(values):
        if type(value) is not int or not 0 <= value < LARGEST_NUMBER:
            raise InputError(f"{label}[{index}]", f"expected a whole number from 0, got {shown(value)}")
    return list(values)


def _truths(values: Whole, label: str) -> Bools:
    if ((values != 0) & (values != 1)).any():
        raise InputError(label, "expected zeros and ones")
    truths: Bools = (values == 1).astype(np.bool_)
    return truths
