"""The largest profit of a server's contents, in integers: what a proof by the prices of homes relies on.

A *content* of a server is the set of the clients whose home it is. With a profit for each client and limits on both
loads, :class:`TopicSearch` shows that no content within the limits has a profit above a threshold. It shares no code
with the solvers.

The search decides which topics are open. A *node* is a row of an array: each topic is undecided, open or closed. All
clients of a node with a closed topic are out; a client whose topics are all open is in. The profit of any other client
is divided among its undecided topics, in any way. Then the undecided topics form a knapsack: for every ``α ≥ 0``, no
content of the node has a profit above

    (what is in) + Σ_n max(0, value_n - α·size_n) + α·(free storage) + β·(compute limit)

where every client pays ``β`` times its compute load first. The profits are divided so that the values per size become
as equal as possible, which makes this number small; how well that is done decides how long the search takes, not
whether it is right. Compute loads are relaxed to fractions of clients. Several limits (*ranges* of ``θ``) are
searched together.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from relocbench.formulations.certificates.budget import Budget
from relocbench.formulations.certificates.integer_problem import BoolArray, IntegerArray
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.errors import InputError

# The profits of all clients sum to less than 2^PROFIT_BITS, the sizes of all topics to less than 2^SIZE_BITS, and so do
# the loads of all clients. Products of the two fit 61 bits.
PROFIT_BITS = 40
SIZE_BITS = 20
# Values per size are in units of 2^-DENSITY_BITS, and cut off at 2^LARGEST_DENSITY.
DENSITY_BITS = 10
LARGEST_DENSITY = 1 << 40
# Instead of a division, values are multiplied with 1/size in units of 2^-INVERSE_BITS. Values have at most
# MULTIPLIED_BITS for this, after a shift.
INVERSE_BITS, MULTIPLIED_BITS = 34, 28
# The part of a pair of topics, and one part of several equal ones, are in units of 2^-PART_BITS and 2^-SPLIT_BITS.
PART_BITS, SPLIT_BITS = 20, 22
# The number of nodes that are processed together.
BLOCK = 1 << 10
# How often the division of profits is improved: at the root, and at every other node.
ROOT_PASSES, NODE_PASSES = 12, 1

# The number of payments that are tried at a node.
TRIED_PAYMENTS = 2

# What is decided about a topic.
UNDECIDED, OPEN, CLOSED = 0, 1, 2
# What a node has instead of a topic to decide next: no topic that could add a profit, or none after some decisions.
LEAF, CHANGED = -1, -2
# From this share of all nodes on, all are processed instead of some.
MOSTLY = 0.6

StateArray = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class ServerRanges:
    """The problem of one server, in several ranges of ``θ``.

    Attributes
    ----------
    worth
        The profit of each item in each range, after what its clients pay for their compute load in several ways
        (payments × ranges × items). An item is a client, or a pair of clients. With the last payment nobody pays. Items
        without profit are left out.
    storage_limit, compute_limit
        The largest loads in each range, as Python integers.
    spool, demand
        ``u`` of each topic and ``U`` of each item, as Python integers.
    item, topic
        The pairs of an item and a topic that must be open for it, by item.
    refund
        What the compute limit adds then (payments × ranges). No content within the limit pays more than this.
    """

    worth: Int64Array
    storage_limit: list[int]
    compute_limit: list[int]
    spool: IntegerArray
    demand: IntegerArray
    item: Int64Array
    topic: Int64Array
    refund: Int64Array


class TopicSearch:
    """The search for a content whose profit is above a threshold.

    Parameters
    ----------
    server
        The server. :class:`instances.errors.InputError` is raised if its numbers are too large.
    budget
        The limits of the verification.
    memory
        The bytes that are in use already.

    Attributes
    ----------
    nodes
        The number of nodes that were processed so far.
    """

    def __init__(self, server: ServerRanges, budget: Budget, memory: int = 0) -> None:
        self._server, self._budget = server, budget
        self.nodes = 0
        self._worth, self._profit = server.worth, server.worth[-1]
        # The sum in floating point cannot overflow; it is wrong by less than one unit in 2^30.
        if (self._profit.sum(axis=1, dtype=np.float64) >= (1 << PROFIT_BITS) - (1 << 20)).any():
            raise InputError("prices", f"expected profits that sum to less than 2^{PROFIT_BITS}")
        self._set_topics()
        self._reserve(memory)
        self._set_clients()
        self._set_exchanges()
        self._set_densities()
        self._set_root()

    def _set_topics(self) -> None:
        """List the topics of the profitable clients, and round all sizes and limits down."""
        server = self._server
        client: BoolArray = np.asarray((self._profit > 0).any(axis=0), np.bool_)
        used = client[server.item]
        topics, self._topic = np.unique(server.topic[used], return_inverse=True)
        self._client = server.item[used]
        sizes = server.spool[topics].tolist()
        self._size, self._limit = _rounded(sizes, server.storage_limit)
        self._load, self._load_limit = _rounded(server.demand.tolist(), server.compute_limit)
        # A client without a topic loads nothing and is always in.
        free = client.copy()
        free[self._client] = False
        self._always: Int64Array = self._profit[:, free].sum(axis=1)

    def _reserve(self, memory: int) -> None:
        """Check that the budget allows the memory of the search."""
        topics, entries, ranges = len(self._size), len(self._topic), len(self._profit)
        tables = 64 * ranges * (self._profit.shape[1] + topics + entries)
        # The arrays of a block, and two blocks that wait for each topic.
        self._budget.check_memory(memory + tables + BLOCK * (100 * (entries + topics) + 2 * topics * (topics + 16)))

    def _set_clients(self) -> None:
        """Separate the clients with one topic, whose profit is the topic's own, from those with several."""
        count = np.bincount(self._client, minlength=self._profit.shape[1])
        several = count[self._client] > 1
        payments, ranges = self._worth.shape[:2]
        # A column for each combination of a payment and a range.
        worth = self._worth.reshape(payments * ranges, -1)
        self._own = np.zeros((len(self._size), payments * ranges), np.int64)
        for topic, client in zip(self._topic[~several].tolist(), self._client[~several].tolist(), strict=True):
            self._own[topic] += worth[:, client]
        topics: dict[int, list[int]] = {}
        for topic, item in zip(self._topic[several].tolist(), self._client[several].tolist(), strict=True):
            topics.setdefault(item, []).append(topic)
        # Items with the same topics are one member. Members with fewer topics are first.
        alike: dict[tuple[int, ...], list[int]] = {}
        for item, some in topics.items():
            alike.setdefault(tuple(some), []).append(item)
        members = sorted(alike, key=len)
        self._member_worth = np.zeros((len(members), payments * ranges), np.int64)
        for index, member in enumerate(members):
            self._member_worth[index] = worth[:, np.array(alike[member])].sum(axis=1)
        # The entries are pairs of a member and one of its topics, by member.
        self._entry_topic = np.array([topic for member in members for topic in member], np.int64)
        self._set_groups([len(member) for member in members])

    def _set_groups(self, count: list[int]) -> None:
        """Group the members by their number of topics, and the topics by their number of entries."""
        self._groups, entry, member = [], 0, 0
        for size in sorted(set(count)):
            alike = count.count(size)
            self._groups.append(_Group(size, slice(entry, entry + alike * size), slice(member, member + alike)))
            entry, member = entry + alike * size, member + alike
        entries_of: dict[int, list[int]] = {}
        for number, topic in enumerate(self._entry_topic.tolist()):
            entries_of.setdefault(topic, []).append(number)
        by_size: dict[int, list[int]] = {}
        for topic, entries in entries_of.items():
            by_size.setdefault(len(entries), []).append(topic)
        self._sums = [(np.array(some), np.array([entries_of[topic] for topic in some])) for some in by_size.values()]
        # 1/count for the numbers of undecided topics, rounded up.
        self._parts = np.array([-(-(1 << SPLIT_BITS) // max(some, 1)) for some in range(max(count, default=0) + 1)])

    def _set_exchanges(self) -> None:
        """Group the pairs of topics of the same client so that no topic occurs twice in a group."""
        groups: list[tuple[set[int], list[int], list[int]]] = []
        for group in self._groups:
            for begin in range(group.entries.start, group.entries.stop, group.size):
                # A ring has fewer pairs than all combinations, and shares reach every topic through it.
                entries = range(begin, begin + group.size)
                ring = zip(entries, [*entries[1:], *entries[: group.size > 2]], strict=False)
                for i, j in ring:
                    topics = {int(self._entry_topic[i]), int(self._entry_topic[j])}
                    found = next((some for some in groups if not some[0] & topics), None)
                    if found is None:
                        found = set(), [], []
                        groups.append(found)
                    found[0].update(topics)
                    found[1].append(i)
                    found[2].append(j)
        self._exchanges = []
        for _, some, others in groups:
            one, other = np.array(some), np.array(others)
            first, second = self._entry_topic[one], self._entry_topic[other]
            part = (self._size[first] << PART_BITS) // np.maximum(self._size[first] + self._size[second], 1)
            self._exchanges.append(_Exchange(one, other, first, second, part[:, None]))

    def _set_densities(self) -> None:
        """Prepare the division of values by sizes: a multiplication with ``1/size`` and shifts."""
        largest = int(self._profit.sum(axis=1).max(initial=0)).bit_length() + 1
        self._value_shift = max(largest - MULTIPLIED_BITS, 0)
        self._inverse = ((1 << INVERSE_BITS) // np.maximum(self._size, 1))[:, None]

    def _set_root(self) -> None:
        """Divide the profits at the root of each range; topics of size 0 are open."""
        payments, ranges = self._worth.shape[:2]
        self._first_state = np.zeros((len(self._size), ranges), np.int8)
        self._first_state[self._size == 0] = OPEN
        which, payment = np.tile(np.arange(ranges), payments), np.repeat(np.arange(payments), ranges)
        roots = _Nodes(np.tile(self._first_state, payments), which, payment)
        division = self._divided(roots, roots.payment)
        for _ in range(ROOT_PASSES):
            self._exchange(division)
        self._root_shares = division.shares

    def profit_above(self, threshold: int) -> bool:
        """Find out whether a content may have a profit above a threshold.

        Parameters
        ----------
        threshold
            The number that profits are compared with.

        Returns
        -------
        bool
            False if no content within the limits of a range has a larger profit in that range.

        Raises
        ------
        InputError
            If the budget is exceeded.
        """
        ranges = len(self._profit)
        waiting = [_Nodes(self._first_state, np.arange(ranges), np.zeros(ranges, np.int64))]
        while waiting:
            self._budget.check_time()
            nodes = self._propagated(self._taken(waiting))
            nodes, branch = self._unproved(nodes, threshold)
            leaf, changed = branch == LEAF, branch == CHANGED
            if leaf.any() and self._leaf_above(nodes.columns(leaf), threshold):
                return True
            if changed.any():
                waiting.append(nodes.columns(changed))
            nodes, branch = nodes.columns(branch >= 0), branch[branch >= 0]
            if len(branch):
                parts = [nodes.state.copy(), nodes.state.copy()]
                for part, decision in zip(parts, (CLOSED, OPEN), strict=True):
                    part[branch, np.arange(len(branch))] = decision
                twice = np.tile(nodes.which, 2), np.tile(nodes.payment, 2)
                waiting.append(_Nodes(np.concatenate(parts, axis=1), *twice))
        return False

    def _taken(self, waiting: list["_Nodes"]) -> "_Nodes":
        """Take the last nodes that wait, at most a block."""
        parts, count = [], 0
        while waiting and count < BLOCK:
            nodes = waiting.pop()
            kept = len(nodes.which) - (BLOCK - count)
            if kept > 0:
                waiting.append(nodes.columns(slice(None, kept)))
                nodes = nodes.columns(slice(kept, None))
            parts.append(nodes)
            count += len(nodes.which)
        self.nodes += count
        if len(parts) == 1:
            return parts[0]
        which, payment = (np.concatenate([getattr(part, name) for part in parts]) for name in ("which", "payment"))
        return _Nodes(np.concatenate([part.state for part in parts], axis=1), which, payment)

    def _free_storage(self, nodes: "_Nodes") -> Int64Array:
        used = np.where(nodes.state == OPEN, self._size[:, None], 0).sum(axis=0)
        free: Int64Array = self._limit[nodes.which] - used
        return free

    def _propagated(self, nodes: "_Nodes") -> "_Nodes":
        """Drop the nodes that exceed the storage limit, and close the topics that do not fit any more."""
        free = self._free_storage(nodes)
        nodes, free = nodes.columns(free >= 0), free[free >= 0]
        closed = (nodes.state == UNDECIDED) & (self._size[:, None] > free)
        return replace(nodes, state=np.where(closed, np.int8(CLOSED), nodes.state))

    def _unproved(self, nodes: "_Nodes", threshold: int) -> tuple["_Nodes", Int64Array]:
        """Return the nodes whose bound is above the threshold, and for each a topic to decide next.

        A node begins with the payment that was the best one for its parent, and tries one other, which changes from
        node to node. A topic is decided if the other decision brings the bound down to the threshold; both can be the
        case for different payments, then the node is proved. The topic to decide next is the one of the largest value
        in the division of the least bound. It is ``LEAF`` if no topic has a value without payments: then no topic can
        still add a profit. It is ``CHANGED`` if the decisions leave no topic with a value.
        """
        branch = np.full(len(nodes.which), LEAF)
        if not self._size.size:
            return nodes, branch
        count = len(self._worth)
        least = np.full(len(nodes.which), np.iinfo(np.int64).max)
        for attempt in range(TRIED_PAYMENTS + count):
            # Before a node counts as a leaf, all payments are tried, none at last.
            is_last = attempt >= TRIED_PAYMENTS
            columns = np.flatnonzero(branch == LEAF) if is_last else np.arange(len(branch))
            if not len(columns):
                break
            some = nodes.columns(columns) if is_last else nodes
            other = 1 + np.count_nonzero(some.state, axis=0) % max(count - 1, 1)
            payment = (
                np.full(len(columns), attempt - TRIED_PAYMENTS) if is_last else (some.payment + attempt * other) % count
            )
            bounded = self._bounded(some, payment, threshold)
            state, changed = bounded.decided(some.state, threshold)
            value = np.where(state == UNDECIDED, bounded.value, 0)
            topic = value.argmax(axis=0)
            before, every = branch[columns], np.arange(len(columns))
            better = bounded.least < least[columns]
            is_open = (before >= 0) & (state[np.maximum(before, 0), every] == UNDECIDED)
            chosen = (value[topic, every] > 0) & (better | ~is_open)
            nothing = np.where(changed | (before == CHANGED) | ((before >= 0) & ~is_open), CHANGED, LEAF)
            branch[columns] = np.where(chosen, topic, np.where(is_open, before, nothing))
            nodes.state[:, columns] = state
            nodes.payment[columns[better]] = payment[better]
            least[columns] = np.minimum(least[columns], bounded.least)
            kept = least > threshold
            if not kept.all():
                nodes, least, branch = nodes.columns(kept), least[kept], branch[kept]
        return nodes, branch

    def _bounded(self, nodes: "_Nodes", payment: Int64Array, threshold: int) -> "_Bounded":
        """Compute an upper bound on the profits of each node with some payment."""
        division = self._divided(nodes, payment, self._root_shares)
        bound, reduced = self._bound(nodes, division)
        found = _Bounded(bound, bound, reduced, division.value)
        for _ in range(NODE_PASSES):
            weak = np.flatnonzero(found.least > threshold)
            if len(weak) > MOSTLY * len(payment):
                # Selecting columns costs more than it saves.
                weak = np.arange(len(payment))
                part, of_part = division, nodes
            else:
                part, of_part = division.columns(weak), nodes.columns(weak)
            if len(weak):
                self._exchange(part)
                bound, reduced = self._bound(of_part, part)
                found.bound[weak], found.reduced[:, weak], found.value[:, weak] = bound, reduced, part.value
                found.least[weak] = np.minimum(found.least[weak], bound)
        return found

    def _divided(self, nodes: "_Nodes", payment: Int64Array, first_shares: Int64Array | None = None) -> "_Division":
        """Divide the profit of each client that is neither in nor out among its undecided topics.

        The shares add up to at least the profit. Given shares of the root are used as far as they go.
        """
        state, ranges = nodes.state, len(self._profit)
        combination = payment * ranges + nodes.which
        own = np.take(self._own, combination, axis=1)
        inside = self._always[nodes.which] + self._server.refund[payment, nodes.which]
        inside += (own * (state == OPEN)).sum(axis=0)
        worth = np.take(self._member_worth, combination, axis=1)
        decided = state[self._entry_topic]
        movable = decided == UNDECIDED
        if first_shares is None:
            shares = np.zeros(decided.shape, np.int64)
        else:
            shares = np.take(first_shares, combination, axis=1)
        for group in self._groups:
            shape = -1, group.size, len(payment)
            some, share = movable[group.entries].reshape(shape), shares[group.entries].reshape(shape)
            alive = (decided[group.entries].reshape(shape) != CLOSED).all(axis=1)
            some &= alive[:, None]
            share *= some
            earned = worth[group.members] * alive
            count = some.sum(axis=1, dtype=np.int64)
            inside += np.where(count == 0, earned, 0).sum(axis=0)
            missing = np.maximum(earned - share.sum(axis=1), 0)
            # Rounded up, so that the shares are not less than the profit.
            share += -((-missing * self._parts[count]) >> SPLIT_BITS)[:, None] * some
        value = own * (state == UNDECIDED)
        for topics, entries in self._sums:
            value[topics] += shares[entries].sum(axis=1)
        return _Division(inside, shares, value, movable)

    def _exchange(self, division: "_Division") -> None:
        """Move shares between two topics of the same client so that their values per size become equal."""
        shares, value, movable = division.shares, division.value, division.movable
        for pair in self._exchanges:
            one, other, first, second = pair.one, pair.other, pair.first, pair.second
            of_first, of_second, of_one, of_other = value[first], value[second], shares[one], shares[other]
            moved = (((of_first + of_second) * pair.part) >> PART_BITS) - of_first
            np.minimum(moved, of_other, out=moved)
            np.maximum(moved, -of_one, out=moved)
            moved *= movable[one] & movable[other]
            shares[one] = of_one + moved
            shares[other] = of_other - moved
            value[first] = of_first + moved
            value[second] = of_second - moved

    def _bound(self, nodes: "_Nodes", division: "_Division") -> tuple[Int64Array, Int64Array]:
        """Return an upper bound on the profits of the contents of each node: a knapsack with fractions of topics.

        The second result is what each topic adds to it: its value less the price of its storage.
        """
        value, size = division.value, self._size[:, None]
        density = ((value >> self._value_shift) * self._inverse) >> (INVERSE_BITS - DENSITY_BITS - self._value_shift)
        density = np.minimum(density, LARGEST_DENSITY)
        free = self._free_storage(nodes)
        # A number for each topic that sorts by density and contains the size.
        keys = (density << SIZE_BITS) | np.where(nodes.state == UNDECIDED, size, 0)
        keys = np.sort(np.ascontiguousarray(keys.T), axis=1)[:, ::-1]
        excess = np.cumsum(keys & ((1 << SIZE_BITS) - 1), axis=1) > free[:, None]
        # The first topic that does not fit sets the price of storage. Every price is valid.
        price = np.where(excess.any(axis=1), keys[np.arange(len(keys)), excess.argmax(axis=1)] >> SIZE_BITS, 0)
        reduced = value - ((price * size) >> DENSITY_BITS)
        bound: Int64Array = division.inside + np.maximum(reduced, 0).sum(axis=0) - ((-price * free) >> DENSITY_BITS)
        return bound, reduced

    def _leaf_above(self, nodes: "_Nodes", threshold: int) -> bool:
        """Return whether the clients whose topics are all open may have a profit above the threshold.

        Their compute load is limited. For every price of the load, what they earn above it plus the price of the limit
        is an upper bound.
        """
        profit = self._profit[nodes.which].copy()
        for topic, client in zip(self._topic.tolist(), self._client.tolist(), strict=True):
            profit[nodes.state[topic] != OPEN, client] = 0
        limit = self._load_limit[nodes.which]
        low, high = np.zeros(len(limit), np.int64), np.full(len(limit), LARGEST_DENSITY)
        above = profit.sum(axis=1) > threshold
        while True:
            profit, limit, low, high = (array[above] for array in (profit, limit, low, high))
            if not len(limit):
                return False
            if (high - low <= 1).any():
                return True
            price = (low + high) >> 1
            paid = (price[:, None] * self._load[None, :]) >> DENSITY_BITS
            earns = profit > paid
            bound = np.where(earns, profit - paid, 0).sum(axis=1) - ((-price * limit) >> DENSITY_BITS)
            heavy = np.where(earns, self._load, 0).sum(axis=1) > limit
            low, high = np.where(heavy, price, low), np.where(heavy, high, price)
            above = bound > threshold


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Nodes of the search.

    Attributes
    ----------
    state
        What is decided about each topic.
    which
        The range of each node.
    payment
        The payment that gave its parent the least bound.
    """

    state: StateArray
    which: Int64Array
    payment: Int64Array

    def columns(self, which: BoolArray | Int64Array | slice) -> "_Nodes":
        """Return some of the nodes."""
        return _Nodes(self.state[:, which], self.which[which], self.payment[which])


@dataclass(frozen=True, eq=False)
class _Division:
    """How the profits of some nodes are divided. The nodes are the columns of arrays.

    Attributes
    ----------
    inside
        What is in already, and what the compute limit adds.
    shares
        The share of each entry, a pair of a client and one of its topics.
    value
        The value of each undecided topic: its own clients and its shares.
    movable
        The entries of undecided topics, of clients that are not out.
    """

    inside: Int64Array
    shares: Int64Array
    value: Int64Array
    movable: BoolArray

    def columns(self, which: Int64Array) -> "_Division":
        """Return a copy of some nodes."""
        return _Division(self.inside[which], self.shares[:, which], self.value[:, which], self.movable[:, which])


@dataclass(frozen=True, eq=False)
class _Bounded:
    """Upper bounds on the profits of some nodes, the columns of arrays.

    Attributes
    ----------
    least
        The least bound.
    bound, reduced, value
        The bound of the last division, what each topic adds to it, and the values of the topics.
    """

    least: Int64Array
    bound: Int64Array
    reduced: Int64Array
    value: Int64Array

    def decided(self, state: StateArray, threshold: int) -> tuple[StateArray, BoolArray]:
        """Decide the topics whose other decision brings the bound down to the threshold.

        If a topic adds less than 0, the bound falls by as much if it is opened; otherwise, if it is closed.
        """
        undecided, slack = state == UNDECIDED, self.bound - threshold
        closed, opened = undecided & (self.reduced <= -slack), undecided & (self.reduced >= slack)
        changed: BoolArray = (closed | opened).any(axis=0)
        return np.where(closed, np.int8(CLOSED), np.where(opened, np.int8(OPEN), state)), changed


@dataclass(frozen=True)
class _Group:
    """Members with the same number of topics.

    Attributes
    ----------
    size
        The number of topics.
    entries, members
        Their entries, by member, and their numbers.
    """

    size: int
    entries: slice
    members: slice


@dataclass(frozen=True, eq=False)
class _Exchange:
    """Pairs of topics of a client, without a topic that occurs twice.

    Attributes
    ----------
    one, other, first, second
        The two entries, and their topics.
    part
        The size of the first topic as a part of both sizes, in units of ``2^-PART_BITS``.
    """

    one: Int64Array
    other: Int64Array
    first: Int64Array
    second: Int64Array
    part: Int64Array


def _rounded(sizes: list[int], limits: list[int]) -> tuple[Int64Array, Int64Array]:
    """Round sizes and limits down so that all sizes together have at most ``SIZE_BITS`` bits.

    Sizes that are within a limit are within it also after the rounding. A limit above all sizes is cut off there.
    """
    total = sum(sizes)
    by = max(total.bit_length() - SIZE_BITS, 0)
    rounded = np.array([size >> by for size in sizes], np.int64)
    return rounded, np.array([min(limit, total) >> by for limit in limits], np.int64)
