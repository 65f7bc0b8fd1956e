"""The compiled search of the pricing problem: depth-first branch and bound, first over topics and then over clients.

The first levels of the tree decide which topics are *open*: those that a client of the set publishes to. A topic that
is closed excludes all its publishers. So the storage load of the set is known early, and few clients remain for each
choice of topics. The other levels decide one client each. Every set is valued with its exact ``θ``, below the topics
that it opens.

The search runs once for each of several intervals ``θ_low ≤ θ ≤ θ_high``. Inside an interval the loads have the hard
limits ``A/θ_low`` and ``B/θ_low``. The value of a set is linear in ``θ``, so the smaller of the bounds at the two ends
of the interval is a bound on the whole interval, for all signs of the coefficients.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.formulations.branch_price.pricing_problem import BoolArray, PricingProblem, theta_of_loads
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray

# The load limit of the last interval of θ, which has none.
NO_LIMIT = 1e300
# Relative tolerance on the load limits. Loads are running sums of floats, and a set that just fits must not be lost.
ROUNDING = 1e-9
# Bisection steps when the multiplier of the compute limit is computed.
BISECTION_STEPS = 30

# The branch taken at a depth of the search tree. A client that a closed topic has excluded is passed over.
_UNDECIDED, _INCLUDED, _EXCLUDED, _PASSED = 0, 1, 2, 3
# The two ends of an interval of θ, as an index.
_LOW, _HIGH = 0, 1
# The totals at a node, as an index: values and loads of its set and its open topics, and the loads with everything that
# is undecided.
_FIXED, _LOCAL, _STORAGE, _COMPUTE, _MOST_STORAGE, _MOST_COMPUTE = 0, 1, 2, 3, 4, 5
# Numbers of open topics, as an index: without a publisher in the set, and without one that is in it or undecided.
_UNSERVED, _DEAD = 0, 1


class _Interval(NamedTuple):
    """An interval of ``θ``, the loads it allows, and its position among all intervals."""

    low: float
    high: float
    storage_limit: float
    compute_limit: float
    first: bool  # θ = 1 alone
    last: bool  # reaches down to the least θ that any set has


class _Tree(NamedTuple):
    """The state of the depth-first search: the path to the current node."""

    topics: OffsetArray  # the topic decided at each of the first depths
    order: OffsetArray  # the client decided at each of the following depths
    branch: npt.NDArray[np.int8]  # the branch taken at each depth
    totals: FloatArray  # (depth+1)×6
    included: BoolArray  # the set at the current node
    undecided: BoolArray  # clients
    closed_by: OffsetArray  # the depth of the topic that excluded each client
    open: BoolArray  # topics that must have a publisher in the set
    asked: BoolArray  # topics that are undecided
    publishers: OffsetArray  # of each topic, in the set
    candidates: OffsetArray  # of each topic, publishers that are in the set or undecided
    counts: OffsetArray  # 2: see _UNSERVED and _DEAD
    contribution: FloatArray  # 2×M: lower bound on what an undecided client adds, at both ends of the interval
    multiplier: FloatArray  # 2: multiplier of the compute limit, at both ends of the interval
    publisher_start: OffsetArray
    publisher: OffsetArray  # the publishers of topic n are publisher[publisher_start[n]:publisher_start[n+1]]


class _Columns(NamedTuple):
    """The best sets found so far, sorted by value. Numbers that change are arrays of one entry: tuples are constant."""

    client_sets: BoolArray
    values: FloatArray
    found: OffsetArray  # how many there are
    cutoff: FloatArray  # a set is recorded if its value is below this


@compiled
def _integer(value: int) -> int:
    """Return the argument. What is called with a constant, numba compiles for that constant and again for integers."""
    return int(np.int64(value))


@compiled
def search(
    p: PricingProblem,
    required: BoolArray,
    topics: OffsetArray,
    order: OffsetArray,
    ends: FloatArray,
    limit: float,
    most_nodes: int,
    client_sets: BoolArray,
    values: FloatArray,
) -> tuple[int, float, bool, int]:
    """Search all intervals of ``θ`` and fill ``client_sets`` and ``values``.

    Parameters
    ----------
    p
        The pricing problem.
    required
        The clients of every set.
    topics, order
        The topics and clients to decide, in this order. Topics that are not listed do not load storage, or a required
        client opens them.
    ends
        1, and then the lower end of each interval of ``θ``.
    limit
        Only sets with a smaller value are recorded.
    most_nodes
        The search stops after this number of nodes.
    client_sets, values
        The best sets and their values are written here.

    Returns
    -------
    count, bound, complete, nodes
        The number of sets found, a lower bound on all sets, whether the search is complete, and the number of nodes.
    """
    tree = _new_tree(p, topics, order)
    columns = _Columns(client_sets, values, np.zeros(1, np.int64), np.full(1, limit))
    bounds = np.empty(len(ends))
    for number in range(len(ends)):
        interval = _interval(p, ends, number)
        _start(p, tree, required, interval)
        bounds[number] = _bound(p, tree, _integer(0), interval, interval.high)
    nodes, complete = _integer(0), True
    # The interval with the least bound is first: good sets found there prune the other intervals.
    for number in np.argsort(bounds):
        interval = _interval(p, ends, number)
        _start(p, tree, required, interval)
        if tree.totals[0, _STORAGE] <= interval.storage_limit and tree.totals[0, _COMPUTE] <= interval.compute_limit:
            nodes, complete = _search_interval(p, tree, interval, columns, nodes, most_nodes)
        if not complete:
            break
    return columns.found[0], bounds.min(), complete, nodes


# All tests of the search are in this loop, and each step is one call of a function with one exit. Otherwise numba
# counts references to every array of the arguments in each call, which made the search three times slower.
@compiled
def _search_interval(
    p: PricingProblem,
    tree: _Tree,
    interval: _Interval,
    columns: _Columns,
    nodes: int,
    most_nodes: int,
) -> tuple[int, bool]:
    """Search one interval depth first; return the number of nodes so far and whether the search may go on."""
    depth = _integer(0)
    n_topics = len(tree.topics)
    n_levels = n_topics + len(tree.order)
    while depth >= 0:
        branch = tree.branch[depth]
        if branch == _UNDECIDED:  # a new node
            nodes += 1
            if nodes > most_nodes:
                return nodes, False
            theta = _theta_at(p, tree, depth, _STORAGE, _COMPUTE)
            # After an exclusion the set is that of the parent node, where it was recorded.
            if depth >= n_topics and (depth == n_topics or tree.branch[depth - 1] == _INCLUDED):
                value = tree.totals[depth, _FIXED] + theta * tree.totals[depth, _LOCAL]
                served = tree.counts[_UNSERVED] == 0
                if served and value < columns.cutoff[0] and _contains(interval, theta):
                    _record_column(columns, tree, value)
            # Opening topics and including clients never raises θ, so the sets below this node have a θ from the low end
            # to this one, and not below that with everything undecided.
            top = min(interval.high, max(theta, interval.low))
            if (
                depth == n_levels
                or tree.counts[_DEAD] > 0
                or _theta_at(p, tree, depth, _MOST_STORAGE, _MOST_COMPUTE) > interval.high
                or (
                    # The bound of a client that is passed over is that of the node before.
                    (depth == 0 or tree.branch[depth - 1] != _PASSED)
                    and _bound(p, tree, depth, interval, top) >= columns.cutoff[0]
                )
            ):
                depth -= 1  # a leaf, or pruned
            elif depth < n_topics:
                if _can_open(p, tree, depth, interval):
                    _open_topic(p, tree, depth, 1)
                    depth = _descend(tree, depth, _INCLUDED)
                else:
                    _close_topic(p, tree, depth, interval)
                    depth = _descend(tree, depth, _EXCLUDED)
            elif not tree.undecided[tree.order[depth - n_topics]]:
                _keep_totals(tree, depth)
                depth = _descend(tree, depth, _PASSED)
            elif tree.totals[depth, _COMPUTE] + p.demand[tree.order[depth - n_topics]] <= interval.compute_limit:
                _include(p, tree, tree.order[depth - n_topics], interval, depth, depth + 1)
                depth = _descend(tree, depth, _INCLUDED)
            else:
                _exclude(p, tree, depth, interval)
                depth = _descend(tree, depth, _EXCLUDED)
        elif branch == _PASSED:
            depth -= 1
        elif depth < n_topics:
            if branch == _INCLUDED:  # back from the first branch
                _open_topic(p, tree, depth, -1)
                _close_topic(p, tree, depth, interval)
                depth = _descend(tree, depth, _EXCLUDED)
            else:  # back from the second branch
                _undo_close_topic(p, tree, depth, interval)
                depth -= 1
        elif branch == _INCLUDED:
            _undo_include(p, tree, tree.order[depth - n_topics], interval)
            _exclude(p, tree, depth, interval)
            depth = _descend(tree, depth, _EXCLUDED)
        else:
            _undo_exclude(p, tree, tree.order[depth - n_topics], interval)
            depth -= 1
    return nodes, True


@compiled
def _descend(tree: _Tree, depth: int, branch: int) -> int:
    """Note the branch taken at a depth and return the depth of the child node."""
    tree.branch[depth] = branch
    tree.branch[depth + 1] = _UNDECIDED
    return depth + 1


@compiled
def _record_column(columns: _Columns, tree: _Tree, value: float) -> None:
    """Insert the set at the current node into the sorted list; the worst one leaves a full list."""
    place = min(columns.found[0], len(columns.values) - 1)
    while place > 0 and columns.values[place - 1] > value:
        columns.values[place] = columns.values[place - 1]
        columns.client_sets[place] = columns.client_sets[place - 1]
        place -= 1
    columns.values[place] = value
    columns.client_sets[place] = tree.included
    columns.found[0] = min(columns.found[0] + 1, len(columns.values))
    if columns.found[0] == len(columns.values):
        columns.cutoff[0] = columns.values[-1]


@compiled
def _contains(interval: _Interval, theta: float) -> bool:
    """Return whether sets with this ``θ`` belong to an interval, so that each set is recorded in one interval only."""
    if interval.first:
        # If this is also the last interval, all clients fit together, and θ < 1 can only come from rounding.
        return interval.last or theta == 1.0
    return theta < 1.0 and (interval.last or theta > interval.low) and theta <= interval.high


@compiled
def _theta_at(p: PricingProblem, tree: _Tree, depth: int, storage: int, compute: int) -> float:
    """Return ``θ`` of two of the totals at a node."""
    totals = tree.totals
    return theta_of_loads(p.storage_capacity, p.compute_capacity, totals[depth, storage], totals[depth, compute])


@compiled
def _interval(p: PricingProblem, ends: FloatArray, number: int) -> _Interval:
    """Return an interval. The first is θ = 1 alone, the last allows any load."""
    low, high = ends[number], ends[max(number - 1, 0)]
    first, last = number == 0, number == len(ends) - 1
    storage_limit, compute_limit = NO_LIMIT, NO_LIMIT
    if not last:
        storage_limit = p.storage_capacity / low * (1 + ROUNDING)
        compute_limit = p.compute_capacity / low * (1 + ROUNDING)
    return _Interval(low, high, storage_limit, compute_limit, first, last)


@compiled
def _new_tree(p: PricingProblem, topics: OffsetArray, order: OffsetArray) -> _Tree:
    clients, n_topics, depths = len(p.fixed), len(p.spool), len(topics) + len(order) + 1
    publisher_start = np.zeros(n_topics + 1, np.int64)
    for n in p.topic:
        publisher_start[n + 1] += 1
    publisher_start = np.cumsum(publisher_start)
    publisher, filled = np.zeros(len(p.topic), np.int64), publisher_start.copy()
    for m in range(clients):
        for e in range(p.topic_start[m], p.topic_start[m + 1]):
            publisher[filled[p.topic[e]]] = m
            filled[p.topic[e]] += 1
    return _Tree(
        topics,
        order,
        np.zeros(depths, np.int8),
        np.zeros((depths, 6)),
        np.zeros(clients, np.bool_),
        np.zeros(clients, np.bool_),
        np.zeros(clients, np.int64),
        np.zeros(n_topics, np.bool_),
        np.zeros(n_topics, np.bool_),
        np.zeros(n_topics, np.int64),
        np.zeros(n_topics, np.int64),
        np.zeros(2, np.int64),
        np.zeros((2, clients)),
        np.zeros(2),
        publisher_start,
        publisher,
    )


@compiled
def _start(p: PricingProblem, tree: _Tree, required: BoolArray, interval: _Interval) -> None:
    """Move to the root node of an interval, where only the required clients are included."""
    tree.included[:] = False
    tree.undecided[:] = False
    tree.closed_by[:] = -1
    tree.open[:] = False
    tree.asked[:] = False
    tree.publishers[:] = 0
    tree.candidates[:] = 0
    tree.counts[:] = 0
    tree.totals[0] = 0.0
    tree.branch[0] = _UNDECIDED
    for m in range(len(required)):
        if required[m]:
            for e in range(p.topic_start[m], p.topic_start[m + 1]):
                n = p.topic[e]
                if tree.publishers[n] == 0:
                    tree.totals[0, _STORAGE] += p.spool[n]
                tree.candidates[n] += 1
            _include(p, tree, m, interval, _integer(0), _integer(0))
    tree.totals[0, _MOST_STORAGE] = tree.totals[0, _STORAGE]
    tree.totals[0, _MOST_COMPUTE] = tree.totals[0, _COMPUTE]
    for n in tree.topics:
        tree.asked[n] = True
        tree.totals[0, _MOST_STORAGE] += p.spool[n]
    for m in tree.order:
        tree.undecided[m] = True
        tree.totals[0, _MOST_COMPUTE] += p.demand[m]
        for e in range(p.topic_start[m], p.topic_start[m + 1]):
            tree.candidates[p.topic[e]] += 1
    # What is subtracted from these two below has rounding errors, which must not exclude a set.
    tree.totals[0, _MOST_STORAGE] *= 1 + ROUNDING
    tree.totals[0, _MOST_COMPUTE] *= 1 + ROUNDING
    for m in tree.order:
        tree.contribution[_LOW, m] = _least_contribution(p, tree, m, interval.low)
        tree.contribution[_HIGH, m] = _least_contribution(p, tree, m, interval.high)
    for end in range(2):
        tree.multiplier[end] = _compute_multiplier(p, tree, end, interval.compute_limit)


@compiled
def _least_contribution(p: PricingProblem, tree: _Tree, m: int, theta: float) -> float:
    """Return a lower bound on what an undecided client adds to the value at a given ``θ``."""
    least = p.fixed[m] + theta * p.local[m]
    for e in range(p.start[m], p.start[m + 1]):
        pair = p.pair_fixed[e] + theta * p.pair_local[e]
        if tree.included[p.neighbour[e]]:
            least += pair
        elif tree.undecided[p.neighbour[e]]:
            least += 0.5 * min(0.0, pair)  # the other half belongs to the neighbour
    return float(least)


@compiled
def _compute_multiplier(p: PricingProblem, tree: _Tree, end: int, compute_limit: float) -> float:
    """Return the multiplier at which the profitable clients just use up the compute limit, found by bisection.

    Any multiplier from 0 on gives a valid bound.
    """
    low, high, used = 0.0, 0.0, tree.totals[0, _COMPUTE]
    for m in tree.order:
        if p.demand[m] > 0 and tree.contribution[end, m] < 0:
            used += p.demand[m]
            high = max(high, -tree.contribution[end, m] / p.demand[m])
    if used <= compute_limit:
        return 0.0
    for _ in range(BISECTION_STEPS):
        multiplier = 0.5 * (low + high)
        used = tree.totals[0, _COMPUTE]
        for m in tree.order:
            if tree.contribution[end, m] + multiplier * p.demand[m] < 0:
                used += p.demand[m]
        if used > compute_limit:
            low = multiplier
        else:
            high = multiplier
    return float(high)


@compiled
def _bound(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval, top: float) -> float:
    """Return a lower bound on the values of all sets below a node with a ``θ`` from ``interval.low`` to ``top``.

    The compute limit is relaxed with its multiplier; otherwise the contributions of more clients than fit would be
    counted. A client's contribution is concave in ``θ``, so between the ends of the interval it is not below the
    straight line between its values there.
    """
    at_low, at_top, priced_low, priced_top = 0.0, 0.0, 0.0, 0.0
    storage_left = interval.storage_limit - tree.totals[depth, _STORAGE]
    compute_left = interval.compute_limit - tree.totals[depth, _COMPUTE]
    multiplier_low, multiplier_high = tree.multiplier[_LOW], tree.multiplier[_HIGH]
    position = (top - interval.low) / (interval.high - interval.low) if interval.high > interval.low else 1.0
    for i in range(max(depth - len(tree.topics), 0), len(tree.order)):
        m = tree.order[i]
        demand = p.demand[m]
        if not tree.undecided[m] or demand > compute_left:
            continue
        if demand > storage_left and _added_storage(p, tree, m) > storage_left:
            continue
        low, high = tree.contribution[_LOW, m], tree.contribution[_HIGH, m]
        between = low + (high - low) * position
        at_low += min(0.0, low)
        at_top += min(0.0, between)
        priced_low += min(0.0, low + multiplier_low * demand)
        priced_top += min(0.0, between + multiplier_high * demand)
    # The test is for infinite capacities: 0 times an infinite limit is not a number.
    if multiplier_low > 0:
        at_low = max(at_low, priced_low - multiplier_low * compute_left)
    if multiplier_high > 0:
        at_top = max(at_top, priced_top - multiplier_high * compute_left)
    fixed, local = tree.totals[depth, _FIXED], tree.totals[depth, _LOCAL]
    return float(min(fixed + interval.low * local + at_low, fixed + top * local + at_top))


@compiled
def _added_storage(p: PricingProblem, tree: _Tree, m: int) -> float:
    """Return the storage of the undecided topics that a client publishes to."""
    added = 0.0
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        if tree.asked[p.topic[e]]:
            added += p.spool[p.topic[e]]
    return added


@compiled
def _can_open(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> bool:
    """Return whether the topic of a depth fits, and a publisher of it is left."""
    n = tree.topics[depth]
    fits = tree.totals[depth, _STORAGE] + p.spool[n] <= interval.storage_limit
    return bool(fits & (tree.candidates[n] > 0))


@compiled
def _open_topic(p: PricingProblem, tree: _Tree, depth: int, sign: int) -> None:
    """Branch: open the topic of a depth (``sign`` = 1), or backtrack from there (-1)."""
    n = tree.topics[depth]
    tree.asked[n] = sign < 0
    tree.open[n] = sign > 0
    tree.counts[_UNSERVED] += sign
    _keep_totals(tree, depth)
    tree.totals[depth + 1, _STORAGE] += p.spool[n]


@compiled
def _close_topic(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Branch: close the topic of a depth, which excludes its publishers."""
    n = tree.topics[depth]
    tree.asked[n] = False
    _keep_totals(tree, depth)
    for e in range(tree.publisher_start[n], tree.publisher_start[n + 1]):
        m = tree.publisher[e]
        if tree.undecided[m]:
            tree.closed_by[m] = depth
            _exclude_client(p, tree, m, interval)
            tree.totals[depth + 1, _MOST_COMPUTE] -= p.demand[m]
    tree.totals[depth + 1, _MOST_STORAGE] -= p.spool[n]


@compiled
def _undo_close_topic(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Backtrack from the branch that closes the topic of a depth."""
    n = tree.topics[depth]
    tree.asked[n] = True
    for e in range(tree.publisher_start[n + 1] - 1, tree.publisher_start[n] - 1, -1):
        m = tree.publisher[e]
        if tree.closed_by[m] == depth:
            tree.closed_by[m] = -1
            _undo_exclude(p, tree, m, interval)


@compiled
def _keep_totals(tree: _Tree, depth: int) -> None:
    """Copy the totals of a node to the next depth.

    The totals of every depth are kept. Subtracting when backtracking would leave rounding errors, and a server without
    capacity must be recognised as empty.
    """
    for total in range(6):
        tree.totals[depth + 1, total] = tree.totals[depth, total]


@compiled
def _include(p: PricingProblem, tree: _Tree, m: int, interval: _Interval, parent: int, child: int) -> None:
    """Branch: include a client; compute the totals at depth ``child`` from those at depth ``parent``."""
    tree.undecided[m] = False
    tree.included[m] = True
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        n = p.topic[e]
        tree.publishers[n] += 1
        tree.counts[_UNSERVED] -= tree.open[n] and tree.publishers[n] == 1
    pairs_fixed, pairs_local = _update_after_inclusion(p, tree, m, interval, 1.0)
    for total in range(_STORAGE, 6):
        tree.totals[child, total] = tree.totals[parent, total]
    tree.totals[child, _FIXED] = tree.totals[parent, _FIXED] + (p.fixed[m] + pairs_fixed)
    tree.totals[child, _LOCAL] = tree.totals[parent, _LOCAL] + (p.local[m] + pairs_local)
    tree.totals[child, _COMPUTE] = tree.totals[parent, _COMPUTE] + p.demand[m]


@compiled
def _undo_include(p: PricingProblem, tree: _Tree, m: int, interval: _Interval) -> None:
    """Backtrack from the branch that includes a client."""
    tree.included[m] = False
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        n = p.topic[e]
        tree.publishers[n] -= 1
        tree.counts[_UNSERVED] += tree.open[n] and tree.publishers[n] == 0
    _update_after_inclusion(p, tree, m, interval, -1.0)


@compiled
def _exclude(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Branch: exclude the client of a depth."""
    m = tree.order[depth - len(tree.topics)]
    _exclude_client(p, tree, m, interval)
    _keep_totals(tree, depth)
    tree.totals[depth + 1, _MOST_COMPUTE] -= p.demand[m]


@compiled
def _exclude_client(p: PricingProblem, tree: _Tree, m: int, interval: _Interval) -> None:
    """Exclude an undecided client."""
    tree.undecided[m] = False
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        n = p.topic[e]
        tree.candidates[n] -= 1
        tree.counts[_DEAD] += tree.open[n] and tree.candidates[n] == 0
    _update_after_exclusion(p, tree, m, interval, 1.0)


@compiled
def _undo_exclude(p: PricingProblem, tree: _Tree, m: int, interval: _Interval) -> None:
    """Make an excluded client undecided again."""
    _update_after_exclusion(p, tree, m, interval, -1.0)
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        n = p.topic[e]
        tree.counts[_DEAD] -= tree.open[n] and tree.candidates[n] == 0
        tree.candidates[n] += 1
    tree.undecided[m] = True


@compiled
def _update_after_inclusion(
    p: PricingProblem, tree: _Tree, m: int, interval: _Interval, sign: float
) -> tuple[float, float]:
    """Update the neighbours' contributions when a client is included (``sign`` = 1) or no longer (-1).

    Returns
    -------
    fixed, local
        The value of the pairs that the client forms inside the set.
    """
    fixed, local = 0.0, 0.0
    for e in range(p.start[m], p.start[m + 1]):
        r = p.neighbour[e]
        if tree.included[r]:
            fixed += p.pair_fixed[e]
            local += p.pair_local[e]
        elif tree.undecided[r]:
            at_low = p.pair_fixed[e] + interval.low * p.pair_local[e]
            at_high = p.pair_fixed[e] + interval.high * p.pair_local[e]
            # The pair is now certain if the neighbour is included; before, half of a negative value was counted.
            tree.contribution[_LOW, r] += sign * (at_low - 0.5 * min(0.0, at_low))
            tree.contribution[_HIGH, r] += sign * (at_high - 0.5 * min(0.0, at_high))
    return fixed, local


@compiled
def _update_after_exclusion(p: PricingProblem, tree: _Tree, m: int, interval: _Interval, sign: float) -> None:
    """Update the neighbours' contributions when a client is excluded (``sign`` = 1) or no longer (-1).

    The pairs with an excluded client are worth nothing.
    """
    for e in range(p.start[m], p.start[m + 1]):
        r = p.neighbour[e]
        if tree.undecided[r]:
            tree.contribution[_LOW, r] -= sign * 0.5 * min(0.0, p.pair_fixed[e] + interval.low * p.pair_local[e])
            tree.contribution[_HIGH, r] -= sign * 0.5 * min(0.0, p.pair_fixed[e] + interval.high * p.pair_local[e])
