"""The steps of an iteration of the relaxation with contents: shares of labels, pairs of labels, and messages."""

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled, compiled_reordered
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

SingleArray = npt.NDArray[np.float32]


@compiled
def step_shares(
    shares: FloatArray,
    extrapolated: FloatArray,
    unary: FloatArray,
    incident_start: OffsetArray,
    incident: IntArray,
    first: IntArray,
    to_first: FloatArray,
    to_second: FloatArray,
    step: FloatArray,
) -> None:
    """Primal step of the shares, projected onto the simplex of each client.

    Parameters
    ----------
    shares, extrapolated
        The shares of the labels of each client, and the same extrapolated by this step. Both are written.
    unary
        The costs of labels, prices included.
    incident_start, incident
        The edges of client ``m`` are ``incident[incident_start[m]:incident_start[m+1]]``.
    first
        The first client of each edge.
    to_first, to_second
        The messages of each edge to the labels of its two clients.
    step
        The length of the step for each client.
    """
    clients, labels = shares.shape
    point, falling = np.empty(labels), np.empty(labels)
    for m in range(clients):
        point[:] = unary[m]
        for g in range(incident_start[m], incident_start[m + 1]):
            e = incident[g]
            point += to_first[e] if first[e] == m else to_second[e]
        for a in range(labels):
            point[a] = shares[m, a] - step[m] * point[a]
            b = a
            while b > 0 and falling[b - 1] < point[a]:
                falling[b] = falling[b - 1]
                b -= 1
            falling[b] = point[a]
        total, level = 0.0, 0.0
        for a in range(labels):
            total += falling[a]
            if falling[a] * (a + 1) > total - 1:
                level = (total - 1) / (a + 1)
        for a in range(labels):
            new = max(0.0, point[a] - level)
            extrapolated[m, a] = 2 * new - shares[m, a]
            shares[m, a] = new


@compiled_reordered
def step_edges(
    first: IntArray,
    second: IntArray,
    cost: SingleArray,
    extrapolated: FloatArray,
    to_first: FloatArray,
    to_second: FloatArray,
    pairs: SingleArray,
    same: FloatArray,
    pair_step: SingleArray,
    weight: float,
) -> None:
    """Primal step of the pairs of labels, then dual step of the messages.

    Parameters
    ----------
    first, second
        The two clients of each edge.
    cost
        The cost of each pair of labels of an edge.
    extrapolated
        The extrapolated shares of labels, as :func:`step_shares` writes them.
    to_first, to_second
        The messages to the two clients, which are changed.
    pairs
        The shares of pairs of labels, which are changed.
    same
        The extrapolated shares of pairs of the same label are written here.
    pair_step
        The length of the primal step of each edge, for a weight of 1.
    weight
        The primal weight.
    """
    labels = cost.shape[1]
    column, message = np.empty(labels, np.float32), np.empty(labels, np.float32)
    zero = np.float32(0.0)
    row_step = weight / (1 + labels)
    for e in range(len(first)):
        for b in range(labels):
            message[b] = to_second[e, b]
            column[b] = zero
        step = np.float32(pair_step[e] / weight)
        for a in range(labels):
            to_row, row = np.float32(to_first[e, a]), zero
            same[e, a] = -pairs[e, a, a]
            for b in range(labels):
                old = pairs[e, a, b]
                new = max(zero, old - step * (cost[e, a, b] - to_row - message[b]))
                pairs[e, a, b] = new
                row += new + new - old
                column[b] += new + new - old
            same[e, a] += 2 * pairs[e, a, a]
            to_first[e, a] += row_step * (extrapolated[first[e], a] - row)
        for b in range(labels):
            to_second[e, b] += row_step * (extrapolated[second[e], b] - column[b])


@compiled
def add_messages(
    cost: FloatArray,
    first: IntArray,
    second: IntArray,
    forward: FloatArray,
    backward: FloatArray,
    delay: FloatArray,
    messages: FloatArray,
    pair_prices: FloatArray,
) -> None:
    """Add the given messages to the first clients, and the largest ones that the pairs allow to the second clients.

    Parameters
    ----------
    cost
        The costs of labels, to which the messages are added.
    first, second
        The two clients of each edge.
    forward, backward
        What the first client of each edge sends to the second one, and the reverse.
    delay
        ``dS``.
    messages
        The messages to the first clients.
    pair_prices
        What both clients of an edge pay together for each label if they have the same one.
    """
    labels, servers = cost.shape[1], len(delay)
    for e in range(len(first)):
        for a in range(labels):
            cost[first[e], a] += messages[e, a]
        for b in range(servers):
            local = (forward[e] + backward[e]) * delay[b, b] + pair_prices[e, b] - messages[e, b]
            delegated = pair_prices[e, servers + b] - messages[e, servers + b]
            for a in range(servers):
                if a == b:
                    continue
                sent, received = forward[e] * delay[a, b], backward[e] * delay[b, a]
                here, there = sent - messages[e, a], -messages[e, servers + a]
                local = min(local, here + received, there + received)
                delegated = min(delegated, here, there)
            cost[second[e], b] += local
            cost[second[e], servers + b] += delegated
