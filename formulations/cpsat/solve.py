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
from relocbench.formulations.scaling import ScaledModel
from relocbench.formulations.solvers.availability import require
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, frozen
from relocbench.instances.solution import Progress, Solution

# The number of assignments that are excluded on the first scale before the model is built again on the finest scale.
ROUNDS = 20
# The rounding error of the first scale is small beside this share of the cost of the incumbent.
LEAST_SHARE_OF_COST = 0.1


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
    settings = _Settings(seed, threads, presolve, log)
    facts: dict[str, float] = {}
    for scaled in incumbent.scaled_models():
        if not _solve_scaled(scaled, incumbent, facts, deadline, conditioned, settings):
            break
    return incumbent.solution(False, facts)


def _solve_scaled(
    scaled: ScaledModel,
    incumbent: Incumbent,
    facts: dict[str, float],
    deadline: float,
    conditioned: bool,
    settings: "_Settings",
) -> bool:
    """Solve a scaled model; return whether it is worth to scale it again, because the incumbent is much better."""
    linear, instance = scaled.linear, incumbent.instance
    excluded: list[IntArray] = []
    # The cost of the optimum is not known yet; a better incumbent leads to another scale.
    least = max(linear.least_distance_cost, LEAST_SHARE_OF_COST * scaled.to_model(incumbent.cost))
    for error, rounds in ((slack(least) / 2, ROUNDS), (0.0, math.inf)):
        scales = choose_scales(linear, scaled.to_model(incumbent.cost), error)
        try:
            most = upper_limit(incumbent.model_cutoff, scales.objective)
            model = build(linear, scales, most, conditioned, deadline)
        except OutOfTimeError:
            return False
        facts |= model.facts
        for home in excluded:
            model.exclude(home, evaluate(instance, home).theta)
        while len(excluded) < rounds:
            found = _run(model, scales, incumbent, facts, deadline, settings)
            if found is None or incumbent.proved:
                return False
            if incumbent.cost <= scaled.cost / 2:
                return True
            model.exclude(found, evaluate(instance, found).theta)
            excluded.append(found)
    return False


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
        incumbent.raise_model_bound_of_better(lower_bound(bound, scales.objective))

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
    # This step of the presolve of OR-Tools 9.15 adds up coefficients of Booleans in 32 bits and then removes rows that
    # are not redundant (or-tools issue 5293). Our rows have larger coefficients.
    parameters.presolve_inclusion_work_limit = 0
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
