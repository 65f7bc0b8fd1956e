"""The steps of the primal-dual gradient method on the relaxation, compiled.

Each step moves the shares ``x``, ``z``, ``y`` against the gradient of the Lagrangian and then the dual variables by how
far the rows are violated, both scaled by row and column (Pock and Chambolle, 2011).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

SingleArray = npt.NDArray[np.float32]


class Fixed(NamedTuple):
    """What the kernels read: the graph and where the labels and pairs of labels lie."""

    first: IntArray
    second: IntArray
    near_start: OffsetArray  # the edges of a client: near[near_start[m]:near_start[m+1]]
    near: IntArray
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
    storage_row: FloatArray  # a topic's entry in every storage row, scaled
    compute_row: FloatArray  # a client's entry in the compute rows
    room_storage: FloatArray
    room_compute: FloatArray
    most_alpha: FloatArray  # beyond which a multiplier is of no use
    most_beta: FloatArray
    y_least: FloatArray
    y_most: FloatArray
    step_x: FloatArray
    step_y: FloatArray
    step_alpha: float  # 0 where nothing loads
    step_beta: FloatArray


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


@compiled
def follow(new_f: Fixed, new: Moving, old_f: Fixed, old: Moving) -> None:
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
def iterate(f: Fixed, v: Moving, weight: float, times: int) -> None:
    """Make some steps; the weight says how large dual ones are against primal ones."""
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
            slope[a] += v.beta[l] * f.compute_row[m]
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
            v.y_ahead[n, l] = v.alpha[l] * f.storage_row[n]
    for m in range(clients):
        for q in range(f.topic_start[m], f.topic_start[m + 1]):
            n, at = f.topic[q], f.share_start[q]
            for a in range(f.label_start[m + 1] - f.label_start[m]):
                v.y_ahead[n, f.server[f.label_start[m] + a]] -= v.share[at + a]
    for n in range(topics):
        for l in range(servers):
            new = v.y[n, l] - f.step_y[n] / weight * v.y_ahead[n, l]
            new = min(f.y_most[n, l], max(f.y_least[n, l], new))
            v.y_ahead[n, l] = 2 * new - v.y[n, l]
            v.y[n, l] = new


@compiled
def _edge_step(f: Fixed, v: Moving, weight: float) -> None:
    """Move ``z`` against its gradient, then the messages towards agreement with ``x``."""
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
            computed[l] += f.compute_row[m] * v.ahead[begin + a]
    for n in range(v.y.shape[0]):
        for l in range(servers):
            used[l] += f.storage_row[n] * v.y_ahead[n, l]
    for l in range(servers):
        new = v.alpha[l] + weight * f.step_alpha * (used[l] - f.room_storage[l])
        v.alpha[l] = min(f.most_alpha[l], max(0.0, new))
        new = v.beta[l] + weight * f.step_beta[l] * (computed[l] - f.room_compute[l])
        v.beta[l] = min(f.most_beta[l], max(0.0, new))
