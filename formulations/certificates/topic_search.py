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
# The number of nodes that are processed together.
BLOCK = 1 << 10
# How often the division of profits is improved: at the root, and at every other node.
ROOT_PASSES, NODE_PASSES = 12, 1

# The number of payments that are tried at a node.
TRIED_PAYMENTS = 2

# What is decided about a topic.
UNDECIDED, OPEN, CLOSED = 0, 1, 2

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
        self._own = np.zeros((payments, ranges, len(self._size)), np.int64)
        for topic, client in zip(self._topic[~several].tolist(), self._client[~several].tolist(), strict=True):
            self._own[:, :, topic] += self._worth[:, :, client]
        # The entries are pairs of a member and one of its topics, by member.
        topics: dict[int, list[int]] = {}
        for topic, item in zip(self._topic[several].tolist(), self._client[several].tolist(), strict=True):
            topics.setdefault(item, []).append(topic)
        # Items with the same topics are one member.
        members: dict[tuple[int, ...], int] = {}
        member = [members.setdefault(tuple(some), len(members)) for some in topics.values()]
        self._member_worth = np.zeros((payments, ranges, len(members)), np.int64)
        for index, item in zip(member, topics, strict=True):
            self._member_worth[:, :, index] += self._worth[:, :, item]
        self._entry_topic = np.array([topic for some in members for topic in some], np.int64)
        self._entry_member = np.repeat(np.arange(len(members)), [len(some) for some in members])
        self._member_start = np.searchsorted(self._entry_member, np.arange(len(members)))
        self._by_topic = np.argsort(self._entry_topic, kind="stable")
        self._shared, self._topic_start = np.unique(self._entry_topic[self._by_topic], return_index=True)

    def _set_exchanges(self) -> None:
        """Group the pairs of topics of the same client so that no topic occurs twice in a group."""
        groups: list[tuple[set[int], list[int], list[int]]] = []
        ends = np.searchsorted(self._entry_member, np.arange(len(self._member_start)), side="right")
        for begin, end in zip(self._member_start.tolist(), ends.tolist(), strict=True):
            # A ring has fewer pairs than all combinations, and shares reach every topic through it.
            entries = range(begin, end)
            ring = zip(entries, [*entries[1:], *entries[: len(entries) > 2]], strict=False)
            for i, j in ring:
                topics = {int(self._entry_topic[i]), int(self._entry_topic[j])}
                group = next((group for group in groups if not group[0] & topics), None)
                if group is None:
                    group = set(), [], []
                    groups.append(group)
                group[0].update(topics)
                group[1].append(i)
                group[2].append(j)
        self._exchanges = [(np.array(one), np.array(other)) for _, one, other in groups]

    def _set_root(self) -> None:
        """Divide the profits at the root of each range; topics of size 0 are open."""
        ranges = len(self._profit)
        self._first_state = np.zeros((ranges, len(self._size)), np.int8)
        self._first_state[:, self._size == 0] = OPEN
        self._root_shares = np.zeros((len(self._worth), ranges, len(self._entry_topic)), np.int64)
        for payment in range(len(self._worth)):
            division = self._divided(self._first_state, np.arange(ranges), np.full(ranges, payment))
            for _ in range(ROOT_PASSES):
                self._exchange(division)
            self._root_shares[payment] = division.shares

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
            nodes = waiting.pop()
            if len(nodes.which) > BLOCK:
                waiting.append(nodes.rows(slice(None, -BLOCK)))
                nodes = nodes.rows(slice(-BLOCK, None))
            self.nodes += len(nodes.which)
            nodes, branch = self._unproved(self._propagated(nodes), threshold)
            leaf = branch < 0
            if leaf.any() and self._leaf_above(nodes.state[leaf], nodes.which[leaf], threshold):
                return True
            nodes, branch = nodes.rows(~leaf), branch[~leaf]
            if len(branch):
                parts = [nodes.state.copy(), nodes.state.copy()]
                for part, decision in zip(parts, (CLOSED, OPEN), strict=True):
                    part[np.arange(len(branch)), branch] = decision
                twice = np.tile(nodes.which, 2), np.tile(nodes.payment, 2)
                waiting.append(_Nodes(np.concatenate(parts), *twice))
        return False

    def _free_storage(self, state: StateArray, which: Int64Array) -> Int64Array:
        used = np.where(state == OPEN, self._size, 0).sum(axis=1)
        free: Int64Array = self._limit[which] - used
        return free

    def _propagated(self, nodes: "_Nodes") -> "_Nodes":
        """Drop the nodes that exceed the storage limit, and close the topics that do not fit any more."""
        free = self._free_storage(nodes.state, nodes.which)
        nodes, free = nodes.rows(free >= 0), free[free >= 0]
        closed = (nodes.state == UNDECIDED) & (self._size[None, :] > free[:, None])
        return replace(nodes, state=np.where(closed, np.int8(CLOSED), nodes.state))

    def _unproved(self, nodes: "_Nodes", threshold: int) -> tuple["_Nodes", Int64Array]:
        """Return the nodes whose bound is above the threshold, and for each a topic to decide next, -1 if none is left.

        A node begins with the payment that was the best one for its parent, and tries one other, which changes from
        node to node. The topic is the one of the largest value in the division of the least bound. A node is a leaf
        only if no topic has a value without payments: then no topic can still add a profit.
        """
        branch = np.full(len(nodes.which), -1)
        if not self._size.size:
            return nodes, branch
        count = len(self._worth)
        least = np.full(len(nodes.which), np.iinfo(np.int64).max)
        for attempt in range(TRIED_PAYMENTS + 1):
            is_last = attempt == TRIED_PAYMENTS
            rows = np.flatnonzero(branch < 0) if is_last else np.arange(len(branch))
            if not len(rows):
                break
            other = 1 + np.count_nonzero(nodes.state, axis=1) % max(count - 1, 1)
            payment = np.full(len(rows), count - 1) if is_last else (nodes.payment + attempt * other) % count
            bound, value = self._bounded(nodes.rows(rows), payment, threshold)
            better = bound < least[rows]
            chosen = (value.max(axis=1) > 0) & (better | (branch[rows] < 0))
            branch[rows[chosen]] = value.argmax(axis=1)[chosen]
            nodes.payment[rows[better]] = payment[better]
            least[rows] = np.minimum(least[rows], bound)
            kept = least > threshold
            nodes, least, branch = nodes.rows(kept), least[kept], branch[kept]
        return nodes, branch

    def _bounded(self, nodes: "_Nodes", payment: Int64Array, threshold: int) -> tuple[Int64Array, Int64Array]:
        """Return an upper bound on the profits of each node with some payment, and the values of the topics."""
        division = self._divided(nodes.state, nodes.which, payment, self._root_shares)
        bound = self._bound(nodes.state, nodes.which, division)
        for _ in range(NODE_PASSES):
            weak = bound > threshold
            if weak.any():
                part = division.rows(weak)
                self._exchange(part)
                bound[weak] = np.minimum(bound[weak], self._bound(nodes.state[weak], nodes.which[weak], part))
                division.value[weak] = part.value
        return bound, division.value

    def _divided(
        self, state: StateArray, which: Int64Array, payment: Int64Array, first_shares: Int64Array | None = None
    ) -> "_Division":
        """Divide the profit of each client that is neither in nor out among its undecided topics.

        The shares add up to at least the profit. Given shares of the root are used as far as they go.
        """
        member = self._entry_member
        decided = state[:, self._entry_topic]
        worth = self._member_worth[payment, which]
        undecided = decided == UNDECIDED
        if len(member):
            out = np.logical_or.reduceat(decided == CLOSED, self._member_start, axis=1)
            count = np.add.reduceat(undecided, self._member_start, axis=1, dtype=np.int64)
        else:
            out, count = np.zeros_like(worth, np.bool_), np.zeros_like(worth)
        own = self._own[payment, which]
        inside = self._always[which] + self._server.refund[payment, which]
        inside = inside + np.where(state == OPEN, own, 0).sum(axis=1)
        inside += np.where(~out & (count == 0), worth, 0).sum(axis=1)
        movable = undecided & ~out[:, member]
        shares = (
            np.zeros(decided.shape, np.int64)
            if first_shares is None
            else np.where(movable, first_shares[payment, which], 0)
        )
        if len(member):
            missing = worth - np.add.reduceat(shares, self._member_start, axis=1)
            shares += np.where(movable, -(-missing // np.maximum(count, 1))[:, member], 0)
        value = np.where(state == UNDECIDED, own, 0)
        if len(member):
            value[:, self._shared] += np.add.reduceat(shares[:, self._by_topic], self._topic_start, axis=1)
        return _Division(inside, shares, value, movable)

    def _exchange(self, division: "_Division") -> None:
        """Move shares between two topics of the same client so that their values per size become equal."""
        shares, value, movable = division.shares, division.value, division.movable
        for one, other in self._exchanges:
            first, second = self._entry_topic[one], self._entry_topic[other]
            total = shares[:, one] + shares[:, other]
            rest_first, rest_second = value[:, first] - shares[:, one], value[:, second] - shares[:, other]
            size_first, size_second = self._size[first], self._size[second]
            equal = ((total + rest_second) * size_first - rest_first * size_second) // np.maximum(
                size_first + size_second, 1
            )
            both = movable[:, one] & movable[:, other]
            new = np.where(both, np.minimum(np.maximum(equal, 0), total), shares[:, one])
            shares[:, one] = new
            shares[:, other] = total - new
            value[:, first] = rest_first + new
            value[:, second] = rest_second + total - new

    def _bound(self, state: StateArray, which: Int64Array, division: "_Division") -> Int64Array:
        """Return an upper bound on the profits of the contents of each node: a knapsack with fractions of topics."""
        value, size = division.value, self._size
        density = (value << DENSITY_BITS) // np.maximum(size, 1)
        order = np.argsort(-density, axis=1, kind="stable")
        free = self._free_storage(state, which)
        used = np.where(state == UNDECIDED, size, 0)
        needed = np.cumsum(np.take_along_axis(used, order, axis=1), axis=1)
        # The first topic that does not fit sets the price of storage. Every price is valid.
        excess = needed > free[:, None]
        first = order[np.arange(len(order)), excess.argmax(axis=1)]
        price = np.where(excess.any(axis=1), density[np.arange(len(order)), first], 0)
        price = np.minimum(price, LARGEST_DENSITY)
        above = np.maximum(value - ((price[:, None] * size[None, :]) >> DENSITY_BITS), 0).sum(axis=1)
        bound: Int64Array = division.inside + above - ((-price * free) >> DENSITY_BITS)
        return bound

    def _leaf_above(self, state: StateArray, which: Int64Array, threshold: int) -> bool:
        """Return whether the clients whose topics are all open may have a profit above the threshold.

        Their compute load is limited. For every price of the load, what they earn above it plus the price of the limit
        is an upper bound.
        """
        profit = self._profit[which].copy()
        for topic, client in zip(self._topic.tolist(), self._client.tolist(), strict=True):
            profit[state[:, topic] != OPEN, client] = 0
        limit = self._load_limit[which]
        low, high = np.zeros(len(which), np.int64), np.full(len(which), LARGEST_DENSITY)
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

    def rows(self, which: BoolArray | Int64Array | slice) -> "_Nodes":
        """Return some of the nodes."""
        return _Nodes(self.state[which], self.which[which], self.payment[which])


@dataclass(frozen=True, eq=False)
class _Division:
    """How the profits of some nodes are divided.

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

    def rows(self, which: BoolArray) -> "_Division":
        """Return a copy of some rows."""
        return _Division(self.inside[which], self.shares[which], self.value[which], self.movable[which])


def _rounded(sizes: list[int], limits: list[int]) -> tuple[Int64Array, Int64Array]:
    """Round sizes and limits down so that all sizes together have at most ``SIZE_BITS`` bits.

    Sizes that are within a limit are within it also after the rounding. A limit above all sizes is cut off there.
    """
    total = sum(sizes)
    by = max(total.bit_length() - SIZE_BITS, 0)
    rounded = np.array([size >> by for size in sizes], np.int64)
    return rounded, np.array([min(limit, total) >> by for limit in limits], np.int64)
