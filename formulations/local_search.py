"""From an assignment to one that no single move and no swap improves: what exact methods make of a rounded point."""

import numpy.typing as npt

from relocbench.instances.incremental_state import State, StateArrays, move_apply, move_delta, state_objective
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray

# Steps must gain more than running sums are off, as a share of the cost; else they could go round in circles.
LEAST_GAIN = 1e-10


def descend(instance: Instance, home: npt.ArrayLike, swaps: bool = True) -> IntArray:
    """Move and (which takes the square of their number) swap clients as long as that lowers the cost."""
    state = State(instance, home)
    _descend(state.arrays, swaps)
    return state.home


@compiled
def _descend(s: StateArrays, swaps: bool) -> None:
    clients, servers = len(s.home), len(s.server)
    least_gain = LEAST_GAIN * abs(state_objective(s))
    better = True
    while better:
        better = False
        for m in range(clients):
            best, where = -least_gain, -1
            for l in range(servers):
                change = move_delta(s, m, l)
                if change < best:
                    best, where = change, l
            if where >= 0:
                move_apply(s, m, where)
                better = True
        for m in range(clients if swaps else 0):
            for r in range(m):
                here, there = s.home[m], s.home[r]
                if here == there:
                    continue
                first = move_delta(s, m, there)
                move_apply(s, m, there)
                if first + move_delta(s, r, here) < -least_gain:
                    move_apply(s, r, here)
                    better = True
                else:
                    move_apply(s, m, here)
