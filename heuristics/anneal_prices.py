"""Prices on the loads of servers, which help annealing to exchange topics between full servers.

On a full server no topic can open before another one closes. Near the end of a cooling, a search then rejects both
steps. In a priced round the capacities are a little larger and each unit of load costs something instead, so both steps
can happen in either order. The price of a server rises while its load exceeds the capacity and falls while it does not,
as a Lagrangian multiplier of the capacity constraint does.
"""

import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from relocbench.instances.incremental_state import State
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# The prices of storage and of compute loads, per server.
FirstPrices = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class PriceParams:
    """The parameters of the prices.

    Attributes
    ----------
    first_price
        The initial cost of a load of mean size, as a share of a typical change of the objective.
    least_price
        The lower limit of a price, as a share of the initial price. A price of 0 could not rise again.
    growth
        The number of e-foldings by which a price rises over the whole round where the load is twice the capacity.
    sacrificed
        A server that processes less than this share of its publications locally counts as sacrificed.
    """

    first_price: float = 0.08
    least_price: float = 1e-3
    growth: float = 90.0
    sacrificed: float = 0.75


PARAMS = PriceParams()


class Prices:
    """The prices of storage and compute loads on each server.

    Parameters
    ----------
    instance
        The problem.
    typical
        The typical change of the objective that a proposal makes.
    extra_capacity
        The share by which capacities are larger at the start of a round. It decreases to 0.
    sacrificed
        The servers that keep their capacities and have no prices (one truth value per server). Far above its capacity,
        a server delegates most publications, and a further load costs less than the first loads above the capacity. So
        good homes overload one server and no other, and a price would only drive its load away.
    first
        The initial prices of storage and compute loads at each server, such as multipliers of a relaxation; None if
        they are not known.
    progress
        The part of the priced round that was done before, if an earlier call already had prices in this round.
    """

    def __init__(
        self,
        instance: Instance,
        typical: float,
        extra_capacity: float,
        sacrificed: npt.NDArray[np.bool_],
        first: FirstPrices | None = None,
        progress: float = 0.0,
    ) -> None:
        self._storage = _first_prices(instance.spool, typical, instance.n_servers)
        self._compute = _first_prices(instance.client_demand, typical, instance.n_servers)
        self._instance = instance
        self._progress = progress
        self._extra_capacity = np.where(sacrificed, 0.0, extra_capacity)
        self._charged = np.where(sacrificed, 0.0, 1.0)
        self._least = PARAMS.least_price * self._storage[0], PARAMS.least_price * self._compute[0]
        if first is not None:
            self._storage, self._compute = (
                np.maximum(least, prices) for least, prices in zip(self._least, first, strict=True)
            )

    @property
    def values(self) -> FirstPrices:
        """The current prices of storage and of compute loads, per server."""
        return self._storage, self._compute

    def impose(self, state: State, progress: float) -> None:
        """Adapt the prices to the loads of a state, and set prices and larger capacities in it.

        Parameters
        ----------
        state
            The state to change.
        progress
            The part of the priced round that is done, from 0 to 1. Capacities reach their true values at 1.
        """
        instance, server = state.instance, state.arrays.server
        part = progress - self._progress
        self._progress = progress
        _adapt(self._storage, server["storage_load"], instance.storage_capacity, part, self._least[0])
        _adapt(self._compute, server["compute_load"], instance.compute_capacity, part, self._least[1])
        self._charge(state)

    def copy(self) -> "Prices":
        """Return prices with the same values.

        Returns
        -------
        Prices
            The copy, which changes independently.
        """
        other = copy.copy(self)
        other._storage, other._compute = self._storage.copy(), self._compute.copy()
        return other

    def value(self, home: IntArray) -> float:
        """Return the Lagrangian of an assignment, by which assignments with different prices can be compared.

        Parameters
        ----------
        home
            The homes.

        Returns
        -------
        float
            The cost with the present larger capacities, plus the prices of the loads minus those of the capacities.
        """
        state = State(self._instance, home)
        self._charge(state)
        free = self._storage @ (self._charged * self._instance.storage_capacity)
        free += self._compute @ (self._charged * self._instance.compute_capacity)
        return state.objective - float(free)

    def _charge(self, state: State) -> None:
        """Set the present prices and capacities in a state."""
        room = self._extra_capacity * (1 - self._progress)
        state.relax_capacities(room, self._charged * self._storage, self._charged * self._compute)


def sacrificed_servers(theta: FloatArray) -> npt.NDArray[np.bool_]:
    """Return which servers are sacrificed (one truth value per server).

    Parameters
    ----------
    theta
        The share of its publications that each server processes locally.

    Returns
    -------
    array
        The truth values.
    """
    return np.less(theta, PARAMS.sacrificed)


def _first_prices(loads: FloatArray, typical: float, servers: int) -> FloatArray:
    mean = float(loads.mean()) if loads.any() else 1.0
    return np.full(servers, PARAMS.first_price * typical / mean)


def _adapt(price: FloatArray, load: FloatArray, capacity: FloatArray, part: float, least: float) -> None:
    """Update prices in place; ``part`` is the part of the round since the last update."""
    # A server without capacity is treated as if its load were twice the capacity.
    excess = np.divide(load, capacity, out=np.full_like(load, 2.0), where=capacity > 0) - 1
    np.maximum(least, price * np.exp(PARAMS.growth * part * excess.clip(-1, 1)), out=price)
