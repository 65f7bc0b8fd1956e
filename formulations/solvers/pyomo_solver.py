"""How the Pyomo models are solved with SCIP, HiGHS, or a licensed solver.

Pyomo translates a model into the solver's own object, through its interfaces ``scip_persistent`` and ``highs``. This
module then sets the options of that object and runs it. Pyomo's own ``solve`` is not used: it has no callbacks, cannot
pass a warm start to HiGHS, does not include the translation in the time limit, and captures everything that the process
prints while a solver runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.formulations.incumbent import Incumbent, OutOfTimeError
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.scaling import Negligible, ScaledModel
from relocbench.formulations.solvers.licensed_solvers import (
    LARGEST_SEED,
    LICENSED_SOLVERS,
    Options,
    licence_checked,
)
from relocbench.formulations.solvers.pulp_solver import HIGHS_LEAST_COEFFICIENT
from relocbench.instances.evaluation import evaluate
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.solution import Solution

# The feasibility tolerance of SCIP. SCIP repeats difficult LPs at a thousandth of it, and SoPlex prints warnings below
# 1e-10.
SCIP_FEASIBILITY = 1e-7
# The feasibility tolerance of HiGHS.
HIGHS_FEASIBILITY = 1e-9
# The tolerances of HiGHS change the objective by at most about this share of the magnitude of a scaled model.
HIGHS_ERROR = HIGHS_FEASIBILITY
# The same for SCIP, with loads of about the size of the capacities. The tolerance is on a row in which ``θ`` has a
# coefficient of at least 1; on the tiny instances of the tests, a tenth of it is not reached.
SCIP_ERROR = SCIP_FEASIBILITY / 10
# Which shares θ count as 0.
NEGLIGIBLE = Negligible(cost=1e-7, share=1e-7)
# Both solvers take seeds below this value.
MOST_SEED = 2**31 - 1
# The clock is read after this many rows (some hundredths of a second).
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Settings:
    """The settings of a solver run.

    Attributes
    ----------
    seed, time_limit
        As for every method. The time limit includes building the model.
    threads
        The number of threads of the solver.
    presolve
        Whether the solver may simplify the model first.
    log
        Whether the solver prints its log.
    """

    seed: int
    time_limit: float
    threads: int
    presolve: bool
    log: bool


# A function that builds a Pyomo model with binaries ``x[m,l]`` and the objective ``cost``. It calls its second argument
# regularly, which raises OutOfTimeError when the time limit is reached.
Build = Callable[[Linearisation, Callable[[], None]], Any]
# :func:`run_scip` or :func:`run_highs`.
Run = Callable[[Any, Incumbent, Settings, bool], tuple[bool, dict[str, float]]]


def solve_model(
    build: Build,
    run: Run,
    error: Callable[[ScaledModel], float],
    incumbent: Incumbent,
    settings: Settings,
    *,
    started: bool,
) -> Solution:
    """Build a model and solve it.

    Parameters
    ----------
    build
        Builds the model.
    run
        Solves the model: :func:`run_scip` or :func:`run_highs`.
    error
        Returns what the tolerances of the solver can do to a bound, in units of the model.
    incumbent
        Receives the assignments and lower bounds.
    settings
        The settings of the solver.
    started
        Whether the incumbent is a warm start given by the user, which is then passed to the solver.

    Returns
    -------
    Solution
        The best homes found and the lower bound.
    """

    def check() -> None:
        _remaining(incumbent, settings)

    finished, facts = False, dict[str, float]()
    try:
        for scaled in incumbent.scaled_models(NEGLIGIBLE):
            incumbent.error = scaled.to_cost(error(scaled))
            finished = False  # until the solver has returned
            finished, facts = run(build(scaled.linear, check), incumbent, settings, started)
            if not finished:
                break
    except OutOfTimeError:
        pass
    except ArithmeticError:
        if incumbent.supported:
            raise
        return incumbent.solution(False, facts, unfinished="feasible")
    return incumbent.solution(finished, facts)


def _remaining(incumbent: Incumbent, settings: Settings) -> float:
    """Return the seconds until the time limit; raise OutOfTimeError if it is reached."""
    left = settings.time_limit - incumbent.seconds
    if left <= 0:
        raise OutOfTimeError
    return left


def load_units(capacity: FloatArray, loads: FloatArray) -> list[float]:
    """Return the unit in which the row ``θ·load ≤ capacity`` of each server is written.

    The tolerance of a solver is absolute. If the row limits ``θ``, the load exceeds the capacity and is at least the
    smallest single load, so that it is at least 1 in this unit. The tolerance on the row is then a tolerance on ``θ``.

    Parameters
    ----------
    capacity
        The capacity of each server.
    loads
        The single loads: the spools of topics, or the demands of clients.

    Returns
    -------
    list
        One unit per server.
    """
    return np.maximum(capacity, loads[loads > 0].min(initial=np.inf)).tolist()  # type: ignore[no-any-return]


def limits_at(coefficients: Linearisation, incumbent: Incumbent) -> list[str]:
    """Return what limits ``θ`` of each server in the incumbent.

    Parameters
    ----------
    coefficients
        The coefficients of the instance.
    incumbent
        The incumbent.

    Returns
    -------
    list
        ``whole`` (nothing, ``θ = 1``), ``stored`` or ``computed`` for each server.
    """
    evaluation = evaluate(incumbent.instance, incumbent.home)
    by_storage = (
        coefficients.storage_capacity * evaluation.compute_load
        <= coefficients.compute_capacity * evaluation.storage_load
    )
    return [
        "whole" if theta == 1 else "stored" if stored else "computed"
        for theta, stored in zip(evaluation.theta, by_storage, strict=True)
    ]


class _Recorder:
    """Passes assignments and lower bounds from the callbacks of a solver to the incumbent.

    An exception must not propagate through the compiled code of a solver. It is stored, the solver is stopped, and
    the exception is raised after the solver has returned.
    """

    def __init__(self, incumbent: Incumbent) -> None:
        self.incumbent = incumbent
        self.error: BaseException | None = None

    def record(self, bound: float, shares: Callable[[], Any] | None = None) -> bool:
        """Record a lower bound and, if given, an assignment. Return whether the solver may continue."""
        if self.error is None:
            try:
                if shares is not None:
                    self.incumbent.offer_shares(shares())
                self.incumbent.raise_model_bound(bound)
            except BaseException as error:
                self.error = error
        return self.error is None

    def raise_error(self) -> None:
        """Raise the stored exception, if there is one."""
        if self.error is not None:
            raise self.error


def run_scip(model: Any, incumbent: Incumbent, settings: Settings, started: bool) -> tuple[bool, dict[str, float]]:
    """Solve a model with SCIP.

    SCIP itself uses one thread; ``threads`` applies to its LP solver.

    Parameters
    ----------
    model
        The Pyomo model.
    incumbent
        Receives the assignments and lower bounds.
    settings
        The settings of the solver.
    started
        Whether the values of all variables of the model are a warm start. Its cost limits the objective.

    Returns
    -------
    finished, facts
        Whether the search is complete, and the size of the model and of the search tree.

    Raises
    ------
    ArithmeticError
        If SCIP reports that the model is infeasible.
    """
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.environ import value
    from pyscipopt.scip import PY_SCIP_EVENTTYPE, PY_SCIP_PARAMSETTING

    interface = SolverFactory("scip_persistent")
    visitor = interface._expr_visitor
    translate = visitor.exitNode

    def translate_in_time(node: Any, data: Any) -> Any:
        _remaining(incumbent, settings)
        return translate(node, data)

    # PySCIPOpt expands all products, which may take minutes, so the clock is read at every expression.
    visitor.exitNode = translate_in_time
    interface.set_instance(model)
    scip, variables = interface._solver_model, interface._pyomo_var_to_solver_var_map
    x = [
        [variables[model.x[m, l]] for l in range(incumbent.instance.n_servers)]
        for m in range(incumbent.instance.n_clients)
    ]

    scip.hideOutput(not settings.log)
    if not settings.presolve:
        scip.setPresolve(PY_SCIP_PARAMSETTING.OFF)
    scip.setParams(
        {
            "limits/gap": 0.0,
            "limits/absgap": 0.0,
            "lp/threads": settings.threads,
            "misc/catchctrlc": False,
            "numerics/feastol": SCIP_FEASIBILITY,
            "constraints/nonlinear/tightenlpfeastol": False,
            # SCIP 10 transforms some models with a near cloud incorrectly in this presolving step.
            "constraints/nonlinear/maxprerounds": 0,
            "randomization/randomseedshift": settings.seed % MOST_SEED,
        }
    )
    if started:
        scip.setObjlimit(incumbent.model_cutoff)
        solution = scip.createSol()
        for ours, theirs in variables.items():
            scip.setSolVal(solution, theirs, value(ours))
        scip.setSolVal(solution, interface._obj_var, value(model.cost))
        scip.addSol(solution)

    recorder = _Recorder(incumbent)

    def bound() -> float:
        claimed: float = scip.getDualbound()
        return math.nan if scip.isInfinity(abs(claimed)) else claimed

    def shares() -> list[list[float]]:
        best = scip.getBestSol()
        return [[scip.getSolVal(best, variable) for variable in row] for row in x]

    def on_event(scip: Any, event: Any) -> None:
        found = event.getType() == PY_SCIP_EVENTTYPE.BESTSOLFOUND
        if not recorder.record(bound(), shares if found else None):
            scip.interruptSolve()

    # SCIP 9 has no event for an improved lower bound.
    bound_event = getattr(PY_SCIP_EVENTTYPE, "DUALBOUNDIMPROVED", PY_SCIP_EVENTTYPE.NODESOLVED)
    scip.attachEventHandlerCallback(on_event, [PY_SCIP_EVENTTYPE.BESTSOLFOUND, bound_event])
    scip.setParam("limits/time", _remaining(incumbent, settings))
    scip.optimizeNogil()
    recorder.raise_error()

    if scip.getStatus() == "infeasible":
        # Every assignment is feasible, and the cut-off is above the cost of the start.
        raise ArithmeticError("SCIP reports that the model is infeasible, but every assignment is feasible")
    if scip.getNSols():
        incumbent.offer_shares(shares())
    incumbent.raise_model_bound(bound())
    facts = {
        "variables": float(scip.getNVars(transformed=False)),
        "constraints": float(scip.getNConss(transformed=False)),
        "binaries": float(sum(variable.is_binary() for variable in variables)),
        "nodes": float(scip.getNTotalNodes()),
    }
    root = scip.getDualboundRoot()
    if not scip.isInfinity(abs(root)) and incumbent.model is not None:
        facts["root_bound"] = incumbent.model.to_cost(float(root))
    return scip.getStatus() == "optimal", facts


def run_highs(model: Any, incumbent: Incumbent, settings: Settings, started: bool) -> tuple[bool, dict[str, float]]:
    """Solve a model with HiGHS.

    Parameters
    ----------
    model
        The Pyomo model.
    incumbent
        Receives the assignments and lower bounds.
    settings
        The settings of the solver.
    started
        Whether the values of the binaries of the model are a warm start. HiGHS computes the other variables.

    Returns
    -------
    finished, facts
        Whether the search is complete, and the size of the model and of the search tree.
    """
    import highspy
    from pyomo.contrib.solver.common.factory import SolverFactory

    interface = SolverFactory("highs")
    add_constraints = interface.add_constraints

    def add_in_time(constraints: list[Any]) -> None:
        interface._solver_model.setOptionValue("small_matrix_value", HIGHS_LEAST_COEFFICIENT)
        for first in range(0, len(constraints), ROWS_AT_ONCE):
            _remaining(incumbent, settings)
            add_constraints(constraints[first : first + ROWS_AT_ONCE])

    interface.add_constraints = add_in_time
    interface.set_instance(model)
    highs, column = interface._solver_model, interface._pyomo_var_to_solver_var_map
    incumbent.check_coefficients(highs.getLp().a_matrix_.value_, HIGHS_FEASIBILITY)
    x = np.array(
        [
            [column[id(model.x[m, l])] for l in range(incumbent.instance.n_servers)]
            for m in range(incumbent.instance.n_clients)
        ]
    )
    binaries = [variable for variable, *_ in interface._vars.values() if variable.is_binary()]

    options = {
        "output_flag": settings.log,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": HIGHS_FEASIBILITY,
        "primal_feasibility_tolerance": HIGHS_FEASIBILITY,
        "dual_feasibility_tolerance": HIGHS_FEASIBILITY,
        "presolve": "on" if settings.presolve else "off",
        "random_seed": settings.seed % MOST_SEED,
        "threads": settings.threads,
    }
    for name, option in options.items():
        highs.setOptionValue(name, option)
    if started:
        indices = [column[id(variable)] for variable in binaries]
        values = [float(variable.value) for variable in binaries]
        highs.setSolution(len(indices), np.array(indices, np.int32), np.array(values))

    recorder = _Recorder(incumbent)
    root_bound = -math.inf

    def on_solution(event: Any) -> None:
        solution = event.data_out.mip_solution
        recorder.record(event.data_out.mip_dual_bound, lambda: np.asarray(solution)[x])

    def on_check(event: Any) -> None:
        nonlocal root_bound
        if event.data_out.mip_node_count <= 1:
            root_bound = event.data_out.mip_dual_bound
        event.interrupt(not recorder.record(event.data_out.mip_dual_bound))

    highs.cbMipImprovingSolution += on_solution
    highs.cbMipInterrupt += on_check
    # Without this reset the number of threads of the first run in the process applies to all later runs.
    highs.resetGlobalScheduler(True)
    highs.setOptionValue("time_limit", _remaining(incumbent, settings))
    highs.run()
    recorder.raise_error()

    info = highs.getInfo()
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        incumbent.offer_shares(np.array(highs.getSolution().col_value)[x])
    incumbent.raise_model_bound(info.mip_dual_bound)
    facts = {
        "variables": float(highs.getNumCol()),
        "constraints": float(highs.getNumRow()),
        "binaries": float(len(binaries)),
        "nodes": float(max(0, info.mip_node_count)),
    }
    if info.mip_node_count <= 1:
        root_bound = info.mip_dual_bound
    if math.isfinite(root_bound) and incumbent.model is not None:
        facts["root_bound"] = incumbent.model.to_cost(root_bound)
    return highs.getModelStatus() == highspy.HighsModelStatus.kOptimal, facts


def run_licensed(
    name: str, model: Any, incumbent: Incumbent, settings: Settings, started: bool
) -> tuple[bool, dict[str, float]]:
    """Solve a linear Pyomo model with Gurobi, CPLEX or Xpress, through Pyomo's interface to its Python package.

    Parameters
    ----------
    name
        The solver, one of ``LICENSED_SOLVERS`` other than COPT, for which Pyomo has no interface.
    model
        The Pyomo model.
    incumbent
        Receives the assignments and lower bounds.
    settings
        The settings of the solver.
    started
        Whether the values of the model are a warm start. Solvers whose interface takes none ignore it.

    Returns
    -------
    finished, facts
        Whether the search is complete, and the size of the model.
    """
    from pyomo.environ import Binary, Constraint, Var, value
    from pyomo.opt import SolverFactory, TerminationCondition
    from pyomo.repn import generate_standard_repn

    solver = SolverFactory(f"{name}_direct")
    rows = list(model.component_data_objects(Constraint, active=True))
    incumbent.check_coefficients(
        [float(number) for row in rows for number in generate_standard_repn(row.body).linear_coefs], HIGHS_FEASIBILITY
    )
    seed = settings.seed % LARGEST_SEED
    options = Options(_remaining(incumbent, settings), settings.threads, seed, settings.presolve)
    for option, number in LICENSED_SOLVERS[name].options(options).items():
        solver.options[option.replace(".", "_") if name == "cplex" else option] = number
    with licence_checked(name):
        results = solver.solve(model, load_solutions=False, tee=settings.log, warmstart=started)
    finished = results.solver.termination_condition == TerminationCondition.optimal
    if len(results.solution):
        model.solutions.load_from(results)
        shape = incumbent.instance.n_clients, incumbent.instance.n_servers
        incumbent.offer_shares(np.array([[value(model.x[m, l]) for l in range(shape[1])] for m in range(shape[0])]))
    bound = results.problem.lower_bound
    # Before the root is solved, the bound of Xpress is no bound.
    if bound is not None and math.isfinite(bound) and (finished or name != "xpress"):
        incumbent.raise_model_bound(bound)
    facts = {
        "variables": float(model.nvariables()),
        "constraints": float(len(rows)),
        "binaries": float(sum(one.domain is Binary for one in model.component_data_objects(Var))),
    }
    return finished, facts
