"""Prices of loads, which lead a search past full servers.

At a full server nothing can open before something else has closed, so that a search near its end stays where it is.
While loads cost something instead, and capacities are a little larger, both can happen in either order. The prices
rise where a server is too full and fall where it is not, as multipliers of the capacities do.
"""

import numpy as np

from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray

# How much larger capacities are at first, as a share of them; it shrinks to nothing.
ROOM = 0.2
# A load of usual size costs this share of a typical change of the objective at first.
FIRST_PRICE = 0.08
# Prices do not fall below this share of the first ones, so that they can rise again.
LEAST_PRICE = 1e-3
# How often e-fold a price rises from beginning to end where a server has twice the load it can take.
ADAPT = 90.0


class Prices:
    """What loads cost at each server.

    Parameters
    ----------
    instance
        The problem.
    typical
        What a typical change does to the objective.
    """

    def __init__(self, instance: Instance, typical: float) -> None:
        self._storage = _first_prices(instance.spool, typical, instance.n_servers)
        self._compute = _first_prices(instance.client_demand, typical, instance.n_servers)
        self._progress = 0.0
        self._least = LEAST_PRICE * self._storage[0], LEAST_PRICE * self._compute[0]

    def impose(self, state: State, progress: float) -> None:
        """Follow the loads of a state and bend it: the less, the more of the way (a share) is done."""
        instance, server = state.instance, state.arrays.server
        part = progress - self._progress
        self._progress = progress
        _adapt(self._storage, server["storage_load"], instance.storage_capacity, part, self._least[0])
        _adapt(self._compute, server["compute_load"], instance.compute_capacity, part, self._least[1])
        state.relax_capacities(ROOM * (1 - progress), self._storage, self._compute)


def _first_prices(loads: FloatArray, typical: float, servers: int) -> FloatArray:
    mean = float(loads.mean()) if loads.any() else 1.0
    return np.full(servers, FIRST_PRICE * typical / mean)


def _adapt(price: FloatArray, used: FloatArray, capacity: FloatArray, part: float, least: float) -> None:
    excess = np.divide(used, capacity, out=np.full_like(used, 2.0), where=capacity > 0) - 1
    np.maximum(least, price * np.exp(ADAPT * part * excess.clip(-1, 1)), out=price)
