"""The best content of one server for given prices: the subproblem of branch and price.

A *content* ``S`` is the set of clients whose home is the server. With prices it is worth

    value(S) = fixed(S) + θ(S)·local(S),    θ(S) = min(1, A/a(S), B/v(S)),

where ``fixed`` and ``local`` are sums over the clients of ``S`` and over the pairs inside ``S``. The search decides
client after client, depth first, with the exact ``θ`` of every set it meets. It is run once for each of a row of
intervals ``θ_low ≤ θ ≤ θ_high``: inside one the loads have hard limits ``A/θ_low`` and ``B/θ_low``, and as the value
of a set is linear in ``θ``, the lesser of the bounds at the two ends bounds the whole interval, whatever the signs.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray

Flags = npt.NDArray[np.bool_]

NO_LIMIT = 1e300
# Each interval of θ begins at this share of its end. Narrow intervals bound better but are more: at 30 clients 0.9 and
# 0.97 came to the same number of sets looked at, 0.8 to three times as many.
INTERVAL = 0.93
# Loads are running sums of floats: a set that just fits must not be lost.
ROUNDING = 1e-9


class Prices(NamedTuple):
    """What clients and pairs of clients are worth on one server.

    Attributes
    ----------
    fixed, local
        Value of a client in the content: ``fixed + θ·local``.
    start, neighbour, pair_fixed, pair_local
        For each client (``start``) the clients it shares a price with, and the value of having both.
    demand
        ``U``.
    topic_start, topic
        The topics that each client publishes to.
    spool
        ``u``.
    storage, compute
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


class _Search(NamedTuple):
    """Where a search is; the sums that go with it are kept by the search itself."""

    inside: Flags  # the content so far
    undecided: Flags
    publishers: OffsetArray  # of each topic inside
    hope: FloatArray  # 2×M: the least that an undecided client can add, at either end of the interval


class Found(NamedTuple):
    """What a search came to.

    Attributes
    ----------
    contents
        The best sets below the limit, best first (a row of flags each).
    values
        Their values.
    least
        No set is worth less than this; without ``complete`` a bound only.
    complete
        Whether the search came to its end.
    nodes
        How many sets were looked at.
    """

    contents: Flags
    values: FloatArray
    least: float
    complete: bool
    nodes: int


def best_contents(
    prices: Prices,
    inside: Flags,
    outside: Flags,
    *,
    limit: float,
    most: int,
    most_nodes: int,
    any_will_do: bool = False,
) -> Found:
    """Search the contents of least value.

    Parameters
    ----------
    prices
        What clients are worth.
    inside, outside
        Clients that must, and must not, be in the content.
    limit
        Only sets worth less are of interest.
    most
        How many sets to return.
    most_nodes
        When to give up.
    any_will_do
        Stop as soon as ``most`` sets are found, be they the best or not.
    """
    clients = len(prices.fixed)
    everybody = np.flatnonzero(~outside)
    least_theta = share(prices, everybody)
    ends = [1.0]
    while ends[-1] > least_theta:
        # The last interval reaches down to 0 where a capacity is 0: a row of intervals would never end there.
        further = ends[-1] * INTERVAL
        ends.append(further if further > max(least_theta, 0.01) else least_theta)
    free = np.flatnonzero(~outside & ~inside)
    order = free[np.argsort((prices.fixed + 0.7 * prices.local)[free], kind="stable")]
    contents = np.zeros((most, clients), np.bool_)
    values = np.zeros(most)
    count, bound, complete, nodes = _search(
        prices, inside, order.astype(np.int64), np.array(ends), limit, most_nodes, any_will_do, contents, values
    )
    least = (values[0] if count else limit) if complete else min(bound, limit)
    return Found(contents[:count], values[:count], float(least), bool(complete), int(nodes))


def share(prices: Prices, clients: npt.NDArray[np.intp]) -> float:
    """Return ``θ`` of a content."""
    topics = {int(n) for m in clients for n in prices.topic[prices.topic_start[m] : prices.topic_start[m + 1]]}
    stored = float(prices.spool[sorted(topics)].sum())
    load = float(prices.demand[clients].sum())
    return float(_share(prices, stored, load))


@compiled
def _share(p: Prices, stored: float, load: float) -> float:
    theta = 1.0
    if stored > p.storage_capacity:
        theta = p.storage_capacity / stored
    if load > p.compute_capacity:
        theta = min(theta, p.compute_capacity / load)
    return float(theta)


@compiled
def _search(
    p: Prices,
    must: Flags,
    order: OffsetArray,
    ends: FloatArray,
    limit: float,
    most_nodes: int,
    any_will_do: bool,
    contents: Flags,
    values: FloatArray,
) -> tuple[int, float, bool, int]:
    """Fill ``contents`` and ``values``; return how many, a bound on all sets, whether all were searched, and nodes."""
    clients = len(p.fixed)
    s = _Search(
        np.zeros(clients, np.bool_),
        np.zeros(clients, np.bool_),
        np.zeros(len(p.spool), np.int64),
        np.zeros((2, clients)),
    )
    tried = np.zeros(len(order) + 1, np.int8)  # at each depth: 0 nothing yet, 1 joined, 2 left out
    # The sums at each depth, to go back to: adding and taking away again would leave rounding errors, and a server
    # without capacity must know when it is empty.
    saved = np.zeros((len(order) + 1, 4))
    count = 0
    nodes = 0
    worst = limit  # of the sets kept; only better ones count
    hopes = np.empty(len(ends))
    for interval in range(len(ends)):
        hopes[interval] = _begin(p, s, must, order, ends, interval)[-1]
    bound = hopes.min()
    for interval in np.argsort(hopes):  # the most promising first: it makes the others short
        span = _span(p, ends, interval)
        last = interval == len(ends) - 1
        fixed, local, stored, load, price_low, price_high, _ = _begin(p, s, must, order, ends, interval)
        if stored > span.most_stored or load > span.most_load:
            continue
        depth = 0
        arrived = True
        while depth >= 0:
            if arrived:
                arrived = False
                nodes += 1
                if nodes > most_nodes:
                    return count, bound, False, nodes
                theta = _share(p, stored, load)
                if depth == 0 or tried[depth - 1] == 1:
                    if interval == 0:
                        here = last or theta == 1.0  # where everybody fits, a sum may still be a rounding above
                    else:
                        here = theta < 1.0 and (last or theta > span.low) and theta <= span.high
                    value = fixed + theta * local
                    if here and value < worst:
                        count = _keep(s.inside, value, contents, values, count)
                        if count == len(values):
                            worst = values[count - 1]
                            if any_will_do:
                                return count, bound, False, nodes
                if depth == len(order):
                    depth -= 1
                    continue
                # More clients do not raise θ: what can still be reached lies between the low end and here.
                top = min(span.high, max(theta, span.low))
                hope_low, hope_top = _hopes(p, s, order, depth, span, top, price_low, price_high, stored, load)
                if min(fixed + span.low * local + hope_low, fixed + top * local + hope_top) >= worst:
                    depth -= 1
                    continue
                tried[depth] = 0
            m = order[depth]
            if tried[depth] == 0:
                saved[depth, 0], saved[depth, 1], saved[depth, 2], saved[depth, 3] = fixed, local, stored, load
                s.undecided[m] = False
                opening = _opening(p, s, m)
                tried[depth] = 1
                if load + p.demand[m] <= span.most_load and stored + opening <= span.most_stored:
                    s.inside[m] = True
                    _count_topics(p, s, m, 1)
                    pairs_fixed, pairs_local = _join(p, s, m, span, 1.0)
                    fixed += p.fixed[m] + pairs_fixed
                    local += p.local[m] + pairs_local
                    stored += opening
                    load += p.demand[m]
                    depth += 1
                    arrived = True
                    continue
            elif s.inside[m]:
                s.inside[m] = False
                _count_topics(p, s, m, -1)
                _join(p, s, m, span, -1.0)
                fixed, local, stored, load = saved[depth, 0], saved[depth, 1], saved[depth, 2], saved[depth, 3]
            if tried[depth] == 1:
                _leave_out(p, s, m, span, 1.0)
                tried[depth] = 2
                depth += 1
                arrived = True
                continue
            _leave_out(p, s, m, span, -1.0)
            s.undecided[m] = True
            depth -= 1
    return count, bound, True, nodes


class _Span(NamedTuple):
    """An interval of θ and the loads it allows."""

    low: float
    high: float
    most_stored: float
    most_load: float


@compiled
def _span(p: Prices, ends: FloatArray, interval: int) -> _Span:
    """Return an interval; the first is θ = 1 alone, the last allows any load."""
    low, high = ends[interval], ends[max(interval - 1, 0)]
    if interval == len(ends) - 1:
        return _Span(low, high, NO_LIMIT, NO_LIMIT)
    return _Span(low, high, p.storage_capacity / low * (1 + ROUNDING), p.compute_capacity / low * (1 + ROUNDING))


@compiled
def _begin(
    p: Prices, s: _Search, must: Flags, order: OffsetArray, ends: FloatArray, interval: int
) -> tuple[float, float, float, float, float, float, float]:
    """Go to where nothing but the prescribed is decided, in an interval of θ.

    Returns
    -------
    fixed, local, stored, load, price_low, price_high, hoped
        The sums, the prices on load at either end, and a bound on every set inside the interval.
    """
    span = _span(p, ends, interval)
    s.inside[:] = False
    s.undecided[:] = False
    s.publishers[:] = 0
    fixed, local, stored, load = 0.0, 0.0, 0.0, 0.0
    for m in range(len(must)):
        if must[m]:
            stored += _opening(p, s, m)
            load += p.demand[m]
            s.inside[m] = True
            _count_topics(p, s, m, 1)
            pairs_fixed, pairs_local = _join(p, s, m, span, 1.0)
            fixed += p.fixed[m] + pairs_fixed
            local += p.local[m] + pairs_local
    for i in range(len(order)):
        s.undecided[order[i]] = True
    for i in range(len(order)):
        m = order[i]
        for end in range(2):
            theta = span.high if end else span.low
            hope = p.fixed[m] + theta * p.local[m]
            for e in range(p.start[m], p.start[m + 1]):
                both = p.pair_fixed[e] + theta * p.pair_local[e]
                if s.inside[p.neighbour[e]]:
                    hope += both
                elif s.undecided[p.neighbour[e]]:
                    hope += 0.5 * min(0.0, both)  # the other half is the neighbour's
            s.hope[end, m] = hope
    price_low = _price_load(p, s, order, 0, span, load)
    price_high = _price_load(p, s, order, 1, span, load)
    hope_low, hope_high = _hopes(p, s, order, 0, span, span.high, price_low, price_high, stored, load)
    return (
        fixed,
        local,
        stored,
        load,
        price_low,
        price_high,
        min(fixed + span.low * local + hope_low, fixed + span.high * local + hope_high),
    )


@compiled
def _hopes(
    p: Prices,
    s: _Search,
    order: OffsetArray,
    depth: int,
    span: _Span,
    top: float,
    price_low: float,
    price_high: float,
    stored: float,
    load: float,
) -> tuple[float, float]:
    """Return the least that undecided clients can add, at θ = ``span.low`` and at θ = ``top``.

    A hope is concave in θ, so between the ends it is no less than on the line between them. Load has a price, refunded
    for the room that there is, lest the hopes of more clients than fit are counted.
    """
    at_low, at_top = 0.0, 0.0
    room, power = span.most_stored - stored, span.most_load - load
    part = (top - span.low) / (span.high - span.low) if span.high > span.low else 1.0
    for i in range(depth, len(order)):
        m = order[i]
        demand = p.demand[m]
        if demand > power or (demand > room and _opening(p, s, m) > room):
            continue
        low, high = s.hope[0, m], s.hope[1, m]
        at_low += min(0.0, low + price_low * demand)
        at_top += min(0.0, low + (high - low) * part + price_high * demand)
    if price_low > 0:
        at_low -= price_low * power
    if price_high > 0:
        at_top -= price_high * power
    return at_low, at_top


@compiled
def _price_load(p: Prices, s: _Search, order: OffsetArray, end: int, span: _Span, load: float) -> float:
    """Return the price on load at which just the room there is gets used; any price from 0 up gives a bound."""
    cheap, dear, wanted = 0.0, 0.0, load
    for i in range(len(order)):
        m = order[i]
        if p.demand[m] > 0 and s.hope[end, m] < 0:
            wanted += p.demand[m]
            dear = max(dear, -s.hope[end, m] / p.demand[m])
    if wanted <= span.most_load:
        return 0.0
    for _ in range(30):
        price = 0.5 * (cheap + dear)
        wanted = load
        for i in range(len(order)):
            m = order[i]
            if s.hope[end, m] + price * p.demand[m] < 0:
                wanted += p.demand[m]
        if wanted > span.most_load:
            cheap = price
        else:
            dear = price
    return float(dear)


@compiled
def _opening(p: Prices, s: _Search, m: int) -> float:
    """Return the storage of the topics that only this client would bring."""
    more = 0.0
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        if s.publishers[p.topic[e]] == 0:
            more += p.spool[p.topic[e]]
    return more


@compiled
def _count_topics(p: Prices, s: _Search, m: int, by: int) -> None:
    for e in range(p.topic_start[m], p.topic_start[m + 1]):
        s.publishers[p.topic[e]] += by


@compiled
def _join(p: Prices, s: _Search, m: int, span: _Span, sign: float) -> tuple[float, float]:
    """Tell the neighbours that a client is in the content (``sign`` = 1) or no more (-1); return its pairs' values."""
    fixed, local = 0.0, 0.0
    for e in range(p.start[m], p.start[m + 1]):
        r = p.neighbour[e]
        if s.inside[r]:
            fixed += p.pair_fixed[e]
            local += p.pair_local[e]
        elif s.undecided[r]:
            at_low = p.pair_fixed[e] + span.low * p.pair_local[e]
            at_high = p.pair_fixed[e] + span.high * p.pair_local[e]
            # What was half a hope becomes certain.
            s.hope[0, r] += sign * (at_low - 0.5 * min(0.0, at_low))
            s.hope[1, r] += sign * (at_high - 0.5 * min(0.0, at_high))
    return fixed, local


@compiled
def _leave_out(p: Prices, s: _Search, m: int, span: _Span, sign: float) -> None:
    """Tell the neighbours that a client is out of the content (``sign`` = 1) or not yet (-1): they hope no more."""
    for e in range(p.start[m], p.start[m + 1]):
        r = p.neighbour[e]
        if s.undecided[r]:
            s.hope[0, r] -= sign * 0.5 * min(0.0, p.pair_fixed[e] + span.low * p.pair_local[e])
            s.hope[1, r] -= sign * 0.5 * min(0.0, p.pair_fixed[e] + span.high * p.pair_local[e])


@compiled
def _keep(inside: Flags, value: float, contents: Flags, values: FloatArray, count: int) -> int:
    """Insert a set into the sorted list of the best; the worst falls out of a full one."""
    place = min(count, len(values) - 1)
    while place > 0 and values[place - 1] > value:
        values[place] = values[place - 1]
        contents[place] = contents[place - 1]
        place -= 1
    values[place] = value
    contents[place] = inside
    return min(count + 1, len(values))
