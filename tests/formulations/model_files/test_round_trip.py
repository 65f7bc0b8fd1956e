"""Models leave as files, are solved by the solver's own reader in a process without this project, and come back."""

import json
import subprocess
import sys

import pytest

from relocbench.formulations.model_files.export import export_model, translation_of
from relocbench.formulations.model_files.solver_answer import read_answer
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import family
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here
from tests.samples import enumerable_instance

# Each script defines a function that solves one file and writes the answer.
HIGHS = """
import highspy
def solve(model, answer):
    highs = highspy.Highs()
    highs.silent()
    assert highs.readModel(model) == highspy.HighsStatus.kOk
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.run()
    highs.writeSolution(answer, 0)
"""
SCIP = """
import pyscipopt
def solve(model, answer):
    scip = pyscipopt.Model()
    scip.hideOutput()
    scip.readProblem(model)
    scip.optimize()
    scip.writeBestSol(answer)
"""
CBC = """
import subprocess
from pulp.apis.coin_api import pulp_cbc_path
def solve(model, answer):
    subprocess.run([pulp_cbc_path, model, "-ratioGap", "0", "-solve", "-solution", answer], check=True)
"""
CPSAT = """
from google.protobuf import text_format
from ortools.sat import cp_model_pb2
from ortools.sat.python import cp_model
def solve(model, answer):
    binary, proto = model.endswith(".pb"), cp_model_pb2.CpModelProto()
    data = open(model, "rb").read()
    proto.ParseFromString(data) if binary else text_format.Parse(data.decode(), proto)
    read, solver, response = cp_model.CpModel(), cp_model.CpSolver(), cp_model_pb2.CpSolverResponse()
    read.proto.parse_text_format(text_format.MessageToString(proto))
    solver.parameters.num_workers = 1
    solver.parameters.presolve_inclusion_work_limit = 0
    solver.solve(read)
    text = str(solver.response_proto)
    text_format.Parse(text, response)
    open(answer, "wb").write(response.SerializeToString() if binary else text.encode())
"""
TOULBAR2 = """
import pytoulbar2
def solve(model, answer):
    network = pytoulbar2.CFN(verbose=-1)
    network.Read(model)
    _, cost, _ = network.Solve(showSolutions=3, writeSolution=answer)
    print("minimum", int(cost), flush=True)
"""
SOLVERS = {
    "highs": ("highspy", HIGHS),
    "scip": ("pyscipopt", SCIP),
    "cbc": ("pulp", CBC),
    "cpsat": ("ortools", CPSAT),
    "toulbar2": ("pytoulbar2", TOULBAR2),
}
INSTANCES = [
    family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(0),
    family("tiny").cells({"regime": "overloaded", "shape": "near-cloud"})[0].build(1),
    enumerable_instance(10, most=100, least_servers=2),
    enumerable_instance(9, most=100, least_servers=2),
    enumerable_instance(22, most=100, least_servers=2),
]
CASES = [
    ("milp-strong", "model.mps", "highs"),
    ("milp-strong", "model.lp", "scip"),
    ("milp-strong[condition=together]", "model.mps", "cbc"),
    ("milp-basic", "model.lp", "highs"),
    ("milp-basic", "model.mps", "scip"),
    ("milp-basic", "model.lp", "cbc"),
    ("pyomo-gdp", "model.lp", "highs"),
    ("pyomo-gdp[transform=hull]", "model.nl", "scip"),
    ("pyomo-direct", "model.nl", "scip"),
    ("cpsat", "model.pb", "cpsat"),
    ("cpsat", "model.pbtxt", "cpsat"),
]


def answers_of(folder, instances, text, name, solver):
    """Export models, and solve the files in a folder and a process that know nothing of this project."""
    module, script = SOLVERS[solver]
    pytest.importorskip(module)
    selector = parse_selector(text)
    method, settings = selector.method.name, selector.settings
    # pytoulbar2 crashes if the name of the answer begins with a digit, which its option for a format does.
    names = [f"n{number}-{name}" for number in range(len(instances))]
    made = [export_model(one, method, settings, folder / file) for one, file in zip(instances, names, strict=True)]
    end = "import sys\nassert 'relocbench' not in sys.modules\nfor name in sys.argv[1:]: solve(name, name + '.sol')\n"
    (folder / "solve.py").write_text(f"{script}{end}")
    output = ""
    for part in [[one] for one in names] if solver == "toulbar2" else [names]:  # toulbar2 has global state
        call = [sys.executable, "-I", "-W", "ignore", "solve.py", *part]
        done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        output += done.stdout
    answers = [
        read_answer(folder / f"{file}.sol", one, method, settings) for one, file in zip(instances, names, strict=True)
    ]
    return answers, [one.translation for one in made], output


def best_of(instance):
    return solve_here(instance, "enumerate").evaluation.objective


@pytest.mark.parametrize(("text", "name", "solver"), CASES)
def test_a_solver_finds_the_optimum_from_the_file_alone(tmp_path, text, name, solver):
    instances = INSTANCES[:3] if name.endswith(".nl") else INSTANCES  # SCIP takes seconds for one of the others
    answers, translations, _ = answers_of(tmp_path, instances, text, name, solver)
    for instance, answer, translation in zip(instances, answers, translations, strict=True):
        best = best_of(instance)
        assert evaluate(instance, answer.home).objective == pytest.approx(best, rel=1e-5)
        claimed = translation.to_ms(answer.objective)
        assert claimed == pytest.approx(best, rel=1e-5)
        assert translation.agrees(claimed, best)
        assert not translation.agrees(claimed * 1.01, best)
        assert translation == translation_of(instance, parse_selector(text).method.name)


@pytest.mark.parametrize("name", ["model.cfn", "model.wcsp"])
def test_the_minimum_of_a_network_is_a_lower_bound_and_exact_where_capacities_do_not_bind(tmp_path, name):
    loose = family("tiny").cells({"regime": "loose", "shape": "plain"})[0].build(0)
    instances = [loose, *INSTANCES]
    answers, translations, output = answers_of(tmp_path, instances, "cfn[levels=6]", name, "toulbar2")
    minima = [int(line.split()[1]) for line in output.splitlines() if line.startswith("minimum")]
    for instance, answer, translation, minimum in zip(instances, answers, translations, minima, strict=True):
        best = best_of(instance)
        assert translation.to_ms(minimum) <= best * (1 + 1e-9)
        assert evaluate(instance, answer.home).objective >= best * (1 - 1e-9)
        if instance is loose:
            assert translation.to_ms(minimum) == pytest.approx(best, rel=1e-5)
            assert evaluate(instance, answer.home).objective == pytest.approx(best, rel=1e-5)


def test_a_relaxation_is_exported_without_integers(tmp_path):
    export_model(INSTANCES[0], "milp-strong", {"relax": True}, tmp_path / "m.mps")
    export_model(INSTANCES[0], "milp-strong", {"relax": True}, tmp_path / "m.lp")
    assert "INTORG" not in (tmp_path / "m.mps").read_text()
    assert "Binaries" not in (tmp_path / "m.lp").read_text()
    export_model(INSTANCES[0], "milp-strong", {}, tmp_path / "m.mps")
    assert "INTORG" in (tmp_path / "m.mps").read_text()


def test_the_side_file_and_the_comment_state_the_translation(tmp_path):
    instance = INSTANCES[0]
    made = export_model(instance, "milp-basic", {}, tmp_path / "m.mps")
    side = json.loads((tmp_path / "m.mps.json").read_text())
    assert side["format"] == "relocbench-model/1"
    assert (side["instance"], side["unit_ms"], side["relaxation"]) == (instance.hash, made.translation.unit_ms, False)
    comments = [line for line in (tmp_path / "m.mps").read_text().splitlines() if line.startswith("*")]
    assert any(instance.hash in line for line in comments)
    assert any(repr(made.translation.unit_ms) in line for line in comments)
