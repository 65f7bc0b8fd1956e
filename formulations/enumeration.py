"""Enumeration of all assignments: the reference against which all other exact methods are tested."""

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

# Instances with more assignments are refused.
MOST_ASSIGNMENTS = 10**9
# After this many assignments (a tenth of a second) the clock is read and the running sums are recomputed.
STEPS_AT_ONCE = 1 << 18


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
) -> Solution:
    """Visit all ``L^M`` assignments in Gray-code order, in which neighbours differ by one move.

    Parameters
    ----------
    instance
        The problem.
    seed
        Not used; every method has it.
    time_limit
        Seconds after which the enumeration stops.
    start
        An initial incumbent.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the last two improves.

    Returns
    -------
    Solution
        The best assignment; optimal if all assignments were visited in time, otherwise without a lower bound.

    Raises
    ------
    InputError
        If there are more than 10⁹ assignments.
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
    """Visit the next assignments in reflected Gray-code order, at most ``most`` of them.

    Return the number of visited assignments, and whether the enumeration is complete.
    """
    servers = len(s.server)
    for step in range(most):
        # The lowest digit that can still change in its direction changes; all lower digits reverse their direction.
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
