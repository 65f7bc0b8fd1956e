"""Levels of ``θ``: what a network over finite domains can know of a share.

Loads are whole numbers: exactly where the spools are (in some power of two), else rounded down to a unit that is a
small part of the total. From them comes ``θ̂_l = min(1, A_l/â_l, B_l/v̂_l) ≥ θ_l``, at most a rounding above. The level
of a server says that ``lo ≤ θ̂_l ≤ hi``. Level 0 is ``θ̂_l = 1``; the others fill what is below it. A level is charged
at its best end and may hold what its worst end allows, so a network over levels is a relaxation. Splitting the levels
at the shares of the homes that it returns makes it exact for those homes.
"""

import math
from dataclasses import dataclass

import numpy as np

from relocbench.formulations.integer_scaling import WholeArray, down, whole_exponent
from relocbench.formulations.linearisation import Linearisation
from relocbench.instances.kernels.ragged import IntArray

LOAD_BITS = 32
# Quotients of whole numbers below 2^33 that differ at all differ by more than this (relative); floats err by less.
ROUNDING = 1e-12


@dataclass(frozen=True)
class Level:
    """Shares from ``lo`` to ``hi``.

    Attributes
    ----------
    lo, hi
        The ends.
    reached
        What must be stored or computed for a server to come down to this level (storage, compute).
    holds
        The most that is stored and computed on it.
    """

    lo: float
    hi: float
    reached: tuple[int, int]
    holds: tuple[int, int]


class Levels:
    """The levels of each server, best first; one level only for servers that are surely local.

    Parameters
    ----------
    linear
        The problem.
    several
        How many levels below ``θ = 1`` a server starts with.
    """

    def __init__(self, linear: Linearisation, several: int) -> None:
        self.linear = linear
        loads = np.concatenate([linear.spool, linear.demand])
        total = float(max(linear.spool.sum(), linear.demand.sum()))
        room = LOAD_BITS - math.ceil(math.log2(total)) if total > 0 else 0
        self.exponent = whole_exponent(loads, room)
        self.spool: WholeArray = down(linear.spool, self.exponent)
        self.demand: WholeArray = down(linear.demand, self.exponent)
        # A load of spools is rounded by less than one unit each, and each has at least the smallest.
        smallest = math.ldexp(float(linear.spool.min(initial=math.inf)), self.exponent)
        exact = self.exponent < room
        self.rounding = 0.0 if exact else min(1.0, 1 / smallest)
        self._breaks: list[list[float]] = []
        for l in range(linear.n_servers):
            least = self.share(l, int(self.spool.sum()), int(self.demand.sum()))
            steps = np.geomspace(1.0, least, several + 1)[1:-1].tolist() if 0 < least < 1 else []
            self._breaks.append(steps)

    def share(self, l: int, stored: int, computed: int) -> float:
        """Return ``θ̂`` of a server with these whole loads."""
        storage, compute = self._room(l)
        return min([1.0, *([storage / stored] if stored else []), *([compute / computed] if computed else [])])

    def of(self, l: int) -> list[Level]:
        """Return the levels of a server."""
        all_loads = (int(self.spool.sum()), int(self.demand.sum()))
        if self.linear.surely_local[l]:
            return [Level(1.0, 1.0, (0, 0), all_loads)]
        fits = self._fitting(l, 1.0, 1 + ROUNDING)
        levels = [Level(1.0, 1.0, (0, 0), fits)]
        for share in [*sorted(self._breaks[l], reverse=True), 0.0]:
            # A level ends just above the share that it is split at, which is the best share of the next.
            holds = all_loads if share == 0 else self._fitting(l, share, 1 - ROUNDING)
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

    def _fitting(self, l: int, share: float, tolerance: float) -> tuple[int, int]:
        """Return the most that a server stores and computes at a share; above it where the tolerance is below 1."""
        rooms = [room / share * tolerance for room in self._room(l)]
        stored, computed = (math.ceil(room) - 1 if tolerance < 1 else math.floor(room) for room in rooms)
        return max(0, min(stored, int(self.spool.sum()))), max(0, min(computed, int(self.demand.sum())))

    def _room(self, l: int) -> tuple[float, float]:
        """Return the capacities in units of loads; more than there is to hold does not matter."""
        storage = min(float(self.linear.storage_capacity[l]), 2 * float(self.linear.spool.sum()) + 1)
        compute = min(float(self.linear.compute_capacity[l]), 2 * float(self.linear.demand.sum()) + 1)
        return math.ldexp(storage, self.exponent), math.ldexp(compute, self.exponent)

    def count(self) -> int:
        """Return how many levels there are."""
        return sum(len(self.of(l)) for l in range(self.linear.n_servers))

    def split(self, home: IntArray) -> bool:
        """Split the levels at the shares of these homes; tell whether that changed them."""
        before = self.count()
        for l in range(self.linear.n_servers):
            here = {m for m, server in enumerate(home) if server == l}
            stored = sum(int(u) for u, who in zip(self.spool, self.linear.publishers, strict=True) if here & set(who))
            share = self.share(l, stored, sum(int(self.demand[m]) for m in here))
            if share < 1 and not self.linear.surely_local[l]:
                self._breaks[l].append(share)
                if not self.linear.cloud_is_far:
                    self._breaks[l].append(share * (1 - 4 * ROUNDING))
        return self.count() > before
