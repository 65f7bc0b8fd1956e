"""The bound that dual variables prove, in floating point; :mod:`formulations.certificates.verification` has it exactly.

Messages are given on the *active* labels of each edge's first client. The other messages follow: as much as possible
goes to the second client, and labels that are not active get the most that takes nothing from active ones. So every
edge ends with a minimum of 0, and the bound is the sum of the clients' minima. docs/certificates.md says why it is one.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from relocbench.formulations.bounding.client_graph import Mask
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets

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
    constant = paid.sum() - ((dual.alpha * graph.storage_capacity + dual.beta * graph.compute_capacity) / limit).sum()
    charge = dual.beta[None, :] * graph.demand[:, None]
    _add_shares(charge, dual.shares, graph.topic_start, graph.topic, labels.start, labels.server, region.opened)
    cost = graph.own + _mixed_charge(charge, paid, dual.hard, region)
    cost[~region.allowed] = np.inf
    _add_messages(cost, region.allowed, _edges(dual, region))
    return Bound(float(cost.min(axis=1).sum() + constant), cost)


def least_cost_with(dual: Dual, bound: Bound, region: Region) -> FloatArray:
    """Return for each client and home what an assignment of the region with it costs at least (``M×L``).

    A client takes its neighbours along: their labels may differ from the best, but what that and the edges to them cost
    is counted.
    """
    extra = bound.cost - bound.cost.min(axis=1, keepdims=True)
    star = extra.copy()
    _add_neighbours(star, extra, region.allowed, _edges(dual, region))
    least: FloatArray = bound.value + star
    return least


class _Edges(NamedTuple):
    """What the kernels read of the edges: their ends, what these send, and the messages given."""

    first: IntArray
    second: IntArray
    there: FloatArray
    back: FloatArray
    delay: FloatArray
    label_start: OffsetArray
    server: IntArray
    message_start: OffsetArray
    messages: FloatArray


def _edges(dual: Dual, region: Region) -> _Edges:
    graph, labels = region.graph, dual.labels
    return _Edges(
        graph.first,
        graph.second,
        graph.there,
        graph.back,
        graph.server_delay,
        labels.start,
        labels.server,
        offsets(labels.sizes[graph.first]),
        dual.messages,
    )


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


class _Edge(NamedTuple):
    """One edge with the messages to all labels that are allowed."""

    out: FloatArray  # per server, to the first client
    home: FloatArray  # and to the second
    rows: IntArray  # the servers that are allowed, of the first client
    columns: IntArray  # and of the second


@compiled
def _pair_cost(g: _Edges, e: int, p: int, q: int) -> float:
    cost: float = g.there[e] * g.delay[p, q] + g.back[e] * g.delay[q, p]
    return cost


@compiled
def _completed(g: _Edges, e: int, allowed: Mask, edge: _Edge) -> _Edge:
    """Fill in the messages of an edge; active labels come first in the lists of those allowed.

    Active labels that are not allowed are passed over; where no other is left, all allowed ones count as active.
    """
    i, j = g.first[e], g.second[e]
    servers = len(edge.out)
    out, home, rows, columns = edge.out, edge.home, edge.rows, edge.columns
    out[:] = np.inf
    home[:] = np.inf
    active_i = 0
    for a in range(g.label_start[i], g.label_start[i + 1]):
        p = g.server[a]
        if allowed[i, p]:
            out[p] = g.messages[g.message_start[e] + a - g.label_start[i]]
            rows[active_i] = p
            active_i += 1
    if active_i == 0:
        for p in range(servers):
            if allowed[i, p]:
                out[p] = 0.0
                rows[active_i] = p
                active_i += 1
    active_j = 0
    for b in range(g.label_start[j], g.label_start[j + 1]):
        if allowed[j, g.server[b]]:
            columns[active_j] = g.server[b]
            active_j += 1
    if active_j == 0:
        for q in range(servers):
            if allowed[j, q]:
                columns[active_j] = q
                active_j += 1
    for q in columns[:active_j]:
        for p in rows[:active_i]:
            home[q] = min(home[q], _pair_cost(g, e, p, q) - out[p])
    count_i = active_i
    for p in range(servers):
        if allowed[i, p] and out[p] == np.inf:
            for b in range(active_j):
                q = columns[b]
                out[p] = min(out[p], _pair_cost(g, e, p, q) - home[q])
            rows[count_i] = p
            count_i += 1
    count_j = active_j
    for q in range(servers):
        if allowed[j, q] and home[q] == np.inf:
            for a in range(count_i):
                p = rows[a]
                home[q] = min(home[q], _pair_cost(g, e, p, q) - out[p])
            columns[count_j] = q
            count_j += 1
    return _Edge(out, home, rows[:count_i], columns[:count_j])


@compiled
def _room_for_an_edge(servers: int) -> _Edge:
    return _Edge(np.empty(servers), np.empty(servers), np.empty(servers, np.int32), np.empty(servers, np.int32))


@compiled
def _add_messages(cost: FloatArray, allowed: Mask, g: _Edges) -> None:
    """Add to each client's labels what its edges say."""
    room = _room_for_an_edge(cost.shape[1])
    for e in range(len(g.first)):
        edge = _completed(g, e, allowed, room)
        for p in edge.rows:
            cost[g.first[e], p] += edge.out[p]
        for q in edge.columns:
            cost[g.second[e], q] += edge.home[q]


@compiled
def _add_neighbours(star: FloatArray, extra: FloatArray, allowed: Mask, g: _Edges) -> None:
    """Add to each label what the edges to the neighbours and the neighbours themselves cost at least."""
    room = _room_for_an_edge(star.shape[1])
    for e in range(len(g.first)):
        i, j = g.first[e], g.second[e]
        edge = _completed(g, e, allowed, room)
        for p in edge.rows:
            least = np.inf
            for q in edge.columns:
                least = min(least, _pair_cost(g, e, p, q) - edge.out[p] - edge.home[q] + extra[j, q])
            star[i, p] += least
        for q in edge.columns:
            least = np.inf
            for p in edge.rows:
                least = min(least, _pair_cost(g, e, p, q) - edge.out[p] - edge.home[q] + extra[i, p])
            star[j, q] += least
