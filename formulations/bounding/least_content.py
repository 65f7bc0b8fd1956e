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
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets

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
# Compute loads need a range near θ = 1 that is shorter than a unit of storage. It ends here.
NEAR_ONE = 2**END_BITS - 2 ** (END_BITS - 11)
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
    if not ends and total_compute > compute and levels / (level + 1) * 2**END_BITS + 1 < NEAR_ONE:
        ends.append(NEAR_ONE)
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
    """What the items of a content load, as the kernels read it: first the clients, then pairs of clients.

    A pair earns its price if both clients are in the content, so it needs the topics of both. It loads nothing else.

    Attributes
    ----------
    topic_start, topic
        The loading topics of item ``i`` are ``topic[topic_start[i]:topic_start[i+1]]``.
    demand, spool
        ``U`` of each item, and ``u``.
    same_topics
        The first item with the same topics.
    """

    topic_start: OffsetArray
    topic: IntArray
    demand: FloatArray
    spool: FloatArray
    same_topics: OffsetArray
    pair_first: IntArray
    pair_second: IntArray


def loads_of(graph: ClientGraph, pairs: IntArray) -> Loads:
    """Take the loads of an instance.

    Parameters
    ----------
    graph
        The instance.
    pairs
        The edges that are items.

    Returns
    -------
    Loads
        The loads.
    """
    topics = [tuple(part.tolist()) for part in np.split(graph.topic, graph.topic_start[1:-1])]
    ends = zip(graph.first[pairs].tolist(), graph.second[pairs].tolist(), strict=True)
    topics += [tuple(sorted({*topics[i], *topics[j]})) for i, j in ends]
    first: dict[tuple[int, ...], int] = {}
    return Loads(
        offsets(np.array([len(some) for some in topics], np.int64)),
        np.array([n for some in topics for n in some], np.int32),
        np.concatenate([graph.demand, np.zeros(len(pairs))]),
        graph.spool,
        np.array([first.setdefault(some, i) for i, some in enumerate(topics)], np.int64),
        graph.first[pairs],
        graph.second[pairs],
    )


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
def _earned(loads: Loads, profit: FloatArray) -> FloatArray:
    """Return what the pairs of each client earn."""
    clients = len(profit) - len(loads.pair_first)
    earned = np.zeros(clients)
    for k in range(len(loads.pair_first)):
        if profit[clients + k] > 0:
            earned[loads.pair_first[k]] += profit[clients + k]
            earned[loads.pair_second[k]] += profit[clients + k]
    return earned


@compiled
def _rest_of_pair(loads: Loads, profit: FloatArray, earned: FloatArray, k: int, price: float) -> float:
    """Return what a pair earns after its part of the losses of its clients, if compute has a price.

    A client has a loss if it earns less than it pays for compute. Its pairs bear the loss in proportion to what they
    earn: a content with some of the pairs of a client has the whole loss.
    """
    clients = len(earned)
    given: float = profit[clients + k]
    rest = given
    for m in (loads.pair_first[k], loads.pair_second[k]):
        rest -= max(0.0, price * loads.demand[m] - profit[m]) * given / earned[m]
    return rest


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
        bound, _, _ = _knapsack(value[0], loads.spool, state, storage_limit, order)
        bound += problem.always + prices[0] * compute_limit
        if bound < least:
            best, least = prices[0], bound
        if least <= enough:
            break
    return best, least


class _Problem(NamedTuple):
    """The profitable items: those without topics, those of one topic, and those of several, for some prices.

    Items with the same topics are one.
    """

    always: float
    own: FloatArray
    worth: FloatArray
    start: OffsetArray
    topic: OffsetArray


@compiled
def _problem(loads: Loads, profit: FloatArray, prices: FloatArray) -> _Problem:
    items, topics, count = len(profit), len(loads.spool), len(prices)
    own = np.zeros((count, topics))
    worth = np.zeros((count, items))
    always = 0.0
    earned = _earned(loads, profit)
    clients = len(earned)
    for m in range(items):
        if profit[m] <= 0:
            continue
        begin, end = loads.topic_start[m], loads.topic_start[m + 1]
        if begin == end:
            always += profit[m]
            continue
        for z in range(count):
            if m < clients:
                rest = profit[m] - prices[z] * loads.demand[m]
            else:
                rest = _rest_of_pair(loads, profit, earned, m - clients, prices[z])
            if end - begin == 1:
                own[z, loads.topic[begin]] += max(0.0, rest)
            else:
                worth[z, loads.same_topics[m]] += max(0.0, rest)
    start, topic = np.zeros(items + 1, np.int64), np.empty(len(loads.topic), np.int64)
    several = 0
    for m in range(items):
        largest = 0.0
        for z in range(count):
            largest = max(largest, worth[z, m])
        if largest > 0:
            worth[:, several] = worth[:, m]
            begin, end = loads.topic_start[m], loads.topic_start[m + 1]
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
) -> tuple[float, int, float]:
    """Solve the knapsack of the undecided topics with fractions; sort those with a value by value per size.

    Return the value, the number of sorted topics, and the price of storage.
    """
    count = 0
    for n in range(len(size)):
        if state[n] == 0 and value[n] > 1e-9 and size[n] <= free:
            b = count
            while b > 0 and value[order[b - 1]] * size[n] < value[n] * size[order[b - 1]]:
                order[b] = order[b - 1]
                b -= 1
            order[b] = n
            count += 1
    total, price = 0.0, 0.0
    for b in range(count):
        n = order[b]
        if size[n] <= free:
            total += value[n]
            free -= size[n]
        else:
            price = value[n] / size[n]
            total += price * free
            break
    return total, count, price


@compiled
def _fill(
    loads: Loads, profit: FloatArray, state: StateArray, compute_limit: float, content: FloatArray
) -> tuple[float, float]:
    """Take all profitable items whose topics are open, as far as compute allows; the last client in part.

    Return the profit, and an upper bound on the profits of all contents with these topics. In the bound a pair needs
    no compute for clients that have no profit of their own.
    """
    earned = _earned(loads, profit)
    clients = len(earned)
    upper, load = 0.0, 0.0
    content[:] = 0.0
    for m in range(len(profit)):
        if profit[m] <= 0:
            continue
        inside = True
        for q in range(loads.topic_start[m], loads.topic_start[m + 1]):
            inside = inside and state[loads.topic[q]] == 1
        if inside and m < clients:
            content[m] = 1.0
            upper += profit[m]
            load += loads.demand[m]
        elif inside:
            rest = _rest_of_pair(loads, profit, earned, m - clients, 0.0)
            if rest > 0:
                content[m] = 1.0
                upper += rest
    upper -= _trimmed(loads, profit, content, load, compute_limit)
    for k in range(len(loads.pair_first)):
        if content[clients + k] > 0:
            for m in (loads.pair_first[k], loads.pair_second[k]):
                if content[m] == 0 and profit[m] <= 0:
                    content[m] = 1.0
    load = 0.0
    for m in range(clients):
        load += content[m] * loads.demand[m]
    _trimmed(loads, profit, content, load, compute_limit)
    total = 0.0
    for m in range(clients):
        total += content[m] * profit[m]
    for k in range(len(loads.pair_first)):
        content[clients + k] = min(content[loads.pair_first[k]], content[loads.pair_second[k]])
        total += content[clients + k] * profit[clients + k]
    return total, upper


@compiled
def _trimmed(loads: Loads, profit: FloatArray, content: FloatArray, load: float, compute_limit: float) -> float:
    """Remove the clients that earn least per compute load until the load fits; return what they earn."""
    lost = 0.0
    if load > compute_limit:
        taken = np.flatnonzero((content[: len(loads.demand)] > 0) & (loads.demand > 0))
        for k in np.argsort(profit[taken] / loads.demand[taken]):
            m = taken[k]
            part = content[m]
            if load - part * loads.demand[m] < compute_limit:
                part = (load - compute_limit) / loads.demand[m]
            content[m] -= part
            load -= part * loads.demand[m]
            lost += part * profit[m]
            if load <= compute_limit:
                break
    return lost


@compiled
def _decide(
    problem: _Problem,
    first: OffsetArray,
    client_of: OffsetArray,
    entry_of: OffsetArray,
    alive: Mask,
    shares: FloatArray,
    value: FloatArray,
    state: StateArray,
    inside: FloatArray,
    n: int,
    opens: bool,
) -> None:
    """Open or close a topic at a node, and divide the profits of its items anew."""
    state[n] = 1 if opens else 2
    count = len(inside)
    for z in range(count):
        value[z, n] = 0.0
        if opens:
            inside[z] += problem.own[z, n]
    for h in range(first[n], first[n + 1]):
        m = client_of[h]
        if not alive[m]:
            continue
        undecided = 0
        for q in range(problem.start[m], problem.start[m + 1]):
            if state[problem.topic[q]] == 0:
                undecided += 1
        for z in range(count):
            moved = shares[z, entry_of[h]]
            shares[z, entry_of[h]] = 0.0
            if opens and undecided == 0:
                inside[z] += problem.worth[z, m]
            for q in range(problem.start[m], problem.start[m + 1]):
                if state[problem.topic[q]] == 0:
                    if opens:
                        shares[z, q] += moved / undecided
                        value[z, problem.topic[q]] += moved / undecided
                    else:
                        value[z, problem.topic[q]] -= shares[z, q]
                        shares[z, q] = 0.0
        if not opens or undecided == 0:
            alive[m] = False


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
    fixed, opened = np.empty(topics, np.int64), np.empty(topics, np.bool_)
    shares[0], value[0] = _first_division(problem)
    for z in range(count):
        _equalise(problem, z, alive[0], state[0], shares[0, z], value[0, z], size, 15)
        inside[0, z] = problem.always + prices[z] * compute_limit
    free[0] = storage_limit
    best, found, open_bound, nodes, d = known, False, -np.inf, 0, 0
    while d >= 0:
        if phase[d] == 0:
            nodes += 1
            ranked, cheapest, storage_price, least = 0, 0, 0.0, np.inf
            for z in range(count):
                filled, ranks, price = _knapsack(value[d, z], size, state[d], free[d], other_order)
                if inside[d, z] + filled > best + tolerance and d > 0:
                    _equalise(problem, z, alive[d], state[d], shares[d, z], value[d, z], size, 1)
                    filled, ranks, price = _knapsack(value[d, z], size, state[d], free[d], other_order)
                upper = inside[d, z] + filled
                if upper < least:
                    ranked, cheapest, storage_price, least = ranks, z, price, upper
                    order[:ranks] = other_order[:ranks]
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
            total, upper = _fill(loads, profit, trial, compute_limit, some)
            if total > best:
                best, found = total, True
                content[:] = some
            # Reduced-cost fixing: a topic is decided if the other decision brings the bound below the best profit.
            slack, fixings = least - best - tolerance, 0
            for n in range(topics):
                if state[d, n] == 0:
                    reduced = value[d, cheapest, n] - storage_price * size[n]
                    if size[n] > free[d] or reduced <= -slack:
                        fixed[fixings], opened[fixings] = n, False
                        fixings += 1
                    elif reduced >= slack:
                        fixed[fixings], opened[fixings] = n, True
                        fixings += 1
            for b in range(fixings):
                if opened[b]:
                    free[d] -= size[fixed[b]]
                _decide(
                    problem,
                    first,
                    client_of,
                    entry_of,
                    alive[d],
                    shares[d],
                    value[d],
                    state[d],
                    inside[d],
                    fixed[b],
                    opened[b],
                )
            if free[d] < 0:
                d -= 1
                continue
            # A topic can have a value at another price of compute only; without a price, all profitable items count.
            branch[d] = -1
            for k in range(count):
                largest, z = 1e-9, (cheapest + k) % count
                for n in range(topics):
                    if state[d, n] == 0 and size[n] <= free[d] and value[d, z, n] > largest:
                        largest, branch[d] = value[d, z, n], n
                if branch[d] >= 0:
                    break
            if branch[d] < 0:
                if fixings > 0:
                    total, upper = _fill(loads, profit, state[d], compute_limit, some)
                    if total > best:
                        best, found = total, True
                        content[:] = some
                open_bound = max(open_bound, min(bound[d], upper))
                d -= 1
                continue
            if bound[d] <= best + tolerance:
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
        if opens:
            free[c] -= size[n]
        _decide(problem, first, client_of, entry_of, alive[c], shares[c], value[c], state[c], inside[c], n, opens)
        d = c
    return best, max(best, open_bound), found, nodes
