"""The bound that dual variables prove, in floating point.

The verifier computes the same bound exactly (:mod:`formulations.certificates.exact_bound`).

A dual gives messages on the *active* labels of each edge's first client. The other messages follow from these: each
label of the second client gets the largest message that the pairs allow, and a label that is not active gets the
largest message that leaves those of the active labels unchanged. So every edge ends with a minimum of 0, and the bound
is the sum of the clients' minima. docs/certificates.md proves that it is a bound.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from relocbench.formulations.bounding.client_graph import Mask
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets

# Messages and shares are integer multiples of 2^-BITS, so that a certificate stores them without rounding.
BITS = 16
# The multipliers of the capacities are integer multiples of 2^-MULTIPLIER_BITS, for the same reason.
MULTIPLIER_BITS = 40
# A certificate stores integers of 64 bits; larger values are cut off.
MOST_INTEGER_BITS = 62
# Shares are scaled down by this much, because the sum that they are scaled by is rounded.
SHARE_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Dual:
    """Dual variables of the relaxation.

    Attributes
    ----------
    labels
        The active labels.
    messages
        For each edge, one number for each active label of its first client.
    shares
        For each client, each of its loading topics and each of its active labels: the part of the topic's storage price
        that the client pays there.
    alpha, beta
        Multipliers of the storage and compute rows.
    hard
        The servers whose rows limit the loads themselves, not only the load that is processed locally.
    """

    labels: Labels
    messages: FloatArray
    shares: FloatArray
    alpha: FloatArray
    beta: FloatArray
    hard: Mask

    @classmethod
    def zero(cls, region: Region) -> "Dual":
        """Create the zero dual. On a single assignment its bound equals the cost.

        Parameters
        ----------
        region
            The region whose allowed homes are the active labels.

        Returns
        -------
        Dual
            The zero dual.
        """
        graph = region.graph
        labels = Labels.of(region.allowed)
        zeros = np.zeros(graph.n_servers)
        return cls(
            labels,
            np.zeros(labels.sizes[graph.first].sum()),
            np.zeros(labels.sizes[graph.topic_owner].sum()),
            zeros,
            zeros,
            np.zeros(graph.n_servers, np.bool_),
        )

    @classmethod
    def silent(cls, region: Region) -> "Dual":
        """Create a dual without active labels. All its messages are 0, and it is small at every size.

        Parameters
        ----------
        region
            The region.

        Returns
        -------
        Dual
            The dual.
        """
        graph = region.graph
        none, zeros = np.zeros(0), np.zeros(graph.n_servers)
        nowhere = np.zeros((graph.n_clients, graph.n_servers), np.bool_)
        return cls(Labels.of(nowhere), none, none, zeros, zeros, np.zeros(graph.n_servers, np.bool_))

    def without_capacities(self) -> "Dual":
        """Set the multipliers of the capacities to 0.

        Returns
        -------
        Dual
            The same messages, without any charge for loads.
        """
        return replace(self, shares=0 * self.shares, alpha=0 * self.alpha, beta=0 * self.beta)


@dataclass(frozen=True, eq=False)
class Bound:
    """The bound that a dual proves for a region.

    Attributes
    ----------
    value
        A lower bound on the cost of every assignment of the region.
    cost
        The cost of each home of a client with its messages (``M×L``, infinite where not allowed). The difference to the
        client's minimum is the reduced cost.
    """

    value: float
    cost: FloatArray


def dual_of(relaxation: Relaxation) -> Dual:
    """Take the dual variables of a relaxation, rounded, with shares that fit the multipliers.

    Parameters
    ----------
    relaxation
        The relaxation, after any number of iterations.

    Returns
    -------
    Dual
        Dual variables that a certificate can store.
    """
    graph, labels, variables = relaxation.graph, relaxation.labels, relaxation.variables
    alpha, beta = (_rounded(values, MULTIPLIER_BITS) for values in (relaxation.alpha, relaxation.beta))
    shares = variables.share.copy()
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
    messages = variables.message_first.copy()
    _normalise_messages(messages, relaxation.problem.message_first_start)
    return Dual(labels, _rounded(messages, BITS), shares, alpha, beta, relaxation.region.hard)


def bound_of(dual: Dual, region: Region) -> Bound:
    """Compute the bound that a dual proves for a region.

    Parameters
    ----------
    dual, region
        The dual and the region; the dual may come from another region of the same graph.

    Returns
    -------
    Bound
        The bound and the costs of the labels.
    """
    graph, labels = region.graph, dual.labels
    limit = np.where(dual.hard, region.least_theta, 1.0)
    open_price = region.opened * graph.spool[:, None] * dual.alpha[None, :]
    constant = (
        open_price.sum() - ((dual.alpha * graph.storage_capacity + dual.beta * graph.compute_capacity) / limit).sum()
    )
    charge = dual.beta[None, :] * graph.demand[:, None]
    _add_shares(charge, dual.shares, graph.topic_start, graph.topic, labels.start, labels.server, region.opened)
    cost = graph.distance_cost + _least_charge(charge, open_price, dual.hard, region)
    cost[~region.allowed] = np.inf
    # Without active labels all messages are 0 if every home is allowed: two clients at the same server cost nothing.
    if len(labels.server) or not region.allowed.all():
        _add_messages(cost, region.allowed, _edges(dual, region))
    return Bound(float(cost.min(axis=1).sum() + constant), cost)


def least_cost_with(dual: Dual, bound: Bound, region: Region) -> FloatArray:
    """Compute a lower bound for each client and home on the assignments of the region that use this home.

    To the bound are added the reduced cost of the home and, for each neighbour, the least sum of the neighbour's
    reduced cost and the slack of the edge to it.

    Parameters
    ----------
    dual, bound, region
        The dual, its bound, and the region.

    Returns
    -------
    FloatArray
        The bounds (``M×L``).
    """
    reduced_cost = bound.cost - bound.cost.min(axis=1, keepdims=True)
    star = reduced_cost.copy()
    _add_neighbours(star, reduced_cost, region.allowed, _edges(dual, region))
    least: FloatArray = bound.value + star
    return least


class _Edges(NamedTuple):
    """The edges as the kernels read them: their clients, weights, labels and given messages."""

    first: IntArray
    second: IntArray
    forward: FloatArray
    backward: FloatArray
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
        graph.forward,
        graph.backward,
        graph.server_delay,
        labels.start,
        labels.server,
        offsets(labels.sizes[graph.first]),
        dual.messages,
    )


def _rounded(values: FloatArray, bits: int) -> FloatArray:
    largest = 2.0 ** (MOST_INTEGER_BITS - bits)
    rounded: FloatArray = np.floor(values.clip(-largest, largest) * 2.0**bits) / 2.0**bits
    return rounded


def _least_charge(charge: FloatArray, open_price: FloatArray, hard: Mask, region: Region) -> FloatArray:
    """Return the least charge of a client at a server for capacity and delegation, over the range of ``θ``."""
    graph = region.graph
    delegated = region.delegation_cost
    if open_price[:, ~hard].any():
        # The price of an open topic is a constant of the bound. Its delegated part is subtracted at one publisher;
        # which one is not known, so it is subtracted at all of them.
        delegated = delegated.copy()
        np.subtract.at(delegated, graph.topic_owner, (open_price * ~hard)[graph.topic])
    # The charge is linear in θ, so it is least at an end of the range.
    thetas = region.least_theta[None, :], np.where(region.least_theta < 1, region.largest_theta, 1.0)
    ends = [np.where(hard, charge, theta * charge) + (1 - theta) * delegated for theta in thetas]
    least: FloatArray = np.minimum(*ends)
    return least


@compiled
def _normalise_messages(messages: FloatArray, start: OffsetArray) -> None:
    """Make the first message of every edge 0; only differences matter, and zeros compress well in a file."""
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
    """Scale the shares of each topic on each server so that they sum to its price ``α_l·u_n``, and round them down."""
    total = np.zeros((len(spool), len(alpha)))
    for scaling in range(2):
        at = 0
        for m in range(len(label_start) - 1):
            for q in range(topic_start[m], topic_start[m + 1]):
                for a in range(label_start[m], label_start[m + 1]):
                    n, l = topic[q], server[a]
                    if scaling == 0:
                        total[n, l] += shares[at]
                    elif total[n, l] > 0:
                        scaled = shares[at] * (alpha[l] * spool[n] / total[n, l]) * (1 - SHARE_ROUNDING)
                        shares[at] = np.floor(scaled * unit) / unit
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
    """Add the shares of the topics that are not known to be open."""
    at = 0
    for m in range(len(label_start) - 1):
        for q in range(topic_start[m], topic_start[m + 1]):
            for a in range(label_start[m], label_start[m + 1]):
                if not opened[topic[q], server[a]]:
                    charge[m, server[a]] += shares[at]
                at += 1


class _Edge(NamedTuple):
    """One edge with the messages to all allowed labels.

    Attributes
    ----------
    to_first, to_second
        The messages to the first and to the second client, per server.
    rows, columns
        The allowed servers of the first and of the second client, active ones first.
    """

    to_first: FloatArray
    to_second: FloatArray
    rows: IntArray
    columns: IntArray


@compiled
def _pair_cost(g: _Edges, e: int, p: int, q: int) -> float:
    cost: float = g.forward[e] * g.delay[p, q] + g.backward[e] * g.delay[q, p]
    return cost


@compiled
def _completed(g: _Edges, e: int, allowed: Mask, edge: _Edge) -> _Edge:
    """Compute all messages of an edge from the given ones.

    Active labels that are not allowed are ignored. A client without any other active label has all its allowed labels
    active.
    """
    i, j = g.first[e], g.second[e]
    servers = len(edge.to_first)
    to_first, to_second, rows, columns = edge.to_first, edge.to_second, edge.rows, edge.columns
    to_first[:] = np.inf
    to_second[:] = np.inf
    active_i = 0
    for a in range(g.label_start[i], g.label_start[i + 1]):
        p = g.server[a]
        if allowed[i, p]:
            to_first[p] = g.messages[g.message_start[e] + a - g.label_start[i]]
            rows[active_i] = p
            active_i += 1
    if active_i == 0:
        for p in range(servers):
            if allowed[i, p]:
                to_first[p] = 0.0
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
            to_second[q] = min(to_second[q], _pair_cost(g, e, p, q) - to_first[p])
    count_i = active_i
    for p in range(servers):
        if allowed[i, p] and to_first[p] == np.inf:
            for b in range(active_j):
                q = columns[b]
                to_first[p] = min(to_first[p], _pair_cost(g, e, p, q) - to_second[q])
            rows[count_i] = p
            count_i += 1
    count_j = active_j
    for q in range(servers):
        if allowed[j, q] and to_second[q] == np.inf:
            for a in range(count_i):
                p = rows[a]
                to_second[q] = min(to_second[q], _pair_cost(g, e, p, q) - to_first[p])
            columns[count_j] = q
            count_j += 1
    return _Edge(to_first, to_second, rows[:count_i], columns[:count_j])


@compiled
def _new_edge(servers: int) -> _Edge:
    return _Edge(np.empty(servers), np.empty(servers), np.empty(servers, np.int32), np.empty(servers, np.int32))


@compiled
def _add_messages(cost: FloatArray, allowed: Mask, g: _Edges) -> None:
    """Add the messages of all edges to the costs of the labels."""
    memory = _new_edge(cost.shape[1])
    for e in range(len(g.first)):
        edge = _completed(g, e, allowed, memory)
        for p in edge.rows:
            cost[g.first[e], p] += edge.to_first[p]
        for q in edge.columns:
            cost[g.second[e], q] += edge.to_second[q]


@compiled
def _add_neighbours(star: FloatArray, reduced_cost: FloatArray, allowed: Mask, g: _Edges) -> None:
    """Add to each label, for each edge, the least sum of the edge's slack and the neighbour's reduced cost."""
    memory = _new_edge(star.shape[1])
    for e in range(len(g.first)):
        i, j = g.first[e], g.second[e]
        edge = _completed(g, e, allowed, memory)
        for p in edge.rows:
            least = np.inf
            for q in edge.columns:
                least = min(least, _pair_cost(g, e, p, q) - edge.to_first[p] - edge.to_second[q] + reduced_cost[j, q])
            star[i, p] += least
        for q in edge.columns:
            least = np.inf
            for p in edge.rows:
                least = min(least, _pair_cost(g, e, p, q) - edge.to_first[p] - edge.to_second[q] + reduced_cost[i, p])
            star[j, q] += least
