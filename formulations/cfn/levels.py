"""Levels of ``θ``: a finite set of intervals that replaces the continuous share in a network over finite domains.

Loads are integers. They are exact if the spools are integers in units of some power of two; otherwise they are rounded
down to a unit that is a small part of the total. The rounded loads ``â_l`` and ``v̂_l`` give the share
``θ̂_l = min(1, A_l/â_l, B_l/v̂_l) ≥ θ_l``, which exceeds ``θ_l`` only by rounding.

The level of a server states that ``lo ≤ θ̂_l ≤ hi``. Level 0 is ``θ̂_l = 1``; the other levels cover all
smaller values. The cost of a level uses its best end, and the loads may be as large as its worst end allows. A network
over levels is therefore a relaxation. After splitting the levels at the shares of given homes it is exact for them.
"""

import math
from dataclasses import dataclass

import numpy as np

from relocbench.formulations.integer_scaling import WholeArray, down, whole_exponent
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import IntArray

# The number of bits of the total load.
LOAD_BITS = 32
# Two different quotients of integers below 2^33 differ by more than this (relative), and rounding errors of floats are
# smaller than this.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Level:
    """An interval of shares.

    Attributes
    ----------
    lo, hi
        The ends of the interval.
    reached
        The least storage load and the least compute load of this level. A server is on the level, or on one with a
        smaller share, if it reaches one of them.
    holds
        The largest storage load and the largest compute load of this level.
    """

    lo: float
    hi: float
    reached: tuple[int, int]
    holds: tuple[int, int]


class Levels:
    """The levels of each server, from the largest share to the smallest.

    A server that has ``θ = 1`` in every assignment has only level 0.

    Parameters
    ----------
    linear
        The coefficients of the instance.
    several
        The initial number of levels below ``θ = 1`` of each server.
    """

    def __init__(self, linear: Linearisation, several: int) -> None:
        self.linear = linear
        loads = np.concatenate([linear.spool, linear.demand])
        total = float(max(linear.spool.sum(), linear.demand.sum()))
        bits = LOAD_BITS - math.ceil(math.log2(total)) if total > 0 else 0
        self.exponent = whole_exponent(loads, bits)
        self.spool: WholeArray = down(linear.spool, self.exponent)
        self.demand: WholeArray = down(linear.demand, self.exponent)
        # Each spool is rounded by less than one unit and has at least the smallest size: this bounds the relative
        # error.
        smallest = math.ldexp(float(linear.spool.min(initial=math.inf)), self.exponent)
        exact = self.exponent < bits
        self.rounding = 0.0 if exact else min(1.0, 1 / smallest)
        self._breaks: list[list[float]] = []
        for l in range(linear.n_servers):
            least = self.share(l, int(self.spool.sum()), int(self.demand.sum()))
            steps = np.geomspace(1.0, least, several + 1)[1:-1].tolist() if 0 < least < 1 else []
            self._breaks.append(steps)

    def share(self, l: int, stored: int, computed: int) -> float:
        """Return ``θ̂`` of a server.

        Parameters
        ----------
        l
            The server.
        stored, computed
            Its rounded loads.

        Returns
        -------
        float
            The share.
        """
        storage, compute = self._capacities(l)
        return min([1.0, *([storage / stored] if stored else []), *([compute / computed] if computed else [])])

    def of(self, l: int) -> list[Level]:
        """Return the levels of a server.

        Parameters
        ----------
        l
            The server.

        Returns
        -------
        list
            The levels, from the largest share to the smallest.
        """
        all_loads = (int(self.spool.sum()), int(self.demand.sum()))
        if self.linear.surely_local[l]:
            return [Level(1.0, 1.0, (0, 0), all_loads)]
        fits = self._largest_loads(l, 1.0, 1 + ROUNDING)
        levels = [Level(1.0, 1.0, (0, 0), fits)]
        for share in [*sorted(self._breaks[l], reverse=True), 0.0]:
            # A level ends just above the share at which it is split. This share is the best share of the next level.
            holds = all_loads if share == 0 else self._largest_loads(l, share, 1 - ROUNDING)
            if holds[0] <= fits[0] and holds[1] <= fits[1]:
                continue
            beyond = (fits[0] + 1, fits[1] + 1)
            best = max(
                self.share(l, beyond[0], 0) if beyond[0] <= all_loads[0] else 0.0,
                self.share(l, 0, beyond[1]) if beyond[1] <= all_loads[1] else 0.0,
            )
            levels.append(Level(self.share(l, *holds), best, beyond, holds))
            fits = holds
        return levels

    def _largest_loads(self, l: int, share: float, tolerance: float) -> tuple[int, int]:
        """Return the largest loads of a server with at least a given share.

        With a tolerance below 1 the share must be exceeded; with a tolerance above 1 it is sufficient to reach it.
        """
        limits = [capacity / share * tolerance for capacity in self._capacities(l)]
        stored, computed = (math.ceil(limit) - 1 if tolerance < 1 else math.floor(limit) for limit in limits)
        return max(0, min(stored, int(self.spool.sum()))), max(0, min(computed, int(self.demand.sum())))

    def _capacities(self, l: int) -> tuple[float, float]:
        """Return the capacities in units of loads, cut at twice the total loads, where they have no effect."""
        storage = min(float(self.linear.storage_capacity[l]), 2 * float(self.linear.spool.sum()) + 1)
        compute = min(float(self.linear.compute_capacity[l]), 2 * float(self.linear.demand.sum()) + 1)
        return math.ldexp(storage, self.exponent), math.ldexp(compute, self.exponent)

    def count(self) -> int:
        """Return the total number of levels.

        Returns
        -------
        int
            The number of levels of all servers.
        """
        return sum(len(self.of(l)) for l in range(self.linear.n_servers))

    def split(self, home: IntArray) -> bool:
        """Split the levels at the shares of given homes.

        Parameters
        ----------
        home
            The homes.

        Returns
        -------
        bool
            Whether there are more levels than before.
        """
        before = self.count()
        for l in range(self.linear.n_servers):
            here = {m for m, server in enumerate(home) if server == l}
            topics = zip(self.spool, self.linear.publishers, strict=True)
            stored = sum(int(spool) for spool, publishers in topics if here & set(publishers))
            share = self.share(l, stored, sum(int(self.demand[m]) for m in here))
            if share < 1 and not self.linear.surely_local[l]:
                self._breaks[l].append(share)
                if not self.linear.cloud_is_far:
                    self._breaks[l].append(share * (1 - 4 * ROUNDING))
        return self.count() > before
