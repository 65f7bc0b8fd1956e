"""What the Pyomo models share: the clock, the hand-over to SCIP or HiGHS, and what the solver says afterwards.

Pyomo translates a model into the solver's own object (by its interfaces ``scip_persistent`` and ``highs``). That object
is then set and run here rather than by Pyomo's ``solve``, which has no callbacks, cannot start HiGHS from homes, does
not count its translation in the time limit, and swallows all that the process prints while a solver runs.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.formulations.incumbent import Incumbent, OutOfTimeError
from relocbench.formulations.linearisation import Linearisation, linearise
from relocbench.instances.evaluation import evaluate
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.solution import Solution

# SCIP tries its LPs again at a thousandth of its tolerance; below 1e-10 SoPlex complains, on stderr, and stays there.
SCIP_FEASIBILITY = 1e-7
HIGHS_FEASIBILITY = 1e-9
MOST_SEED = 2**31 - 1
# The clock is looked at every so many rows (some hundredths of a second).
ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class Settings:
    """How a solver is to run.

    Attributes
    ----------
    seed, time_limit
        As every method takes them; the time includes building the model.
    threads
        Threads of the solver.
    presolve
        Whether the solver may simplify the model first.
    log
        Whether it prints what it does.
    """

    seed: int
    time_limit: float
    threads: int
    presolve: bool
    log: bool


# Builds a Pyomo model with binaries ``x[m,l]`` and the objective ``cost``. It calls its second argument now and then,
# which raises when time is up.
Build = Callable[[Linearisation, Callable[[], None]], Any]
Run = Callable[[Any, Incumbent, Settings, bool], tuple[bool, dict[str, float]]]


def solve_model(build: Build, run: Run, incumbent: Incumbent, settings: Settings, *, started: bool) -> Solution:
    """Build a model and run a solver on it.

    Parameters
    ----------
    build
        Builds the model.
    run
        :func:`run_scip` or :func:`run_highs`.
    incumbent
        Takes what is found and shown.
    settings
        For the solver.
    started
        Whether the homes in the incumbent are a start that was given, hence a cut-off.
    """

    def check() -> None:
        _remaining(incumbent, settings)

    try:
        finished, facts = run(build(linearise(incumbent.instance), check), incumbent, settings, started)
    except OutOfTimeError:
        return incumbent.solution(False)
    return incumbent.solution(finished, facts)


def _remaining(incumbent: Incumbent, settings: Settings) -> float:
    left = settings.time_limit - incumbent.seconds
    if left <= 0:
        raise OutOfTimeError
    return left


def load_units(capacity: FloatArray, loads: FloatArray) -> list[float]:
    """Return for each server the unit in which to write a row ``θ·load ≤ capacity``.

    A solver's tolerance is absolute. Where the row limits ``θ``, the load is above the capacity and at least the least
    one there is, hence at least 1 in this unit: the tolerance is then one on ``θ``.
    """
    return np.maximum(capacity, loads[loads > 0].min(initial=np.inf)).tolist()  # type: ignore[no-any-return]


def limits_at(coefficients: Linearisation, incumbent: Incumbent) -> list[str]:
    """Return what limits each ``θ`` in the incumbent: ``whole`` (nothing), ``stored`` or ``computed``."""
    evaluation = evaluate(incumbent.instance, incumbent.home)
    by_storage = (
        coefficients.storage_capacity * evaluation.compute_load
        <= coefficients.compute_capacity * evaluation.storage_load
    )
    return [
        "whole" if theta == 1 else "stored" if stored else "computed"
        for theta, stored in zip(evaluation.theta, by_storage, strict=True)
    ]


class _Listener:
    """Hands what a solver finds to the incumbent, from inside its callbacks.

    An exception may not pass through a solver written in C: it is kept, the solver is stopped, and it is raised later.
    """

    def __init__(self, incumbent: Incumbent) -> None:
        self.incumbent = incumbent
        self.error: BaseException | None = None

    def hear(self, bound: float, shares: Callable[[], Any] | None = None) -> bool:
        """Take note of a bound and perhaps of an assignment; tell whether the solver may go on."""
        if self.error is None:
            try:
                if shares is not None:
                    self.incumbent.offer_shares(shares())
                self.incumbent.raise_bound(bound)
            except BaseException as error:
                self.error = error
        return self.error is None

    def raise_error(self) -> None:
        """Raise what went wrong, if something did."""
        if self.error is not None:
            raise self.error


def run_scip(model: Any, incumbent: Incumbent, settings: Settings, started: bool) -> tuple[bool, dict[str, float]]:
    """Run SCIP; tell whether it finished, and how large its model and its tree were.

    A start must be in the values of all the model's variables; it is handed over whole and limits the objective. SCIP
    has one thread of its own: ``threads`` goes to its LP solver.
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

    # PySCIPOpt multiplies all products out, which may take minutes.
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
            # SCIP 10 presolves some models with a near cloud into wrong ones, or calls them infeasible.
            "constraints/nonlinear/maxprerounds": 0,
            "randomization/randomseedshift": settings.seed % MOST_SEED,
        }
    )
    if started:
        scip.setObjlimit(incumbent.cutoff)
        solution = scip.createSol()
        for ours, theirs in variables.items():
            scip.setSolVal(solution, theirs, value(ours))
        scip.setSolVal(solution, interface._obj_var, value(model.cost))
        scip.addSol(solution)

    listener = _Listener(incumbent)

    def bound() -> float:
        claimed: float = scip.getDualbound()
        return math.nan if scip.isInfinity(abs(claimed)) else claimed

    def shares() -> list[list[float]]:
        best = scip.getBestSol()
        return [[scip.getSolVal(best, variable) for variable in row] for row in x]

    def heard(scip: Any, event: Any) -> None:
        found = event.getType() == PY_SCIP_EVENTTYPE.BESTSOLFOUND
        if not listener.hear(bound(), shares if found else None):
            scip.interruptSolve()

    # SCIP 9 has no event for a better bound.
    bound_event = getattr(PY_SCIP_EVENTTYPE, "DUALBOUNDIMPROVED", PY_SCIP_EVENTTYPE.NODESOLVED)
    scip.attachEventHandlerCallback(heard, [PY_SCIP_EVENTTYPE.BESTSOLFOUND, bound_event])
    scip.setParam("limits/time", _remaining(incumbent, settings))
    scip.optimizeNogil()
    listener.raise_error()

    if scip.getStatus() == "infeasible":  # the cut-off is above the cost of the start, so there is something below it
        raise ArithmeticError("SCIP calls a model infeasible that every assignment satisfies")
    if scip.getNSols():
        incumbent.offer_shares(shares())
    incumbent.raise_bound(bound())
    facts = {
        "variables": float(scip.getNVars(transformed=False)),
        "constraints": float(scip.getNConss(transformed=False)),
        "binaries": float(sum(variable.is_binary() for variable in variables)),
        "nodes": float(scip.getNTotalNodes()),
    }
    root = scip.getDualboundRoot()
    if not scip.isInfinity(abs(root)):
        facts["root_bound"] = float(root)
    return scip.getStatus() == "optimal", facts


def run_highs(model: Any, incumbent: Incumbent, settings: Settings, started: bool) -> tuple[bool, dict[str, float]]:
    """Run HiGHS; tell whether it finished, and how large its model and its tree were.

    A start must be in the values of the model's binaries; HiGHS completes it, and its cost is then the cut-off.
    """
    import highspy
    from pyomo.contrib.solver.common.factory import SolverFactory

    interface = SolverFactory("highs")
    add_constraints = interface.add_constraints

    def add_in_time(constraints: list[Any]) -> None:
        for first in range(0, len(constraints), ROWS_AT_ONCE):
            _remaining(incumbent, settings)
            add_constraints(constraints[first : first + ROWS_AT_ONCE])

    interface.add_constraints = add_in_time
    interface.set_instance(model)
    highs, column = interface._solver_model, interface._pyomo_var_to_solver_var_map
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

    listener = _Listener(incumbent)
    root_bound = -math.inf

    def improved(event: Any) -> None:
        solution = event.data_out.mip_solution
        listener.hear(event.data_out.mip_dual_bound, lambda: np.asarray(solution)[x])

    def looked(event: Any) -> None:
        nonlocal root_bound
        if event.data_out.mip_node_count <= 1:
            root_bound = event.data_out.mip_dual_bound
        event.interrupt(not listener.hear(event.data_out.mip_dual_bound))

    highs.cbMipImprovingSolution += improved
    highs.cbMipInterrupt += looked
    # The number of threads is fixed for the process by the first run unless the scheduler is set up anew.
    highs.resetGlobalScheduler(True)
    highs.setOptionValue("time_limit", _remaining(incumbent, settings))
    highs.run()
    listener.raise_error()

    info = highs.getInfo()
    if info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible:
        incumbent.offer_shares(np.array(highs.getSolution().col_value)[x])
    incumbent.raise_bound(info.mip_dual_bound)
    facts = {
        "variables": float(highs.getNumCol()),
        "constraints": float(highs.getNumRow()),
        "binaries": float(len(binaries)),
        "nodes": float(max(0, info.mip_node_count)),
    }
    if info.mip_node_count <= 1:
        root_bound = info.mip_dual_bound
    if math.isfinite(root_bound):
        facts["root_bound"] = float(root_bound)
    return highs.getModelStatus() == highspy.HighsModelStatus.kOptimal, facts
