"""Enumeration of all assignments: the reference against which all other exact methods are tested."""

import math
import time

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent, slack
from relocbench.formulations.linearisation import linearise
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
# The same for an instance whose numbers differ by many orders of magnitude.
FEW_STEPS_AT_ONCE = 1 << 8
# The largest rounding error of the running sums, relative to the cost.
LARGEST_DRIFT = 1e-8


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
    incumbent.offer(best)
    drift = _drift(instance)
    accurate = drift * STEPS_AT_ONCE <= slack(incumbent.cost, LARGEST_DRIFT)
    visited, finished = 1, servers == 1
    digit, direction = np.zeros(clients, np.int32), np.ones(clients, np.int32)
    while not finished:
        # If the running sums are not accurate, every assignment that may be the best one is evaluated by itself.
        most_steps = STEPS_AT_ONCE if accurate else FEW_STEPS_AT_ONCE
        least = np.array([incumbent.cost + (0.0 if accurate else drift * FEW_STEPS_AT_ONCE)])
        steps, finished = _visit(state.arrays, digit, direction, most_steps, not accurate, least, best)
        visited += steps
        incumbent.offer(best)
        state.refresh()
        if accurate and drift * STEPS_AT_ONCE > slack(incumbent.cost, LARGEST_DRIFT):
            # Beside the better cost the sums so far were not accurate: begin again.
            accurate, finished = False, False
            digit, direction = np.zeros(clients, np.int32), np.ones(clients, np.int32)
            state = State(instance, np.zeros(clients, np.int32))
        if time.perf_counter() > deadline:
            break
    if finished:
        incumbent.raise_bound(incumbent.cost)
    return incumbent.solution(finished, {"assignments": float(visited)})


def _drift(instance: Instance) -> float:
    """Return how much one move can change the rounding error of the running cost."""
    model = linearise(instance)
    steepest = max(model.detour, float(model.server_delay.max(initial=0.0))) * float(model.publications.sum())
    largest = float((model.weight[:, None] * model.client_delay).max(axis=1).sum()) + steepest
    # A load is a difference of sums as large as the total. Its error is largest beside the smallest load.
    ratio = float(model.demand.sum() / model.spool.min()) if len(model.spool) else 1.0
    return 4 * float(np.finfo(np.float64).eps) * (largest + steepest * ratio)


@compiled
def _visit(
    s: StateArrays,
    digit: IntArray,
    direction: IntArray,
    most: int,
    stop: bool,
    least: npt.NDArray[np.float64],
    best: IntArray,
) -> tuple[int, bool]:
    """Visit the next assignments in reflected Gray-code order, at most ``most`` of them.

    With ``stop`` the visit ends at the first assignment that costs less than ``least``. Return the number of visited
    assignments, and whether the enumeration is complete.
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
            if stop:
                return step + 1, False
    return most, False
