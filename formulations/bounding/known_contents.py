"""The known contents of a server, and their combination that is nearest to given shares of its labels."""

import numpy as np

from relocbench.formulations.bounding.client_graph import ClientGraph
from relocbench.formulations.bounding.least_content import Loads, loads_of
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray


class KnownContents:
    """The known contents of one server, as shares of its labels, and the weights of their combination.

    The items of a content are its clients and those pairs of clients that have prices at this server.

    Parameters
    ----------
    graph
        The instance.
    loads
        What the items load.

    Attributes
    ----------
    loads
        The same, with the pairs that became items since.
    pairs
        The edges that are items.
    shares
        The shares of all items in each content, first those processed at the server, then those delegated.
    weight
        The weights of the contents in the combination.
    common
        The scalar products of all two rows of ``shares``.
    """

    def __init__(self, graph: ClientGraph, loads: Loads) -> None:
        self._graph, self.loads = graph, loads
        self.pairs = np.zeros(0, np.int32)
        self._members, self._theta = np.zeros((0, graph.n_clients)), np.zeros(0)
        self.shares = np.zeros((0, 2 * graph.n_clients))
        self.weight = np.zeros(0)
        self.common = np.zeros((0, 0))
        self._unused = np.zeros(0, np.int64)

    def price_pairs(self, pairs: IntArray) -> None:
        """Make these edges items.

        Parameters
        ----------
        pairs
            The edges.
        """
        self.pairs = np.concatenate([self.pairs, pairs])
        self.loads = loads_of(self._graph, self.pairs)
        self.shares = self._shares_of(self._members, self._theta)
        self.common = self.shares @ self.shares.T

    def together(self, pairs: IntArray) -> FloatArray:
        """Return the shares of the two labels that the combination has for both clients of edges together.

        Parameters
        ----------
        pairs
            The edges.

        Returns
        -------
        array
            One row for each edge.
        """
        both = np.minimum(self._members[:, self._graph.first[pairs]], self._members[:, self._graph.second[pairs]])
        return np.column_stack([(self.weight * self._theta) @ both, (self.weight * (1 - self._theta)) @ both])

    def _shares_of(self, members: FloatArray, theta: FloatArray) -> FloatArray:
        """Return the shares of all items in contents: first those processed at the server."""
        first, second = self._graph.first[self.pairs], self._graph.second[self.pairs]
        items = np.hstack([members, np.minimum(members[:, first], members[:, second])])
        return np.hstack([theta[:, None] * items, (1 - theta)[:, None] * items])

    def add(self, members: FloatArray, theta: float) -> None:
        """Add a content unless it is known.

        Parameters
        ----------
        members
            1 for the clients of the content, 0 for all others.
        theta
            Its ``θ``.
        """
        shares = self._shares_of(members[None], np.array([theta]))[0]
        if len(self.shares) and (np.abs(self.shares - shares).max(axis=1) < 1e-9).any():
            return
        common = self.shares @ shares
        self.common = np.block([[self.common, common[:, None]], [common[None, :], shares @ shares]])
        self.shares = np.vstack([self.shares, shares])
        self._members, self._theta = np.vstack([self._members, members]), np.append(self._theta, theta)
        self.weight = np.append(self.weight, 0.0 if len(self.weight) else 1.0)
        self._unused = np.append(self._unused, 0)

    def forget(self, most: int, patience: int) -> None:
        """Forget contents that were not used for a while, if there are many.

        Parameters
        ----------
        most
            Up to this number, nothing is forgotten.
        patience
            The number of calls after which a content without a weight is forgotten.
        """
        self._unused = np.where(self.weight > 1e-9, 0, self._unused + 1)
        if len(self.weight) > most:
            kept = self._unused < patience
            kept[~self.shares.any(axis=1)] = True  # the empty content is always a choice
            self.common = np.ascontiguousarray(self.common[np.ix_(kept, kept)])
            self.shares, self.weight, self._unused = self.shares[kept], self.weight[kept], self._unused[kept]
            self._members, self._theta = self._members[kept], self._theta[kept]

    def largest_profit(self, price: FloatArray) -> float:
        """Return the largest profit of a known content.

        Parameters
        ----------
        price
            The price of each share.

        Returns
        -------
        float
            The profit.
        """
        return float((self.shares @ price).max())

    def step(self, point: FloatArray, weight: float) -> FloatArray:
        """Move the combination as near to a point as possible.

        Parameters
        ----------
        point
            Wanted shares of all items.
        weight
            The weight of the distance.

        Returns
        -------
        array
            The shares of the combination.
        """
        _combine(self.common, self.shares @ point, self.weight, weight, 40)
        found: FloatArray = self.weight @ self.shares
        return found


@compiled
def _combine(common: FloatArray, target: FloatArray, share: FloatArray, weight: float, times: int) -> None:
    """Minimise ``weight/2·|combination - point|²`` over shares that sum to 1, two shares at a time."""
    gradient = weight * (common @ share - target)
    for _ in range(times):
        low, high = 0, -1
        for j in range(len(share)):
            if gradient[j] < gradient[low]:
                low = j
            if share[j] > 1e-12 and (high < 0 or gradient[j] > gradient[high]):
                high = j
        if gradient[high] - gradient[low] < 1e-7:
            break
        curvature = weight * (common[low, low] + common[high, high] - 2 * common[low, high])
        moved = share[high]
        if curvature > 0:
            moved = min(moved, (gradient[high] - gradient[low]) / curvature)
        share[low] += moved
        share[high] -= moved
        for j in range(len(share)):
            gradient[j] += weight * moved * (common[j, low] - common[j, high])
