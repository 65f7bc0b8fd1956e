"""Branch and bound on the relaxation: a bound that rises, homes that get better, and a proof of both.

A region whose bound does not reach the best cost known is split: into the assignments with a topic open on a server
and those without, or by the home of a client. Homes that only costlier assignments have are dropped on the way.
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
from relocbench.formulations.incumbent import slack
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# A region is closed when its bound is this close to the best cost (relative, from 1 up); see also certify.
MARGIN = 4e-7
STEPS = 100  # iterations between two looks at the bound
PATIENCE = 3  # looks without progress
PROGRESS = 0.02  # of what is missing to the best cost
FEW = 100_000  # assignments: which are split client by client
WORTH_OPENING = 1e-4  # of what is missing: what makes it pay to split by an open topic
SHARE_IN_DOUBT = 0.05  # of what is missing: what makes it pay to split by the share that a server processes
SHARE_UNIT = 1024
OVERLOAD = 1.02
WORTH_DROPPING = 0.1  # of the homes: what makes a new layout pay


@dataclass(frozen=True, eq=False)
class Split:
    """How a region was split: by the home of a client (``servers`` or not), or by a topic open on a server or not."""

    client: int = -1
    servers: Mask | None = None
    topic: int = -1
    server: int = -1
    share: float = 0.0

    def parts(self, region: Region) -> tuple[Region, Region]:
        """Split a region."""
        if self.servers is not None:
            return region.split_client(self.client, self.servers)
        if self.share:
            return region.split_share(self.server, self.share)
        return region.split_topic(self.topic, self.server)


@dataclass(eq=False)
class Node:
    """A region, and what has been shown of it.

    Attributes
    ----------
    region
        The assignments, homes dropped so far left out.
    bound
        None of them costs less.
    dual
        The dual that shows it.
    fixings
        The duals by which homes were dropped, in order.
    split, children
        How it was split, if it was; None for a part without assignments.
    relaxation
        Where its solution has got to; None once nothing follows any more.
    """

    region: Region
    bound: float
    dual: Dual
    fixings: list[Dual] = field(default_factory=list)
    split: Split | None = None
    children: tuple["Node | None", ...] = ()
    relaxation: Relaxation | None = None


class Closing:
    """The tree of regions.

    Parameters
    ----------
    graph
        The instance.
    best_cost
        Returns the cost of the best homes known; it may fall any time.
    offer
        Called with homes found on the way.
    time_is_left
        Returns whether there is time left.
    """

    def __init__(
        self,
        graph: ClientGraph,
        best_cost: Callable[[], float],
        offer: Callable[[IntArray], None],
        time_is_left: Callable[[], bool],
    ) -> None:
        self.graph = graph
        self._best_cost, self._offer, self._time_is_left = best_cost, offer, time_is_left
        self.root: Node | None = None
        self.explored = 0
        self._open: list[tuple[float, int, Node]] = []
        self._numbers = itertools.count()

    @property
    def bound(self) -> float:
        """No assignment costs less, or less than the best known (but for the margin)."""
        least = self._open[0][0] if self._open else np.inf
        return min(least, self.cutoff)

    @property
    def cutoff(self) -> float:
        """A region whose bound reaches this is closed."""
        cost = self._best_cost()
        return cost - slack(cost, MARGIN)

    def start(self, relaxation: Relaxation, dual: Dual, bound: Bound) -> None:
        """Begin with the region of all assignments, and a dual for it."""
        self.root = Node(relaxation.region, bound.value, dual, relaxation=relaxation)
        if self._time_is_left() and self._drop_homes(self.root, bound):
            self._raise_and_drop(self.root)
        self._push(self.root)

    def step(self) -> bool:
        """Split the region with the least bound; tell whether there was one to split."""
        while self._open and self._open[0][0] >= self.cutoff:
            heapq.heappop(self._open)
        if not self._open:
            return False
        node = self._open[0][2]
        split = self._choose(node)
        if split is None:
            heapq.heappop(self._open)  # a single assignment, whose cost is the bound
            self._offer(node.region.allowed.argmax(axis=1).astype(np.int32))
            node.dual, node.relaxation = Dual.nothing(node.region), None
            node.bound = bound_of(node.dual, node.region).value
            return True
        parts = [part.settled() for part in split.parts(node.region)]
        children = tuple(None if part.empty else self._child(node, part) for part in parts)
        for child in children:
            if child is not None and self._time_is_left():
                self._explore(child)
        heapq.heappop(self._open)  # not before: if an error or the user ends it here, the node is still open
        node.split, node.children, node.relaxation = split, children, None
        for child in children:
            if child is not None:
                self._push(child)
        return True

    def _push(self, node: Node) -> None:
        if node.region.empty or node.bound >= self.cutoff:
            node.relaxation = None
        else:
            heapq.heappush(self._open, (node.bound, next(self._numbers), node))

    def _child(self, parent: Node, region: Region) -> Node:
        """Make a node that knows what its parent knows."""
        # What was good for all need not be for a part: a topic known to be open is charged in another way.
        duals = (parent.dual, parent.dual.free(), Dual.nothing(region))
        value, _, dual = max((bound_of(dual, region).value, -rank, dual) for rank, dual in enumerate(duals))
        return Node(region, value, dual, relaxation=parent.relaxation)

    def _explore(self, node: Node) -> None:
        """Raise a node's bound as long as it rises, dropping homes."""
        self.explored += 1
        before = node.relaxation
        assert before is not None
        node.relaxation = self._relaxation(node.region, before)
        self._raise_and_drop(node)
        if not node.region.empty and node.bound < self.cutoff:
            self._offer(node.relaxation.shares.argmax(axis=1).astype(np.int32))

    def _raise_and_drop(self, node: Node) -> None:
        """Raise the bound, drop homes, and again, as long as that pays."""
        while self._raise(node) and self._drop_homes(node, bound_of(node.dual, node.region)):
            pass

    def _relaxation(self, region: Region, before: Relaxation) -> Relaxation:
        servers = region.allowed & before.labels.servers
        servers |= region.allowed & ~servers.any(axis=1, keepdims=True)
        relaxation = Relaxation(region, Labels.of(servers))
        relaxation.follow(before)
        return relaxation

    def _raise(self, node: Node) -> bool:
        """Iterate until the bound stalls; tell whether the node is still open."""
        assert node.relaxation is not None
        stalled = 0
        best = -np.inf
        while stalled < PATIENCE:
            node.relaxation.iterate(STEPS)
            dual = dual_of(node.relaxation)
            value = bound_of(dual, node.region).value
            if value > node.bound:
                node.bound, node.dual = value, dual
            if node.bound >= self.cutoff:
                return False
            if value > best + PROGRESS * (self.cutoff - value):
                stalled = 0
            else:
                stalled += 1
            best = max(best, value)
            if not self._time_is_left():
                break
        return True

    def _drop_homes(self, node: Node, bound: Bound) -> bool:
        """Drop the homes that only costlier assignments have, if they are many; tell whether it is worth going on."""
        assert node.relaxation is not None
        keep = least_cost_with(node.dual, bound, node.region) < self.cutoff
        kept, before = int((keep & node.region.allowed).sum()), int(node.region.allowed.sum())
        if kept > (1 - WORTH_DROPPING) * before:
            return False
        node.fixings.append(node.dual)
        node.region = node.region.limited(keep).settled()
        if node.region.empty:
            node.bound = self.cutoff
            return False
        node.relaxation = self._relaxation(node.region, node.relaxation)
        return self._time_is_left()

    def _choose(self, node: Node) -> Split | None:
        """Choose how to split; None if there is but one assignment."""
        assert node.relaxation is not None
        shares = node.relaxation.shares
        choices = node.region.allowed.sum(axis=1)
        if choices.max() == 1:
            return None
        split = None
        if np.log(choices).sum() > np.log(FEW):
            split = self._choose_share(node, shares) or self._choose_topic(node, shares)
        return split or self._choose_client(node, shares)

    def _choose_client(self, node: Node, shares: FloatArray) -> Split:
        """Choose the client least decided."""
        choices = node.region.allowed.sum(axis=1)
        doubt = np.where(choices > 1, 1 - shares.max(axis=1) + 1e-6 * choices, -1.0)
        client = int(doubt.argmax())
        servers = np.zeros(self.graph.n_servers, np.bool_)
        servers[int(np.where(node.region.allowed[client], shares[client], -1.0).argmax())] = True
        return Split(client=client, servers=servers)

    def _choose_topic(self, node: Node, shares: FloatArray) -> Split | None:
        """Choose the topic and the server whose half-open storage is worth most, if it is worth anything."""
        graph, region = self.graph, node.region
        assert node.relaxation is not None
        half = self._open_shares(shares)
        half = np.minimum(half, 1 - half)
        worth = half * graph.spool[:, None] * node.relaxation.alpha[None, :] * (region.possible & ~region.certain)
        if not worth.size or worth.max() <= WORTH_OPENING * (self.cutoff - node.bound):
            return None
        topic, server = np.unravel_index(int(worth.argmax()), worth.shape)
        return Split(topic=int(topic), server=int(server))

    def _open_shares(self, shares: FloatArray) -> FloatArray:
        """Return how far each topic is open on each server (``N×L``)."""
        found = np.zeros((len(self.graph.spool), self.graph.n_servers))
        np.maximum.at(found, self.graph.topic, shares[self.graph.topic_owner])
        return found

    def _choose_share(self, node: Node, shares: FloatArray) -> Split | None:
        """Choose the overloaded server where not knowing ``θ`` costs the bound most, if it is much."""
        graph, region = self.graph, node.region
        low, high = region.least_share, np.where(region.allowed, region.largest_share, 0.0).max(axis=0)
        # What the clients of a server would pay if all was delegated: how much of it they pay is what θ decides.
        delegated = (shares * region.delegation_cost.clip(min=0)).sum(axis=0)
        stored = (self._open_shares(shares) * graph.spool[:, None]).sum(axis=0)
        computed = (shares * graph.demand[:, None]).sum(axis=0)
        loaded = (stored > OVERLOAD * graph.storage_capacity) | (computed > OVERLOAD * graph.compute_capacity)
        doubt = np.where(loaded & (low > 0), (high - low) * delegated, 0.0)
        server = int(doubt.argmax())
        if doubt[server] < SHARE_IN_DOUBT * (self.cutoff - node.bound):
            return None
        share = round(float(np.sqrt(low[server] * high[server])) * SHARE_UNIT) / SHARE_UNIT
        return Split(server=server, share=share) if low[server] < share < high[server] else None
