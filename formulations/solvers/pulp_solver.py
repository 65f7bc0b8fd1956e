"""The solvers of the linear models written with PuLP: HiGHS, SCIP, the CBC that comes with PuLP, and licensed ones.

PuLP only holds the model. Its own interfaces to the solvers have no callbacks, and have reported runs as optimal that
had reached their time limit. This module therefore calls the free solvers directly; for licensed ones see
:mod:`formulations.solvers.licensed_solvers`.
"""

import contextlib
import functools
import importlib
import math
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from relocbench.formulations.incumbent import Incumbent
from relocbench.formulations.linearisation import Linearisation
from relocbench.formulations.scaling import Negligible
from relocbench.formulations.solvers import licensed_solvers
from relocbench.formulations.solvers.availability import require_solver
from relocbench.formulations.solvers.licensed_solvers import LICENSED_SOLVERS, Options, run_licensed
from relocbench.formulations.solvers.pulp_model import Arrays, LinearModel
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.solution import Solution

# The tightest feasibility tolerance that all three solvers accept.
TOLERANCE = 1e-9
# The tolerances of a solver change the objective by at most about this share of the magnitude of a scaled model. CBC
# computes with a coarser tolerance than the one that is set.
ERROR = {"highs": TOLERANCE, "scip": TOLERANCE, "cbc": 10 * TOLERANCE} | dict.fromkeys(LICENSED_SOLVERS, TOLERANCE)
SolverName = Literal["highs", "cbc", "scip", "gurobi", "cplex", "xpress", "copt"]
# HiGHS removes coefficients below this value, also those that it computes itself. It accepts no smaller one. With its
# default, 10⁻⁹, it has reported a false optimum (tests/formulations/test_extreme_magnitudes.py).
HIGHS_LEAST_COEFFICIENT = 1e-12
# Shares θ below this multiple of the error count as 0, and so do shares that cost less than this, relative to the cost.
LEAST_SHARE = 100.0
NEGLIGIBLE_COST = 1e-7
LARGEST_SEED = 2**31 - 2
# CBC reads its clock only occasionally. It is killed this many seconds after its time limit.
GRACE = 2.0


@dataclass(frozen=True, eq=False)
class Task:
    """A model with the settings of one solver run.

    Attributes
    ----------
    model, arrays
        The model, in PuLP and as arrays.
    incumbent
        Receives the assignments and lower bounds.
    seed
        The seed of the solver.
    deadline
        The time limit, in seconds of the clock of the incumbent.
    warm
        The values of all variables for a warm start, or None.
    threads
        The number of threads of the solver.
    presolve
        Whether the solver may simplify the model first.
    relax
        Whether to solve only the linear relaxation.
    log
        Whether the solver prints its log.
    facts
        Receives the size of the search tree and the lower bound of the root node.
    """

    model: LinearModel
    arrays: Arrays
    incumbent: Incumbent
    seed: int
    deadline: float
    warm: FloatArray | None
    threads: int
    presolve: bool
    relax: bool
    log: bool
    facts: dict[str, float]

    @property
    def left(self) -> float:
        """The seconds until the time limit."""
        return self.deadline - self.incumbent.seconds

    def offer(self, values: npt.ArrayLike) -> None:
        """Offer the homes in the values of a solver to the incumbent.

        Parameters
        ----------
        values
            The values of the variables; at least those of ``x``, which come first.
        """
        shape = self.incumbent.instance.n_clients, self.incumbent.instance.n_servers
        self.incumbent.offer_shares(np.asarray(values)[: shape[0] * shape[1]].reshape(shape))

    def offer_relaxation(self, values: Sequence[float], multipliers: npt.ArrayLike) -> None:
        """Offer the rounded homes and the lower bound of a linear relaxation to the incumbent.

        The lower bound is computed from the multipliers. Solvers differ in their sign convention; any multipliers prove
        a valid bound, so both signs are tried.

        Parameters
        ----------
        values
            The values of the variables, or an empty list.
        multipliers
            The dual variable of each row, or an empty list.
        """
        if len(values):
            self.offer(values)
        y = np.asarray(multipliers, np.float64)
        if len(y):
            bound = max(self.arrays.dual_bound(y), self.arrays.dual_bound(-y))
            self.incumbent.raise_model_bound(bound)
            self.record_root(bound)

    def record_root(self, bound: float) -> None:
        """Record the lower bound of the root node.

        Parameters
        ----------
        bound
            The lower bound in units of the scaled model. It is ignored if it is not finite.
        """
        if math.isfinite(bound) and self.incumbent.model is not None:
            self.facts["root_bound"] = self.incumbent.model.to_cost(bound)


def run(
    build: Callable[[Linearisation], LinearModel],
    incumbent: Incumbent,
    solver: SolverName,
    seed: int,
    time_limit: float,
    started: bool,
    threads: int,
    presolve: bool,
    relax: bool,
    log: bool,
) -> Solution:
    """Build a model and solve it.

    Parameters
    ----------
    build
        Builds the model from its coefficients.
    incumbent
        Receives the assignments and lower bounds. Its clock includes the time for building the model.
    solver
        The name of the solver.
    seed, time_limit, threads, presolve, log
        The settings of the solver.
    started
        Whether the incumbent is a warm start given by the user, which is then passed to the solver.
    relax
        Whether to solve only the linear relaxation. Its lower bound is computed from the multipliers of the solver, so
        that it does not depend on the tolerances of the solver.

    Returns
    -------
    Solution
        The best homes found and the lower bound.

    Raises
    ------
    InputError
        If the solver is not installed, or cannot solve a relaxation with a bound of its own multipliers.
    """
    require_solver(solver)
    if relax and solver in LICENSED_SOLVERS:
        raise InputError(f"solver {solver}", "relax needs highs, scip or cbc, whose multipliers prove the bound")
    finished, facts = False, dict[str, float]()
    for scaled in incumbent.scaled_models(Negligible(NEGLIGIBLE_COST, LEAST_SHARE * ERROR[solver])):
        began = incumbent.seconds
        model = build(scaled.linear)
        arrays = Arrays.of(model)
        facts |= {
            "variables": float(len(arrays.cost)),
            "binaries": float(arrays.integral.sum()),
            "constraints": float(len(arrays.low)),
            "build_seconds": facts.get("build_seconds", 0.0) + incumbent.seconds - began,
        }
        if not relax:
            incumbent.error = scaled.to_cost(ERROR[solver] * scaled.magnitude)
            incumbent.check_coefficients(arrays.value, ERROR[solver])
        home = incumbent.home
        values = model.values(home, evaluate(incumbent.instance, home).theta) if started else None
        task = Task(
            model, arrays, incumbent, seed % LARGEST_SEED, time_limit, values, threads, presolve, relax, log, facts
        )
        try:
            licensed = functools.partial(_run_licensed, solver)
            run_task = {"highs": _run_highs, "cbc": _run_cbc, "scip": _run_scip}.get(solver, licensed)
            finished = task.left > 0 and run_task(task)
        except ArithmeticError:
            if incumbent.supported:
                raise
            return incumbent.solution(False, facts, unfinished="feasible")
        if not finished:
            break
    return incumbent.solution(finished, facts)


def loaded_highs(
    arrays: Arrays, *, log: bool, seed: int, threads: int = 1, presolve: bool = True, relax: bool = False
) -> Any:
    """Give a model to HiGHS, with the tolerances of this project.

    Parameters
    ----------
    arrays
        The model.
    log
        Whether the solver prints its log.
    seed, threads, presolve
        Options of the solver.
    relax
        Whether all variables are continuous.

    Returns
    -------
    highspy.Highs
        The solver, which has not run yet.
    """
    import highspy

    highs = highspy.Highs()
    highs.resetGlobalScheduler(True)  # otherwise the number of threads of an earlier run in this process applies
    options = {
        "output_flag": log,
        "threads": threads,
        "presolve": "on" if presolve else "off",
        "random_seed": seed,
        "mip_rel_gap": 0.0,
        "mip_abs_gap": 0.0,
        "mip_feasibility_tolerance": TOLERANCE,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
        "small_matrix_value": HIGHS_LEAST_COEFFICIENT,
    }
    for name, value in options.items():
        highs.setOptionValue(name, value)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.offset_ = len(arrays.cost), len(arrays.low), arrays.offset
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = arrays.cost, np.zeros(lp.num_col_), np.ones(lp.num_col_)
    lp.row_lower_, lp.row_upper_ = arrays.low, arrays.high
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = arrays.start, arrays.index, arrays.value
    if not relax:
        kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
        lp.integrality_ = [kinds[integral] for integral in arrays.integral.astype(int)]
    highs.passModel(lp)
    return highs


def _run_highs(task: Task) -> bool:
    import highspy

    incumbent, facts = task.incumbent, task.facts
    highs = loaded_highs(
        task.arrays, log=task.log, seed=task.seed, threads=task.threads, presolve=task.presolve, relax=task.relax
    )
    if task.warm is not None and not task.relax:
        highs.setSolution(len(task.warm), np.arange(len(task.warm), dtype=np.int32), task.warm)

    stop = threading.Event()

    def on_solution(event: Any) -> None:
        task.offer(event.data_out.mip_solution)

    def on_check(event: Any) -> None:
        event.data_in.user_interrupt = stop.is_set()
        bound = event.data_out.mip_dual_bound
        incumbent.raise_model_bound(bound)
        if event.data_out.mip_node_count <= 1:
            task.record_root(bound)

    def on_simplex(event: Any) -> None:
        event.data_in.user_interrupt = stop.is_set()

    highs.cbMipImprovingSolution += on_solution
    highs.cbMipInterrupt += on_check  # the logging callback would be called only if the log is on
    highs.cbSimplexInterrupt += on_simplex
    highs.setOptionValue("time_limit", max(task.left, 1e-3))
    in_a_thread(highs.run, stop.set)
    status, info = highs.getModelStatus(), highs.getInfo()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        raise ArithmeticError("HiGHS reports that the model is infeasible, but every assignment is feasible")
    found = highs.getSolution()
    if task.relax:
        task.offer_relaxation(found.col_value if found.value_valid else [], found.row_dual if found.dual_valid else [])
        return False
    facts["nodes"] = float(max(info.mip_node_count, 0))
    if found.value_valid:
        task.offer(found.col_value)
    incumbent.raise_model_bound(info.mip_dual_bound)
    if facts["nodes"] <= 1:
        task.record_root(info.mip_dual_bound)
    return bool(status == highspy.HighsModelStatus.kOptimal)


def _run_scip(task: Task) -> bool:
    pyscipopt: Any = importlib.import_module("pyscipopt")  # its type stubs are incomplete
    arrays, incumbent, facts = task.arrays, task.incumbent, task.facts
    scip = pyscipopt.Model()
    scip.hideOutput(not task.log)
    parameters = {
        "lp/threads": task.threads,
        "randomization/randomseedshift": task.seed,
        "limits/gap": 0.0,
        "limits/absgap": 0.0,
        "numerics/feastol": TOLERANCE,
        "numerics/dualfeastol": TOLERANCE,
        "misc/catchctrlc": False,
    }
    if task.relax:  # propagation and cuts would change the rows, whose multipliers are needed
        parameters |= {"propagating/maxrounds": 0, "propagating/maxroundsroot": 0, "separating/maxroundsroot": 0}
    scip.setParams(parameters)
    if task.relax or not task.presolve:
        scip.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
    kinds = "C" if task.relax else "B"
    columns = [
        scip.addVar(vtype=kinds if integral else "C", lb=0.0, ub=1.0, obj=float(cost))
        for integral, cost in zip(arrays.integral, arrays.cost, strict=True)
    ]
    scip.addObjoffset(arrays.offset)
    rows = []
    for i, (low, high) in enumerate(zip(arrays.low, arrays.high, strict=True)):
        part = slice(arrays.start[i], arrays.start[i + 1])
        total = pyscipopt.quicksum(
            coefficient * columns[j]
            for j, coefficient in zip(arrays.index[part].tolist(), arrays.value[part].tolist(), strict=True)
        )
        if low == high:
            rows.append(scip.addCons(total == float(low)))
        else:
            rows.append(scip.addCons(total <= float(high) if math.isfinite(high) else total >= float(low)))
    if task.warm is not None and not task.relax:
        given = scip.createSol()
        for column, value in zip(columns, task.warm, strict=True):
            scip.setSolVal(given, column, float(value))
        scip.addSol(given)

    decided = columns[: incumbent.instance.n_clients * incumbent.instance.n_servers]

    class ProgressHandler(pyscipopt.Eventhdlr):  # type: ignore[misc]
        watched = pyscipopt.SCIP_EVENTTYPE.BESTSOLFOUND, pyscipopt.SCIP_EVENTTYPE.NODESOLVED

        def eventinit(self) -> None:
            for kind in self.watched:
                self.model.catchEvent(kind, self)

        def eventexit(self) -> None:
            for kind in self.watched:
                self.model.dropEvent(kind, self)

        def eventexec(self, event: Any) -> None:
            if event.getType() == self.watched[0]:
                best = self.model.getBestSol()
                task.offer([self.model.getSolVal(best, column) for column in decided])
            else:
                incumbent.raise_model_bound(_finite(self.model.getDualbound()))

    if not task.relax:
        scip.includeEventhdlr(ProgressHandler(), "progress", "records incumbents and lower bounds")
    if task.left <= 0:
        return False
    scip.setParam("limits/time", task.left)
    in_a_thread(scip.optimizeNogil, scip.interruptSolve)
    status = scip.getStatus()
    if status in ("infeasible", "inforunbd", "unbounded"):
        raise ArithmeticError(f"SCIP reports that the model is {status}, but every assignment is feasible")
    values = []
    if scip.getNSols():
        best = scip.getBestSol()
        values = [scip.getSolVal(best, column) for column in decided]
    if task.relax:
        task.offer_relaxation(values, [scip.getDualsolLinear(row) for row in rows] if status == "optimal" else [])
        return False
    facts["nodes"] = float(scip.getNTotalNodes())
    task.record_root(_finite(scip.getDualboundRoot()))
    if values:
        task.offer(values)
    incumbent.raise_model_bound(_finite(scip.getDualbound()))
    return bool(status == "optimal")


def in_a_thread(solve: Callable[[], object], interrupt: Callable[[], object]) -> None:
    """Run a solver in a separate thread, so that a keyboard interrupt is not raised inside a callback of the solver.

    Parameters
    ----------
    solve
        Runs the solver.
    interrupt
        Asks the solver to stop; called after a keyboard interrupt.
    """
    raised: list[BaseException] = []

    def work() -> None:
        try:
            solve()
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
    except KeyboardInterrupt:
        interrupt()
        worker.join()
        raise
    if raised:
        raise raised[0]


def _finite(bound: float) -> float:
    """Return a lower bound, or -inf if the solver represents it by a very large number."""
    return bound if abs(bound) < 1e15 else -math.inf


def _run_licensed(solver: str, task: Task) -> bool:
    """Run a licensed solver. Its bound and its homes are known only at the end: these interfaces have no callbacks."""
    options = Options(task.left, task.threads, task.seed % licensed_solvers.LARGEST_SEED, task.presolve)
    found = run_licensed(solver, task.model.problem, task.model.columns, options, task.warm, task.log)
    task.facts["nodes"] = float(found.nodes)
    if len(found.values):
        task.offer(found.values)
    if math.isfinite(found.bound):
        task.incumbent.raise_model_bound(found.bound + task.arrays.offset)
    return found.optimal


def _run_cbc(task: Task) -> bool:
    from pulp.apis.coin_api import pulp_cbc_path

    arrays, incumbent, facts = task.arrays, task.incumbent, task.facts
    with tempfile.TemporaryDirectory(prefix="relocbench-") as folder:
        model, solution, given = (os.path.join(folder, name) for name in ("model.mps", "solution.txt", "start.txt"))
        _, column_name, row_name, _ = task.model.problem.writeMPS(model, rename=1)
        columns = [column_name[column.name] for column in task.model.columns]
        options = {
            "timeMode": "elapsed",
            "ratioGap": 0,
            "allowableGap": 0,
            "increment": TOLERANCE,
            "integerTolerance": TOLERANCE,
            "primalTolerance": TOLERANCE,
            "dualTolerance": TOLERANCE,
            "randomSeed": task.seed + 1,  # 0 would mean the time of day
            "randomCbcSeed": task.seed + 1,
            "threads": task.threads if task.threads > 1 else 0,
            "presolve": "on" if task.presolve else "off",
            "preprocess": "on" if task.presolve else "off",
        }
        if task.warm is not None and not task.relax:
            lines = [
                f"{i} {name} {value!r} 0"
                for i, (name, value) in enumerate(zip(columns, task.warm.tolist(), strict=True))
            ]
            with open(given, "w") as file:
                file.write("\n".join(["Stopped on time - objective value 0", *lines, ""]))
            options["mips"] = given
        if task.left <= 0:
            return False
        arguments = [pulp_cbc_path, model, "-sec", f"{task.left:.3f}"]
        arguments += [text for name, value in options.items() for text in (f"-{name}", str(value))]
        arguments += ["-initialSolve" if task.relax else "-solve", "-printingOptions", "all", "-solution", solution]
        output = _run_program(arguments, task.left + GRACE, task.log)
        value, dual = _read_cbc(solution)
    decided = [value.get(name, 0.0) for name in columns]
    if task.relax:
        names = [row_name[name] for name in task.model.problem._constraints]
        task.offer_relaxation(decided if value else [], [dual.get(name, 0.0) for name in names] if dual else [])
        return False
    result = re.search(r"^Result - (.*)$", output, re.MULTILINE)
    outcome = result[1] if result else ""
    if "infeasible" in outcome or "unbounded" in outcome:
        raise ArithmeticError(f"CBC reports '{outcome}', but every assignment is feasible")

    def number(label: str) -> float | None:
        found = re.search(rf"^{label}:\s+(\S+)$", output[result.end() :] if result else "", re.MULTILINE)
        return float(found[1]) if found else None

    facts["nodes"] = number("Enumerated nodes") or 0.0
    if root := re.search(r"^Cbc0013I At root node, .* changed objective from \S+ to (\S+) in", output, re.MULTILINE):
        task.record_root(float(root[1]) + arrays.offset)
    if value and "Objective value" in output:
        task.offer(decided)
    if outcome.startswith("Optimal solution found") and (objective := number("Objective value")) is not None:
        incumbent.raise_model_bound(objective + arrays.offset)
        return True
    if (bound := number("Lower bound")) is not None:
        incumbent.raise_model_bound(_finite(bound) + arrays.offset - 1e-3)  # CBC prints it with three decimals
    return False


def _run_program(arguments: list[str], most_seconds: float, log: bool) -> str:
    """Run a program and return its output. It is killed after ``most_seconds`` or if this function is interrupted."""
    output = []
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        timer = threading.Timer(most_seconds, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                output.append(line)
                if log:
                    print(line, end="", flush=True)
        finally:
            timer.cancel()
            process.kill()
    return "".join(output)


def _read_cbc(path: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return the values and the dual values by name (of rows and columns) from a solution file of CBC."""
    value: dict[str, float] = {}
    dual: dict[str, float] = {}
    with contextlib.suppress(FileNotFoundError), open(path) as file:
        next(file, None)
        for line in file:
            # CBC marks infeasible rows and columns with two stars at the start of the line.
            _, name, *numbers = line.replace("**", "").split()
            value[name], dual[name] = map(float, numbers)
    return value, dual
