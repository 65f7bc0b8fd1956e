"""Branch and bound on the relaxation: raises the bound, finds homes, and records the tree that proves the bound.

A region whose bound is below the best known cost is split: by whether a topic is open on a server, by the home of a
client, or by the ``θ`` of a server. Between the splits, reduced-cost fixing forbids homes that no improving assignment
can use.
"""

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.dual_bound import Bound, Dual, bound_of, dual_of, least_cost_with
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.formulations.certificates.certificate import SHARE_UNITS
from relocbench.instances.kernels.ragged import FloatArray, IntArray


@dataclass(frozen=True)
class BranchAndBoundParams:
    """The parameters of branch and bound.

    Attributes
    ----------
    margin
        A node is fathomed when its bound is this close to the best cost, relative to the cost. The claim of a
        certificate has a margin of its own, see :mod:`runs.certify`.
    iterations
        PDHG iterations between two evaluations of the bound.
    patience
        Iterating stops after this number of evaluations without progress.
    progress
        An increase of the bound counts as progress above this share of the gap.
    few_assignments
        Regions with at most this number of assignments are split by clients only.
    topic_gain
        A split by a topic is chosen if the price of its half-open storage is above this share of the gap.
    theta_gain
        A split by ``θ`` is chosen if its effect on the bound is above this share of the gap.
    overload
        A server counts as overloaded above this multiple of a capacity.
    fixing_gain
        Homes are forbidden only if they are at least this share of the allowed homes, because a new relaxation has to
        be built then.
    """

    margin: float = 4e-7
    iterations: int = 100
    patience: int = 3
    progress: float = 0.02
    few_assignments: int = 100_000
    topic_gain: float = 1e-4
    theta_gain: float = 0.05
    overload: float = 1.02
    fixing_gain: float = 0.1


PARAMS = BranchAndBoundParams()


@dataclass(frozen=True, eq=False)
class Split:
    """How a region was split: by the home of a client, by the ``θ`` of a server, or by a topic on a server.

    Attributes
    ----------
    client, servers
        The first part has the client at one of the servers. None for other splits.
    topic, server
        The first part has no publisher of the topic at the server.
    theta
        If it is not 0, the first part has a ``θ`` of the server of at most this.
    """

    client: int = -1
    servers: Mask | None = None
    topic: int = -1
    server: int = -1
    theta: float = 0.0

    def parts(self, region: Region) -> tuple[Region, Region]:
        """Split a region.

        Parameters
        ----------
        region
            The region.

        Returns
        -------
        tuple of Region
            The two parts, first part first.
        """
        if self.servers is not None:
            return region.split_client(self.client, self.servers)
        if self.theta:
            return region.split_theta(self.server, self.theta)
        return region.split_topic(self.topic, self.server)


@dataclass(eq=False)
class Node:
    """A node of the tree: a region and its bound.

    Attributes
    ----------
    region
        The assignments, without the homes forbidden so far.
    bound
        A lower bound on their cost.
    dual
        The dual that proves the bound.
    fixings
        The duals by which homes were forbidden, in order.
    split, children
        How the region was split, and the two nodes; None for a part without assignments.
    relaxation
        The relaxation with its current variables; None if the node needs no more work.
    """

    region: Region
    bound: float
    dual: Dual
    fixings: list[Dual] = field(default_factory=list)
    split: Split | None = None
    children: tuple["Node | None", ...] = ()
    relaxation: Relaxation | None = None


class BranchAndBound:
    """The tree of regions.

    Parameters
    ----------
    graph
        The instance.
    best_cost
        Returns the cost of the best known homes; it may decrease at any time.
    offer
        Called with homes found at the nodes.
    has_time
        Returns whether the time limit allows more work.
    params
        The parameters.
    """

    def __init__(
        self,
        graph: ClientGraph,
        best_cost: Callable[[], float],
        offer: Callable[[IntArray], None],
        has_time: Callable[[], bool],
        params: BranchAndBoundParams = PARAMS,
    ) -> None:
        self.graph = graph
        self._best_cost, self._offer, self._has_time, self._params = best_cost, offer, has_time, params
        self.root: Node | None = None
        self.explored = 0
        self._open: list[tuple[float, int, Node]] = []
        self._numbers = itertools.count()

    @property
    def bound(self) -> float:
        """A lower bound on the cost of every assignment; at most the best cost minus the margin."""
        least = self._open[0][0] if self._open else np.inf
        return min(least, self.cutoff)

    @property
    def cutoff(self) -> float:
        """A node whose bound reaches this value is fathomed."""
        return self._best_cost() * (1 - self._params.margin)

    def start(self, relaxation: Relaxation, dual: Dual, bound: Bound, *, forbid: bool = True) -> None:
        """Create the root node.

        Parameters
        ----------
        relaxation
            The root relaxation with its current variables.
        dual, bound
            The best dual found for it, and its bound.
        forbid
            Whether to begin with reduced-cost fixing, which takes longer than evaluating the bound.
        """
        self.root = Node(relaxation.region, bound.value, dual, relaxation=relaxation)
        if forbid and self._has_time() and self._forbid_homes(self.root, bound):
            self._improve_bound(self.root)
        self._push(self.root)

    def step(self) -> bool:
        """Split the node with the least bound.

        Returns
        -------
        bool
            Whether there was an open node.
        """
        while self._open and self._open[0][0] >= self.cutoff:
            heapq.heappop(self._open)
        if not self._open:
            return False
        node = self._open[0][2]
        split = self._choose_split(node)
        if split is None:
            heapq.heappop(self._open)  # a single assignment: its cost is the bound
            self._offer(node.region.allowed.argmax(axis=1).astype(np.int32))
            node.dual, node.relaxation = Dual.zero(node.region), None
            node.bound = bound_of(node.dual, node.region).value
            return True
        parts = [part.propagated() for part in split.parts(node.region)]
        children = tuple(None if part.empty else self._child(node, part) for part in parts)
        for child in children:
            if child is not None and self._has_time():
                self._explore(child)
        heapq.heappop(self._open)  # only now: if an error or an interrupt ends the loop above, the node stays open
        node.split, node.children, node.relaxation = split, children, None
        for child in children:
            if child is not None:
                self._push(child)
        return True

    def _push(self, node: Node) -> None:
        """Add a node to the open nodes unless it is fathomed."""
        if node.region.empty or node.bound >= self.cutoff:
            node.relaxation = None
        else:
            heapq.heappush(self._open, (node.bound, next(self._numbers), node))

    def _child(self, parent: Node, region: Region) -> Node:
        """Create a child node with the best of the parent's dual and simpler ones."""
        # The parent's dual may be bad for a part: a topic that is known to be open is charged differently.
        duals = (parent.dual, parent.dual.without_capacities(), Dual.zero(region))
        value, _, dual = max((bound_of(dual, region).value, -rank, dual) for rank, dual in enumerate(duals))
        return Node(region, value, dual, relaxation=parent.relaxation)

    def _explore(self, node: Node) -> None:
        """Improve the bound of a new node and offer its rounded relaxation."""
        self.explored += 1
        before = node.relaxation
        assert before is not None
        node.relaxation = self._warm_started(node.region, before)
        self._improve_bound(node)
        if not node.region.empty and node.bound < self.cutoff:
            self._offer(node.relaxation.shares.argmax(axis=1).astype(np.int32))

    def _improve_bound(self, node: Node) -> None:
        """Alternate iterations and reduced-cost fixing as long as homes are forbidden."""
        while self._iterate(node) and self._forbid_homes(node, bound_of(node.dual, node.region)):
            pass

    def _warm_started(self, region: Region, before: Relaxation) -> Relaxation:
        """Return the relaxation of a region with the labels and variables of another one."""
        servers = region.allowed & before.labels.servers
        servers |= region.allowed & ~servers.any(axis=1, keepdims=True)
        relaxation = Relaxation(region, Labels.of(servers))
        relaxation.warm_start(before)
        return relaxation

    def _iterate(self, node: Node) -> bool:
        """Iterate until the bound makes no more progress; return whether the node is still open."""
        assert node.relaxation is not None
        stalled = 0
        best = -np.inf
        while stalled < self._params.patience:
            node.relaxation.iterate(self._params.iterations)
            dual = dual_of(node.relaxation)
            value = bound_of(dual, node.region).value
            if value > node.bound:
                node.bound, node.dual = value, dual
            if node.bound >= self.cutoff:
                return False
            if value > best + self._params.progress * (self.cutoff - value):
                stalled = 0
            else:
                stalled += 1
            best = max(best, value)
            if not self._has_time():
                break
        return True

    def _forbid_homes(self, node: Node, bound: Bound) -> bool:
        """Reduced-cost fixing: forbid homes that no improving assignment can use, if there are many.

        Return whether homes were forbidden and the node is still worth iterating.
        """
        assert node.relaxation is not None
        keep = least_cost_with(node.dual, bound, node.region) < self.cutoff
        kept, before = int((keep & node.region.allowed).sum()), int(node.region.allowed.sum())
        if kept > (1 - self._params.fixing_gain) * before:
            return False
        node.fixings.append(node.dual)
        node.region = node.region.restricted(keep).propagated()
        if node.region.empty:
            node.bound = self.cutoff
            return False
        node.relaxation = self._warm_started(node.region, node.relaxation)
        return self._has_time()

    def _choose_split(self, node: Node) -> Split | None:
        """Choose how to split a node; None if its region is a single assignment."""
        assert node.relaxation is not None
        shares = node.relaxation.shares
        choices = node.region.allowed.sum(axis=1)
        if choices.max() == 1:
            return None
        split = None
        if np.log(choices).sum() > np.log(self._params.few_assignments):
            split = self._choose_theta(node, shares) or self._choose_topic(node, shares)
        return split or self._choose_client(node, shares)

    def _choose_client(self, node: Node, shares: FloatArray) -> Split:
        """Choose the client with the most fractional shares, and its server with the largest share."""
        choices = node.region.allowed.sum(axis=1)
        # The small term breaks ties in favour of clients with more homes.
        fractionality = np.where(choices > 1, 1 - shares.max(axis=1) + 1e-6 * choices, -1.0)
        client = int(fractionality.argmax())
        servers = np.zeros(self.graph.n_servers, np.bool_)
        servers[int(np.where(node.region.allowed[client], shares[client], -1.0).argmax())] = True
        return Split(client=client, servers=servers)

    def _choose_topic(self, node: Node, shares: FloatArray) -> Split | None:
        """Choose the topic and server whose half-open storage has the highest price; None if the price is small."""
        graph, region = self.graph, node.region
        assert node.relaxation is not None
        half_open = self._open_shares(shares)
        half_open = np.minimum(half_open, 1 - half_open)
        undecided = region.possible & ~region.certain
        price = half_open * graph.spool[:, None] * node.relaxation.alpha[None, :] * undecided
        if not price.size or price.max() <= self._params.topic_gain * (self.cutoff - node.bound):
            return None
        topic, server = np.unravel_index(int(price.argmax()), price.shape)
        return Split(topic=int(topic), server=int(server))

    def _open_shares(self, shares: FloatArray) -> FloatArray:
        """Return the share of each topic that is open on each server (``N×L``)."""
        found = np.zeros((len(self.graph.spool), self.graph.n_servers))
        np.maximum.at(found, self.graph.topic, shares[self.graph.topic_owner])
        return found

    def _choose_theta(self, node: Node, shares: FloatArray) -> Split | None:
        """Choose the overloaded server whose range of ``θ`` weakens the bound most; None if the effect is small."""
        graph, region = self.graph, node.region
        low, high = region.least_theta, np.where(region.allowed, region.largest_theta, 0.0).max(axis=0)
        # The cost if the clients of a server delegated everything; θ decides which part of it they pay.
        delegated = (shares * region.delegation_cost.clip(min=0)).sum(axis=0)
        storage_load = (self._open_shares(shares) * graph.spool[:, None]).sum(axis=0)
        compute_load = (shares * graph.demand[:, None]).sum(axis=0)
        overloaded = storage_load > self._params.overload * graph.storage_capacity
        overloaded |= compute_load > self._params.overload * graph.compute_capacity
        effect = np.where(overloaded & (low > 0), (high - low) * delegated, 0.0)
        server = int(effect.argmax())
        if effect[server] < self._params.theta_gain * (self.cutoff - node.bound):
            return None
        theta = round(float(np.sqrt(low[server] * high[server])) * SHARE_UNITS) / SHARE_UNITS
        return Split(server=server, theta=theta) if low[server] < theta < high[server] else None
