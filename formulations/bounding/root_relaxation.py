"""The bound of all assignments at once: from nothing to a dual that hardly gets better."""

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.dual_bound import Bound, Dual, bound_of, dual_of
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.instances.kernels.ragged import IntArray

# With more servers than these a client begins with its nearest ones only, and gets others when they pay.
ALL_SERVERS = 24
NEAREST = 8
NEW_LABELS = 3  # a client, at once
STEPS = 250  # iterations between two looks at the bound


class Root:
    """The relaxation of the whole instance, on its way to the optimum.

    Parameters
    ----------
    graph
        The instance.
    home
        Good homes, whose labels take part from the start.
    overloaded
        Whether the clients load the servers more than they can process.
    """

    def __init__(self, graph: ClientGraph, home: IntArray, overloaded: bool) -> None:
        self.region = Region.whole(graph, hard=overloaded)
        self.relaxation = Relaxation(self.region, Labels.of(_first_servers(graph, home)))
        self.dual: Dual = Dual.nothing(self.region)
        self.bound: Bound = bound_of(self.dual, self.region)

    def step(self) -> float:
        """Iterate for a while, take in labels that pay; return by how much the bound rose."""
        self.relaxation.iterate(STEPS)
        dual = dual_of(self.relaxation)
        bound = bound_of(dual, self.region)
        gain = bound.value - self.bound.value
        if gain > 0:
            self.dual, self.bound = dual, bound
        self._take_in(bound)
        return max(0.0, gain)

    def _take_in(self, bound: Bound) -> None:
        """Make labels active that cost less than every active one of their client."""
        labels = self.relaxation.labels
        if labels.servers.all():
            return
        least = np.where(labels.servers, bound.cost, np.inf).min(axis=1)
        outside = np.where(labels.servers, np.inf, bound.cost)
        best = np.argpartition(outside, NEW_LABELS, axis=1)[:, :NEW_LABELS]
        pays = np.take_along_axis(outside, best, axis=1) < least[:, None]
        if not pays.any():
            return
        servers = labels.servers.copy()
        client, which = np.nonzero(pays)
        servers[client, best[client, which]] = True
        before = self.relaxation
        self.relaxation = Relaxation(self.region, Labels.of(servers))
        self.relaxation.follow(before)


def _first_servers(graph: ClientGraph, home: IntArray) -> Mask:
    if graph.n_servers <= ALL_SERVERS:
        return np.ones((graph.n_clients, graph.n_servers), np.bool_)
    servers = np.zeros((graph.n_clients, graph.n_servers), np.bool_)
    nearest = np.argpartition(graph.own, NEAREST, axis=1)[:, :NEAREST]
    np.put_along_axis(servers, nearest, True, axis=1)
    servers[np.arange(graph.n_clients), home] = True
    return servers
