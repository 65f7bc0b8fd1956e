"""The method ``cpsat``: an integer model, solved with CP-SAT of OR-Tools."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.formulations.cpsat.model import Model, Scales, build, choose_scales
from relocbench.formulations.incumbent import Incumbent, OutOfTimeError, slack
from relocbench.formulations.integer_scaling import lower_bound, upper_limit
from relocbench.formulations.linearisation import linearise
from relocbench.formulations.solvers.availability import require
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, frozen
from relocbench.instances.solution import Progress, Solution

# The number of assignments that are excluded on the first scale before the model is built again on the finest scale.
ROUNDS = 20


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    start: npt.ArrayLike | None = None,
    on_progress: Progress | None = None,
    log: bool = False,
    threads: int = 1,
    presolve: bool = True,
    conditioned: bool = True,
) -> Solution:
    """Solve the model of :mod:`formulations.cpsat.model`, whose minimum is a lower bound, and evaluate its homes.

    Rounding can leave a gap between the lower bound and the cost of the homes found. Then the exact ``θ`` of these
    homes are added to the model, the homes are excluded, and the search continues. After some rounds the model is built
    again with the finest scale that 64 bits allow.

    Parameters
    ----------
    instance, seed, time_limit
        As for every method. The time limit includes building the model.
    start
        A warm start; its cost is also the initial incumbent.
    on_progress
        Called with (seconds, incumbent, bound) whenever one of the last two improves.
    log
        Whether the solver prints its log.
    threads
        The number of workers of CP-SAT. With more than one, equal seeds may give different homes of the same cost.
    presolve
        Whether CP-SAT may simplify the model first.
    conditioned
        Whether the capacities are also conditioned on each client, which gives better lower bounds and a larger model.

    Returns
    -------
    Solution
        The best homes found and the lower bound.
    """
    require("method cpsat", "ortools")
    incumbent = Incumbent(instance, start, on_progress)
    deadline = incumbent.begin + time_limit
    linear = linearise(instance)
    settings = _Settings(seed, threads, presolve, log)
    facts: dict[str, float] = {}
    excluded: list[IntArray] = []
    for error, rounds in ((slack(linear.least_distance_cost) / 2, ROUNDS), (0.0, math.inf)):
        scales = choose_scales(linear, incumbent.cost, error)
        try:
            model = build(linear, scales, upper_limit(incumbent.cutoff, scales.objective), conditioned, deadline)
        except OutOfTimeError:
            break
        facts |= model.facts
        for home in excluded:
            model.exclude(home, evaluate(instance, home).theta)
        while len(excluded) < rounds:
            found = _run(model, scales, incumbent, facts, deadline, settings)
            if found is None or incumbent.proved:
                return incumbent.solution(False, facts)
            model.exclude(found, evaluate(instance, found).theta)
            excluded.append(found)
    return incumbent.solution(False, facts)


@dataclass(frozen=True)
class _Settings:
    """The settings of CP-SAT, as for :func:`solve`."""

    seed: int
    threads: int
    presolve: bool
    log: bool


def _run(
    model: Model, scales: Scales, incumbent: Incumbent, facts: dict[str, float], deadline: float, settings: _Settings
) -> IntArray | None:
    """Run CP-SAT, and return the homes of the minimum; None if the search is incomplete or no homes are left."""
    from ortools.sat.python import cp_model

    class SolutionCallback(cp_model.CpSolverSolutionCallback):
        """Offers every solution to the incumbent during the search."""

        def on_solution_callback(self) -> None:
            incumbent.offer(homes(self.boolean_value))
            record_bound(self.best_objective_bound)

    def homes(value: Callable[[Any], bool]) -> IntArray:
        return frozen([[value(variable) for variable in row].index(True) for row in model.at], np.int32)

    def record_bound(bound: float) -> None:
        # The bound does not hold for excluded homes, but these are not better than the incumbent.
        incumbent.raise_bound_of_better(lower_bound(bound, scales.objective))

    model.hint(incumbent.home)
    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.max_time_in_seconds = max(0.0, deadline - time.perf_counter())
    parameters.num_workers = settings.threads
    parameters.random_seed = settings.seed % 2**31
    parameters.cp_model_presolve = settings.presolve
    parameters.log_search_progress = settings.log
    parameters.relative_gap_limit = 0.0
    parameters.absolute_gap_limit = 0.0
    parameters.linearization_level = 2
    solver.best_bound_callback = record_bound
    status = solver.solve(model.model, SolutionCallback())
    facts["rounds"] = facts.get("rounds", 0.0) + 1
    facts["nodes"] = facts.get("nodes", 0.0) + solver.num_branches
    if status == cp_model.MODEL_INVALID:
        raise ArithmeticError(f"CP-SAT reports an invalid model: {model.model.validate()}")
    if status == cp_model.INFEASIBLE:
        incumbent.raise_bound(incumbent.cost)
        return None
    record_bound(solver.best_objective_bound)
    return homes(solver.boolean_value) if status == cp_model.OPTIMAL else None
