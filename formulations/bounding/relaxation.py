"""The linear relaxation over labelled clients, solved from both sides at once.

The relaxation has a share ``x`` for every home of a client (its *labels*), a share ``z`` for every pair of homes of two
clients that exchange messages, and ``y`` for every topic stored on a server; docs/certificates.md has it in full. Any
values of its dual variables give a bound (:mod:`formulations.bounding.dual_bound`): how well it is solved here decides
how good a bound is, never whether it is one.

The method is the primal-dual hybrid gradient with steps scaled by row and column (Pock and Chambolle, 2011). Block
coordinate ascent (TRW-S, MPLP++) is faster at first without capacities, but gets stuck where shares of a topic's
storage have to move between many clients at once, a per cent or more below the optimum.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from formulations.bounding.client_graph import ClientGraph, Mask
from formulations.bounding.region import Region
from instances.compiled import compiled
from instances.groups import FloatArray, IntArray, OffsetArray

SingleArray = npt.NDArray[np.float32]

# How large dual steps are against primal ones, in units of a typical cost.
WEIGHT = 1.8


@dataclass(frozen=True, eq=False)
class Labels:
    """The homes of each client that take part.

    Attributes
    ----------
    servers
        The homes, as a mask (``M×L``).
    start, server
        Those of client ``m`` are ``server[start[m]:start[m+1]]``, ascending.
    """

    servers: Mask
    start: OffsetArray
    server: IntArray

    @classmethod
    def of(cls, servers: Mask) -> "Labels":
        """Lay out the given homes."""
        start = np.zeros(len(servers) + 1, np.int64)
        np.cumsum(servers.sum(axis=1), out=start[1:])
        return cls(servers, start, np.nonzero(servers)[1].astype(np.int32))

    @property
    def sizes(self) -> OffsetArray:
        """How many labels each client has."""
        return np.diff(self.start)


class Fixed(NamedTuple):
    """What the kernels read: the graph and where the labels and pairs of labels lie."""

    first: IntArray
    second: IntArray
    near_start: OffsetArray  # the edges of a client: near[near_start[m]:near_start[m+1]]
    near: OffsetArray
    label_start: OffsetArray
    server: IntArray
    out_start: OffsetArray  # of an edge's messages to its first client
    home_start: OffsetArray  # and to its second
    pair_start: OffsetArray
    pair_cost: SingleArray
    unary: FloatArray  # per label, without multipliers
    topic_start: OffsetArray
    topic: IntArray
    share_start: OffsetArray
    storage_row: FloatArray  # (N×L) a topic's entry in a server's storage row, scaled
    compute_row: FloatArray  # (M×L)
    room_storage: FloatArray
    room_compute: FloatArray
    most_alpha: FloatArray  # beyond which a multiplier is of no use
    most_beta: FloatArray
    y_least: FloatArray
    y_most: FloatArray
    step_x: FloatArray
    step_y: FloatArray


class Moving(NamedTuple):
    """What the kernels change."""

    x: FloatArray
    ahead: FloatArray  # 2·x - the x before
    z: SingleArray
    y: FloatArray
    y_ahead: FloatArray
    out: FloatArray  # messages to the first client of an edge
    home: FloatArray  # and to its second
    share: FloatArray
    alpha: FloatArray
    beta: FloatArray


class Relaxation:
    """The relaxation with some of the labels, and where its solution has got to.

    Parameters
    ----------
    region
        The assignments it is about.
    labels
        The labels that take part.
    """

    def __init__(self, region: Region, labels: Labels) -> None:
        graph = region.graph
        self.region, self.graph, self.labels = region, graph, labels
        self._weight = WEIGHT * graph.typical_cost
        self.iterations = 0
        self.fixed, self._storage_scale, self._compute_scale = _fixed(region, labels)
        f = self.fixed
        sizes = labels.sizes.astype(np.float64)
        share = np.repeat(1 / sizes, labels.sizes)
        pairs = sizes[graph.first] * sizes[graph.second]
        self.moving = Moving(
            x=share,
            ahead=share.copy(),
            z=np.repeat((1 / pairs).astype(np.float32), pairs.astype(np.int64)),
            y=np.full((len(graph.spool), graph.n_servers), 1 / graph.n_servers),
            y_ahead=np.zeros((len(graph.spool), graph.n_servers)),
            out=np.zeros(f.out_start[-1]),
            home=np.zeros(f.home_start[-1]),
            share=np.zeros(f.share_start[-1]),
            alpha=np.zeros(graph.n_servers),
            beta=np.zeros(graph.n_servers),
        )

    def follow(self, other: "Relaxation") -> None:
        """Go on from where another relaxation of the same graph has got to."""
        new, old = self.moving, other.moving
        new.y[:] = old.y.clip(self.fixed.y_least, self.fixed.y_most)
        new.alpha[:], new.beta[:] = old.alpha, old.beta
        _follow(self.fixed, new, other.fixed, old)

    @property
    def pairs(self) -> int:
        """How many pairs of labels there are: what a step costs."""
        return len(self.moving.z)

    @property
    def shares(self) -> FloatArray:
        """How much of each client is at each server (``M×L``)."""
        owner = np.repeat(np.arange(self.graph.n_clients), self.labels.sizes)
        shares = np.zeros((self.graph.n_clients, self.graph.n_servers))
        shares[owner, self.labels.server] = self.moving.x
        return shares

    @property
    def alpha(self) -> FloatArray:
        """The multipliers of the storage rows."""
        return self.moving.alpha * self._storage_scale

    @property
    def beta(self) -> FloatArray:
        """The multipliers of the compute rows."""
        return self.moving.beta * self._compute_scale

    def iterate(self, times: int) -> None:
        """Make some steps."""
        _iterate(self.fixed, self.moving, self._weight, times)
        self.iterations += times


def _fixed(region: Region, labels: Labels) -> tuple[Fixed, float, float]:
    graph = region.graph
    sizes = labels.sizes
    of_edge = np.concatenate([graph.first, graph.second])
    order = np.argsort(of_edge, kind="stable")
    near_start = _offsets(np.bincount(of_edge, minlength=graph.n_clients))
    pair_start = _offsets(sizes[graph.first] * sizes[graph.second])
    owner = np.repeat(np.arange(graph.n_clients), sizes)
    # What a server cannot process whatever its clients: every client there sends that share to the cloud.
    overload = (1 - region.largest_share) * region.delegation_cost.clip(min=0)
    unary = (graph.own + overload)[owner, labels.server]

    # A row may be multiplied by any number; these make its entries about as large as the other entries of the columns
    # it meets, so that its multiplier moves about as fast as theirs.
    publishers = np.bincount(graph.topic, minlength=len(graph.spool)).astype(np.float64)
    storage_scale = _scale(publishers, graph.spool)
    degree = np.diff(near_start) + np.diff(graph.topic_start)
    compute_scale = _scale(degree, graph.demand)
    # Where only what is processed is limited, nobody pays more than delegating costs.
    loads = graph.demand > 0
    price = (region.delegation_cost[loads] / graph.demand[loads, None]).max(axis=0, initial=0.0)
    most = np.where(region.hard, np.inf, price)
    storage_row = np.repeat(graph.spool[:, None] * storage_scale, graph.n_servers, axis=1)
    compute_row = np.repeat(graph.demand[:, None] * compute_scale, graph.n_servers, axis=1)
    fixed = Fixed(
        first=graph.first,
        second=graph.second,
        near_start=near_start,
        near=(order % max(graph.n_edges, 1)).astype(np.int64),
        label_start=labels.start,
        server=labels.server,
        out_start=_offsets(sizes[graph.first]),
        home_start=_offsets(sizes[graph.second]),
        pair_start=pair_start,
        pair_cost=_pair_cost(graph, labels, pair_start),
        unary=unary,
        topic_start=graph.topic_start,
        topic=graph.topic,
        share_start=_offsets(sizes[graph.topic_owner]),
        storage_row=storage_row,
        compute_row=compute_row,
        room_storage=region.storage * storage_scale,
        room_compute=region.compute * compute_scale,
        most_alpha=most / storage_scale,
        most_beta=most / compute_scale,
        y_least=region.opened.astype(np.float64),
        y_most=region.possible.astype(np.float64),
        step_x=1 / (degree + compute_row.max(axis=1) + 1e-9),
        step_y=1 / (publishers[:, None] + storage_row),
    )
    return fixed, storage_scale, compute_scale


def _scale(others: npt.NDArray[np.number], entries: FloatArray) -> float:
    """Return what to multiply a row by so that its entries are on average half as large as the others of a column."""
    total = float(entries.sum())
    return 0.5 * max(float(others.sum()), 1.0) / total if total > 0 else 1.0


def _pair_cost(graph: ClientGraph, labels: Labels, pair_start: OffsetArray) -> SingleArray:
    cost = np.empty(pair_start[-1], np.float32)
    delay = graph.server_delay
    _fill_pair_cost(
        cost, pair_start, graph.first, graph.second, graph.there, graph.back, labels.start, labels.server, delay
    )
    return cost


@compiled
def _fill_pair_cost(
    cost: SingleArray,
    pair_start: OffsetArray,
    first: IntArray,
    second: IntArray,
    there: FloatArray,
    back: FloatArray,
    label_start: OffsetArray,
    server: IntArray,
    delay: FloatArray,
) -> None:
    for e in range(len(first)):
        i, j = first[e], second[e]
        at = pair_start[e]
        for a in range(label_start[i], label_start[i + 1]):
            for b in range(label_start[j], label_start[j + 1]):
                cost[at] = there[e] * delay[server[a], server[b]] + back[e] * delay[server[b], server[a]]
                at += 1


def _offsets(sizes: npt.NDArray[np.integer]) -> OffsetArray:
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    return start


@compiled
def _follow(new_f: Fixed, new: Moving, old_f: Fixed, old: Moving) -> None:
    """Copy what belongs to labels that both have; other labels begin with nothing, and messages that change nothing."""
    where = np.empty(len(new_f.server), np.int64)  # of each new label among the old ones of its client, or -1
    for m in range(len(new_f.label_start) - 1):
        total = 0.0
        begin, end = new_f.label_start[m], new_f.label_start[m + 1]
        b, old_end = old_f.label_start[m], old_f.label_start[m + 1]
        for a in range(begin, end):
            while b < old_end and old_f.server[b] < new_f.server[a]:
                b += 1
            known = b < old_end and old_f.server[b] == new_f.server[a]
            where[a] = b - old_f.label_start[m] if known else -1
            new.x[a] = old.x[b] if known else 0.0
            total += new.x[a]
        for a in range(begin, end):
            new.x[a] = new.x[a] / total if total > 1e-9 else 1.0 / (end - begin)
            new.ahead[a] = new.x[a]
        for q in range(new_f.topic_start[m], new_f.topic_start[m + 1]):
            for a in range(end - begin):
                b = where[begin + a]
                new.share[new_f.share_start[q] + a] = old.share[old_f.share_start[q] + b] if b >= 0 else 0.0
    for e in range(len(new_f.first)):
        i, j = new_f.first[e], new_f.second[e]
        i_begin, j_begin = new_f.label_start[i], new_f.label_start[j]
        rows, columns = new_f.label_start[i + 1] - i_begin, new_f.label_start[j + 1] - j_begin
        old_columns = old_f.label_start[j + 1] - old_f.label_start[j]
        out_at, home_at, at = new_f.out_start[e], new_f.home_start[e], new_f.pair_start[e]
        for b in range(columns):
            if where[j_begin + b] >= 0:
                new.home[home_at + b] = old.home[old_f.home_start[e] + where[j_begin + b]]
        for a in range(rows):
            if where[i_begin + a] >= 0:
                new.out[out_at + a] = old.out[old_f.out_start[e] + where[i_begin + a]]
            else:
                least = np.inf
                for b in range(columns):
                    if where[j_begin + b] >= 0:
                        least = min(least, new_f.pair_cost[at + a * columns + b] - new.home[home_at + b])
                new.out[out_at + a] = least if least < np.inf else 0.0
        for b in range(columns):
            if where[j_begin + b] < 0:
                least = np.inf
                for a in range(rows):
                    least = min(least, new_f.pair_cost[at + a * columns + b] - new.out[out_at + a])
                new.home[home_at + b] = least
        for a in range(rows):
            for b in range(columns):
                if where[i_begin + a] >= 0 and where[j_begin + b] >= 0:
                    old_at = old_f.pair_start[e] + where[i_begin + a] * old_columns + where[j_begin + b]
                    new.z[at + a * columns + b] = old.z[old_at]
                else:
                    new.z[at + a * columns + b] = 0.0


@compiled
def _iterate(f: Fixed, v: Moving, weight: float, times: int) -> None:
    for _ in range(times):
        _node_step(f, v, weight)
        _edge_step(f, v, weight)
        _row_step(f, v, weight)


@compiled
def _node_step(f: Fixed, v: Moving, weight: float) -> None:
    """Move ``x`` against its gradient, within the shares that add up to 1, and ``y``."""
    clients, servers = len(f.label_start) - 1, v.alpha.shape[0]
    slope = np.empty(servers)
    sorted_slope = np.empty(servers)
    for m in range(clients):
        begin = f.label_start[m]
        size = f.label_start[m + 1] - begin
        for a in range(size):
            slope[a] = f.unary[begin + a]
        for a in range(size):
            l = f.server[begin + a]
            slope[a] += v.beta[l] * f.compute_row[m, l]
        for q in range(f.topic_start[m], f.topic_start[m + 1]):
            at = f.share_start[q]
            for a in range(size):
                slope[a] += v.share[at + a]
        for g in range(f.near_start[m], f.near_start[m + 1]):
            e = f.near[g]
            if f.first[e] == m:
                at = f.out_start[e]
                for a in range(size):
                    slope[a] += v.out[at + a]
            else:
                at = f.home_start[e]
                for a in range(size):
                    slope[a] += v.home[at + a]
        step = f.step_x[m] / weight
        for a in range(size):
            slope[a] = v.x[begin + a] - step * slope[a]
            # Insertion sort, falling: there are few labels.
            b = a
            while b > 0 and sorted_slope[b - 1] < slope[a]:
                sorted_slope[b] = sorted_slope[b - 1]
                b -= 1
            sorted_slope[b] = slope[a]
        total, level = 0.0, 0.0
        for a in range(size):
            total += sorted_slope[a]
            if sorted_slope[a] * (a + 1) > total - 1:
                level = (total - 1) / (a + 1)
        for a in range(size):
            new = max(0.0, slope[a] - level)
            v.ahead[begin + a] = 2 * new - v.x[begin + a]
            v.x[begin + a] = new

    topics = v.y.shape[0]
    for n in range(topics):
        for l in range(servers):
            v.y_ahead[n, l] = v.alpha[l] * f.storage_row[n, l]
    for m in range(clients):
        for q in range(f.topic_start[m], f.topic_start[m + 1]):
            n, at = f.topic[q], f.share_start[q]
            for a in range(f.label_start[m + 1] - f.label_start[m]):
                v.y_ahead[n, f.server[f.label_start[m] + a]] -= v.share[at + a]
    for n in range(topics):
        for l in range(servers):
            new = v.y[n, l] - f.step_y[n, l] / weight * v.y_ahead[n, l]
            new = min(f.y_most[n, l], max(f.y_least[n, l], new))
            v.y_ahead[n, l] = 2 * new - v.y[n, l]
            v.y[n, l] = new


@compiled
def _edge_step(f: Fixed, v: Moving, weight: float) -> None:
    """Move ``z`` against its gradient, then their messages towards agreement with ``x``."""
    servers = v.alpha.shape[0]
    column = np.empty(servers, np.float32)
    home = np.empty(servers, np.float32)
    step = np.float32(0.5 / weight)
    zero = np.float32(0.0)
    for e in range(len(f.first)):
        i, j = f.first[e], f.second[e]
        rows = f.label_start[i + 1] - f.label_start[i]
        columns = f.label_start[j + 1] - f.label_start[j]
        out_at, home_at, at = f.out_start[e], f.home_start[e], f.pair_start[e]
        for b in range(columns):
            home[b] = v.home[home_at + b]
            column[b] = zero
        row_step = weight / (1 + columns)
        for a in range(rows):
            message = np.float32(v.out[out_at + a])
            total = zero
            for b in range(columns):
                old = v.z[at + b]
                new = max(zero, old - step * (f.pair_cost[at + b] - message - home[b]))
                v.z[at + b] = new
                forward = new + new - old
                total += forward
                column[b] += forward
            at += columns
            v.out[out_at + a] += row_step * (v.ahead[f.label_start[i] + a] - total)
        column_step = weight / (1 + rows)
        for b in range(columns):
            v.home[home_at + b] += column_step * (v.ahead[f.label_start[j] + b] - column[b])


@compiled
def _row_step(f: Fixed, v: Moving, weight: float) -> None:
    """Move shares and multipliers of capacities by how far their rows are violated."""
    clients, servers = len(f.label_start) - 1, v.alpha.shape[0]
    used = np.zeros(servers)
    computed = np.zeros(servers)
    weights = np.zeros(servers)
    compute_weights = np.zeros(servers)
    for m in range(clients):
        begin = f.label_start[m]
        size = f.label_start[m + 1] - begin
        for q in range(f.topic_start[m], f.topic_start[m + 1]):
            n, at = f.topic[q], f.share_start[q]
            for a in range(size):
                excess = v.ahead[begin + a] - v.y_ahead[n, f.server[begin + a]]
                v.share[at + a] = max(0.0, v.share[at + a] + 0.5 * weight * excess)
        for a in range(size):
            l = f.server[begin + a]
            computed[l] += f.compute_row[m, l] * v.ahead[begin + a]
            compute_weights[l] += f.compute_row[m, l]
    for n in range(v.y.shape[0]):
        for l in range(servers):
            used[l] += f.storage_row[n, l] * v.y_ahead[n, l]
            weights[l] += f.storage_row[n, l]
    for l in range(servers):
        if weights[l] > 0:
            new = v.alpha[l] + weight / weights[l] * (used[l] - f.room_storage[l])
            v.alpha[l] = min(f.most_alpha[l], max(0.0, new))
        if compute_weights[l] > 0:
            new = v.beta[l] + weight / compute_weights[l] * (computed[l] - f.room_compute[l])
            v.beta[l] = min(f.most_beta[l], max(0.0, new))
