"""Every assignment, one after the other: the oracle for all other exact methods."""

import math
import time

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.instances.errors import InputError
from relocbench.instances.incremental_state import State, StateArrays, move_apply, state_objective
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.solution import Progress, Solution

MOST_ASSIGNMENTS = 10**9
# The clock is looked at, and the running sums are computed afresh, every so many assignments (a tenth of a second).
STEPS_AT_ONCE = 1 << 18


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Visit all ``L^M`` assignments in Gray-code order, each one move away from the one before.

    Raises
    ------
    InputError
        If there are more than a thousand million assignments.
    """
    servers, clients = instance.n_servers, instance.n_clients
    if servers > 1 and clients * math.log(servers) > math.log(MOST_ASSIGNMENTS) * (1 + 1e-12):
        raise InputError(
            "method enumerate", f"expected at most {MOST_ASSIGNMENTS:.0e} assignments, got {servers}^{clients}"
        )
    incumbent = Incumbent(instance, start, on_progress)
    deadline = time.perf_counter() + time_limit
    state = State(instance, np.zeros(clients, np.int32))
    best = state.home
    least = np.array([state.objective])
    digit, direction = np.zeros(clients, np.int32), np.ones(clients, np.int32)
    incumbent.offer(best)
    visited, finished = 1, servers == 1
    while not finished:
        steps, finished = _visit(state.arrays, digit, direction, STEPS_AT_ONCE, least, best)
        visited += steps
        incumbent.offer(best)
        state.refresh()
        least[0] = incumbent.cost
        if time.perf_counter() > deadline:
            break
    if finished:
        incumbent.raise_bound(incumbent.cost)
    return incumbent.solution(finished, {"assignments": float(visited)})


@compiled
def _visit(
    s: StateArrays, digit: IntArray, direction: IntArray, most: int, least: npt.NDArray[np.float64], best: IntArray
) -> tuple[int, bool]:
    """Go on in reflected Gray-code order for at most ``most`` assignments; tell how many, and whether that was all."""
    servers = len(s.server)
    for step in range(most):
        # The lowest place whose digit can still go on in its direction does; all below it turn round.
        place = 0
        while place < len(digit) and not 0 <= digit[place] + direction[place] < servers:
            direction[place] = -direction[place]
            place += 1
        if place == len(digit):
            return step, True
        digit[place] += direction[place]
        move_apply(s, place, digit[place])
        cost = state_objective(s)
        if cost < least[0]:
            least[0] = cost
            best[:] = s.home
    return most, False
