"""The linear relaxation over labelled clients, and its solution by PDHG.

The relaxation has a share ``x`` for every home of a client (its *labels*), a share ``z`` for every pair of labels of
two clients that exchange messages, and ``y`` for every topic stored on a server; docs/bounds.md has it in full. Any
values of the dual variables give a bound (:mod:`formulations.bounding.dual_bound`). How well the relaxation is solved
here decides how good the bound is, not whether it is valid.

The method is the primal-dual hybrid gradient (:mod:`formulations.bounding.pdhg`). Block coordinate ascent (TRW-S,
MPLP++) is faster at first without capacities. It stops one per cent or more below the optimum where shares of a topic's
storage have to move between many clients at once.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.pdhg import PdhgIterate, PdhgProblem, SingleArray, iterate, warm_start
from relocbench.formulations.bounding.region import Region
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets

# The primal weight (the ratio of dual to primal step sizes), in units of the typical cost of an edge.
PRIMAL_WEIGHT = 1.8
# Added to the column sums of the step sizes, because a client may have no row.
LEAST_COLUMN_SUM = 1e-9


@dataclass(frozen=True, eq=False)
class Labels:
    """The active homes of each client: those that the relaxation has variables for.

    Attributes
    ----------
    servers
        The active homes, as a mask (``M×L``).
    start, server
        The labels of client ``m`` are ``server[start[m]:start[m+1]]``, ascending.
    """

    servers: Mask
    start: OffsetArray
    server: IntArray

    @classmethod
    def of(cls, servers: Mask) -> "Labels":
        """Create the labels of some homes.

        Parameters
        ----------
        servers
            The active homes (``M×L``).

        Returns
        -------
        Labels
            The labels.
        """
        return cls(servers, offsets(servers.sum(axis=1)), np.nonzero(servers)[1].astype(np.int32))

    @property
    def sizes(self) -> OffsetArray:
        """The number of labels of each client."""
        return np.diff(self.start)


class Relaxation:
    """The relaxation of a region with some of its labels, and its current primal and dual variables.

    Parameters
    ----------
    region
        The region.
    labels
        The labels that have variables.
    """

    def __init__(self, region: Region, labels: Labels) -> None:
        graph = region.graph
        self.region, self.graph, self.labels = region, graph, labels
        self._primal_weight = PRIMAL_WEIGHT * graph.typical_cost
        self.problem, self._storage_scale, self._compute_scale = _pdhg_problem(region, labels)
        sizes = labels.sizes.astype(np.float64)
        share = np.repeat(1 / sizes, labels.sizes)
        pairs = sizes[graph.first] * sizes[graph.second]
        self.variables = PdhgIterate(
            x=share,
            x_extrapolated=share.copy(),
            z=np.repeat((1 / pairs).astype(np.float32), pairs.astype(np.int64)),
            y=np.full((len(graph.spool), graph.n_servers), 1 / graph.n_servers),
            y_extrapolated=np.zeros((len(graph.spool), graph.n_servers)),
            message_first=np.zeros(self.problem.message_first_start[-1]),
            message_second=np.zeros(self.problem.message_second_start[-1]),
            share=np.zeros(self.problem.share_start[-1]),
            alpha=np.zeros(graph.n_servers),
            beta=np.zeros(graph.n_servers),
        )

    def warm_start(self, other: "Relaxation") -> None:
        """Start from the variables of another relaxation.

        Parameters
        ----------
        other
            A relaxation of the same graph.
        """
        new, old = self.variables, other.variables
        new.y[:] = old.y.clip(self.problem.y_least, self.problem.y_most)
        new.alpha[:], new.beta[:] = old.alpha, old.beta
        warm_start(self.problem, new, other.problem, old)

    @property
    def pairs(self) -> int:
        """The number of pairs of labels, to which the time of an iteration is proportional."""
        return len(self.variables.z)

    @property
    def shares(self) -> FloatArray:
        """The share of each client at each server (``M×L``)."""
        owner = np.repeat(np.arange(self.graph.n_clients), self.labels.sizes)
        shares = np.zeros((self.graph.n_clients, self.graph.n_servers))
        shares[owner, self.labels.server] = self.variables.x
        return shares

    @property
    def alpha(self) -> FloatArray:
        """The multipliers of the storage rows."""
        return self.variables.alpha * self._storage_scale

    @property
    def beta(self) -> FloatArray:
        """The multipliers of the compute rows."""
        return self.variables.beta * self._compute_scale

    def iterate(self, times: int) -> None:
        """Run some PDHG iterations.

        Parameters
        ----------
        times
            The number of iterations.
        """
        iterate(self.problem, self.variables, self._primal_weight, times)


def _pdhg_problem(region: Region, labels: Labels) -> tuple[PdhgProblem, float, float]:
    """Return the scaled relaxation, and the factors of its storage rows and compute rows."""
    graph = region.graph
    sizes = labels.sizes
    pair_start = offsets(sizes[graph.first] * sizes[graph.second])
    owner = np.repeat(np.arange(graph.n_clients), sizes)
    # A client at a server delegates at least 1 minus the largest θ of its messages.
    least_delegated = (1 - region.largest_theta) * region.delegation_cost.clip(min=0)
    unary = (graph.distance_cost + least_delegated)[owner, labels.server]

    # A row may be multiplied by any factor. These factors make its entries about as large as the other entries of its
    # columns, so that its multiplier converges about as fast as the messages.
    publishers = np.bincount(graph.topic, minlength=len(graph.spool)).astype(np.float64)
    storage_scale = _scale(publishers, graph.spool)
    degree = graph.incident_edges.sizes + np.diff(graph.topic_start)
    compute_scale = _scale(degree, graph.demand)
    # At a server that is not hard, a client pays at most the cost of delegating it, so larger multipliers are useless.
    loads = graph.demand > 0
    largest_price = (region.delegation_cost[loads] / graph.demand[loads, None]).max(axis=0, initial=0.0)
    most = np.where(region.hard, np.inf, largest_price)
    storage_row = graph.spool * storage_scale
    compute_row = graph.demand * compute_scale
    storage_row_sum = storage_row.sum()
    compute_row_sum = np.bincount(labels.server, compute_row[owner], graph.n_servers)
    problem = PdhgProblem(
        first=graph.first,
        second=graph.second,
        incident_start=graph.incident_edges.start,
        incident=graph.incident_edges.item,
        label_start=labels.start,
        server=labels.server,
        message_first_start=offsets(sizes[graph.first]),
        message_second_start=offsets(sizes[graph.second]),
        pair_start=pair_start,
        pair_cost=_pair_cost(graph, labels, pair_start),
        unary=unary,
        topic_start=graph.topic_start,
        topic=graph.topic,
        share_start=offsets(sizes[graph.topic_owner]),
        storage_row=storage_row,
        compute_row=compute_row,
        storage_limit=region.storage_limit * storage_scale,
        compute_limit=region.compute_limit * compute_scale,
        most_alpha=most / storage_scale,
        most_beta=most / compute_scale,
        y_least=region.opened.astype(np.float64),
        y_most=region.possible.astype(np.float64),
        step_x=1 / (degree + compute_row + LEAST_COLUMN_SUM),
        step_y=1 / (publishers + storage_row),
        step_alpha=1 / storage_row_sum if storage_row_sum > 0 else 0.0,
        step_beta=np.divide(1.0, compute_row_sum, out=np.zeros_like(compute_row_sum), where=compute_row_sum > 0),
    )
    return problem, storage_scale, compute_scale


def _scale(others: npt.NDArray[np.number], entries: FloatArray) -> float:
    """Return the factor of a row that makes its entries on average half as large as the others of their columns."""
    total = float(entries.sum())
    return 0.5 * max(float(others.sum()), 1.0) / total if total > 0 else 1.0


def _pair_cost(graph: ClientGraph, labels: Labels, pair_start: OffsetArray) -> SingleArray:
    cost = np.empty(pair_start[-1], np.float32)
    edges = graph.first, graph.second, graph.forward, graph.backward
    _fill_pair_cost(cost, pair_start, *edges, labels.start, labels.server, graph.server_delay)
    return cost


@compiled
def _fill_pair_cost(
    cost: SingleArray,
    pair_start: OffsetArray,
    first: IntArray,
    second: IntArray,
    forward: FloatArray,
    backward: FloatArray,
    label_start: OffsetArray,
    server: IntArray,
    delay: FloatArray,
) -> None:
    for e in range(len(first)):
        i, j = first[e], second[e]
        at = pair_start[e]
        for a in range(label_start[i], label_start[i + 1]):
            for b in range(label_start[j], label_start[j + 1]):
                cost[at] = forward[e] * delay[server[a], server[b]] + backward[e] * delay[server[b], server[a]]
                at += 1
