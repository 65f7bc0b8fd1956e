"""The linear relaxation over labelled clients, solved from both sides at once.

The relaxation has a share ``x`` for every home of a client (its *labels*), a share ``z`` for every pair of homes of two
clients that exchange messages, and ``y`` for every topic stored on a server; docs/certificates.md has it in full. Any
values of its dual variables give a bound (:mod:`formulations.bounding.dual_bound`): how well it is solved here decides
how good a bound is, never whether it is one.

The method is the primal-dual hybrid gradient (:mod:`formulations.bounding.pdhg`). Block coordinate ascent (TRW-S,
MPLP++) is faster at first without capacities, but gets stuck where shares of a topic's storage have to move between
many clients at once, a per cent or more below the optimum.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.pdhg import Fixed, Moving, SingleArray, follow, iterate
from relocbench.formulations.bounding.region import Region
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets

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
        return cls(servers, offsets(servers.sum(axis=1)), np.nonzero(servers)[1].astype(np.int32))

    @property
    def sizes(self) -> OffsetArray:
        """How many labels each client has."""
        return np.diff(self.start)


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
        follow(self.fixed, new, other.fixed, old)

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
        iterate(self.fixed, self.moving, self._weight, times)


def _fixed(region: Region, labels: Labels) -> tuple[Fixed, float, float]:
    graph = region.graph
    sizes = labels.sizes
    pair_start = offsets(sizes[graph.first] * sizes[graph.second])
    owner = np.repeat(np.arange(graph.n_clients), sizes)
    # What a server cannot process whatever its clients: every client there sends that share to the cloud.
    overload = (1 - region.largest_share) * region.delegation_cost.clip(min=0)
    unary = (graph.own + overload)[owner, labels.server]

    # A row may be multiplied by any number; these make its entries about as large as the other entries of the columns
    # it meets, so that its multiplier moves about as fast as theirs.
    publishers = np.bincount(graph.topic, minlength=len(graph.spool)).astype(np.float64)
    storage_scale = _scale(publishers, graph.spool)
    degree = graph.near.sizes + np.diff(graph.topic_start)
    compute_scale = _scale(degree, graph.demand)
    # Where only what is processed is limited, nobody pays more than delegating costs.
    loads = graph.demand > 0
    price = (region.delegation_cost[loads] / graph.demand[loads, None]).max(axis=0, initial=0.0)
    most = np.where(region.hard, np.inf, price)
    storage_row = graph.spool * storage_scale
    compute_row = graph.demand * compute_scale
    stored = storage_row.sum()
    computed = np.bincount(labels.server, compute_row[owner], graph.n_servers)
    fixed = Fixed(
        first=graph.first,
        second=graph.second,
        near_start=graph.near.start,
        near=graph.near.item,
        label_start=labels.start,
        server=labels.server,
        out_start=offsets(sizes[graph.first]),
        home_start=offsets(sizes[graph.second]),
        pair_start=pair_start,
        pair_cost=_pair_cost(graph, labels, pair_start),
        unary=unary,
        topic_start=graph.topic_start,
        topic=graph.topic,
        share_start=offsets(sizes[graph.topic_owner]),
        storage_row=storage_row,
        compute_row=compute_row,
        room_storage=region.storage_limit * storage_scale,
        room_compute=region.compute_limit * compute_scale,
        most_alpha=most / storage_scale,
        most_beta=most / compute_scale,
        y_least=region.opened.astype(np.float64),
        y_most=region.possible.astype(np.float64),
        step_x=1 / (degree + compute_row + 1e-9),
        step_y=1 / (publishers + storage_row),
        step_alpha=1 / stored if stored > 0 else 0.0,
        step_beta=np.divide(1.0, computed, out=np.zeros_like(computed), where=computed > 0),
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
