"""Local search with single moves and swaps, with which exact methods improve a rounded solution."""

import numpy.typing as npt

from relocbench.instances.incremental_state import State, StateArrays, move_apply, move_delta, state_objective
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray

# The least improvement of a step, relative to the cost. It exceeds the rounding errors of the running sums; otherwise
# the search could cycle.
LEAST_GAIN = 1e-10


def descend(instance: Instance, home: npt.ArrayLike, swaps: bool = True) -> IntArray:
    """Move and swap clients until no single step lowers the cost.

    Parameters
    ----------
    instance
        The problem.
    home
        The initial assignment.
    swaps
        Whether to swap pairs of clients as well; this takes time quadratic in the number of clients.

    Returns
    -------
    array
        A local optimum, one server per client.
    """
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
