"""The primal-dual hybrid gradient method (PDHG) on the relaxation: the compiled iterations.

Each iteration moves the primal variables ``x``, ``z``, ``y`` along the negative gradient of the Lagrangian and projects
them. It then moves the dual variables by the violation of their rows at the extrapolated primal point
``2·new - old``. Step sizes differ by row and column (Pock and Chambolle, 2011).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled, compiled_reordered
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

SingleArray = npt.NDArray[np.float32]

# When a client's shares of the labels kept by a warm start sum to less than this, it starts from equal shares.
LEAST_SHARE = 1e-9


class PdhgProblem(NamedTuple):
    """The relaxation as the kernels read it.

    Attributes
    ----------
    first, second
        The two clients of each edge.
    incident_start, incident
        The edges of client ``m`` are ``incident[incident_start[m]:incident_start[m+1]]``.
    label_start, server
        The labels of client ``m`` are ``server[label_start[m]:label_start[m+1]]``.
    message_first_start, message_second_start
        Where the messages of an edge to its first and to its second client begin.
    pair_start, pair_cost
        Where the pairs of labels of an edge begin, and their costs.
    unary
        The cost of each label, without multipliers.
    topic_start, topic
        The loading topics that client ``m`` publishes to are ``topic[topic_start[m]:topic_start[m+1]]``.
    share_start
        Where the shares of each entry of ``topic`` begin.
    storage_row, compute_row
        The scaled coefficients: of each topic in every storage row, of each client in every compute row.
    storage_limit, compute_limit
        The scaled right-hand sides, per server.
    most_alpha, most_beta
        Upper bounds on the multipliers; larger ones cannot improve the bound.
    y_least, y_most
        Bounds on ``y``.
    step_x, step_y, step_alpha, step_beta
        Step sizes. ``step_alpha`` is 0 if no topic loads a server.
    """

    first: IntArray
    second: IntArray
    incident_start: OffsetArray
    incident: IntArray
    label_start: OffsetArray
    server: IntArray
    message_first_start: OffsetArray
    message_second_start: OffsetArray
    pair_start: OffsetArray
    pair_cost: SingleArray
    unary: FloatArray
    topic_start: OffsetArray
    topic: IntArray
    share_start: OffsetArray
    storage_row: FloatArray
    compute_row: FloatArray
    storage_limit: FloatArray
    compute_limit: FloatArray
    most_alpha: FloatArray
    most_beta: FloatArray
    y_least: FloatArray
    y_most: FloatArray
    step_x: FloatArray
    step_y: FloatArray
    step_alpha: float
    step_beta: FloatArray


class PdhgIterate(NamedTuple):
    """The current primal and dual variables.

    Attributes
    ----------
    x, z, y
        The primal variables: share of each label, of each pair of labels, of each topic on each server.
    x_extrapolated, y_extrapolated
        ``2·new - old`` after the last primal step.
    message_first, message_second
        The dual variables of the rows that tie ``z`` to ``x``: the messages of each edge to its first and to its second
        client.
    share
        The dual variables of ``y ≥ x``.
    alpha, beta
        The scaled multipliers of the storage and compute rows.
    """

    x: FloatArray
    x_extrapolated: FloatArray
    z: SingleArray
    y: FloatArray
    y_extrapolated: FloatArray
    message_first: FloatArray
    message_second: FloatArray
    share: FloatArray
    alpha: FloatArray
    beta: FloatArray


@compiled
def warm_start(problem: PdhgProblem, v: PdhgIterate, old_problem: PdhgProblem, old: PdhgIterate) -> None:
    """Copy the variables of the labels that two relaxations of the same graph share.

    A new label starts with a share of 0 and with messages that do not change the bound.

    Parameters
    ----------
    problem, v
        The relaxation to start, whose variables are written.
    old_problem, old
        The relaxation to copy from.
    """
    position = np.empty(len(problem.server), np.int64)  # of each label among the old ones of its client, or -1
    for m in range(len(problem.label_start) - 1):
        total = 0.0
        begin, end = problem.label_start[m], problem.label_start[m + 1]
        b, old_end = old_problem.label_start[m], old_problem.label_start[m + 1]
        for a in range(begin, end):
            while b < old_end and old_problem.server[b] < problem.server[a]:
                b += 1
            known = b < old_end and old_problem.server[b] == problem.server[a]
            position[a] = b - old_problem.label_start[m] if known else -1
            v.x[a] = old.x[b] if known else 0.0
            total += v.x[a]
        for a in range(begin, end):
            v.x[a] = v.x[a] / total if total > LEAST_SHARE else 1.0 / (end - begin)
            v.x_extrapolated[a] = v.x[a]
        for q in range(problem.topic_start[m], problem.topic_start[m + 1]):
            for a in range(end - begin):
                b = position[begin + a]
                v.share[problem.share_start[q] + a] = old.share[old_problem.share_start[q] + b] if b >= 0 else 0.0
    for e in range(len(problem.first)):
        _warm_start_edge(problem, v, old_problem, old, position, e)


@compiled
def _warm_start_edge(
    problem: PdhgProblem, v: PdhgIterate, old_problem: PdhgProblem, old: PdhgIterate, position: OffsetArray, e: int
) -> None:
    """Copy the messages and pairs of an edge; the messages of new labels are the largest that the pairs allow."""
    i, j = problem.first[e], problem.second[e]
    i_begin, j_begin = problem.label_start[i], problem.label_start[j]
    rows, columns = problem.label_start[i + 1] - i_begin, problem.label_start[j + 1] - j_begin
    old_columns = old_problem.label_start[j + 1] - old_problem.label_start[j]
    first_at, second_at = problem.message_first_start[e], problem.message_second_start[e]
    pair_at = problem.pair_start[e]
    for b in range(columns):
        if position[j_begin + b] >= 0:
            v.message_second[second_at + b] = old.message_second[
                old_problem.message_second_start[e] + position[j_begin + b]
            ]
    for a in range(rows):
        if position[i_begin + a] >= 0:
            v.message_first[first_at + a] = old.message_first[
                old_problem.message_first_start[e] + position[i_begin + a]
            ]
        else:
            least = np.inf
            for b in range(columns):
                if position[j_begin + b] >= 0:
                    least = min(least, problem.pair_cost[pair_at + a * columns + b] - v.message_second[second_at + b])
            v.message_first[first_at + a] = least if least < np.inf else 0.0
    for b in range(columns):
        if position[j_begin + b] < 0:
            least = np.inf
            for a in range(rows):
                least = min(least, problem.pair_cost[pair_at + a * columns + b] - v.message_first[first_at + a])
            v.message_second[second_at + b] = least
    for a in range(rows):
        for b in range(columns):
            if position[i_begin + a] >= 0 and position[j_begin + b] >= 0:
                old_at = old_problem.pair_start[e] + position[i_begin + a] * old_columns + position[j_begin + b]
                v.z[pair_at + a * columns + b] = old.z[old_at]
            else:
                v.z[pair_at + a * columns + b] = 0.0


@compiled
def iterate(problem: PdhgProblem, v: PdhgIterate, primal_weight: float, times: int) -> None:
    """Run some iterations.

    Parameters
    ----------
    problem
        The relaxation.
    v
        The variables, which are changed.
    primal_weight
        The ratio of dual to primal step sizes.
    times
        The number of iterations.
    """
    for _ in range(times):
        _step_shares(problem, v, primal_weight)
        _step_topics(problem, v, primal_weight)
        _step_edges(problem, v, primal_weight)
        _step_capacities(problem, v, primal_weight)


@compiled
def _step_shares(problem: PdhgProblem, v: PdhgIterate, primal_weight: float) -> None:
    """Primal step of ``x``, projected onto the simplex of each client."""
    clients, servers = len(problem.label_start) - 1, v.alpha.shape[0]
    point = np.empty(servers)  # first the gradient, then the point to project
    falling = np.empty(servers)
    for m in range(clients):
        begin = problem.label_start[m]
        size = problem.label_start[m + 1] - begin
        for a in range(size):
            point[a] = problem.unary[begin + a]
        for a in range(size):
            l = problem.server[begin + a]
            point[a] += v.beta[l] * problem.compute_row[m]
        for q in range(problem.topic_start[m], problem.topic_start[m + 1]):
            at = problem.share_start[q]
            for a in range(size):
                point[a] += v.share[at + a]
        for g in range(problem.incident_start[m], problem.incident_start[m + 1]):
            e = problem.incident[g]
            if problem.first[e] == m:
                at = problem.message_first_start[e]
                for a in range(size):
                    point[a] += v.message_first[at + a]
            else:
                at = problem.message_second_start[e]
                for a in range(size):
                    point[a] += v.message_second[at + a]
        step = problem.step_x[m] / primal_weight
        for a in range(size):
            point[a] = v.x[begin + a] - step * point[a]
            # Insertion sort, because there are few labels.
            b = a
            while b > 0 and falling[b - 1] < point[a]:
                falling[b] = falling[b - 1]
                b -= 1
            falling[b] = point[a]
        # Projection onto the simplex: subtract the level at which the positive parts add up to 1.
        total, level = 0.0, 0.0
        for a in range(size):
            total += falling[a]
            if falling[a] * (a + 1) > total - 1:
                level = (total - 1) / (a + 1)
        for a in range(size):
            new = max(0.0, point[a] - level)
            v.x_extrapolated[begin + a] = 2 * new - v.x[begin + a]
            v.x[begin + a] = new


@compiled
def _step_topics(problem: PdhgProblem, v: PdhgIterate, primal_weight: float) -> None:
    """Primal step of ``y``, within its bounds."""
    clients, topics, servers = len(problem.label_start) - 1, v.y.shape[0], v.alpha.shape[0]
    gradient = v.y_extrapolated  # overwritten below
    for n in range(topics):
        for l in range(servers):
            gradient[n, l] = v.alpha[l] * problem.storage_row[n]
    for m in range(clients):
        for q in range(problem.topic_start[m], problem.topic_start[m + 1]):
            n, at = problem.topic[q], problem.share_start[q]
            for a in range(problem.label_start[m + 1] - problem.label_start[m]):
                gradient[n, problem.server[problem.label_start[m] + a]] -= v.share[at + a]
    for n in range(topics):
        for l in range(servers):
            new = v.y[n, l] - problem.step_y[n] / primal_weight * gradient[n, l]
            new = min(problem.y_most[n, l], max(problem.y_least[n, l], new))
            v.y_extrapolated[n, l] = 2 * new - v.y[n, l]
            v.y[n, l] = new


@compiled_reordered
def _step_edges(problem: PdhgProblem, v: PdhgIterate, primal_weight: float) -> None:
    """Primal step of ``z``, then dual step of the messages by the violation of ``Σ z = x``."""
    servers = v.alpha.shape[0]
    column_sum = np.empty(servers, np.float32)
    to_second = np.empty(servers, np.float32)
    step = np.float32(0.5 / primal_weight)
    zero = np.float32(0.0)
    for e in range(len(problem.first)):
        i, j = problem.first[e], problem.second[e]
        rows = problem.label_start[i + 1] - problem.label_start[i]
        columns = problem.label_start[j + 1] - problem.label_start[j]
        first_at, second_at = problem.message_first_start[e], problem.message_second_start[e]
        at = problem.pair_start[e]
        for b in range(columns):
            to_second[b] = v.message_second[second_at + b]
            column_sum[b] = zero
        row_step = primal_weight / (1 + columns)
        for a in range(rows):
            to_first = np.float32(v.message_first[first_at + a])
            row_sum = zero
            z, cost = v.z[at : at + columns], problem.pair_cost[at : at + columns]
            for b in range(columns):
                old = z[b]
                new = max(zero, old - step * (cost[b] - to_first - to_second[b]))
                z[b] = new
                extrapolated = new + new - old
                row_sum += extrapolated
                column_sum[b] += extrapolated
            at += columns
            v.message_first[first_at + a] += row_step * (v.x_extrapolated[problem.label_start[i] + a] - row_sum)
        column_step = primal_weight / (1 + rows)
        for b in range(columns):
            violation = v.x_extrapolated[problem.label_start[j] + b] - column_sum[b]
            v.message_second[second_at + b] += column_step * violation


@compiled
def _step_capacities(problem: PdhgProblem, v: PdhgIterate, primal_weight: float) -> None:
    """Dual step of the shares and of the multipliers of the capacities, by the violation of their rows."""
    clients, servers = len(problem.label_start) - 1, v.alpha.shape[0]
    storage_load = np.zeros(servers)
    compute_load = np.zeros(servers)
    for m in range(clients):
        begin = problem.label_start[m]
        size = problem.label_start[m + 1] - begin
        for q in range(problem.topic_start[m], problem.topic_start[m + 1]):
            n, at = problem.topic[q], problem.share_start[q]
            for a in range(size):
                violation = v.x_extrapolated[begin + a] - v.y_extrapolated[n, problem.server[begin + a]]
                v.share[at + a] = max(0.0, v.share[at + a] + 0.5 * primal_weight * violation)
        for a in range(size):
            l = problem.server[begin + a]
            compute_load[l] += problem.compute_row[m] * v.x_extrapolated[begin + a]
    for n in range(v.y.shape[0]):
        for l in range(servers):
            storage_load[l] += problem.storage_row[n] * v.y_extrapolated[n, l]
    for l in range(servers):
        new = v.alpha[l] + primal_weight * problem.step_alpha * (storage_load[l] - problem.storage_limit[l])
        v.alpha[l] = min(problem.most_alpha[l], max(0.0, new))
        new = v.beta[l] + primal_weight * problem.step_beta[l] * (compute_load[l] - problem.compute_limit[l])
        v.beta[l] = min(problem.most_beta[l], max(0.0, new))
