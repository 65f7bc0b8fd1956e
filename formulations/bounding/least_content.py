"""The least content of a server at given prices of homes, in floating point.

A content is the set of the clients whose home the server is. It earns the prices of its clients and pays for what it
delegates. The search decides which topics are open; docs/bounds.md describes it. The verifier repeats it in integers
(:mod:`formulations.certificates.topic_search`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# What is decided about each topic: 0 nothing, 1 open, 2 closed.
StateArray = npt.NDArray[np.int8]

# The ends of the ranges of θ are multiples of 2^-END_BITS.
END_BITS = 20
# Loads that exceed a limit by less than this share fit, as they may in exact arithmetic.
LOAD_ROUNDING = 1e-11
# Spools that are multiples of a unit give ranges between whole numbers of it, if the capacity has at most this many.
MOST_UNITS = 2000
# Otherwise, the capacity is divided into this number of parts.
PARTS = 512
# Above the capacity, each range is longer than the one before by this share of the distance from the capacity.
RANGE_GROWTH = 0.15
# The largest number of ranges.
MOST_RANGES = 64
# The prices of compute that are tried at every node, as shares of the best one at the root.
PRICE_SHARES = (0.4, 0.6, 0.2, 0.0)


@dataclass(frozen=True, eq=False)
class ThetaRanges:
    """The ranges of ``θ`` of one server. The first one is ``θ = 1``.

    Attributes
    ----------
    ends
        The ends between two ranges, descending, in units of ``2^-20``.
    least_delegated, most_delegated
        The least and the largest share that is delegated in each range.
    storage_limit, compute_limit
        The largest loads in each range.
    """

    ends: OffsetArray
    least_delegated: FloatArray
    most_delegated: FloatArray
    storage_limit: FloatArray
    compute_limit: FloatArray


def theta_ranges(graph: ClientGraph, server: int) -> ThetaRanges:
    """Divide the possible values of ``θ`` of a server into ranges, which are short near 1.

    Parameters
    ----------
    graph
        The instance.
    server
        The server.

    Returns
    -------
    ThetaRanges
        The ranges.
    """
    storage, compute = float(graph.storage_capacity[server]), float(graph.compute_capacity[server])
    total_storage, total_compute = float(graph.spool.sum()), float(graph.demand.sum())
    overload = max(_quotient(total_storage, storage), _quotient(total_compute, compute))
    ends = []
    if min(storage, compute) <= 0:
        # Every load makes θ 0; below the smallest end nearly everything is delegated.
        ends, overload = [1], 0.0
    unit = _unit(graph.spool, storage)
    levels = max(storage / unit, 1.0)
    level = first = int(levels)
    while len(ends) < MOST_RANGES and (level + 1) / levels < overload:
        # Just above the θ at which one more unit would be stored.
        ends.append(min(int(levels / (level + 1) * 2**END_BITS) + 1, 2**END_BITS - 1))
        level += max(1, int((level - first) * RANGE_GROWTH))
    low = np.array([1.0, *(end / 2**END_BITS for end in ends), 0.0])
    high = np.array([1.0, 1.0, *low[1:-1]])
    if total_storage <= storage and total_compute <= compute:
        low, high = low[:1], high[:1]  # never overloaded
    return ThetaRanges(
        ends=np.array(ends, np.int64),
        least_delegated=1 - high,
        most_delegated=1 - low,
        storage_limit=_limits(storage, low, total_storage),
        compute_limit=_limits(compute, low, total_compute),
    )


def _quotient(load: float, capacity: float) -> float:
    return load / capacity if capacity > 0 else np.inf


def _unit(spool: FloatArray, capacity: float) -> float:
    """Return a unit that all spools are multiples of, or a small part of the capacity."""
    if len(spool) and (spool == np.floor(spool)).all() and spool.max() < 2**31:
        unit = float(np.gcd.reduce(spool.astype(np.int64)))
        if unit <= capacity <= MOST_UNITS * unit:
            return unit
    return max(capacity / PARTS, np.finfo(np.float64).tiny * 2**60)


def _limits(capacity: float, low: FloatArray, total: float) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore"):
        limits: FloatArray = np.where(low > 0, np.minimum(capacity / low, total), total) * (1 + LOAD_ROUNDING)
    return limits


class Loads(NamedTuple):
    """What the clients load, as the kernels read it.

    Attributes
    ----------
    topic_start, topic
        The loading topics of client ``m`` are ``topic[topic_start[m]:topic_start[m+1]]``.
    demand, spool
        ``U`` and ``u``.
    """

    topic_start: OffsetArray
    topic: IntArray
    demand: FloatArray
    spool: FloatArray


def loads_of(graph: ClientGraph) -> Loads:
    """Take the loads of an instance.

    Parameters
    ----------
    graph
        The instance.

    Returns
    -------
    Loads
        The loads.
    """
    return Loads(graph.topic_start, graph.topic, graph.demand, graph.spool)


@compiled
def least_content(
    loads: Loads,
    price: FloatArray,
    delegation_cost: FloatArray,
    least_delegated: FloatArray,
    most_delegated: FloatArray,
    storage_limit: FloatArray,
    compute_limit: FloatArray,
    compute_price: FloatArray,
    which: IntArray,
    known: float,
    tolerance: float,
    most_nodes: int,
    content: FloatArray,
) -> tuple[float, float, int, int]:
    """Find the content with the largest profit: the prices of its clients minus what they pay for delegation.

    Parameters
    ----------
    loads
        The loads.
    price, delegation_cost
        The price of each client, and the least cost of delegating all of it.
    least_delegated, most_delegated, storage_limit, compute_limit
        The ranges of ``θ``, see :class:`ThetaRanges`.
    compute_price
        A price of compute for each range, from which the search starts; it is improved.
    which
        The ranges to search, in this order.
    known
        The profit of a known content.
    tolerance
        Contents that are better by less than this are not searched for.
    most_nodes
        The largest number of nodes, about.
    content
        The share of each client in the best content is written here if one better than the known one is found.

    Returns
    -------
    best
        The largest profit found, at least ``known``.
    bound
        An upper bound on the profit of every content of the ranges.
    found
        The range of the best content, -1 if none better than the known one was found.
    nodes
        The number of nodes of the search.
    """
    clients = len(price)
    profit = np.empty(clients)
    best, bound, found, nodes = known, known, -1, 0
    some = np.empty(clients)
    for i in which:
        for m in range(clients):
            delegated = least_delegated[i] if delegation_cost[m] > 0 else most_delegated[i]
            profit[m] = price[m] - delegated * delegation_cost[m]
        beta, root = _best_compute_price(loads, profit, storage_limit[i], compute_limit[i], compute_price[i], best)
        if root <= best:
            continue
        compute_price[i] = max(beta, 1e-6)
        prices = np.array([share * beta for share in PRICE_SHARES]) if beta > 0 else np.zeros(1)
        value, upper, better, explored = _search(
            loads, profit, storage_limit[i], compute_limit[i], prices, best, tolerance, max(1, most_nodes - nodes), some
        )
        nodes += explored
        if better:
            best, found = value, i
            content[:] = some
        bound = max(bound, upper)
    return best, max(best, bound) + tolerance, found, nodes


@compiled
def _best_compute_price(
    loads: Loads, profit: FloatArray, storage_limit: float, compute_limit: float, start: float, enough: float
) -> tuple[float, float]:
    """Try some prices of compute; return the one with the least bound at the root, and this bound."""
    best, least = start, np.inf
    for share in (1.0, 0.7, 1.4, 0.0):
        prices = np.array([start * share])
        problem = _problem(loads, profit, prices)
        alive = np.ones(problem.worth.shape[1], np.bool_)
        state = np.zeros(len(loads.spool), np.int8)
        shares, value = _first_division(problem)
        order = np.empty(len(loads.spool), np.int64)
        _equalise(problem, 0, alive, state, shares[0], value[0], loads.spool, 6)
        bound, _ = _knapsack(value[0], loads.spool, state, storage_limit, order)
        bound += problem.always + prices[0] * compute_limit
        if bound < least:
            best, least = prices[0], bound
        if least <= enough:
            break
    return best, least


class _Problem(NamedTuple):
    """The profitable clients: those without topics, those of one topic, and those of several, for some prices."""

    always: float
    own: FloatArray
    worth: FloatArray
    start: OffsetArray
    topic: OffsetArray


@compiled
def _problem(loads: Loads, profit: FloatArray, prices: FloatArray) -> _Problem:
    clients, topics, count = len(profit), len(loads.spool), len(prices)
    own = np.zeros((count, topics))
    worth = np.zeros((count, clients))
    start, topic = np.zeros(clients + 1, np.int64), np.empty(len(loads.topic), np.int64)
    several = 0
    always = 0.0
    for m in range(clients):
        if profit[m] <= 0:
            continue
        begin, end = loads.topic_start[m], loads.topic_start[m + 1]
        if begin == end:
            always += profit[m]
        elif end - begin == 1:
            for z in range(count):
                own[z, loads.topic[begin]] += max(0.0, profit[m] - prices[z] * loads.demand[m])
        else:
            for z in range(count):
                worth[z, several] = max(0.0, profit[m] - prices[z] * loads.demand[m])
            for q in range(begin, end):
                topic[start[several] + q - begin] = loads.topic[q]
            start[several + 1] = start[several] + end - begin
            several += 1
    return _Problem(always, own, worth[:, :several].copy(), start[: several + 1], topic[: start[several]])


@compiled
def _first_division(problem: _Problem) -> tuple[FloatArray, FloatArray]:
    """Divide the profit of each client of several topics equally among them."""
    count, several = problem.worth.shape
    shares = np.zeros((count, len(problem.topic)))
    value = problem.own.copy()
    for z in range(count):
        for m in range(several):
            begin, end = problem.start[m], problem.start[m + 1]
            for q in range(begin, end):
                shares[z, q] = problem.worth[z, m] / (end - begin)
                value[z, problem.topic[q]] += shares[z, q]
    return shares, value


@compiled
def _equalise(
    problem: _Problem,
    z: int,
    alive: Mask,
    state: StateArray,
    shares: FloatArray,
    value: FloatArray,
    size: FloatArray,
    passes: int,
) -> None:
    """Divide the profit of each client so that the values per size of its undecided topics become as equal as possible.

    Repeated for all clients in turn, this converges to the division with the least bound for every free storage.
    """
    most = 1
    for m in range(problem.worth.shape[1]):
        most = max(most, problem.start[m + 1] - problem.start[m])
    topics, entries = np.empty(most, np.int64), np.empty(most, np.int64)
    for _ in range(passes):
        for m in range(problem.worth.shape[1]):
            if not alive[m] or problem.worth[z, m] <= 0:
                continue
            count = 0
            for q in range(problem.start[m], problem.start[m + 1]):
                n = problem.topic[q]
                if state[n] == 0:
                    value[n] -= shares[q]
                    b = count
                    while b > 0 and value[topics[b - 1]] * size[n] > value[n] * size[topics[b - 1]]:
                        topics[b], entries[b] = topics[b - 1], entries[b - 1]
                        b -= 1
                    topics[b], entries[b] = n, q
                    count += 1
            total, room, level, filled = problem.worth[z, m], 0.0, 0.0, 0
            while filled < count:
                n = topics[filled]
                if filled > 0 and value[n] >= level * size[n]:
                    break
                total += value[n]
                room += size[n]
                level = total / room
                filled += 1
            for b in range(count):
                n = topics[b]
                share = max(0.0, level * size[n] - value[n]) if b < filled else 0.0
                shares[entries[b]] = share
                value[n] += share


@compiled
def _knapsack(
    value: FloatArray, size: FloatArray, state: StateArray, free: float, order: OffsetArray
) -> tuple[float, int]:
    """Solve the knapsack of the undecided topics with fractions; sort those with a value by value per size."""
    count = 0
    for n in range(len(size)):
        if state[n] == 0 and value[n] > 1e-9 and size[n] <= free:
            b = count
            while b > 0 and value[order[b - 1]] * size[n] < value[n] * size[order[b - 1]]:
                order[b] = order[b - 1]
                b -= 1
            order[b] = n
            count += 1
    total = 0.0
    for b in range(count):
        n = order[b]
        if size[n] <= free:
            total += value[n]
            free -= size[n]
        else:
            total += value[n] / size[n] * free
            break
    return total, count


@compiled
def _fill(loads: Loads, profit: FloatArray, state: StateArray, compute_limit: float, content: FloatArray) -> float:
    """Take all profitable clients whose topics are open, as far as compute allows; the last one in part."""
    total, load = 0.0, 0.0
    for m in range(len(profit)):
        content[m] = 0.0
        if profit[m] <= 0:
            continue
        inside = True
        for q in range(loads.topic_start[m], loads.topic_start[m + 1]):
            inside = inside and state[loads.topic[q]] == 1
        if inside:
            content[m] = 1.0
            total += profit[m]
            load += loads.demand[m]
    if load > compute_limit:
        taken = np.flatnonzero((content > 0) & (loads.demand > 0))
        for k in np.argsort(profit[taken] / loads.demand[taken]):
            m = taken[k]
            if load - loads.demand[m] >= compute_limit:
                load -= loads.demand[m]
                total -= profit[m]
                content[m] = 0.0
            else:
                part = (load - compute_limit) / loads.demand[m]
                content[m] = 1 - part
                total -= part * profit[m]
                break
    return total


@compiled
def _search(
    loads: Loads,
    profit: FloatArray,
    storage_limit: float,
    compute_limit: float,
    prices: FloatArray,
    known: float,
    tolerance: float,
    most_nodes: int,
    content: FloatArray,
) -> tuple[float, float, bool, int]:
    """Branch on the topics, depth first.

    Return the best profit, an upper bound, whether a content was found, and the number of nodes.
    """
    size = loads.spool
    topics, count = len(size), len(prices)
    problem = _problem(loads, profit, prices)
    several, entries = problem.worth.shape[1], len(problem.topic)
    # The clients of several topics, by topic.
    first = np.zeros(topics + 1, np.int64)
    for q in range(entries):
        first[problem.topic[q] + 1] += 1
    first = np.cumsum(first)
    at = first[:-1].copy()
    client_of, entry_of = np.empty(entries, np.int64), np.empty(entries, np.int64)
    for m in range(several):
        for q in range(problem.start[m], problem.start[m + 1]):
            n = problem.topic[q]
            client_of[at[n]], entry_of[at[n]] = m, q
            at[n] += 1
    depth = topics + 2
    alive = np.ones((depth, several), np.bool_)
    shares, value = np.zeros((depth, count, entries)), np.zeros((depth, count, topics))
    state = np.zeros((depth, topics), np.int8)
    free, inside = np.zeros(depth), np.zeros((depth, count))
    branch, phase, bound = np.full(depth, -1), np.zeros(depth, np.int64), np.full(depth, np.inf)
    order, other_order = np.empty(topics, np.int64), np.empty(topics, np.int64)
    trial, some = np.zeros(topics, np.int8), np.zeros(len(profit))
    shares[0], value[0] = _first_division(problem)
    for z in range(count):
        _equalise(problem, z, alive[0], state[0], shares[0, z], value[0, z], size, 15)
        inside[0, z] = problem.always + prices[z] * compute_limit
    free[0] = storage_limit
    best, found, open_bound, nodes, d = known, False, -np.inf, 0, 0
    while d >= 0:
        if phase[d] == 0:
            nodes += 1
            ranked = 0
            branch[d] = -1
            for z in range(count):
                filled, ranks = _knapsack(value[d, z], size, state[d], free[d], other_order)
                if inside[d, z] + filled > best + tolerance and d > 0:
                    _equalise(problem, z, alive[d], state[d], shares[d, z], value[d, z], size, 1)
                    filled, ranks = _knapsack(value[d, z], size, state[d], free[d], other_order)
                upper = inside[d, z] + filled
                if upper < bound[d] or ranked == 0:
                    ranked = ranks
                    order[:ranks] = other_order[:ranks]
                    largest = 0.0
                    for b in range(ranks):
                        if value[d, z, order[b]] > largest:
                            largest = value[d, z, order[b]]
                            branch[d] = order[b]
                bound[d] = min(bound[d], upper)
                if bound[d] <= best + tolerance:
                    break
            if bound[d] <= best + tolerance:
                d -= 1
                continue
            trial[:] = state[d]
            room = free[d]
            for b in range(ranked):
                if size[order[b]] <= room:
                    trial[order[b]] = 1
                    room -= size[order[b]]
            total = _fill(loads, profit, trial, compute_limit, some)
            if total > best:
                best, found = total, True
                content[:] = some
            if branch[d] < 0 or bound[d] <= best + tolerance:
                d -= 1
                continue
            if nodes >= most_nodes:
                open_bound = max(open_bound, bound[d])
                d -= 1
                continue
            phase[d] = 1
        if phase[d] > 2:
            d -= 1
            continue
        n, opens, c = branch[d], phase[d] == 1, d + 1
        phase[d] += 1
        alive[c], shares[c], value[c], state[c] = alive[d], shares[d], value[d], state[d]
        free[c], inside[c], bound[c], phase[c] = free[d], inside[d], bound[d], 0
        state[c, n] = 1 if opens else 2
        if opens:
            free[c] -= size[n]
        for z in range(count):
            value[c, z, n] = 0.0
            if opens:
                inside[c, z] += problem.own[z, n]
        for h in range(first[n], first[n + 1]):
            m = client_of[h]
            if not alive[c, m]:
                continue
            undecided = 0
            for q in range(problem.start[m], problem.start[m + 1]):
                if state[c, problem.topic[q]] == 0:
                    undecided += 1
            for z in range(count):
                moved = shares[c, z, entry_of[h]]
                shares[c, z, entry_of[h]] = 0.0
                if opens and undecided == 0:
                    inside[c, z] += problem.worth[z, m]
                for q in range(problem.start[m], problem.start[m + 1]):
                    if state[c, problem.topic[q]] == 0:
                        if opens:
                            shares[c, z, q] += moved / undecided
                            value[c, z, problem.topic[q]] += moved / undecided
                        else:
                            value[c, z, problem.topic[q]] -= shares[c, z, q]
                            shares[c, z, q] = 0.0
            if not opens or undecided == 0:
                alive[c, m] = False
        d = c
    return best, max(best, open_bound), found, nodes
