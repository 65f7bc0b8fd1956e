"""The bound that dual variables prove, in floating point; :mod:`formulations.certificates.verification` has it exactly.

Messages are given on the *active* labels of each edge's first client. The other messages follow: as much as possible
goes to the second client, and labels that are not active get the most that takes nothing from active ones. So every
edge ends with a minimum of 0, and the bound is the sum of the clients' minima. docs/certificates.md says why it is one.
"""

from dataclasses import dataclass, replace

import numpy as np

from formulations.bounding.client_graph import Mask
from formulations.bounding.region import Region
from formulations.bounding.relaxation import Labels, Relaxation
from instances.compiled import compiled
from instances.groups import FloatArray, IntArray, OffsetArray

# Dual variables are whole multiples of these, so that a certificate holds them as they are.
BITS = 16
MULTIPLIER_BITS = 40


@dataclass(frozen=True, eq=False)
class Dual:
    """Dual variables.

    Attributes
    ----------
    labels
        The active labels.
    messages
        For each edge, the active labels of its first client.
    shares
        For each client, its loading topics, its active local labels: what it pays of the topic's storage there.
    alpha, beta
        Multipliers of storage and compute.
    hard
        The servers where these are for the loads as such, not for the share that is processed.
    """

    labels: Labels
    messages: FloatArray
    shares: FloatArray
    alpha: FloatArray
    beta: FloatArray
    hard: Mask

    @classmethod
    def nothing(cls, region: Region) -> "Dual":
        """Return the dual that is 0 everywhere; of a single assignment it proves what that costs."""
        graph = region.graph
        labels = Labels.of(region.allowed)
        none = np.zeros(graph.n_servers)
        return cls(
            labels,
            np.zeros(labels.sizes[graph.first].sum()),
            np.zeros(labels.sizes[graph.topic_owner].sum()),
            none,
            none,
            np.zeros(graph.n_servers, np.bool_),
        )

    def free(self) -> "Dual":
        """Return the same with nothing charged for loads."""
        return replace(self, shares=0 * self.shares, alpha=0 * self.alpha, beta=0 * self.beta)


@dataclass(frozen=True, eq=False)
class Bound:
    """What a dual proves.

    Attributes
    ----------
    value
        No assignment of the region costs less.
    cost
        What each home of a client costs after messages (``M×L``, infinite where not allowed).
    """

    value: float
    cost: FloatArray


def dual_of(relaxation: Relaxation) -> Dual:
    """Take the dual variables of a relaxation, rounded, with shares that fit the multipliers."""
    graph, labels, moving = relaxation.graph, relaxation.labels, relaxation.moving
    alpha, beta = (_rounded(values, MULTIPLIER_BITS) for values in (relaxation.alpha, relaxation.beta))
    shares = moving.share.copy()
    _fit_shares(
        shares,
        graph.topic_start,
        graph.topic,
        labels.start,
        labels.server,
        graph.spool,
        alpha,
        2.0**BITS,
    )
    messages = moving.out.copy()
    _settle_messages(messages, relaxation.fixed.out_start)
    return Dual(labels, _rounded(messages, BITS), shares, alpha, beta, relaxation.region.hard)


def bound_of(dual: Dual, region: Region) -> Bound:
    """Compute what a dual proves of all assignments of a region."""
    graph, labels = region.graph, dual.labels
    limit = np.where(dual.hard, region.least_share, 1.0)
    paid = region.opened * graph.spool[:, None] * dual.alpha[None, :]
    constant = paid.sum() - ((dual.alpha * graph.storage + dual.beta * graph.compute) / limit).sum()
    charge = dual.beta[None, :] * graph.demand[:, None]
    _add_shares(charge, dual.shares, graph.topic_start, graph.topic, labels.start, labels.server, region.opened)
    cost = graph.own + _mixed_charge(charge, paid, dual.hard, region)
    cost[~region.allowed] = np.inf
    _add_messages(
        cost,
        region.allowed,
        graph.first,
        graph.second,
        graph.there,
        graph.back,
        graph.server_delay,
        labels.start,
        labels.server,
        dual.messages,
    )
    return Bound(float(cost.min(axis=1).sum() + constant), cost)


def least_cost_with(dual: Dual, bound: Bound, region: Region) -> FloatArray:
    """Return for each client and home what an assignment of the region with it costs at least (``M×L``).

    A client takes its neighbours along: their labels may differ from the best, but what that and the edges to them cost
    is counted.
    """
    graph, labels = region.graph, dual.labels
    extra = bound.cost - bound.cost.min(axis=1, keepdims=True)
    star = extra.copy()
    _add_neighbours(
        star,
        extra,
        np.isfinite(bound.cost),
        graph.first,
        graph.second,
        graph.there,
        graph.back,
        graph.server_delay,
        labels.start,
        labels.server,
        dual.messages,
    )
    least: FloatArray = bound.value + star
    return least


def _rounded(values: FloatArray, bits: int) -> FloatArray:
    rounded: FloatArray = np.floor(values * 2.0**bits) / 2.0**bits
    return rounded


def _mixed_charge(charge: FloatArray, paid: FloatArray, hard: Mask, region: Region) -> FloatArray:
    """Return what a client pays at a server for capacity and delegation, at the least, whatever ``θ`` is there."""
    graph = region.graph
    instead = region.delegation_cost
    if paid[:, ~hard].any():
        # One of an open topic's publishers carries what is paid for it once and for all; which, nobody knows.
        instead = instead.copy()
        np.subtract.at(instead, graph.topic_owner, (paid * ~hard)[graph.topic])
    shares = region.least_share[None, :], np.where(region.least_share < 1, region.largest_share, 1.0)
    ends = [np.where(hard, charge, share * charge) + (1 - share) * instead for share in shares]
    least: FloatArray = np.minimum(*ends)
    return least


@compiled
def _settle_messages(messages: FloatArray, start: OffsetArray) -> None:
    """Make the first message of every edge 0; only differences matter, and zeros take no room in a file."""
    for e in range(len(start) - 1):
        base = messages[start[e]]
        for a in range(start[e], start[e + 1]):
            messages[a] -= base


@compiled
def _fit_shares(
    shares: FloatArray,
    topic_start: OffsetArray,
    topic: IntArray,
    label_start: OffsetArray,
    server: IntArray,
    spool: FloatArray,
    alpha: FloatArray,
    unit: float,
) -> None:
    """Scale the shares of each topic on each server so that they add up to what there is to share, and round down."""
    total = np.zeros((len(spool), len(alpha)))
    for again in range(2):
        at = 0
        for m in range(len(label_start) - 1):
            for q in range(topic_start[m], topic_start[m + 1]):
                for a in range(label_start[m], label_start[m + 1]):
                    n, l = topic[q], server[a]
                    if again == 0:
                        total[n, l] += shares[at]
                    elif total[n, l] > 0:
                        # A little less, as the sum was rounded.
                        exact = shares[at] * (alpha[l] * spool[n] / total[n, l]) * (1 - 1e-12)
                        shares[at] = np.floor(exact * unit) / unit
                    at += 1


@compiled
def _add_shares(
    charge: FloatArray,
    shares: FloatArray,
    topic_start: OffsetArray,
    topic: IntArray,
    label_start: OffsetArray,
    server: IntArray,
    opened: Mask,
) -> None:
    at = 0
    for m in range(len(label_start) - 1):
        for q in range(topic_start[m], topic_start[m + 1]):
            for a in range(label_start[m], label_start[m + 1]):
                if not opened[topic[q], server[a]]:
                    charge[m, server[a]] += shares[at]
                at += 1


@compiled
def _complete(
    out: FloatArray,
    home: FloatArray,
    lists: IntArray,
    present_i: Mask,
    present_j: Mask,
    i: int,
    j: int,
    w: float,
    v: float,
    delay: FloatArray,
    label_start: OffsetArray,
    server: IntArray,
    messages: FloatArray,
    at: int,
) -> tuple[int, int]:
    """Fill in the messages of one edge to all labels that are present.

    ``lists`` gets the present labels of both clients (two rows), active ones first; how many there are is returned.
    """
    width = len(out)
    out[:] = np.inf
    home[:] = np.inf
    active_i = 0
    for a in range(label_start[i], label_start[i + 1]):
        p = server[a]
        if present_i[p]:
            out[p] = messages[at + a - label_start[i]]
            lists[0, active_i] = p
            active_i += 1
    active_j = 0
    for b in range(label_start[j], label_start[j + 1]):
        q = server[b]
        if present_j[q]:
            least = np.inf
            for a in range(active_i):
                p = lists[0, a]
                least = min(least, w * delay[p, q] + v * delay[q, p] - out[p])
            home[q] = least
            lists[1, active_j] = q
            active_j += 1
    count_i = active_i
    for p in range(width):
        if present_i[p] and out[p] == np.inf:
            least = np.inf
            for b in range(active_j):
                q = lists[1, b]
                least = min(least, w * delay[p, q] + v * delay[q, p] - home[q])
            out[p] = least
            lists[0, count_i] = p
            count_i += 1
    count_j = active_j
    for q in range(width):
        if present_j[q] and home[q] == np.inf:
            least = np.inf
            for a in range(count_i):
                p = lists[0, a]
                least = min(least, w * delay[p, q] + v * delay[q, p] - out[p])
            home[q] = least
            lists[1, count_j] = q
            count_j += 1
    return count_i, count_j


@compiled
def _add_messages(
    cost: FloatArray,
    present: Mask,
    first: IntArray,
    second: IntArray,
    there: FloatArray,
    back: FloatArray,
    delay: FloatArray,
    label_start: OffsetArray,
    server: IntArray,
    messages: FloatArray,
) -> None:
    """Add to each client's labels what its edges say."""
    width = cost.shape[1]
    out, home = np.empty(width), np.empty(width)
    lists = np.empty((2, width), np.int32)
    at = 0
    for e in range(len(first)):
        i, j = first[e], second[e]
        w, v = there[e], back[e]
        rows, columns = _complete(
            out, home, lists, present[i], present[j], i, j, w, v, delay, label_start, server, messages, at
        )
        at += label_start[i + 1] - label_start[i]
        for a in range(rows):
            cost[i, lists[0, a]] += out[lists[0, a]]
        for b in range(columns):
            cost[j, lists[1, b]] += home[lists[1, b]]


@compiled
def _add_neighbours(
    star: FloatArray,
    extra: FloatArray,
    present: Mask,
    first: IntArray,
    second: IntArray,
    there: FloatArray,
    back: FloatArray,
    delay: FloatArray,
    label_start: OffsetArray,
    server: IntArray,
    messages: FloatArray,
) -> None:
    """Add to each label what the edges to the neighbours and the neighbours themselves cost at least."""
    width = star.shape[1]
    out, home = np.empty(width), np.empty(width)
    lists = np.empty((2, width), np.int32)
    at = 0
    for e in range(len(first)):
        i, j = first[e], second[e]
        w, v = there[e], back[e]
        rows, columns = _complete(
            out, home, lists, present[i], present[j], i, j, w, v, delay, label_start, server, messages, at
        )
        at += label_start[i + 1] - label_start[i]
        for a in range(rows):
            p = lists[0, a]
            least = np.inf
            for b in range(columns):
                q = lists[1, b]
                least = min(least, w * delay[p, q] + v * delay[q, p] - out[p] - home[q] + extra[j, q])
            star[i, p] += least
        for b in range(columns):
            q = lists[1, b]
            least = np.inf
            for a in range(rows):
                p = lists[0, a]
                least = min(least, w * delay[p, q] + v * delay[q, p] - out[p] - home[q] + extra[i, p])
            star[j, q] += least
