"""The lower bound that a dual proves for a region, in integers; docs/certificates.md shows that it is a bound."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from relocbench.formulations.certificates.certificate import LARGEST_NUMBER, Dual, check_bits
from relocbench.formulations.certificates.integer_problem import (
    BoolArray,
    IntegerArray,
    IntegerProblem,
    Rounded,
    floor_shift,
    integer_array,
    rounded_delays,
)
from relocbench.formulations.certificates.packed_arrays import Int64Array, unpacked
from relocbench.formulations.certificates.region import ONE, THETA_BITS, Region, propagated, restricted, theta_range
from relocbench.instances.errors import InputError, shown
from relocbench.instances.kernels.ragged import FloatArray

# The largest array has one entry for each pair of homes of an edge. Edges are processed in blocks of at most this
# number of entries, which fit into the processor's cache.
ENTRIES = 1 << 15
# Numbers of this many bits can be added and subtracted a few times within 64 bits.
SAFE_BITS = 58
# The unit of the computation is finer than that of the dual by this many bits, or by fewer if that avoids Python
# integers.
FINER_BITS = 24


class DualBound:
    """The lower bound that a dual proves for a region.

    Parameters
    ----------
    problem, region, dual
        The instance, the region and the dual. :class:`instances.errors.InputError` is raised if the dual is not valid.
    long
        Compute with Python integers even if 64 bits are enough.
    finer
        The number of bits by which the unit of the computation is finer than that of the dual; None for the largest
        suitable number. Parts of a dual that are verified apart need the same one.

    Attributes
    ----------
    total
        No assignment of the region costs less than this, in units of ``2^-unit``.
    """

    def __init__(
        self, problem: IntegerProblem, region: Region, dual: Dual, long: bool = False, finer: int | None = None
    ) -> None:
        self._problem, self._region, self._dual = problem, region, dual
        self._unpack(dual)
        self._check_shares()
        self.unit, most_bits = self._choose_unit(finer)
        self.long = long or most_bits > SAFE_BITS
        if self.long:
            self._reserve(most_bits + THETA_BITS)
        self._dtype = np.dtype(object if self.long else np.int64)
        # A cost above all others, for pairs of homes that do not exist.
        self._infinite = 1 << max(most_bits, SAFE_BITS) + 3
        # The last entry is the message 0 of homes that the dual gives no message for.
        self._given: IntegerArray = np.append(self._messages.astype(self._dtype) << (self.unit - dual.bits), 0)
        self._order_homes()

        charges, constant = self._charges()
        self._unary: IntegerArray = self._product(problem.weight[:, None], problem.distance) + charges.astype(
            self._dtype
        )
        if problem.added is not None:
            self._unary += problem.added.rounded_down(self.unit).astype(self._dtype)
        self._add_all_messages()
        self._least: IntegerArray = np.where(region.allowed, self._unary, self._infinite).min(axis=1)
        self.total: int = sum(self._least.tolist()) + constant

    @property
    def least(self) -> IntegerArray:
        """The least cost of a home of each client with its messages, in units of ``2^-unit``."""
        return self._least

    @property
    def value(self) -> Fraction:
        """The bound as a rational number."""
        return self.total * Fraction(2) ** -self.unit

    def _unpack(self, dual: Dual) -> None:
        """Read the arrays of the dual and check their sizes."""
        problem, servers = self._problem, self._problem.n_servers
        for name, bits in (("bits", dual.bits), ("multiplier_bits", dual.multiplier_bits)):
            check_bits(bits, name)
        self._entries = 0
        self._reserve()
        active = unpacked(dual.active, (problem.n_clients, servers), "active")
        self._active = _zeros_and_ones(active, "active")
        self._hard = _zeros_and_ones(integer_array(_numbers(dual.hard, servers, "hard")), "hard")
        self._price_bits = dual.multiplier_bits + problem.load_bits
        self._alpha = integer_array(_numbers(dual.alpha, servers, "alpha"))
        self._beta = integer_array(_numbers(dual.beta, servers, "beta"))
        count = self._active.sum(axis=1)[problem.first]
        self._message_start = np.cumsum(count) - count
        messages, shares = int(count.sum()), int(self._active.sum(axis=1)[problem.publisher_client].sum())
        self._entries = messages + shares
        self._reserve()
        self._messages = unpacked(dual.messages, (messages,), "messages")
        entry, self._share_server = np.nonzero(self._active[problem.publisher_client])
        self._share_client, self._share_topic = problem.publisher_client[entry], problem.publisher_topic[entry]
        self._shares = unpacked(dual.shares, (shares,), "shares")

    def _reserve(self, number_bits: int = 0) -> None:
        """Check that the budget allows the memory for the dual's arrays before they are allocated."""
        size = self._problem.size
        used = size.problem_bytes + self._problem.region_memory
        self._problem.budget.check_memory(used + size.dual_bytes(self._entries, number_bits))

    def _check_shares(self) -> None:
        """Check that shares are from 0 on and sum to at most the price of their topic: ``Σ_m λ[m,n,l] ≤ α_l·u_n``."""
        problem = self._problem
        if (self._shares < 0).any():
            where = int((self._shares < 0).argmax())
            raise InputError(f"shares[{where}]", f"expected a number from 0, got {self._shares[where]}")
        place = self._share_topic, self._share_server
        total = _sums((problem.n_topics, problem.n_servers), place, self._shares)
        if (total > self._priced(problem.spool[:, None] * self._alpha[None, :], self._dual.bits)).any():
            raise InputError("shares", "expected no more than the price of each topic, got more")

    def _choose_unit(self, finer: int | None) -> tuple[int, int]:
        """Return the unit to compute in, and a number of bits that every number of the computation fits into."""
        problem, bits = self._problem, self._dual.bits

        def power(exponent: int) -> int:
            return 1 << max(exponent + bits, 0)

        pair = sum(power(weight.bits + problem.between.bits) for weight in problem.edge_weights)
        given = max(int(self._messages.max(initial=0)), -int(self._messages.min(initial=0)))
        price = self._priced(max(self._alpha + self._beta) * max(problem.demand), bits, upwards=True)
        detour = math.ceil(problem.detour * int(problem.publications.max()) * Fraction(2) ** bits)
        spread = problem.degree * power(problem.sent.bits + problem.between.bits)
        unary = power(problem.weight.bits + problem.distance.bits) + 2 * price + detour + spread
        if problem.added is not None:
            unary += problem.added.largest(bits)
        most_bits = (2 * (unary + (problem.degree + 4) * (3 * pair + given))).bit_length()
        room = SAFE_BITS - most_bits
        if finer is None:
            finer = min(FINER_BITS, room) if room >= 0 else FINER_BITS
        return bits + finer, most_bits + finer

    def _priced(self, load: Any, unit: int, upwards: bool = False) -> Any:
        """Convert products of multiplier and load (Python integers) to units of ``2^-unit``, rounded."""
        by = unit - self._price_bits
        return -_shifted(-load, by) if upwards else _shifted(load, by)

    def _charges(self) -> tuple[IntegerArray, int]:
        """Return the charge of each home (``M×L``) for capacity and delegation, and the constant of the bound."""
        problem, region, unit = self._problem, self._region, self.unit
        least, most = theta_range(problem, region)
        counted = ~region.open[self._share_topic, self._share_server]
        place = self._share_client, self._share_server
        local = _sums(region.allowed.shape, place, np.where(counted, self._shares, 0)) << (unit - self._dual.bits)
        local += self._priced(problem.demand[:, None] * self._beta[None, :], unit)
        constant = 0
        least_remote = self._delegation_cost(np.full(problem.n_clients, problem.server_delay.max()))
        for l in range(problem.n_servers):
            problem.budget.check_time()
            if self._hard[l] and not least[l]:
                raise InputError("hard", f"expected 0 for server {l}, whose θ may be 0")
            opened = region.open[:, l]
            constant += self._priced(self._alpha[l] * sum(problem.spool[opened]), unit)
            price = self._alpha[l] * problem.storage_capacity[l] + self._beta[l] * problem.compute_capacity[l]
            theta = least[l] if self._hard[l] else ONE
            by = THETA_BITS + unit - self._price_bits
            constant += (-price << max(by, 0)) // (theta << max(-by, 0))
            if least[l] == ONE:
                continue
            needed = 0 if self._hard[l] else local[:, l]
            if not opened.any() and (most[:, l] == ONE).all() and (least_remote >= needed).all():
                continue  # no client gains by delegation, so the charge is least at θ = 1
            remote = self._delegation_cost(np.where(region.allowed, problem.server_delay[l][None, :], 0.0).max(axis=1))
            # The charge is linear in θ, so it is least at an end of the range.
            thetas = least[l], most[:, l]
            if self._hard[l]:
                ends = [((ONE - theta) * remote) >> THETA_BITS for theta in thetas]
                local[:, l] += np.minimum(*ends)
            else:
                remote = remote - self._priced(self._alpha[l] * problem.topic_sums(opened), unit, upwards=True)
                ends = [(theta * local[:, l] + (ONE - theta) * remote) >> THETA_BITS for theta in thetas]
                local[:, l] = np.minimum(*ends)
        return local, constant

    def _delegation_cost(self, farthest: FloatArray) -> IntegerArray:
        """Return a lower bound on the cost of delegating all of each client, minus that of processing it locally.

        No message travels farther between servers than given for its receiver.
        """
        problem = self._problem
        saved: IntegerArray = np.zeros(problem.n_clients, self._dtype)
        np.add.at(
            saved, problem.sender, self._product(problem.sent, rounded_delays(farthest, True)[problem.receiver], -1)
        )
        detour = problem.detour * Fraction(2) ** self.unit
        above, below = detour.numerator, detour.denominator
        delegated = integer_array([above * f // below for f in problem.publications.tolist()])
        cost: IntegerArray = delegated - saved.astype(object)
        return cost

    def _product(self, one: Rounded, other: Rounded, sign: int = 1) -> IntegerArray:
        """Return products in units of ``2^-unit``, rounded down, or up if the sign is -1."""
        mantissa = one.mantissa.astype(self._dtype, copy=False) * other.mantissa.astype(self._dtype, copy=False)
        by = one.exponent + other.exponent + self.unit
        return floor_shift(mantissa, by) if sign == 1 else -floor_shift(-mantissa, by)

    def _order_homes(self) -> None:
        """Sort each client's homes (active ones, then other allowed ones) and the edges (by their numbers of homes).

        Active homes that are not allowed are ignored. A client without any other active home has all its allowed homes
        active.
        """
        problem, allowed = self._problem, self._region.allowed
        usable = self._active & allowed
        without = usable.sum(axis=1) == 0
        usable[without] = allowed[without]
        self._table = np.argsort(np.where(usable, 0, np.where(allowed, 1, 2)), axis=1, kind="stable")
        self._n_active, self._n_allowed = usable.sum(axis=1), allowed.sum(axis=1)
        # All messages of an edge are 0 if those to its first client are, and if this client may be at every server:
        # two clients at the same server cost nothing.
        self._silent: BoolArray = without & (self._n_allowed == problem.n_servers)
        self._rank = np.cumsum(self._active, axis=1) - 1
        self._order = np.lexsort((self._n_allowed[problem.second], self._n_allowed[problem.first]))

    def _blocks(self, order: Int64Array) -> Iterator[Int64Array]:
        """Yield sorted edges in blocks, in which the first clients have the same number of homes."""
        problem = self._problem
        rows, columns = self._n_allowed[problem.first[order]], self._n_allowed[problem.second[order]]
        begin = 0
        while begin < len(rows):
            end = int(np.searchsorted(rows, rows[begin], side="right"))
            most = max(1, ENTRIES // int(rows[begin] * columns[begin:end].max()))
            end = min(end, begin + most)
            problem.budget.check_time()
            yield order[begin:end]
            begin = end

    def _ends(self, edges: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, BoolArray]:
        """Return both clients of each edge, their homes, and which of the second client's homes are real.

        The second clients have different numbers of homes; the shorter lists are filled up.
        """
        i, j = self._problem.first[edges], self._problem.second[edges]
        rows, columns = int(self._n_allowed[i[0]]), int(self._n_allowed[j].max())
        real = np.arange(columns)[None, :] < self._n_allowed[j][:, None]
        return i, j, self._table[i, :rows], self._table[j, :columns], real

    def _pair_costs(self, edges: Int64Array) -> IntegerArray:
        """Return the cost of each pair of homes of each edge; infinite if the pair is not real."""
        _, _, home_i, home_j, real = self._ends(edges)
        here, there = home_i[:, :, None], home_j[:, None, :]
        parts = []
        for weight, place in zip(self._problem.edge_weights, ((here, there), (there, here)), strict=False):
            part = weight[edges]
            part = Rounded(part.mantissa[:, None, None], part.exponent[:, None, None])
            parts.append(self._product(part, self._problem.between[place]))
        cost: IntegerArray = parts[0] if len(parts) == 1 else parts[0] + parts[1]
        if not real.all():
            cost[np.broadcast_to(~real[:, None, :], cost.shape)] = self._infinite
        return cost

    def _completed(self, edges: Int64Array) -> tuple[IntegerArray, IntegerArray, IntegerArray]:
        """Return the pair costs and all messages to both clients; no pair costs less than its two messages."""
        cost = self._pair_costs(edges)
        i, j, home_i, _, real = self._ends(edges)
        count_i, count_j = self._n_active[i], self._n_active[j]
        rows, columns = int(count_i.max()), int(count_j.max())
        given = np.arange(home_i.shape[1])[None, :] < count_i[:, None]
        place = self._message_start[edges][:, None] + self._rank[i[:, None], home_i]
        first: IntegerArray = self._given[np.where(given & self._active[i[:, None], home_i], place, -1)]
        if int(count_i.min()) < home_i.shape[1]:
            # The messages to the second client's active homes, from the given ones, decide the messages that are not
            # given.
            rest = cost[:, :rows, :columns] - first[:, :rows, None]
            rest[~given[:, :rows]] = self._infinite
            rest = cost[:, :, :columns] - rest.min(axis=1)[:, None, :]
            inactive = np.arange(columns)[None, :] >= count_j[:, None]
            rest[np.broadcast_to(inactive[:, None, :], rest.shape)] = self._infinite
            first = np.where(given, first, rest.min(axis=2))
        return cost, first, np.where(real, (cost - first[:, :, None]).min(axis=1), 0)

    def _add_all_messages(self) -> None:
        """Add the messages of all edges to the costs of homes."""
        for edges in self._blocks(self._order[~self._silent[self._problem.first[self._order]]]):
            _, first, second = self._completed(edges)
            self._add_messages(self._unary, edges, first, second)

    def _add_messages(self, table: IntegerArray, edges: Int64Array, first: IntegerArray, second: IntegerArray) -> None:
        """Add messages to the homes of both clients."""
        i, j, home_i, home_j, _ = self._ends(edges)
        np.add.at(table, (i[:, None], home_i), first)
        np.add.at(table, (j[:, None], home_j), second)

    def forbidden(self, claim: Fraction) -> BoolArray:
        """Reduced-cost fixing: find the homes that no assignment of the region below the claim can use.

        An assignment with a home costs at least the bound, plus the reduced cost of the home, plus for each edge the
        least sum of the pair's slack and the reduced cost of the other client's home.

        Parameters
        ----------
        claim
            The value that the region is to be bounded by.

        Returns
        -------
        BoolArray
            The homes (``M×L``).
        """
        problem, allowed = self._problem, self._region.allowed
        missing = math.ceil(claim * Fraction(2) ** self.unit) - self.total
        if missing <= 0:
            return allowed.copy()
        # Larger numbers than the missing value have the same effect; cut off there, the sums do not overflow.
        if not self.long and missing * (problem.degree + 2) >= 1 << SAFE_BITS:
            return DualBound(problem, self._region, self._dual, long=True).forbidden(claim)
        reduced_cost = np.where(allowed, np.minimum(self._unary - self._least[:, None], missing), 0)
        star = reduced_cost.copy()
        for edges in self._blocks(self._order):
            cost, first, second = self._completed(edges)
            i, j, home_i, home_j, real = self._ends(edges)
            slack = np.minimum(cost - first[:, :, None] - second[:, None, :], missing)
            at_i, at_j = reduced_cost[i[:, None], home_i], reduced_cost[j[:, None], home_j]
            to_i = np.minimum((slack + at_j[:, None, :]).min(axis=2), missing)
            to_j = np.minimum((slack + at_i[:, :, None]).min(axis=1), missing)
            self._add_messages(star, edges, to_i, np.where(real, to_j, 0))
        return (star >= missing).astype(np.bool_) & allowed


def apply_dual(problem: IntegerProblem, region: Region, dual: Dual, claim: Fraction) -> tuple[Fraction, Region | None]:
    """Apply a dual step to a region.

    Parameters
    ----------
    problem, region, dual
        The instance, the region and the dual.
    claim
        The bound to prove.

    Returns
    -------
    value
        The bound that the dual proves.
    rest
        The region that remains to be proved; None if the claim is proved for the whole region.
    """
    bound = DualBound(problem, region, dual)
    if bound.value >= claim:
        return bound.value, None
    if not dual.fix:
        return bound.value, region
    return bound.value, propagated(problem, restricted(problem, region, ~bound.forbidden(claim)))


def _shifted(values: Any, by: int) -> Any:
    """Return ``⌊values·2^by⌋`` of Python integers."""
    return values << by if by >= 0 else values >> -by


def _sums(shape: tuple[int, ...], place: tuple[Int64Array, ...], values: Int64Array) -> IntegerArray:
    """Add up the non-negative numbers of each place, without overflow."""
    dtype = np.dtype(object if int(values.max(initial=0)) * len(values) >= 1 << 62 else np.int64)
    total = np.zeros(shape, dtype)
    np.add.at(total, place, values.astype(dtype))
    return total.astype(object)


def _numbers(values: Sequence[int], count: int, label: str) -> list[int]:
    if len(values) != count:
        raise InputError(label, f"expected {count} numbers, got {len(values)}")
    for index, value in enumerate(values):
        if type(value) is not int or not 0 <= value < LARGEST_NUMBER:
            raise InputError(f"{label}[{index}]", f"expected a whole number from 0, got {shown(value)}")
    return list(values)


def _zeros_and_ones(values: IntegerArray, label: str) -> BoolArray:
    if ((values != 0) & (values != 1)).any():
        raise InputError(label, "expected zeros and ones")
    flags: BoolArray = (values == 1).astype(np.bool_)
    return flags
