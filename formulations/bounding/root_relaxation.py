"""The root relaxation: the bound of all assignments at once, before branch and bound."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.formulations.bounding.dual_bound import Bound, Dual, bound_of, dual_of
from relocbench.formulations.bounding.region import Region
from relocbench.formulations.bounding.relaxation import Labels, Relaxation
from relocbench.instances.kernels.ragged import FloatArray, IntArray


@dataclass(frozen=True)
class RootParams:
    """The parameters of the root relaxation.

    Attributes
    ----------
    most_servers
        Up to this number of servers, all homes are labels from the start.
    nearest
        With more servers, each client starts with this number of nearest servers.
    new_labels
        The largest number of labels that a client receives after one step.
    iterations
        PDHG iterations between two evaluations of the bound.
    iterations_without_clock
        PDHG iterations after which the clock is read.
    """

    most_servers: int = 24
    nearest: int = 8
    new_labels: int = 3
    iterations: int = 250
    iterations_without_clock: int = 10


PARAMS = RootParams()


class RootRelaxation:
    """The relaxation of the whole instance, and the best dual found so far.

    Parameters
    ----------
    graph
        The instance.
    home
        Good homes; their labels are active from the start.
    overloaded
        Whether the clients load the servers above their capacities.
    params
        The parameters.
    """

    def __init__(self, graph: ClientGraph, home: IntArray, overloaded: bool, params: RootParams = PARAMS) -> None:
        self._params = params
        self.region = Region.root(graph, hard=overloaded)
        labels = first_labels(graph, home, params.most_servers, params.nearest)
        self.relaxation = Relaxation(self.region, Labels.of(labels))
        self.dual: Dual = Dual.silent(self.region)
        self.bound: Bound = bound_of(self.dual, self.region)

    def step(self, has_time: Callable[[], bool] = lambda: True) -> float:
        """Run some iterations, evaluate the bound, and add labels of negative reduced cost.

        Parameters
        ----------
        has_time
            Asked every few iterations whether there is time for more of them. Without time no labels are added either.

        Returns
        -------
        float
            The increase of the best bound.
        """
        done = 0
        while done < self._params.iterations and (done == 0 or has_time()):
            self.relaxation.iterate(self._params.iterations_without_clock)
            done += self._params.iterations_without_clock
        dual = dual_of(self.relaxation)
        bound = bound_of(dual, self.region)
        gain = bound.value - self.bound.value
        if gain > 0:
            self.dual, self.bound = dual, bound
        if has_time():
            self._add_labels(bound)
        return max(0.0, gain)

    def _add_labels(self, bound: Bound) -> None:
        """Activate labels that cost less than every active label of their client."""
        servers = with_cheaper_labels(self.relaxation.labels.servers, bound.cost, self._params.new_labels)
        if servers is None:
            return
        before = self.relaxation
        self.relaxation = Relaxation(self.region, Labels.of(servers))
        self.relaxation.warm_start(before)


def first_labels(graph: ClientGraph, home: IntArray, most_servers: int, nearest: int) -> Mask:
    """Choose the labels with which a relaxation starts.

    Parameters
    ----------
    graph
        The instance.
    home
        Good homes; each is a label of its client.
    most_servers
        Up to this number of servers, all homes are labels.
    nearest
        With more servers, each client starts with this number of nearest servers.

    Returns
    -------
    Mask
        The labels (``M×L``).
    """
    if graph.n_servers <= most_servers:
        return np.ones((graph.n_clients, graph.n_servers), np.bool_)
    servers = np.zeros((graph.n_clients, graph.n_servers), np.bool_)
    chosen = np.argpartition(graph.distance_cost, nearest, axis=1)[:, :nearest]
    np.put_along_axis(servers, chosen, True, axis=1)
    servers[np.arange(graph.n_clients), home] = True
    return servers


def with_cheaper_labels(servers: Mask, cost: FloatArray, count: int) -> Mask | None:
    """Add labels that cost less than every present label of their client.

    Parameters
    ----------
    servers
        The present labels (``M×L``).
    cost
        The cost of each home with messages (``M×L``).
    count
        The largest number of new labels of a client.

    Returns
    -------
    Mask or None
        The labels with the new ones; None if there are no new ones.
    """
    if servers.all():
        return None
    least = np.where(servers, cost, np.inf).min(axis=1)
    others = np.where(servers, np.inf, cost)
    count = min(count, servers.shape[1] - 1)
    best = np.argpartition(others, count, axis=1)[:, :count]
    cheaper = np.take_along_axis(others, best, axis=1) < least[:, None]
    if not cheaper.any():
        return None
    found = servers.copy()
    client, which = np.nonzero(cheaper)
    found[client, best[client, which]] = True
    return found
