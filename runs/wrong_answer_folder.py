"""A folder about a wrong answer that the authors of a solver can use without this project.

It contains the instance, a model file, a short script that solves the file with the solver's own reader and then fixes
the homes of the other claim, and a text with both claims and the versions.
"""

from collections.abc import Sequence
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from relocbench.formulations.model_files.export import MODELS, export_model
from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import write_instance
from relocbench.runs.methods import Selector

if TYPE_CHECKING:
    from relocbench.runs.run_store import Row

# The solver of each model, and the ending of the model file, where the method has no parameter ``solver``.
DEFAULT_SOLVER = {
    "milp-basic": "highs",
    "milp-strong": "highs",
    "pyomo-gdp": "highs",
    "pyomo-direct": "scip",
    "cpsat": "cpsat",
    "cfn": "toulbar2",
}
ENDINGS = {
    "milp-basic": ".mps",
    "milp-strong": ".mps",
    "pyomo-gdp": ".lp",
    "pyomo-direct": ".nl",
    "cpsat": ".pbtxt",
    "cfn": ".wcsp",
}

_HIGHS = """\
import highspy

def solve(fixed):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.readModel("$model")
    for name, value in {"mip_rel_gap": 0.0, "mip_abs_gap": 0.0, "small_matrix_value": 1e-12, "threads": 1,
                        "mip_feasibility_tolerance": 1e-9, "primal_feasibility_tolerance": 1e-9,
                        "dual_feasibility_tolerance": 1e-9, "random_seed": $seed, "presolve": "$presolve"}.items():
        solver.setOptionValue(name, value)
    for name in fixed:
        solver.changeColBounds(solver.getColByName(name)[1], 1.0, 1.0)
    solver.run()
    return solver.modelStatusToString(solver.getModelStatus()), solver.getInfo().objective_function_value
"""
_SCIP = """\
import pyscipopt

def solve(fixed):
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem("$model")
    solver.setParams({"limits/gap": 0.0, "limits/absgap": 0.0, "randomization/randomseedshift": $seed,
                      "numerics/feastol": $tolerance})
    if "$presolve" == "off":
        solver.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
    for variable in solver.getVars():
        if variable.name in fixed:
            solver.chgVarLb(variable, 1.0)
    solver.optimize()
    return solver.getStatus(), solver.getObjVal() if solver.getNSols() else None
"""
_CBC = """\
import re, subprocess
from pulp.apis.coin_api import pulp_cbc_path  # or the path of any other cbc

def solve(fixed):
    text = open("$model").read()
    bounds = "".join(f" FX BND {name} 1\\n" for name in fixed)
    open("fixed.mps", "w").write(text.replace("ENDATA", bounds + "ENDATA"))
    options = "-ratioGap 0 -allowableGap 0 -increment 1e-9 -integerTolerance 1e-9 -primalTolerance 1e-9 " \\
              "-dualTolerance 1e-9 -randomSeed $next_seed -randomCbcSeed $next_seed -presolve $presolve " \\
              "-preprocess $presolve -solve"
    log = subprocess.run([pulp_cbc_path, "fixed.mps", *options.split()], capture_output=True, text=True).stdout
    return re.search("Result - (.*)", log)[1], float(re.search(r"Objective value: +(\\S+)", log)[1])
"""
_CPSAT = """\
from ortools.sat.python import cp_model

def solve(fixed):
    model, solver = cp_model.CpModel(), cp_model.CpSolver()
    model.proto.parse_text_format(open("$model").read())
    for i, variable in enumerate(model.proto.variables):
        if variable.name.translate(str.maketrans("[,", "__", "]")) in fixed:
            model.add(model.get_int_var_from_proto_index(i) == 1)
    solver.parameters.random_seed = $seed
    solver.parameters.num_workers = 1
    solver.parameters.linearization_level = 2
    solver.parameters.presolve_inclusion_work_limit = 0
    solver.parameters.cp_model_presolve = "$presolve" == "on"
    status = solver.solve(model)
    return solver.status_name(status), solver.objective_value
"""
_TOULBAR2 = """\
import os, pytoulbar2

def solve(fixed):
    reading, writing = os.pipe()
    if os.fork() == 0:  # toulbar2 has global state: one process for each run
        network = pytoulbar2.CFN(verbose=-1, seed=$seed)
        network.Read("$model")
        for m, values in enumerate(fixed):
            for value in set(range(network.CFN.wcsp.getDomainInitSize(m))) - set(values):
                network.Remove(m, value)
        found = network.Solve()
        os.write(writing, str(None if found is None else found[1]).encode())
        os._exit(0)
    os.wait()
    text = os.read(reading, 100).decode()
    return ("no solution below the limit", None) if text == "None" else ("optimal", float(text))
"""
_END = """
known = $known
print("$solver", "from $model:", *solve([]))
print("with the homes of the other claim fixed:", *solve(known))
print("1 unit of the objective is $unit ms. The claims, in units:", $claims)
"""
_SCRIPTS = {"highs": _HIGHS, "scip": _SCIP, "cbc": _CBC, "cpsat": _CPSAT, "toulbar2": _TOULBAR2}


def write_folder(
    folder: Path, instance: Instance, message: str, selectors: Sequence[Selector], rows: "Sequence[Row]"
) -> Path:
    """Write what shows a wrong answer.

    Parameters
    ----------
    folder
        The folder; it is created.
    instance
        A small instance that shows the fault.
    message
        The claims on the original instance.
    selectors
        The method that makes the claim, then the one that refutes it, if it is another one.
    rows
        A run of each of these methods on the small instance.

    Returns
    -------
    Path
        The file of the instance.
    """
    path = folder / "instance.json"
    write_instance(instance, path)
    cheapest = min((row for row in rows if row.objective is not None), key=_cost, default=None)
    lines = [f"# A wrong answer\n\n{message}\n\nOn the instance in this folder ({instance!r}):\n"]
    lines += [f"- {_claim(row)}" for row in rows]
    if cheapest is not None and cheapest.home is not None:
        lines.append(f"\nThe homes {list(cheapest.home)} cost {cheapest.objective!r} ms, computed in rational numbers.")
    written = [_write_model(folder, instance, one, cheapest, rows, lines) for one in selectors]
    if not any(written):
        lines.append("\nNone of these methods has a model in a file; `relocbench solve instance.json` shows the fault.")
    lines.append("\nVersions:\n")
    lines += [f"- {name} {version}" for name, version in rows[0].versions.items() if version is not None]
    with written_whole(folder / "README.md") as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _cost(row: "Row") -> float:
    return float("inf") if row.objective is None else row.objective


def _claim(row: "Row") -> str:
    error = "" if row.error is None else f" ({row.error})"
    costs = f"homes that cost {row.objective!r} ms, bound {row.bound!r}"
    return f"{row.selector}, seed {row.seed}: {row.status}, {costs}{error}"


def _write_model(
    folder: Path,
    instance: Instance,
    selector: Selector,
    cheapest: "Row | None",
    rows: "Sequence[Row]",
    lines: list[str],
) -> bool:
    """Write the model of a method and a script that solves it; return whether the method has a model."""
    name = selector.method.name
    if name not in MODELS:
        return False
    solver = str(selector.settings.get("solver", DEFAULT_SOLVER[name]))
    model = f"model-{name}{ENDINGS[name]}"
    try:
        made = export_model(instance, name, selector.settings, folder / model)
    except InputError as error:
        lines.append(f"\nThe model of {name} could not be written: {error}")
        return False
    if solver not in _SCRIPTS:
        lines.append(
            f"\n`{model}` is the model of {selector}. There is no script for {solver}; its own program reads the file."
        )
        return True
    home = [] if cheapest is None or cheapest.home is None else list(cheapest.home)
    unit = made.translation.unit_ms
    claims = "; ".join(
        f"{row.selector}: homes {_in_units(row.objective, unit)}, bound {_in_units(row.bound, unit)}" for row in rows
    )
    seed = rows[0].seed % (2**31 - 2)
    text = Template(_SCRIPTS[solver] + _END).substitute(
        model=model,
        seed=seed,
        next_seed=seed + 1,
        presolve="on" if selector.settings.get("presolve", True) else "off",
        tolerance=1e-7 if name == "pyomo-direct" else 1e-9,
        known=_fixed(instance, selector, home),
        solver=solver,
        unit=repr(unit),
        claims=repr(claims),
    )
    script = f"reproduce-{name}.py"
    with written_whole(folder / script) as temporary:
        temporary.write_text(text, encoding="utf-8")
    lines.append(
        f"\n`python {script}`, in this folder, solves `{model}` with {solver} alone, and once more with the homes "
        f"above fixed. If the first objective is larger than the second, the solver is wrong; otherwise the fault is "
        "elsewhere."
    )
    return True


def _in_units(value: float | None, unit: float) -> str:
    return "none" if value is None else f"{value / unit:.12g}"


def _fixed(instance: Instance, selector: Selector, home: list[int]) -> str:
    """Return what the script fixes: variables that are 1, or for a network the values that each client may have."""
    if selector.method.name != "cfn":
        return repr([f"x_{m}_{l}" for m, l in enumerate(home)])
    from relocbench.formulations.model_files.export import labels_of

    labels = labels_of(instance, selector.settings)
    return repr([labels.of(l) for l in home])
