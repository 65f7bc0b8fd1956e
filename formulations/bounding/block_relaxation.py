"""Better messages for one block of clients, with all messages across its border fixed.

The block is a labelling problem without capacities: the messages that arrive from outside are added to the costs of the
homes of its own clients. Block coordinate ascent, one pair of clients at a time, comes near to the best messages in a
few sweeps and stops there. The first-order method of the local bound (:mod:`formulations.bounding.relaxation`) can
continue from these messages, with good homes as its primal solution.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph
from relocbench.formulations.bounding.dual_bound import Dual, bound_of, dual_of
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.certificates.block_bound import MESSAGE_BITS, DualBlock
from relocbench.formulations.certificates.integer_problem import WEIGHT_BITS, BoolArray
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.instances.incremental_state import StateArrays, move_delta
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.region_state import RegionState


@dataclass(frozen=True, eq=False)
class BlockResult:
    """The messages of a block after some iterations.

    Attributes
    ----------
    messages
        All messages, as in :class:`formulations.certificates.block_bound.DualBlock`; those of fixed pairs are the same.
    before, after
        The part of the bound that the own clients contribute, in floating point.
    """

    messages: Int64Array
    before: float
    after: float


def improve_block(
    block: DualBlock, home: IntArray, free: BoolArray, sweeps: int, iterations: int, checks: int
) -> BlockResult:
    """Improve the messages along the free pairs of a block.

    Parameters
    ----------
    block
        The block.
    home
        Good homes of the own clients. Each is an active server of its client.
    free
        The pairs whose messages may change. Both clients of a free pair are own clients.
    sweeps
        The number of sweeps of block coordinate ascent over all free pairs.
    iterations
        The number of iterations of the first-order method that follow.
    checks
        The number of evaluations of the bound during these iterations. The best messages are returned.

    Returns
    -------
    BlockResult
        The messages and the bounds.
    """
    own = block.own
    cost = np.zeros((len(block.labels), len(block.server_delay)))
    cost[:own] = np.ldexp(block.weight.astype(np.float64), -WEIGHT_BITS)[:, None] * block.distance
    fixed = ~free & ((block.first < own) | (block.second < own))
    outside = _graph(block, cost, fixed, len(block.labels))
    cost = bound_of(_dual(block, outside, block.messages[fixed]), Region.root(outside)).cost[:own]
    inside = _graph(block, cost, free, own)
    region = Region.root(inside)
    messages = block.messages
    before = best = bound_of(_dual(block, inside, messages[free]), region).value
    if not free.any():
        return BlockResult(messages, before, best)
    labels = block.labels[:own]
    state = _Pairs(
        inside.first,
        inside.second,
        inside.forward + inside.backward,
        inside.server_delay,
        labels,
        np.take_along_axis(cost, labels, axis=1),
        np.ldexp(messages[free].astype(np.float64), -MESSAGE_BITS),
        np.zeros((inside.n_edges, labels.shape[1])),
    )
    _begin(state)
    _sweep(state, sweeps)
    found = np.floor(state.to_first * 2.0**MESSAGE_BITS).astype(np.int64)
    relaxation = Relaxation(region, _dual(block, inside, found).labels)
    _warm_start(relaxation, np.ldexp(found.astype(np.float64), -MESSAGE_BITS), home)
    for check in range(checks + 1 if iterations else 1):
        if check:
            relaxation.iterate(iterations // checks)
            found = np.floor(dual_of(relaxation).messages * 2.0**MESSAGE_BITS).astype(np.int64).reshape(found.shape)
        value = bound_of(_dual(block, inside, found), region).value
        if value > best:
            best, messages = value, block.messages.copy()
            messages[free] = found
    return BlockResult(messages, before, best)


def _warm_start(relaxation: Relaxation, messages: FloatArray, home: IntArray) -> None:
    """Start from given messages, and from given homes as the shares."""
    variables, graph = relaxation.variables, relaxation.graph
    count = messages.shape[1]
    rank = np.argmax(relaxation.labels.server.reshape(-1, count) == home[:, None], axis=1)
    variables.x[:] = 0.0
    variables.x[np.arange(len(home)) * count + rank] = 1.0
    variables.x_extrapolated[:] = variables.x
    variables.z[:] = 0.0
    variables.z[(np.arange(graph.n_edges) * count + rank[graph.first]) * count + rank[graph.second]] = 1.0
    variables.message_first[:] = messages.ravel()
    cost = relaxation.problem.pair_cost.reshape(graph.n_edges, count, count)
    variables.message_second[:] = (cost - messages[:, :, None]).min(axis=1).ravel()


class _Pairs(NamedTuple):
    """The free pairs of a block, and the current messages between active servers.

    Attributes
    ----------
    first, second
        The two clients of each pair.
    weight
        The cost of a pair for each ms between the homes.
    delay
        ``dS``.
    label
        The active servers of each client.
    cost
        The cost of each active server of a client, with all messages.
    to_first, to_second
        The messages of each pair to the active servers of its first and second client.
    """

    first: IntArray
    second: IntArray
    weight: FloatArray
    delay: FloatArray
    label: Int64Array
    cost: FloatArray
    to_first: FloatArray
    to_second: FloatArray


@compiled
def _begin(s: _Pairs) -> None:
    """Compute the messages to the second clients, and add all messages to the costs."""
    count = s.label.shape[1]
    for e in range(len(s.first)):
        i, j = s.first[e], s.second[e]
        for b in range(count):
            least = np.inf
            for a in range(count):
                least = min(least, s.weight[e] * s.delay[s.label[i, a], s.label[j, b]] - s.to_first[e, a])
            s.to_second[e, b] = least
            s.cost[j, b] += least
        for a in range(count):
            s.cost[i, a] += s.to_first[e, a]


@compiled
def _sweep(s: _Pairs, times: int) -> None:
    """Visit all pairs forwards and backwards. At each one, divide the costs of both clients and the pair anew.

    The least sum of the costs of a server of the first client, one of the second and of the pair is divided in halves.
    What remains goes to the second client, as far as the pair allows, and then to the first. No step lowers the bound.
    """
    count = s.label.shape[1]
    total = np.empty((count, count))
    for number in range(2 * times):
        for k in range(len(s.first)):
            e = k if number % 2 == 0 else len(s.first) - 1 - k
            i, j = s.first[e], s.second[e]
            for a in range(count):
                rest_first = s.cost[i, a] - s.to_first[e, a]
                least = np.inf
                for b in range(count):
                    pair = s.weight[e] * s.delay[s.label[i, a], s.label[j, b]]
                    total[a, b] = rest_first + pair + s.cost[j, b] - s.to_second[e, b]
                    least = min(least, total[a, b])
                for b in range(count):
                    total[a, b] -= 0.5 * least
                # The cost of the first client after the first step is half of the least sum.
                s.to_first[e, a] += 0.5 * least - s.cost[i, a]
                s.cost[i, a] = 0.5 * least
            for b in range(count):
                least = np.inf
                for a in range(count):
                    least = min(least, total[a, b])
                for a in range(count):
                    total[a, b] -= least
                s.to_second[e, b] += least - s.cost[j, b]
                s.cost[j, b] = least
            for a in range(count):
                least = np.inf
                for b in range(count):
                    least = min(least, total[a, b])
                s.to_first[e, a] += least
                s.cost[i, a] += least


def _graph(block: DualBlock, cost: FloatArray, kept: BoolArray, clients: int) -> ClientGraph:
    """Return some pairs of a block as a graph without loads."""
    servers = len(block.server_delay)
    forward, backward = np.zeros((2, int(kept.sum())))
    for weight, receivers in ((forward, block.forward[kept]), (backward, block.backward[kept])):
        np.divide(1.0, receivers, out=weight, where=receivers > 0)
    none = np.empty(0, np.int32)
    return ClientGraph(
        first=block.first[kept].astype(np.int32),
        second=block.second[kept].astype(np.int32),
        forward=forward,
        backward=backward,
        distance_cost=np.ascontiguousarray(cost),
        detour=np.zeros(clients),
        demand=np.zeros(clients),
        topic_start=np.zeros(clients + 1, np.int64),
        topic=none,
        spool=np.empty(0),
        loading=none,
        storage_capacity=np.ones(servers),
        compute_capacity=np.ones(servers),
        server_delay=np.ascontiguousarray(block.server_delay),
    )


def _dual(block: DualBlock, graph: ClientGraph, messages: Int64Array) -> Dual:
    """Return the dual with the given messages along all pairs of a graph."""
    active = np.zeros((graph.n_clients, graph.n_servers), np.bool_)
    np.put_along_axis(active, block.labels[: graph.n_clients], True, axis=1)
    zeros = np.zeros(graph.n_servers)
    given = np.ldexp(messages.ravel().astype(np.float64), -MESSAGE_BITS)
    return Dual(Labels.of(active), given, np.zeros(0), zeros, zeros, np.zeros(graph.n_servers, np.bool_))


def likely_labels(state: RegionState, count: int) -> npt.NDArray[np.int32]:
    """Choose the servers for which each client gets messages: its home, and those that cost least if it alone moved.

    Parameters
    ----------
    state
        The state of a part of the instance.
    count
        The number of servers for each client.

    Returns
    -------
    array
        ``count`` servers for each client, ascending.
    """
    chosen = np.empty((len(state.arrays.home), count), np.int32)
    _choose_labels(state.arrays, chosen)
    return np.sort(chosen, axis=1)


@compiled
def _choose_labels(s: StateArrays, chosen: IntArray) -> None:
    cost = np.empty(len(s.server))
    for m in range(len(s.home)):
        for l in range(len(s.server)):
            cost[l] = move_delta(s, m, l)
        cost[s.home[m]] = -np.inf
        for i in range(chosen.shape[1]):
            chosen[m, i] = np.argmin(cost)
            cost[chosen[m, i]] = np.inf
