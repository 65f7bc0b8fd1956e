"""The pricing problem of branch and price: find the client sets of least reduced cost for one server.

A column is a server together with the set ``S`` of the clients whose home it is. For given dual variables the value of
a set is

    value(S) = fixed(S) + θ(S)·local(S),    θ(S) = min(1, A/a(S), B/v(S)),

where ``fixed`` and ``local`` are sums over the clients of ``S`` and over the pairs of clients inside ``S``. The pricing
problem is solved by depth-first branch and bound. Each level of the tree decides one client: it is included first and
excluded afterwards. Every set is valued with its exact ``θ``.

The search runs once for each of several intervals ``θ_low ≤ θ ≤ θ_high``. Inside an interval the loads have the hard
limits ``A/θ_low`` and ``B/θ_low``. The value of a set is linear in ``θ``, so the smaller of the bounds at the two ends
of the interval is a bound on the whole interval, for all signs of the coefficients.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray

BoolArray = npt.NDArray[np.bool_]

# The load limit of the last interval of θ, which has none.
NO_LIMIT = 1e300
# Each interval of θ begins at this share of its upper end. Narrow intervals give better bounds, but there are more of
# them. With 30 clients, 0.9 and 0.97 needed the same number of nodes, 0.8 needed three times as many.
INTERVAL_RATIO = 0.93
# Below this value of θ a single interval reaches down to the least θ. With a capacity of 0 the number of intervals of
# constant ratio would be infinite.
SMALLEST_INTERVAL_END = 0.01
# Relative tolerance on the load limits. Loads are running sums of floats, and a set that just fits must not be lost.
ROUNDING = 1e-9
# Clients are branched on in the order of their value at this θ.
THETA_OF_BRANCHING_ORDER = 0.7
# Bisection steps when the multiplier of the compute limit is computed.
BISECTION_STEPS = 30

# The branch taken at a depth of the search tree.
_UNDECIDED, _INCLUDED, _EXCLUDED = 0, 1, 2
# The two ends of an interval of θ, as an index.
_LOW, _HIGH = 0, 1
# The totals of the set at a node, as an index.
_FIXED, _LOCAL, _STORAGE, _COMPUTE = 0, 1, 2, 3


class PricingProblem(NamedTuple):
    """The pricing problem of one server.

    Attributes
    ----------
    fixed, local
        Value of each client in the set: ``fixed + θ·local``.
    start, neighbour, pair_fixed, pair_local
        The clients that client ``m`` forms a valued pair with are ``neighbour[start[m]:start[m+1]]``. A pair adds
        ``pair_fixed + θ·pair_local`` if both clients are in the set. Each pair is listed at both of its clients.
    demand
        ``U``.
    topic_start, topic
        The topics that client ``m`` publishes to are ``topic[topic_start[m]:topic_start[m+1]]``.
    spool
        ``u``.
    storage_capacity, compute_capacity
        ``A`` and ``B`` of the server.
    """

    fixed: FloatArray
    local: FloatArray
    start: OffsetArray
    neighbour: OffsetArray
    pair_fixed: FloatArray
    pair_local: FloatArray
    demand: FloatArray
    topic_start: OffsetArray
    topic: OffsetArray
    spool: FloatArray
    storage_capacity: float
    compute_capacity: float


class PricingResult(NamedTuple):
    """The result of a pricing search.

    Attributes
    ----------
    client_sets
        The best sets with a value below the limit, best first (one row of flags per set).
    values
        Their values.
    least
        A lower bound on the value of every set. It is attained, or equal to the limit, if the search is complete.
    complete
        Whether the whole tree was searched.
    nodes
        Number of nodes visited.
    """

    client_sets: BoolArray
    values: FloatArray
    least: float
    complete: bool
    nodes: int


def price_columns(
    problem: PricingProblem,
    required: BoolArray,
    forbidden: BoolArray,
    *,
    limit: float,
    most: int,
    most_nodes: int,
) -> PricingResult:
    """Find the client sets of least value.

    Parameters
    ----------
    problem
        The pricing problem of a server.
    required, forbidden
        Clients that must and that must not be in the set.
    limit
        Only sets with a smaller value are returned.
    most
        The largest number of sets to return.
    most_nodes
        The search stops after this number of nodes.

    Returns
    -------
    PricingResult
        The sets and a lower bound on all values.
    """
    ends = _interval_ends(theta_of(problem, np.flatnonzero(~forbidden)))
    free = np.flatnonzero(~forbidden & ~required)
    order = free[np.argsort((problem.fixed + THETA_OF_BRANCHING_ORDER * problem.local)[free], kind="stable")]
    client_sets = np.zeros((most, len(problem.fixed)), np.bool_)
    values = np.zeros(most)
    count, bound, complete, nodes = _search(
        problem, required, order.astype(np.int64), ends, limit, most_nodes, client_sets, values
    )
    least = (values[0] if count else limit) if complete else min(bound, limit)
    return PricingResult(client_sets[:count], values[:count], float(least), bool(complete), int(nodes))


def theta_of(problem: PricingProblem, clients: npt.NDArray[np.intp]) -> float:
    """Compute ``θ`` of a set of clients.

    Parameters
    ----------
    problem
        The pricing problem of the server.
    clients
        The indices of the clients in the set.

    Returns
    -------
    float
        ``θ(S)``.
    """
    topics = {int(n) for m in clients for n in problem.topic[problem.topic_start[m] : problem.topic_start[m + 1]]}
    storage_load = float(problem.spool[sorted(topics)].sum())
    compute_load = float(problem.demand[clients].sum())
    return float(_theta(problem.storage_capacity, problem.compute_capacity, storage_load, compute_load))


def _interval_ends(least_theta: float) -> FloatArray:
    """Divide the range of ``θ`` into intervals: return 1 and then the lower end of each interval."""
    ends = [1.0]
    while ends[-1] > least_theta:
        end = ends[-1] * INTERVAL_RATIO
        ends.append(end if end > max(least_theta, SMALLEST_INTERVAL_END) else least_theta)
    return np.array(ends)


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

    order: OffsetArray  # the client decided at each depth
    branch: npt.NDArray[np.int8]  # the branch taken at each depth
    totals: FloatArray  # (depth+1)×4: value coefficients and loads of the set at each node of the path
    included: BoolArray  # the set at the current node
    undecided: BoolArray
    publishers: OffsetArray  # of each topic, in the set
    contribution: FloatArray  # 2×M: lower bound on what an undecided client adds, at both ends of the interval
    multiplier: FloatArray  # 2: multiplier of the compute limit, at both ends of the interval


class _Columns(NamedTuple):
    """The best sets found so far, sorted by value. Numbers that change are arrays of one entry: tuples are constant."""

    client_sets: BoolArray
    values: FloatArray
    found: OffsetArray  # how many there are
    cutoff: FloatArray  # a set is recorded if its value is below this


@compiled
def _search(
    p: PricingProblem,
    required: BoolArray,
    order: OffsetArray,
    ends: FloatArray,
    limit: float,
    most_nodes: int,
    client_sets: BoolArray,
    values: FloatArray,
) -> tuple[int, float, bool, int]:
    """Search all intervals of ``θ`` and fill ``client_sets`` and ``values``.

    Returns
    -------
    count, bound, complete, nodes
        The number of sets found, a lower bound on all sets, whether the search is complete, and the number of nodes.
    """
    tree = _new_tree(p, order)
    columns = _Columns(client_sets, values, np.zeros(1, np.int64), np.full(1, limit))
    bounds = np.empty(len(ends))
    for number in range(len(ends)):
        interval = _interval(p, ends, number)
        _start(p, tree, required, interval)
        bounds[number] = _bound(p, tree, 0, interval, interval.high)
    nodes, complete = 0, True
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
    depth = 0
    while depth >= 0:
        if tree.branch[depth] == _UNDECIDED:  # a new node
            nodes += 1
            if nodes > most_nodes:
                return nodes, False
            theta = _theta_at(p, tree, depth)
            # After an exclusion the set is that of the parent node, where it was recorded.
            if depth == 0 or tree.branch[depth - 1] == _INCLUDED:
                value = tree.totals[depth, _FIXED] + theta * tree.totals[depth, _LOCAL]
                if _contains(interval, theta) and value < columns.cutoff[0]:
                    _record_column(columns, tree, value)
            # Including more clients never raises θ, so the sets below this node have a θ from the low end to this one.
            top = min(interval.high, max(theta, interval.low))
            if depth == len(tree.order) or _bound(p, tree, depth, interval, top) >= columns.cutoff[0]:
                depth -= 1  # a leaf, or pruned
            elif _fits(p, tree, depth, interval):
                _include(p, tree, tree.order[depth], interval, depth, depth + 1)
                depth = _descend(tree, depth, _INCLUDED)
            else:
                _exclude(p, tree, depth, interval)
                depth = _descend(tree, depth, _EXCLUDED)
        elif tree.branch[depth] == _INCLUDED:  # back from the first branch
            _undo_include(p, tree, depth, interval)
            _exclude(p, tree, depth, interval)
            depth = _descend(tree, depth, _EXCLUDED)
        else:  # back from the second branch
            _undo_exclude(p, tree, depth, interval)
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
def _theta(storage_capacity: float, compute_capacity: float, storage_load: float, compute_load: float) -> float:
    theta = 1.0
    if storage_load > storage_capacity:
        theta = storage_capacity / storage_load
    if compute_load > compute_capacity:
        theta = min(theta, compute_capacity / compute_load)
    return float(theta)


@compiled
def _theta_at(p: PricingProblem, tree: _Tree, depth: int) -> float:
    """Return ``θ`` of the set at a node."""
    totals = tree.totals
    return _theta(p.storage_capacity, p.compute_capacity, totals[depth, _STORAGE], totals[depth, _COMPUTE])


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
def _new_tree(p: PricingProblem, order: OffsetArray) -> _Tree:
    clients, depths = len(p.fixed), len(order) + 1
    return _Tree(
        order,
        np.zeros(depths, np.int8),
        np.zeros((depths, 4)),
        np.zeros(clients, np.bool_),
        np.zeros(clients, np.bool_),
        np.zeros(len(p.spool), np.int64),
        np.zeros((2, clients)),
        np.zeros(2),
    )


@compiled
def _start(p: PricingProblem, tree: _Tree, required: BoolArray, interval: _Interval) -> None:
    """Move to the root node of an interval, where only the required clients are included."""
    tree.included[:] = False
    tree.undecided[:] = False
    tree.publishers[:] = 0
    tree.totals[0] = 0.0
    tree.branch[0] = _UNDECIDED
    for m in range(len(required)):
        if required[m]:
            _include(p, tree, m, interval, 0, 0)
    for m in tree.order:
        tree.undecided[m] = True
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
    at_low, at_top = 0.0, 0.0
    storage_left = interval.storage_limit - tree.totals[depth, _STORAGE]
    compute_left = interval.compute_limit - tree.totals[depth, _COMPUTE]
    multiplier_low, multiplier_high = tree.multiplier[_LOW], tree.multiplier[_HIGH]
    position = (top - interval.low) / (interval.high - interval.low) if interval.high > interval.low else 1.0
    for i in range(depth, len(tree.order)):
        m = tree.order[i]
        demand = p.demand[m]
        if demand > compute_left or (demand > storage_left and _added_storage(p, tree, m) > storage_left):
            continue
        low, high = tree.contribution[_LOW, m], tree.contribution[_HIGH, m]
        at_low += min(0.0, low + multiplier_low * demand)
        at_top += min(0.0, low + (high - low) * position + multiplier_high * demand)
    # The test is for infinite capacities: 0 times an infinite limit is not a number.
    if multiplier_low > 0:
        at_low -= multiplier_low * compute_left
    if multiplier_high > 0:
        at_top -= multiplier_high * compute_left
    fixed, local = tree.totals[depth, _FIXED], tree.totals[depth, _LOCAL]
    return float(min(fixed + interval.low * local + at_low, fixed + top * local + at_top))


@compiled
def _added_storage(p: PricingProblem, tree: _Tree, m: int) -> float:
    """Return the storage of the topics that have no publisher in the set yet and that the client publishes to."""
    added = 0.0
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        if tree.publishers[p.topic[e]] == 0:
            added += p.spool[p.topic[e]]
    return added


@compiled
def _fits(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> bool:
    """Return whether the client of a depth can be included within the load limits of the interval."""
    m = tree.order[depth]
    storage_load = tree.totals[depth, _STORAGE] + _added_storage(p, tree, m)
    compute_load = tree.totals[depth, _COMPUTE] + p.demand[m]
    return bool((compute_load <= interval.compute_limit) & (storage_load <= interval.storage_limit))


@compiled
def _include(p: PricingProblem, tree: _Tree, m: int, interval: _Interval, parent: int, child: int) -> None:
    """Branch: include a client; compute the totals at depth ``child`` from those at depth ``parent``.

    The totals of the parent are kept. Subtracting when backtracking would leave rounding errors, and a server without
    capacity must be recognised as empty.
    """
    added_storage = _added_storage(p, tree, m)
    tree.undecided[m] = False
    tree.included[m] = True
    _count_publisher(p, tree, m, 1)
    pairs_fixed, pairs_local = _update_after_inclusion(p, tree, m, interval, 1.0)
    tree.totals[child, _FIXED] = tree.totals[parent, _FIXED] + (p.fixed[m] + pairs_fixed)
    tree.totals[child, _LOCAL] = tree.totals[parent, _LOCAL] + (p.local[m] + pairs_local)
    tree.totals[child, _STORAGE] = tree.totals[parent, _STORAGE] + added_storage
    tree.totals[child, _COMPUTE] = tree.totals[parent, _COMPUTE] + p.demand[m]


@compiled
def _undo_include(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Backtrack from the branch that includes the client of a depth."""
    m = tree.order[depth]
    tree.included[m] = False
    _count_publisher(p, tree, m, -1)
    _update_after_inclusion(p, tree, m, interval, -1.0)


@compiled
def _exclude(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Branch: exclude the client of a depth."""
    tree.undecided[tree.order[depth]] = False
    _update_after_exclusion(p, tree, tree.order[depth], interval, 1.0)
    for total in range(4):
        tree.totals[depth + 1, total] = tree.totals[depth, total]


@compiled
def _undo_exclude(p: PricingProblem, tree: _Tree, depth: int, interval: _Interval) -> None:
    """Backtrack from the branch that excludes the client of a depth; it is undecided again."""
    _update_after_exclusion(p, tree, tree.order[depth], interval, -1.0)
    tree.undecided[tree.order[depth]] = True


@compiled
def _count_publisher(p: PricingProblem, tree: _Tree, m: int, change: int) -> None:
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        tree.publishers[p.topic[e]] += change


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
