"""Block coordinate ascent on the dual of a labelling problem whose minima are smoothed.

Coordinate ascent on the dual itself stops where no single step raises it, which may be far below the best dual. So
each minimum of some costs ``c`` is replaced by ``-T·log Σ exp(-c/T)``. This function is smooth, so ascent does not stop
before its maximum. The temperature ``T`` decreases from call to call, and then the maximum approaches that of the dual.

There are three kinds of steps. Each of the first two is the exact maximum over its variables.

- *A client*: what it and its pairs cost together at each of its servers is divided equally among them.
- *A topic at a server*: the price of its storage is divided among its publishers such that those who pay a share are
  there with the same probability, and the others with a lower one.
- *A multiplier of a capacity*: a Newton step in this variable alone, because its maximum has no closed form.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled, compiled_reordered
from relocbench.instances.kernels.ragged import FloatArray

Int64Array = npt.NDArray[np.int64]
SingleArray = npt.NDArray[np.float32]

# Below this a sum of exponentials may have lost its largest term.
LEAST_SUM = 1e-30
# Bisections of the level of the shares of a topic.
BISECTIONS = 40


class Pairs(NamedTuple):
    """The clients and free pairs of a block, and their messages.

    Attributes
    ----------
    first, second, kind
        The two clients of each pair, and the row of ``pair_cost``.
    pair_cost
        The cost of a pair of each kind for each two servers (``K×L×L``).
    incident_start, incident
        The pairs of client ``i`` are ``incident[incident_start[i]:incident_start[i+1]]``.
    label
        The active servers of each client.
    cost
        The cost of each active server of a client, with all messages and charges.
    to_first, to_second
        The messages of each pair to the active servers of its first and second client.
    """

    first: Int64Array
    second: Int64Array
    kind: Int64Array
    pair_cost: FloatArray
    incident_start: Int64Array
    incident: Int64Array
    label: Int64Array
    cost: FloatArray
    to_first: FloatArray
    to_second: FloatArray


class Charges(NamedTuple):
    """What the clients of a block pay for loads.

    Attributes
    ----------
    start, member
        The publishers of topic ``n`` in the block are ``member[start[n]:start[n+1]]``.
    spool
        ``u`` of each topic.
    part
        The part of the price of each topic at each server that these clients pay (``N×L``).
    share
        The shares of each of them, one for each active server of the client.
    demand
        ``U`` of each client.
    most
        The cost of delegating each client at each active server, which it never pays more than.
    charge
        ``β_l·U`` and the shares of each client at each active server, which may be above ``most``.
    alpha, beta
        The multipliers.
    storage, compute
        The parts of the capacities for this block.
    """

    start: Int64Array
    member: Int64Array
    spool: FloatArray
    part: FloatArray
    share: FloatArray
    demand: FloatArray
    most: FloatArray
    charge: FloatArray
    alpha: FloatArray
    beta: FloatArray
    storage: FloatArray
    compute: FloatArray


@compiled
def begin(s: Pairs) -> None:
    """Compute the messages to second clients from those to first ones, and add all messages to the costs.

    Parameters
    ----------
    s
        The pairs. The messages to second clients and the costs are written.
    """
    count = s.label.shape[1]
    for e in range(len(s.first)):
        i, j = s.first[e], s.second[e]
        for b in range(count):
            least = np.inf
            for a in range(count):
                least = min(least, s.pair_cost[s.kind[e], s.label[i, a], s.label[j, b]] - s.to_first[e, a])
            s.to_second[e, b] = least
            s.cost[j, b] += least
        for a in range(count):
            s.cost[i, a] += s.to_first[e, a]


@compiled
def visit_clients(s: Pairs, factor: SingleArray, temperature: float, backwards: bool) -> None:
    """Visit all clients. At each one, divide its costs and those of its pairs equally.

    Parameters
    ----------
    s
        The pairs. Messages and costs are written.
    factor
        ``exp(-pair_cost/T)``.
    temperature
        ``T``.
    backwards
        Whether the last client is the first to be visited.
    """
    count = s.label.shape[1]
    most = 0
    for i in range(len(s.label)):
        most = max(most, s.incident_start[i + 1] - s.incident_start[i])
    least = np.empty((most, count))
    weight = np.empty(count)
    for number in range(len(s.label)):
        i = len(s.label) - 1 - number if backwards else number
        begin, end = s.incident_start[i], s.incident_start[i + 1]
        if begin == end:
            continue
        for k in range(begin, end):
            e = s.incident[k]
            is_first = s.first[e] == i
            j = s.second[e] if is_first else s.first[e]
            theirs = s.to_second[e] if is_first else s.to_first[e]
            mine = s.to_first[e] if is_first else s.to_second[e]
            largest = theirs.max()
            for b in range(count):
                weight[b] = np.exp((theirs[b] - largest) / temperature)
            for a in range(count):
                row = factor[s.kind[e], s.label[i, a]]
                total = 0.0
                for b in range(count):
                    total += row[s.label[j, b]] * weight[b]
                if total > LEAST_SUM:
                    value = -temperature * np.log(total) - largest
                else:
                    value = np.inf
                    for b in range(count):
                        value = min(value, s.pair_cost[s.kind[e], s.label[i, a], s.label[j, b]] - theirs[b])
                least[k - begin, a] = value
                s.cost[i, a] += value - mine[a]
        for a in range(count):
            s.cost[i, a] /= end - begin + 1
        for k in range(begin, end):
            e = s.incident[k]
            mine = s.to_first[e] if s.first[e] == i else s.to_second[e]
            for a in range(count):
                mine[a] = least[k - begin, a] - s.cost[i, a]


@compiled
def visit_topics(s: Pairs, c: Charges, temperature: float) -> tuple[FloatArray, FloatArray]:
    """Visit all topics. At each active server, divide the price of a topic's storage among its members.

    Parameters
    ----------
    s, c
        The pairs and the charges. Shares, charges and costs are written.
    temperature
        ``T``.

    Returns
    -------
    load
        The storage load of each server in the smoothed relaxation: the derivative by ``α`` without the capacity.
    slope
        By how much the load decreases with ``α``, as long as only the shares follow.
    """
    servers = len(c.alpha)
    load, slope = np.zeros(servers), np.zeros(servers)
    seen = np.full(servers, -1)
    most = 1
    for n in range(len(c.spool)):
        most = max(most, c.start[n + 1] - c.start[n])
    place, entry = np.empty(most, np.int64), np.empty(most, np.int64)
    gain, room, rest = np.empty(most), np.empty(most), np.empty(most)
    for n in range(len(c.spool)):
        for q in range(c.start[n], c.start[n + 1]):
            for l in s.label[c.member[q]]:
                if seen[l] == n:
                    continue
                seen[l] = n
                size = _collect(s, c, temperature, n, l, place, entry, gain, room, rest)
                level = _divide(c.part[n, l] * c.alpha[l] * c.spool[n], gain[:size], room[:size])
                _pay(s, c, level, size, place, entry, gain, room, rest)
                # With the last share a member pays, its probability is that of the level. Delegated ones do not count.
                payers, probability = 0, 0.0
                for k in range(size):
                    share = min(max(gain[k] - level, 0.0), room[k])
                    if share < room[k]:
                        probability = max(probability, 1.0 / (1.0 + np.exp(-(gain[k] - share) / temperature)))
                        payers += share > 0
                if payers > 0 or level == np.inf:
                    spool = c.part[n, l] * c.spool[n]
                    load[l] += spool * probability
                    slope[l] += spool * c.spool[n] * probability * (1 - probability) / (max(payers, 1) * temperature)
    return load, slope


@compiled
def _collect(
    s: Pairs,
    c: Charges,
    temperature: float,
    n: int,
    l: int,
    place: Int64Array,
    entry: Int64Array,
    gain: FloatArray,
    room: FloatArray,
    rest: FloatArray,
) -> int:
    """Find the members of a topic with an active server, and what they gain there beside their other servers."""
    count, size = s.label.shape[1], 0
    for q in range(c.start[n], c.start[n + 1]):
        i = c.member[q]
        a = np.searchsorted(s.label[i], l)
        if a == count or s.label[i, a] != l:
            continue
        others, least = 0.0, np.inf
        for b in range(count):
            if b != a:
                least = min(least, s.cost[i, b])
        for b in range(count):
            if b != a:
                others += np.exp((least - s.cost[i, b]) / temperature)
        other = least - temperature * np.log(others) if count > 1 else np.inf
        place[size], entry[size] = a, q
        rest[size] = c.charge[i, a] - c.share[q, a]
        room[size] = max(c.most[i, a] - rest[size], 0.0)
        without = s.cost[i, a] - min(c.charge[i, a], c.most[i, a]) + min(rest[size], c.most[i, a])
        # A client with one server is there at every price.
        gain[size] = min(other - without, 1e6)
        size += 1
    return size


@compiled
def _divide(price: float, gain: FloatArray, room: FloatArray) -> float:
    """Return the level above which gains are paid, so that the shares add up to a price; infinity without a price."""
    if price <= 0.0:
        return np.inf
    high: float = gain.max()
    low: float = min(gain.min() - price, (gain - room).min())
    if room.sum() <= price:
        return low
    for _ in range(BISECTIONS):
        level = 0.5 * (low + high)
        total = 0.0
        for k in range(len(gain)):
            total += min(max(gain[k] - level, 0.0), room[k])
        if total > price:
            low = level
        else:
            high = level
    return high


@compiled
def _pay(
    s: Pairs,
    c: Charges,
    level: float,
    size: int,
    place: Int64Array,
    entry: Int64Array,
    gain: FloatArray,
    room: FloatArray,
    rest: FloatArray,
) -> None:
    """Write the shares that follow from a level."""
    for k in range(size):
        q, a = entry[k], place[k]
        i = c.member[q]
        share = min(max(gain[k] - level, 0.0), room[k])
        charge = rest[k] + share
        s.cost[i, a] += min(charge, c.most[i, a]) - min(c.charge[i, a], c.most[i, a])
        c.charge[i, a], c.share[q, a] = charge, share


@compiled
def compute_loads(s: Pairs, c: Charges, temperature: float) -> tuple[FloatArray, FloatArray]:
    """Compute the compute load of each server in the smoothed relaxation.

    Parameters
    ----------
    s, c
        The pairs and the charges.
    temperature
        ``T``.

    Returns
    -------
    load, slope
        As for :func:`visit_topics`, by ``β``.
    """
    load, slope = np.zeros(len(c.beta)), np.zeros(len(c.beta))
    for i in range(len(s.label)):
        weight = np.exp((s.cost[i].min() - s.cost[i]) / temperature)
        weight /= weight.sum()
        for a in range(s.label.shape[1]):
            if c.charge[i, a] < c.most[i, a]:
                l, demand, p = s.label[i, a], c.demand[i], weight[a]
                load[l] += demand * p
                slope[l] += demand * demand * p * (1 - p) / temperature
    return load, slope


@compiled
def charge_compute(s: Pairs, c: Charges, beta: FloatArray) -> None:
    """Replace the multipliers of compute, and charge the clients accordingly.

    Parameters
    ----------
    s, c
        The pairs and the charges. Charges, costs and ``c.beta`` are written.
    beta
        The new multipliers.
    """
    for i in range(len(s.label)):
        for a in range(s.label.shape[1]):
            l = s.label[i, a]
            charge = c.charge[i, a] + (beta[l] - c.beta[l]) * c.demand[i]
            s.cost[i, a] += min(charge, c.most[i, a]) - min(c.charge[i, a], c.most[i, a])
            c.charge[i, a] = charge
    c.beta[:] = beta


def newton_step(
    multiplier: FloatArray, load: FloatArray, slope: FloatArray, capacity: FloatArray, most: float
) -> FloatArray:
    """Return multipliers that are better for given loads.

    Parameters
    ----------
    multiplier, load, slope, capacity
        The multipliers, the loads, by how much these decrease with the multipliers, and the capacities.
    most
        The largest change of a multiplier.

    Returns
    -------
    array
        The new multipliers, from 0 on.
    """
    excess = load - capacity
    newton = np.abs(excess) < most * slope
    step = np.divide(excess, slope, out=most * np.sign(excess), where=newton)
    return np.maximum(multiplier + step, 0.0)


@compiled_reordered
def add_messages(
    cost: FloatArray,
    first: Int64Array,
    second: Int64Array,
    kind: Int64Array,
    pair_cost: FloatArray,
    label: Int64Array,
    to_first: FloatArray,
) -> None:
    """Add the messages of some pairs to the costs of all servers, as the verifier completes them.

    :class:`formulations.certificates.block_bound.BlockBound` defines the messages to servers that are not active.

    Parameters
    ----------
    cost
        The costs of the first clients (``own×L``), which are written. Those of the others are not needed.
    first, second, kind, pair_cost, label
        As in :class:`Pairs`, for all clients.
    to_first
        The given messages.
    """
    own, servers, count = len(cost), cost.shape[1], label.shape[1]
    most_second, most_first, message = np.empty(servers), np.empty(servers), np.empty(servers)
    for e in range(len(first)):
        i, j = first[e], second[e]
        pair = pair_cost[kind[e]]
        most_second[:] = np.inf
        for a in range(count):
            row, given = pair[label[i, a]], to_first[e, a]
            for l in range(servers):
                most_second[l] = min(most_second[l], row[l] - given)
        most_first[:] = np.inf
        for b in range(count):
            row, given = pair[label[j, b]], most_second[label[j, b]]
            for l in range(servers):
                most_first[l] = min(most_first[l], row[l] - given)
        # From here on, these are the messages themselves.
        for l in range(servers):
            most_first[l] = 0.5 * (most_first[l] - most_second[l])
            message[l] = -most_first[l]
        for a in range(count):
            most_first[label[i, a]] = to_first[e, a]
        if i < own:
            for l in range(servers):
                cost[i, l] += most_first[l]
        if j < own:
            for a in range(count):
                row, least = pair[label[i, a]], np.inf
                for l in range(servers):
                    least = min(least, row[l] - most_first[l])
                message[label[i, a]] = least
            for b in range(count):
                message[label[j, b]] = most_second[label[j, b]]
            for l in range(servers):
                cost[j, l] += message[l]
