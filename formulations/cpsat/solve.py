"""Constraint programming on whole numbers, by CP-SAT."""

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

# How often the first scale is tried again before a finer one is.
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
    """Solve the model of :mod:`formulations.cpsat.model`, whose minimum is a lower bound, and cost its homes.

    Where rounding keeps the bound from meeting the cost, the model learns the exact shares of the homes found, and the
    search goes on without those homes; after some rounds with the finest scale that 64 bits allow.

    Parameters
    ----------
    threads
        Workers of CP-SAT; with more than one, equal seeds may give different homes of the same cost.
    presolve
        Whether CP-SAT simplifies the model first.
    conditioned
        Whether the capacities are also stated for each client (stronger bounds, a larger model).
    """
    require("method cpsat", "ortools")
    incumbent = Incumbent(instance, start, on_progress)
    deadline = incumbent.begin + time_limit
    linear = linearise(instance)
    settings = _Settings(seed, threads, presolve, log)
    facts: dict[str, float] = {}
    known: list[IntArray] = []
    for error, rounds in ((slack(linear.least_distance_cost) / 2, ROUNDS), (0.0, math.inf)):
        scales = choose_scales(linear, incumbent.cost, error)
        try:
            model = build(linear, scales, upper_limit(incumbent.cutoff, scales.objective), conditioned, deadline)
        except OutOfTimeError:
            break
        facts |= model.facts
        for home in known:
            model.learn(home, evaluate(instance, home).theta)
        while len(known) < rounds:
            found = _run(model, scales, incumbent, facts, deadline, settings)
            if found is None or incumbent.proved:
                return incumbent.solution(False, facts)
            model.learn(found, evaluate(instance, found).theta)
            known.append(found)
    return incumbent.solution(False, facts)


@dataclass(frozen=True)
class _Settings:
    seed: int
    threads: int
    presolve: bool
    log: bool


def _run(
    model: Model, scales: Scales, incumbent: Incumbent, facts: dict[str, float], deadline: float, settings: _Settings
) -> IntArray | None:
    """Let CP-SAT minimise, and return the homes of the minimum if it says that it is one."""
    from ortools.sat.python import cp_model

    class Follow(cp_model.CpSolverSolutionCallback):
        """Costs what is found while the search goes on."""

        def on_solution_callback(self) -> None:
            incumbent.offer(homes(self.boolean_value))
            follow_bound(self.best_objective_bound)

    def homes(value: Callable[[Any], bool]) -> IntArray:
        return frozen([[value(variable) for variable in row].index(True) for row in model.at], np.int32)

    def follow_bound(bound: float) -> None:
        # Homes that were excluded are no better than the best.
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
    solver.best_bound_callback = follow_bound
    status = solver.solve(model.model, Follow())
    facts["rounds"] = facts.get("rounds", 0.0) + 1
    facts["nodes"] = facts.get("nodes", 0.0) + solver.num_branches
    if status == cp_model.MODEL_INVALID:
        raise ArithmeticError(f"CP-SAT refuses the model: {model.model.validate()}")
    if status == cp_model.INFEASIBLE:
        incumbent.raise_bound(incumbent.cost)
        return None
    follow_bound(solver.best_objective_bound)
    return homes(solver.boolean_value) if status == cp_model.OPTIMAL else None
