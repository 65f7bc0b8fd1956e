"""Solvers that need a licence: Gurobi, CPLEX, Xpress and COPT, for the models written with PuLP.

They are used where their Python package is installed and are no dependency of this project. PuLP builds the model in
the solver; the options, the status, the lower bound and the values are those of the solver itself, because PuLP reports
some runs as optimal that have reached their time limit.
"""

import contextlib
import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from relocbench.formulations.solvers.availability import SOLVERS
from relocbench.instances.errors import InputError

# The largest seed that all of them accept.
LARGEST_SEED = 2_000_000_000
# The tightest tolerance that each of these solvers accepts, on rows and on the integrality of variables.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Options:
    """What a run sets, in the words of this project.

    Attributes
    ----------
    time_limit
        Seconds.
    threads, seed
        As for every method.
    presolve
        Whether the solver may simplify the model first.
    """

    time_limit: float
    threads: int
    seed: int
    presolve: bool


@dataclass(frozen=True)
class Found:
    """What a solver reports.

    Attributes
    ----------
    optimal
        Whether its search is complete.
    bound
        Its lower bound, without the constant of the objective; ``-inf`` without one.
    values
        The values of the variables, in the order of PuLP's; empty without a solution.
    nodes
        The number of nodes of its search tree.
    """

    optimal: bool
    bound: float
    values: Sequence[float]
    nodes: float


@dataclass(frozen=True)
class LicensedSolver:
    """A solver that needs a licence; :data:`formulations.solvers.availability.SOLVERS` has its module and package.

    Attributes
    ----------
    pulp_name
        The class of PuLP.
    options
        Returns the parameters of the solver, by its own names.
    found
        Reads the result from the solver's own model, given the variables.
    """

    pulp_name: str
    options: Callable[[Options], dict[str, Any]]
    found: Callable[[Any, list[Any]], Found]


def _gurobi_options(o: Options) -> dict[str, Any]:
    return {
        "TimeLimit": o.time_limit,
        "Threads": o.threads,
        "Seed": o.seed,
        "MIPGap": 0.0,
        "MIPGapAbs": 0.0,
        "FeasibilityTol": TOLERANCE,
        "OptimalityTol": TOLERANCE,
        "IntFeasTol": TOLERANCE,
        "Presolve": -1 if o.presolve else 0,
    }


def _gurobi_found(model: Any, variables: list[Any]) -> Found:
    values = [variable.solverVar.X for variable in variables] if model.SolCount else []
    return Found(model.Status == 2, model.ObjBound, values, model.NodeCount)


def _cplex_options(o: Options) -> dict[str, Any]:
    return {
        "timelimit": o.time_limit,
        "threads": o.threads,
        "randomseed": o.seed,
        "mip.tolerances.mipgap": 0.0,
        "mip.tolerances.absmipgap": 0.0,
        "mip.tolerances.integrality": TOLERANCE,
        "simplex.tolerances.feasibility": TOLERANCE,
        "simplex.tolerances.optimality": TOLERANCE,
        "preprocessing.presolve": int(o.presolve),
    }


def _cplex_found(model: Any, variables: list[Any]) -> Found:
    answer = model.solution
    has_values = answer.is_primal_feasible()
    values = answer.get_values([variable.name for variable in variables]) if has_values else []
    bound = answer.MIP.get_best_objective()
    return Found(
        answer.get_status() == answer.status.MIP_optimal, bound, values, answer.progress.get_num_nodes_processed()
    )


def _xpress_options(o: Options) -> dict[str, Any]:
    return {
        "TIMELIMIT": o.time_limit,
        "THREADS": o.threads,
        "RANDOMSEED": o.seed,
        "MIPRELSTOP": 0.0,
        "MIPABSSTOP": 0.0,
        # With its defaults, Xpress prunes nodes that are better than the incumbent by up to 1e-4 of it.
        "MIPADDCUTOFF": 0.0,
        "MIPRELCUTOFF": 0.0,
        "MIPTOL": TOLERANCE,
        "FEASTOL": TOLERANCE,
        "OPTIMALITYTOL": TOLERANCE,
        "PRESOLVE": int(o.presolve),
    }


def _xpress_found(model: Any, variables: list[Any]) -> Found:
    facts = model.attributes
    values = model.getSolution([variable._xprs[1] for variable in variables]) if facts.mipsols else []
    # Before the root is solved, the attribute holds a number that is no bound.
    optimal = int(facts.mipstatus) == 6
    return Found(optimal, facts.bestbound if optimal or facts.nodes > 0 else -math.inf, values, facts.nodes)


def _copt_options(o: Options) -> dict[str, Any]:
    return {
        "TimeLimit": o.time_limit,
        "Threads": o.threads,
        "RelGap": 0.0,
        "AbsGap": 0.0,
        "IntTol": TOLERANCE,
        "FeasTol": TOLERANCE,
        "DualTol": TOLERANCE,
        "Presolve": -1 if o.presolve else 0,
    }


def _copt_found(model: Any, variables: list[Any]) -> Found:
    values = [variable.solverVar.x for variable in variables] if model.hasmipsol else []
    return Found(model.status == 1, model.bestbnd, values, model.nodecnt)


LICENSED_SOLVERS = {
    "gurobi": LicensedSolver("GUROBI", _gurobi_options, _gurobi_found),
    "cplex": LicensedSolver("CPLEX_PY", _cplex_options, _cplex_found),
    "xpress": LicensedSolver("XPRESS_PY", _xpress_options, _xpress_found),
    "copt": LicensedSolver("COPT", _copt_options, _copt_found),
}


@contextlib.contextmanager
def licence_checked(name: str) -> Iterator[None]:
    """Turn the exception of a solver whose licence does not suffice into one line.

    Parameters
    ----------
    name
        The solver.

    Yields
    ------
    None
        To the block that runs the solver.

    Raises
    ------
    InputError
        If the solver has no valid licence, or one for smaller models only.
    """
    try:
        yield
    except Exception as error:
        # Each library has its own exceptions, and says in the message that its licence does not suffice.
        text = " ".join(str(error).split())
        if any(word in text.lower() for word in ("licen", "size-limited", "community", "1016", "maximum is")):
            raise InputError(f"solver {name}", f"its licence does not suffice ({text[:150]})") from error
        raise


def run_licensed(name: str, problem: Any, variables: list[Any], options: Options, start: Any, log: bool) -> Found:
    """Solve a PuLP problem with a licensed solver.

    Parameters
    ----------
    name
        The solver, one of ``LICENSED_SOLVERS``.
    problem
        The PuLP problem.
    variables
        Its variables.
    options
        The settings of the run.
    start
        The values of all variables for a warm start, or None.
    log
        Whether the solver prints its log.

    Returns
    -------
    Found
        What the solver reports.

    Raises
    ------
    InputError
        If the solver has no valid licence, or one for smaller models only.
    ArithmeticError
        If the solver reports that the model has no solution.
    """
    import pulp

    solver = LICENSED_SOLVERS[name]
    importlib.import_module(SOLVERS[name][0])
    if start is not None:
        for variable, value in zip(variables, start, strict=True):
            variable.setInitialValue(float(value), check=False)
    parameters = solver.options(options)
    common = {"msg": log, "warmStart": start is not None}
    make = getattr(pulp, solver.pulp_name)
    threads = {"threads": options.threads} if name == "cplex" else {}  # PuLP would set it to 0 afterwards
    with licence_checked(name):
        if name == "xpress":
            # PuLP converts numbers to integers, 1e-9 to 0; it reads texts as they are.
            interface = make(options=[f"{key}={value}" for key, value in parameters.items()], **common)
            interface.available()  # PuLP imports Xpress here
        else:
            quiet = {"manageEnv": True, "envOptions": {"OutputFlag": int(log)}} if name == "gurobi" else {}
            interface = make(**quiet, **common, **(parameters | threads))
        interface.buildSolverModel(problem)
        interface.callSolver(problem)
        found = solver.found(problem.solverModel, variables)
    if not found.values and found.optimal:
        raise ArithmeticError(f"{name} reports an optimum without a solution")
    return Found(found.optimal, found.bound if abs(found.bound) < 1e15 else -math.inf, found.values, found.nodes)
