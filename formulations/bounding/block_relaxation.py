"""Better messages for one block of clients, with all messages across its border fixed.

The block is a labelling problem without capacities: the messages that arrive from outside are added to the costs of the
homes of its own clients. The first-order method of the local bound (:mod:`formulations.bounding.relaxation`) solves it,
starting from the present messages and from good homes.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph
from relocbench.formulations.bounding.dual_bound import Dual, bound_of, dual_of
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.certificates.block_bound import MESSAGE_BITS, DualBlock
from relocbench.formulations.certificates.integer_problem import BoolArray
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


def improve_block(block: DualBlock, home: IntArray, free: BoolArray, iterations: int, checks: int) -> BlockResult:
    """Improve the messages along the free pairs of a block.

    Parameters
    ----------
    block
        The block.
    home
        Good homes of the own clients; each is a label of its client.
    free
        The pairs whose messages may change. Both clients of a free pair are own clients.
    iterations
        The number of iterations between two evaluations of the bound.
    checks
        The number of evaluations. The best messages are returned.

    Returns
    -------
    BlockResult
        The messages and the bounds.
    """
    own = block.own
    clients = len(block.labels)
    cost = np.zeros((clients, len(block.server_delay)))
    cost[:own] = 2.0 * block.publications[:, None] * block.distance
    fixed = ~free & ((block.first < own) | (block.second < own))
    outside = _graph(block, cost, fixed, clients)
    cost = bound_of(_dual(block, outside, fixed, clients), Region.root(outside)).cost[:own]
    inside = _graph(block, cost, free, own)
    region = Region.root(inside)
    dual = _dual(block, inside, free, own)
    before = best = bound_of(dual, region).value
    messages = block.messages
    relaxation = Relaxation(region, dual.labels)
    _warm_start(relaxation, dual, home)
    for _ in range(checks if free.any() else 0):
        relaxation.iterate(iterations)
        now = dual_of(relaxation)
        value = bound_of(now, region).value
        if value > best:
            best, messages = value, block.messages.copy()
            messages[free] = np.rint(now.messages * 2.0**MESSAGE_BITS).astype(np.int64).reshape(-1, messages.shape[1])
    return BlockResult(messages, before, best)


def _graph(block: DualBlock, cost: FloatArray, kept: BoolArray, clients: int) -> ClientGraph:
    """Return some pairs of a block as a graph without loads."""
    servers = len(block.server_delay)
    weight = 1.0 / block.receivers[kept]
    none = np.empty(0, np.int32)
    return ClientGraph(
        first=block.first[kept].astype(np.int32),
        second=block.second[kept].astype(np.int32),
        forward=weight,
        backward=weight,
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


def _dual(block: DualBlock, graph: ClientGraph, kept: BoolArray, clients: int) -> Dual:
    active = np.zeros((clients, graph.n_servers), np.bool_)
    np.put_along_axis(active, block.labels[:clients], True, axis=1)
    labels = Labels.of(active)
    zeros = np.zeros(graph.n_servers)
    messages = block.messages[kept].ravel() * 2.0**-MESSAGE_BITS
    return Dual(labels, messages, np.zeros(0), zeros, zeros, np.zeros(graph.n_servers, np.bool_))


def _warm_start(relaxation: Relaxation, dual: Dual, home: IntArray) -> None:
    """Start from the messages of a dual, and from the given homes as the shares."""
    variables, labels, graph = relaxation.variables, relaxation.labels, relaxation.graph
    size = int(labels.sizes[0]) if len(labels.sizes) else 0
    at = np.arange(len(home)) * size + np.argmax(labels.server.reshape(-1, size) == home[:, None], axis=1)
    variables.x[:] = 0.0
    variables.x[at] = 1.0
    variables.x_extrapolated[:] = variables.x
    rank = at % size
    variables.z[:] = 0.0
    variables.z[np.arange(graph.n_edges) * size * size + rank[graph.first] * size + rank[graph.second]] = 1.0
    variables.message_first[:] = dual.messages
    cost = relaxation.problem.pair_cost.reshape(graph.n_edges, size, size)
    least = (cost - dual.messages.reshape(graph.n_edges, size)[:, :, None]).min(axis=1)
    variables.message_second[:] = least.ravel()


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
