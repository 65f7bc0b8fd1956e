"""Regions of the prover: parts of all assignments, as branch and bound makes them.

A region is given by the allowed homes, the topics known to be open on a server, and a range of ``θ`` for each server.
The verifier has a region of its own, :mod:`formulations.certificates.region`, in integer arithmetic.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph, Mask
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# θ is a rounded quotient; only a range that is empty by more than this share excludes a home.
THETA_ROUNDING = 1e-12
# The loads of a server are limited only if its least θ is at least this. The verifier rounds θ down to 2^-60, possibly
# to 0.
LEAST_HARD_THETA = 2.0**-40


@dataclass(frozen=True, eq=False)
class Region:
    """All assignments with allowed homes, the given topics open, and ``θ`` within its range.

    Attributes
    ----------
    graph
        The instance.
    allowed
        The homes each client may have (``M×L``).
    opened
        For each loading topic, the servers known to be the home of one of its publishers (``N×L``).
    low, high
        The range of ``θ``, per server.
    hard
        The servers whose loads themselves are limited, to the capacity divided by the least ``θ``. At the other servers
        only the load that is processed locally is limited, to the capacity.
    """

    graph: ClientGraph
    allowed: Mask
    opened: Mask
    low: FloatArray
    high: FloatArray
    hard: Mask

    @classmethod
    def root(cls, graph: ClientGraph, hard: bool = False) -> "Region":
        """Create the region of all assignments.

        Parameters
        ----------
        graph
            The instance.
        hard
            Whether the loads themselves are limited wherever ``θ`` cannot be very small.

        Returns
        -------
        Region
            The root region.
        """
        clients, servers = graph.n_clients, graph.n_servers
        everywhere = np.ones((clients, servers), np.bool_)
        nowhere = np.zeros((len(graph.spool), servers), np.bool_)
        region = cls(graph, everywhere, nowhere, np.zeros(servers), np.ones(servers), np.zeros(servers, np.bool_))
        return replace(region, hard=region.least_theta >= LEAST_HARD_THETA) if hard else region

    @property
    def empty(self) -> bool:
        """Whether some client has no allowed home."""
        return not bool(self.allowed.any(axis=1).all())

    def restricted(self, allowed: Mask) -> "Region":
        """Allow only some of the homes.

        Parameters
        ----------
        allowed
            The homes to keep (``M×L``).

        Returns
        -------
        Region
            The part of this region with these homes.
        """
        return replace(self, allowed=self.allowed & allowed)

    def split_client(self, client: int, servers: Mask) -> tuple["Region", "Region"]:
        """Split by the home of a client.

        Parameters
        ----------
        client
            The client.
        servers
            The servers of the first part.

        Returns
        -------
        tuple of Region
            The part in which the home is one of the servers, and the part in which it is not.
        """
        inside, outside = self.allowed.copy(), self.allowed.copy()
        inside[client] &= servers
        outside[client] &= ~servers
        return replace(self, allowed=inside), replace(self, allowed=outside)

    def split_topic(self, topic: int, server: int) -> tuple["Region", "Region"]:
        """Split by whether a topic is open on a server.

        Parameters
        ----------
        topic
            The index of a loading topic.
        server
            The server.

        Returns
        -------
        tuple of Region
            The part in which no publisher of the topic is at the server, and the part in which one is.
        """
        publishers = self.graph.publishers[topic]
        without, with_one = self.allowed.copy(), self.allowed
        without[publishers, server] = False
        candidates = publishers[self.allowed[publishers, server]]
        if len(candidates) == 1:
            with_one = with_one.copy()
            with_one[candidates[0]] = False
            with_one[candidates[0], server] = True
        opened = self.opened.copy()
        opened[topic, server] = True
        return replace(self, allowed=without), replace(self, allowed=with_one, opened=opened)

    def split_theta(self, server: int, theta: float) -> tuple["Region", "Region"]:
        """Split by the ``θ`` of a server.

        Parameters
        ----------
        server
            The server.
        theta
            The value at which to split.

        Returns
        -------
        tuple of Region
            The part in which ``θ`` is at most the value, and the part in which it is at least the value.
        """
        low, high, hard = self.low.copy(), self.high.copy(), self.hard.copy()
        low[server] = high[server] = theta
        hard[server] = True
        return replace(self, high=high), replace(self, low=low, hard=hard)

    def propagated(self) -> "Region":
        """Forbid the homes that the ranges of ``θ`` exclude.

        Returns
        -------
        Region
            The same assignments, with fewer allowed homes.
        """
        region = self
        while region.low.any() or (region.high < 1).any():
            excluded = region.allowed & (region.largest_theta < region.least_theta[None, :] * (1 - THETA_ROUNDING))
            if not excluded.any():
                break
            region = region.restricted(~excluded)
        return region

    @property
    def storage_limit(self) -> FloatArray:
        """The right-hand sides of the storage rows of the relaxation, per server."""
        return self.graph.storage_capacity / np.where(self.hard, self.least_theta, 1.0)

    @property
    def compute_limit(self) -> FloatArray:
        """The right-hand sides of the compute rows of the relaxation, per server."""
        return self.graph.compute_capacity / np.where(self.hard, self.least_theta, 1.0)

    @cached_property
    def possible(self) -> Mask:
        """The topics that may be open on each server (``N×L``)."""
        return self._topics_of(self.allowed)

    @cached_property
    def certain(self) -> Mask:
        """The topics that are open on each server in every assignment of the region (``N×L``)."""
        return self.opened | self._topics_of(self._fixed_homes)

    @property
    def _fixed_homes(self) -> Mask:
        """The homes of the clients that have only one (``M×L``)."""
        fixed: Mask = self.allowed & (self.allowed.sum(axis=1) == 1)[:, None]
        return fixed

    def _topics_of(self, homes: Mask) -> Mask:
        """Return the topics that have a publisher with one of these homes (``N×L``)."""
        graph = self.graph
        found = np.zeros((len(graph.spool), graph.n_servers), np.bool_)
        np.logical_or.at(found, graph.topic, homes[graph.topic_owner])
        return found

    @cached_property
    def least_theta(self) -> FloatArray:
        """The least possible ``θ``, per server."""
        graph = self.graph
        storage_load = (self.possible * graph.spool[:, None]).sum(axis=0)
        compute_load = (self.allowed * graph.demand[:, None]).sum(axis=0)
        return np.maximum(self.low, _theta(graph, storage_load, compute_load))

    @cached_property
    def largest_theta(self) -> FloatArray:
        """The largest possible ``θ`` of a server with a client there (``M×L``)."""
        graph, fixed = self.graph, self._fixed_homes
        spool = graph.spool[:, None]
        storage_load = np.broadcast_to((self.certain * spool).sum(axis=0), self.allowed.shape).copy()
        np.add.at(storage_load, graph.topic_owner, (~self.certain * spool)[graph.topic])
        compute_load = (fixed * graph.demand[:, None]).sum(axis=0) + ~fixed * graph.demand[:, None]
        return np.minimum(self.high[None, :], _theta(graph, storage_load, compute_load))

    @cached_property
    def delegation_cost(self) -> FloatArray:
        """A lower bound on the cost of delegating all of a client, minus that of processing it locally (``M×L``)."""
        graph = self.graph
        cost = np.repeat(graph.detour[:, None], graph.n_servers, axis=1)
        _subtract_largest_message_cost(
            cost, self.allowed, graph.server_delay, graph.first, graph.second, graph.forward, graph.backward
        )
        return cost


def _theta(graph: ClientGraph, storage_load: FloatArray, compute_load: FloatArray) -> FloatArray:
    theta = np.ones_like(storage_load)
    for capacity, load in ((graph.storage_capacity, storage_load), (graph.compute_capacity, compute_load)):
        overloaded = np.broadcast_to(capacity, load.shape) < load
        theta = np.minimum(theta, np.divide(capacity, load, out=np.ones_like(load), where=overloaded))
    return theta


@compiled
def _subtract_largest_message_cost(
    cost: FloatArray,
    allowed: Mask,
    delay: FloatArray,
    first: IntArray,
    second: IntArray,
    forward: FloatArray,
    backward: FloatArray,
) -> None:
    """Subtract the largest cost of a client's messages on their way from a server to the receivers' allowed homes."""
    clients, servers = allowed.shape
    farthest = np.zeros((clients, servers))
    for m in range(clients):
        for k in range(servers):
            if allowed[m, k]:
                for l in range(servers):
                    farthest[m, l] = max(farthest[m, l], delay[l, k])
    for e in range(len(first)):
        i, j = first[e], second[e]
        for l in range(servers):
            cost[i, l] -= forward[e] * farthest[j, l]
            cost[j, l] -= backward[e] * farthest[i, l]
