"""The least value of a server's contents, in integers: what a proof by branch and price relies on.

A *content* of a server is the set ``S`` of the clients whose home it is. Prices give each content a value,

    value(S) = fixed(S) + θ(S)·local(S),    θ(S) = min(1, A/a(S), B/v(S)),

where ``fixed`` and ``local`` are sums over the clients of ``S`` and over the given pairs of clients inside ``S``
(without pairs, they are linear). :func:`content_below` shows that no content has a value below a threshold, or finds
one that may have. It shares no code with the solvers.

The search decides first which topics are *open*, that is, have a publisher in the content, and then one client after
the other. A closed topic excludes its publishers. Many contents are searched at the same time: a *state* is a content
of what is decided so far, and all states of one level are rows of int64 arrays. The search runs for several ranges of
``θ`` together. In a range, the loads are limited by the capacities divided by the least ``θ``, and the value, which is
linear in ``θ``, is bounded at both ends. A state whose bound reaches the threshold is dropped. Before the search, upper
limits on all numbers show that nothing overflows. No float is used.

``θ`` is computed in units of ``2^-30``, rounded down for one end and up for the other, and the smaller of the two
values counts. Loads that do not fit 46 bits are rounded down, and an upper limit on what this loses widens the range.
"""

from dataclasses import dataclass, fields, replace

import numpy as np

from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.integer_problem import BoolArray, IntegerArray
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.errors import InputError

# θ is computed in units of 2^-THETA_BITS. Divisions and products are computed in two parts of HALF_BITS each.
THETA_BITS = 30
HALF_BITS = 15
ONE = 1 << THETA_BITS
# The sizes of all coefficients of a server sum to less than 2^VALUE_BITS, and so does each load.
VALUE_BITS = LOAD_BITS = 46
# The largest number of clients that a content can have.
MOST_CLIENTS = 1 << 12
# Multipliers are computed with loads of this many bits.
PRICED_LOAD_BITS = 15
# The ranges of θ: 1 alone, then each range begins at this share (15/16) of its upper end. A last range reaches from at
# most SMALLEST_END down to the least θ.
RANGE_SHARE = (15, 16)
SMALLEST_END = ONE >> 6
# Clients are decided in the order of their value at this θ.
THETA_OF_ORDER = 9 * ONE // 10
# The number of states that are processed together.
BLOCK = 1 << 12
# More than any load: the limit in a range that reaches down to θ = 0.
NO_LIMIT = 1 << 60


@dataclass(frozen=True, eq=False)
class ServerLoads:
    """What the contents of a server load, without rounding.

    Attributes
    ----------
    storage_capacity, compute_capacity
        ``A`` and ``B`` of the server, as Python integers in the unit of the spools.
    spool
        ``u`` of each topic, as Python integers.
    publisher_client, publisher_topic
        The pairs of a client and a topic that it publishes to.
    """

    storage_capacity: int
    compute_capacity: int
    spool: IntegerArray
    publisher_client: Int64Array
    publisher_topic: Int64Array


@dataclass(frozen=True, eq=False)
class ContentValues:
    """The value of the contents of a server, as integers in one unit.

    Attributes
    ----------
    fixed, local
        What each client of a content adds: ``fixed + θ·local``.
    first, second
        The pairs of clients that add a value of their own if both are in the content; each pair once.
    pair_fixed, pair_local
        What they add: ``pair_fixed + θ·pair_local``.
    """

    fixed: Int64Array
    local: Int64Array
    first: Int64Array
    second: Int64Array
    pair_fixed: Int64Array
    pair_local: Int64Array


def content_below(
    loads: ServerLoads,
    values: ContentValues,
    required: BoolArray,
    possible: BoolArray,
    threshold: int,
    budget: Budget,
    memory: int = 0,
) -> Int64Array | None:
    """Find a content whose value may be below a threshold, or show that there is none.

    Parameters
    ----------
    loads, values
        The server.
    required, possible
        The clients that every content has, and those that a content can have (including the required ones).
    threshold
        The number that values are compared with.
    budget
        The limits of the verification. Memory is checked at the beginning, time for each block of states.
    memory
        The bytes that are in use already.

    Returns
    -------
    Int64Array or None
        The clients of a content whose value, rounded down, is below the threshold; None if every content has at least
        this value.

    Raises
    ------
    InputError
        If numbers are too large or the budget is exceeded.
    """
    search = _Search(loads, values, required, possible, threshold, budget)
    search.reserve(memory)
    return search.run()


@dataclass(frozen=True, eq=False)
class _Capacity:
    """A capacity and the loads that it limits, which are sums of terms that were rounded down.

    Attributes
    ----------
    least, most
        The capacity rounded down and up.
    error
        A load is above its rounded number by at most this.
    """

    least: int
    most: int
    error: int

    @classmethod
    def of(cls, capacity: int, terms: list[int], shift: int) -> "_Capacity":
        """Round a capacity, given the exact terms that loads are sums of. No more than all terms is ever needed."""
        capacity = min(capacity, sum(terms))
        inexact = sum(term >> shift << shift != term for term in terms)
        return cls(capacity >> shift, -(-capacity >> shift), inexact)

    def least_theta(self, load: Int64Array) -> Int64Array:
        """Return ``min(1, capacity / load)``, rounded down."""
        return _quotient(self.least, load + self.error)[0]

    def most_theta(self, load: Int64Array) -> Int64Array:
        """Return ``min(1, capacity / load)``, rounded up."""
        return _quotient(self.most, load)[1]

    def limit(self, theta: int) -> int:
        """Return the largest rounded load with at least this ``θ``."""
        return min((self.most << THETA_BITS) // theta, NO_LIMIT) if theta else NO_LIMIT


@dataclass(frozen=True, eq=False)
class _States:
    """States of one level: each row is a content of the clients decided so far, in a range of ``θ``.

    Attributes
    ----------
    range
        The index of the range.
    value
        The value of the content at both ends of the range (``K×2``).
    charge
        The multiplier times its compute load minus the limit, at both ends (``K×2``); never above 0 for a content.
    contribution
        A lower bound on what each undecided client adds to it, at both ends (``K×R×2``).
    possible
        Which of the undecided clients no closed topic has excluded (``K×R``).
    storage, compute
        The loads of the open topics and of the content.
    added_storage
        The load of the undecided topics of each undecided client (``K×R``).
    opened
        The open topics.
    content
        The clients, in the order of their levels, that are in the content.
    """

    range: Int64Array
    value: Int64Array
    charge: Int64Array
    contribution: Int64Array
    possible: BoolArray
    storage: Int64Array
    compute: Int64Array
    added_storage: Int64Array
    opened: BoolArray
    content: BoolArray

    def rows(self, which: slice | BoolArray) -> "_States":
        """Return some of the states."""
        return _States(*(getattr(self, field.name)[which] for field in fields(self)))

    def and_more(self, others: "_States") -> "_States":
        """Return these states and others."""
        pairs = ((getattr(self, field.name), getattr(others, field.name)) for field in fields(self))
        return _States(*(np.concatenate(pair) for pair in pairs))

    def __len__(self) -> int:
        return len(self.range)


class _Search:
    """The search for a content below the threshold."""

    def __init__(
        self,
        loads: ServerLoads,
        values: ContentValues,
        required: BoolArray,
        possible: BoolArray,
        threshold: int,
        budget: Budget,
    ) -> None:
        self._values, self._threshold, self._budget = values, threshold, budget
        self._required = required
        kept = possible[values.first] & possible[values.second]
        self._first, self._second = values.first[kept], values.second[kept]
        self._pair_fixed, self._pair_local = values.pair_fixed[kept], values.pair_local[kept]
        coefficients = (values.fixed[possible], values.local[possible], self._pair_fixed, self._pair_local)
        _check_magnitudes(coefficients, threshold)
        # The most profitable clients are decided first.
        free = np.flatnonzero(possible & ~required)
        if len(free) > MOST_CLIENTS:
            raise InputError("", f"expected at most {MOST_CLIENTS} clients of a server to decide, got {len(free)}")
        worth = values.fixed[free] + _times(THETA_OF_ORDER, values.local[free])
        self._order = free[np.argsort(worth, kind="stable")]
        self._level = np.full(len(possible), -1, np.int64)
        self._level[self._order] = np.arange(len(self._order))
        self._set_loads(loads, possible)
        self._set_topics()
        self._set_ranges(possible)
        self._set_values()

    def _set_loads(self, loads: ServerLoads, possible: BoolArray) -> None:
        """Round the loads of the possible clients so that their sums fit ``LOAD_BITS``."""
        used = possible[loads.publisher_client]
        self._publisher = loads.publisher_client[used]
        topics, self._topic = np.unique(loads.publisher_topic[used], return_inverse=True)
        spools, copies = loads.spool[topics].tolist(), loads.spool[loads.publisher_topic[used]].tolist()
        shift = max(sum(copies).bit_length() - LOAD_BITS, 0)
        self._storage = _Capacity.of(loads.storage_capacity, spools, shift)
        self._compute = _Capacity.of(loads.compute_capacity, copies, shift)
        self._spool = np.array([spool >> shift for spool in spools], np.int64)
        self._demand = np.zeros(len(possible), np.int64)
        np.add.at(self._demand, self._publisher, self._spool[self._topic])

    def _set_topics(self) -> None:
        """Choose the topics to decide: those that load storage and that no required client opens, the largest first."""
        self._first_opened = self._opened(self._required)
        topics = np.flatnonzero((self._spool > 0) & ~self._first_opened)
        self._topics = topics[np.argsort(-self._spool[topics], kind="stable")]
        level = self._level[self._publisher]
        self._publishers = [np.sort(level[(self._topic == n) & (level >= 0)]) for n in self._topics]

    def _set_ranges(self, possible: BoolArray) -> None:
        """Divide the possible values of ``θ`` into ranges, with limits on the loads."""
        opened = self._opened(possible)
        least, _ = self._theta(self._spool[opened].sum(keepdims=True), self._demand[possible].sum(keepdims=True))
        ends = [ONE]
        while ends[-1] > least[0]:
            end = ends[-1] * RANGE_SHARE[0] // RANGE_SHARE[1]
            ends.append(end if end > max(int(least[0]), SMALLEST_END) else int(least[0]))
        self._ends = np.stack([ends, [ONE, *ends[:-1]]], axis=1).astype(np.int64)
        self._storage_limit = np.array([self._storage.limit(end) for end in ends], np.int64)
        self._compute_limit = np.array([self._compute.limit(end) for end in ends], np.int64)

    def _opened(self, content: BoolArray) -> BoolArray:
        """Return which topics a content stores."""
        opened = np.zeros(len(self._spool), np.bool_)
        opened[self._topic[content[self._publisher]]] = True
        return opened

    def _theta(self, storage: Int64Array, compute: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return a lower and an upper limit on ``θ`` for rounded loads."""
        low = np.minimum(self._storage.least_theta(storage), self._compute.least_theta(compute))
        return low, np.minimum(self._storage.most_theta(storage), self._compute.most_theta(compute))

    def _at_ends(self, fixed: Int64Array, local: Int64Array) -> Int64Array:
        """Return ``fixed + θ·local`` at both ends of each range, rounded down (ranges × numbers × 2)."""
        return fixed[None, :, None] + _times(self._ends[:, None, :], local[None, :, None])

    def _set_values(self) -> None:
        """Compute the values of clients and pairs at both ends of each range, and the multipliers."""
        values, order, level = self._values, self._order, self._level
        levels, ranges = len(order), len(self._ends)
        client = self._at_ends(values.fixed, values.local)
        pair = self._at_ends(self._pair_fixed, self._pair_local)
        # Of a pair of undecided clients each counts half of a negative value.
        half = np.minimum(pair, 0) >> 1
        self._first_contribution = client[:, order]
        self._first_value = client[:, self._required].sum(axis=1)
        level_of_first, level_of_second = level[self._first], level[self._second]
        one, other = np.minimum(level_of_first, level_of_second), np.maximum(level_of_first, level_of_second)
        inside = other < 0  # both are required
        self._first_value += pair[:, inside].sum(axis=1)
        mixed = (one < 0) & ~inside
        undecided = one >= 0
        for at, amount, which in ((other, pair, mixed), (one, half, undecided), (other, half, undecided)):
            np.add.at(self._first_contribution.swapaxes(0, 1), at[which], amount[:, which].swapaxes(0, 1))
        # For each client, those that it forms a pair with, and how their contributions change if it is included or
        # excluded. A client that is decided changes only those of later levels.
        self._neighbours, self._if_included, self._if_excluded = [], [], []
        for d in range(levels):
            here = undecided & ((one == d) | (other == d))
            self._neighbours.append(np.where(one == d, other, one)[here])
            self._if_included.append(pair[:, here] - half[:, here])
            self._if_excluded.append(-half[:, here])
        self._set_multipliers(ranges)

    def _set_multipliers(self, ranges: int) -> None:
        """Choose the multiplier of the compute load for each end of each range.

        Every multiplier from 0 on is valid. The one chosen is about the least at which the profitable clients fit.
        """
        cut = max(int(self._demand.max(initial=0)).bit_length() - PRICED_LOAD_BITS, 0)
        demand = (self._demand >> cut)[self._order]
        fixed = (self._demand >> cut)[self._required].sum()
        limit = (self._compute_limit >> cut)[:, None]
        contribution = self._first_contribution

        def fits(multiplier: Int64Array) -> BoolArray:
            profitable = contribution + multiplier[:, None, :] * demand[None, :, None] < 0
            load: Int64Array = np.where(profitable, demand[None, :, None], 0).sum(axis=1) + fixed
            return load <= limit

        priced = demand > 0
        low = np.zeros((ranges, 2), np.int64)
        if priced.any():
            high = 1 + (np.maximum(-contribution[:, priced], 0) // demand[priced][None, :, None]).max(axis=1)
            exceeded = ~fits(low) & (fixed <= limit)
            while (high - low > 1).any():
                middle = (low + high) >> 1
                fit = fits(middle)
                low, high = np.where(fit, low, middle), np.where(fit, middle, high)
            low = np.where(exceeded, low, 0)
        # At this multiplier the profitable clients exceed the limit. So it times the limit is below the sum of all
        # values.
        self._price = np.minimum(low[:, None, :] * demand[None, :, None], 1 << VALUE_BITS)
        self._priced_limit = np.where(low > 0, low * (limit - fixed), 0)

    def reserve(self, memory: int) -> None:
        """Check that the budget allows the memory of the search, beside what is in use already."""
        clients, levels = len(self._order), len(self._topics) + len(self._order)
        state = 120 + 26 * clients + len(self._spool)
        tables = len(self._ends) * 64 * (len(self._level) + 2 * len(self._first))
        # Fewer than three blocks wait at each level; a few copies of one are made.
        self._budget.check_memory(memory + tables + (3 * levels + 12) * BLOCK * state)

    def run(self) -> Int64Array | None:
        """Search all contents; return one that may be below the threshold."""
        n_topics = len(self._topics)
        levels = n_topics + len(self._order)
        waiting = {0: self._first_states()}
        while waiting:
            # The deepest level with a whole block; if there is none, the first level, so that blocks become whole.
            level = max((d for d in waiting if len(waiting[d]) >= BLOCK), default=min(waiting))
            self._budget.check_time()
            states = waiting.pop(level)
            block, rest = states.rows(slice(0, BLOCK)), states.rows(slice(BLOCK, None))
            if len(rest):
                waiting[level] = rest
            if level == levels:
                found = self._below(block)
                if found is not None:
                    return found
                continue
            if level < n_topics:
                parts = self._with_topic(block, level), self._without_topic(block, level)
            else:
                parts = self._included(block, level - n_topics), self._excluded(block, level - n_topics)
            for children in parts:
                kept = children.rows(self._unproved(children, level + 1))
                if len(kept):
                    more = waiting.get(level + 1)
                    waiting[level + 1] = kept if more is None else more.and_more(kept)
        return None

    def _first_states(self) -> _States:
        """Return one state per range, in which only the required clients are decided."""
        count, clients = len(self._ends), len(self._order)
        opened = self._first_opened
        storage, compute = int(self._spool[opened].sum()), int(self._demand[self._required].sum())
        added = np.zeros(clients, np.int64)
        for topic, publishers in zip(self._topics, self._publishers, strict=True):
            added[publishers] += self._spool[topic]
        states = _States(
            range=np.arange(count),
            value=self._first_value,
            charge=-self._priced_limit,
            contribution=self._first_contribution,
            possible=np.ones((count, clients), np.bool_),
            storage=np.full(count, storage),
            compute=np.full(count, compute),
            added_storage=np.repeat(added[None, :], count, axis=0),
            opened=np.repeat(opened[None, :], count, axis=0),
            content=np.zeros((count, clients), np.bool_),
        )
        fits = (states.storage <= self._storage_limit) & (states.compute <= self._compute_limit)
        return states.rows(fits)

    def _with_topic(self, states: _States, level: int) -> _States:
        """Open the topic of a level where it fits and a publisher is possible."""
        topic, publishers = self._topics[level], self._publishers[level]
        storage = states.storage + self._spool[topic]
        fits = (storage <= self._storage_limit[states.range]) & states.possible[:, publishers].any(axis=1)
        states = states.rows(fits)
        opened, added = states.opened.copy(), states.added_storage.copy()
        opened[:, topic] = True
        added[:, publishers] -= self._spool[topic]
        return replace(states, storage=storage[fits], opened=opened, added_storage=added)

    def _without_topic(self, states: _States, level: int) -> _States:
        """Close the topic of a level, which excludes its publishers."""
        contribution, possible = states.contribution.copy(), states.possible.copy()
        for publisher in self._publishers[level]:
            change = self._if_excluded[publisher][states.range]
            change[~possible[:, publisher]] = 0  # excluded before
            contribution[:, self._neighbours[publisher]] += change
            possible[:, publisher] = False
        return replace(states, contribution=contribution, possible=possible)

    def _included(self, states: _States, client: int) -> _States:
        """Include a client where it is possible and the compute load allows it. Its topics are open."""
        compute = states.compute + self._demand[self._order[client]]
        fits = states.possible[:, 0] & (compute <= self._compute_limit[states.range])
        states, compute = states.rows(fits), compute[fits]
        later = self._neighbours[client] > client
        contribution = states.contribution[:, 1:].copy()
        neighbours = self._neighbours[client][later] - client - 1
        contribution[:, neighbours] += self._if_included[client][:, later][states.range]
        # The halves of pairs with undecided clients are now counted by those.
        halves = self._half_counted(states, client, later)
        content = states.content.copy()
        content[:, client] = True
        return replace(
            states,
            value=states.value + states.contribution[:, 0] + halves,
            charge=states.charge + self._price[states.range, client],
            contribution=contribution,
            possible=states.possible[:, 1:],
            compute=compute,
            added_storage=states.added_storage[:, 1:],
            content=content,
        )

    def _half_counted(self, states: _States, client: int, later: BoolArray) -> Int64Array:
        """Return what the contribution of a client counts for its pairs with possible later clients, negated."""
        undecided = states.possible[:, self._neighbours[client][later] - client]
        halves = np.where(undecided[:, :, None], self._if_excluded[client][:, later][states.range], 0)
        counted: Int64Array = halves.sum(axis=1)
        return counted

    def _excluded(self, states: _States, client: int) -> _States:
        """Exclude a client."""
        later = self._neighbours[client] > client
        change = self._if_excluded[client][:, later][states.range]
        change[~states.possible[:, 0]] = 0  # a closed topic has excluded it before
        contribution = states.contribution[:, 1:].copy()
        contribution[:, self._neighbours[client][later] - client - 1] += change
        return replace(
            states,
            contribution=contribution,
            possible=states.possible[:, 1:],
            added_storage=states.added_storage[:, 1:],
        )

    def _unproved(self, states: _States, level: int) -> BoolArray:
        """Return which states of a level may still become a content below the threshold.

        Undecided clients that do not fit any more add nothing. A state is dropped if all its contents have a ``θ``
        above its range.
        """
        client = max(level - len(self._topics), 0)
        demand = self._demand[self._order[client:]]
        compute_left = (self._compute_limit[states.range] - states.compute)[:, None]
        storage_left = (self._storage_limit[states.range] - states.storage)[:, None]
        fits = states.possible & (demand[None, :] <= compute_left) & (states.added_storage <= storage_left)
        gain = np.minimum(states.contribution, 0)
        gain[~fits] = 0
        priced_gain = np.minimum(states.contribution + self._price[states.range, client:], 0)
        priced_gain[~fits] = 0
        bound = states.value + np.maximum(gain.sum(axis=1), priced_gain.sum(axis=1) + states.charge)
        most_storage = states.storage + self._spool[self._topics[level:]].sum()
        least, _ = self._theta(most_storage, states.compute + states.possible.astype(np.int64) @ demand)
        unproved: BoolArray = (bound.min(axis=1) < self._threshold) & (least <= self._ends[states.range, 1])
        return unproved

    def _below(self, states: _States) -> Int64Array | None:
        """Compute the values of complete contents; return the clients of one below the threshold."""
        count = len(states)
        content = np.repeat(self._required[None, :], count, axis=0)
        content[:, self._order] = states.content
        both = (content[:, self._first] & content[:, self._second]).astype(np.int64)
        single = content.astype(np.int64)
        fixed = single @ self._values.fixed + both @ self._pair_fixed
        local = single @ self._values.local + both @ self._pair_local
        low, high = self._theta(states.storage, states.compute)
        ends = self._ends[states.range]
        low, high = np.maximum(low, ends[:, 0]), np.minimum(high, ends[:, 1])
        value = fixed + np.minimum(_times(low, local), _times(high, local))
        # A content that does not use all open topics belongs to the state without the others.
        below = (value < self._threshold) & (low <= high)
        for topic, publishers in zip(self._topics, self._publishers, strict=True):
            below &= states.content[:, publishers].any(axis=1) | ~states.opened[:, topic]
        return np.flatnonzero(content[below.argmax()]) if below.any() else None


def _check_magnitudes(coefficients: tuple[Int64Array, ...], threshold: int) -> None:
    """Check that the sizes of all coefficients sum to less than ``2^VALUE_BITS``, and the size of the threshold."""
    total = max(abs(threshold), sum(abs(number) for column in coefficients for number in column.tolist()))
    if total >> VALUE_BITS:
        raise InputError("", f"expected values that sum to less than 2^{VALUE_BITS} units, got 2^{total.bit_length()}")


def _quotient(capacity: int, load: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return ``min(1, capacity / load)`` in units of ``2^-THETA_BITS``, rounded down and up."""
    over = load > capacity
    divisor = np.where(over, load, 1)
    upper, rest = np.divmod(capacity << HALF_BITS, divisor)
    lower, rest = np.divmod(rest << HALF_BITS, divisor)
    down = (upper << HALF_BITS) + lower
    return np.where(over, down, ONE), np.where(over, down + (rest > 0), ONE)


def _times(theta: int | Int64Array, values: Int64Array) -> Int64Array:
    """Return ``⌊θ·values⌋`` for ``θ`` in units of ``2^-THETA_BITS`` and values below ``2^VALUE_BITS`` in size."""
    lower = (theta * (values & (1 << HALF_BITS) - 1)) >> HALF_BITS
    product: Int64Array = (theta * (values >> HALF_BITS) + lower) >> HALF_BITS
    return product
