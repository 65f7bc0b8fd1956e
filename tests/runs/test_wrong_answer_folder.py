"""A wrong answer leads to a folder whose script shows the true optimum without this project."""

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest

from relocbench.instances.generators.families import family
from relocbench.instances.instance_source import read_instance
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.cross_check import cross_check, document, wrong_answers
from relocbench.runs.methods import Method, Selector
from relocbench.runs.outcome import verified
from relocbench.runs.run_store import Run, row_of
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve_here
from relocbench.runs.sweep import Limits
from relocbench.runs.wrong_answer_folder import write_folder

INSTANCE = family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(0)
LIMITS = Limits(time=20.0)
# (model with its solver, module of the solver)
ENGINES = [
    ("milp-strong", "highspy"),
    ("milp-strong[solver=scip]", "pyscipopt"),
    ("milp-basic[solver=cbc]", "pulp"),
    ("pyomo-direct", "pyscipopt"),
    ("pyomo-gdp", "highspy"),
    ("cpsat", "ortools"),
    ("cfn", "pytoulbar2"),
]


def wrong_solver(name):
    """Return a selector named like a method of ours, whose solver calls the nearest servers optimal."""
    return Selector(Method(name, "", "optimality", "tests.runs.fake_methods:nearest_is_optimal"), {})


def run_script(folder, name):
    """Run a script in a copy of its folder by plain Python, and return the two objectives in ms that it prints."""
    call = [sys.executable, "-I", "-W", "ignore", f"reproduce-{name}.py"]
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    lines = [
        line for line in done.stdout.splitlines() if line.startswith((name_of_solver(done.stdout), "with the homes"))
    ]
    unit = float(done.stdout.split("1 unit of the objective is ")[1].split()[0])
    return [float(line.split()[-1]) * unit for line in lines]


def name_of_solver(text):
    return next(line.split()[0] for line in text.splitlines() if " from model-" in line)


def test_a_wrong_solver_leads_to_a_folder_whose_script_finds_the_true_optimum(tmp_path):
    answer = cross_check([INSTANCE], [parse_selector("enumerate"), wrong_solver("milp-strong")], LIMITS, out=tmp_path)
    [found] = answer.disagreements
    assert found.methods == ("milp-strong", "enumerate")
    folder = Path(found.file).parent
    names = {file.name for file in folder.iterdir()}
    assert names == {"README.md", "instance.json", "model-milp-strong.mps", "model-milp-strong.mps.json",
                     "reproduce-milp-strong.py"}  # fmt: skip
    small = read_instance(found.file)
    best = solve_here(small, "enumerate").evaluation.objective
    text = (folder / "README.md").read_text()
    assert "milp-strong, seed 0: optimal, homes that cost" in text
    assert f"enumerate, seed 0: optimal, homes that cost {best!r}" in text
    assert "- highspy " in text
    pytest.importorskip("highspy")
    assert run_script(folder, "milp-strong") == pytest.approx([best, best], rel=1e-6)


@pytest.mark.parametrize(("text", "module"), ENGINES)
def test_the_script_of_every_solver_needs_only_that_solver(tmp_path, text, module):
    pytest.importorskip(module)
    selector = parse_selector(text)
    best = solve_here(INSTANCE, "enumerate")
    rows = [
        row_of(INSTANCE, Run(INSTANCE.hash, name, 3, 1.0, 1), outcome)
        for name, outcome in (
            (text, outcome_of(nearest_server(INSTANCE))),
            ("enumerate", outcome_of(best.home)),
        )
    ]
    write_folder(tmp_path, INSTANCE, "two claims", [selector, parse_selector("enumerate")], rows)
    name = selector.method.name
    script = (tmp_path / f"reproduce-{name}.py").read_text()
    assert "relocbench" not in script
    assert len(script.splitlines()) <= 30
    objectives = run_script(tmp_path, name)
    assert objectives == pytest.approx([best.objective, best.objective], rel=1e-5)


def outcome_of(home):
    return verified(INSTANCE, status="feasible", home=home, bound=float("-inf"), trace=())


def test_the_script_fixes_homes_and_so_shows_what_they_cost(tmp_path):
    pytest.importorskip("highspy")
    rows = [row_of(INSTANCE, Run(INSTANCE.hash, "a", 0, 1.0, 1), outcome_of(nearest_server(INSTANCE)))]
    write_folder(tmp_path, INSTANCE, "one claim", [parse_selector("milp-strong")], rows)
    expected = [solve_here(INSTANCE, "enumerate").objective, rows[0].objective]
    assert expected[0] < expected[1]
    assert run_script(tmp_path, "milp-strong") == pytest.approx(expected, rel=1e-6)


def test_the_script_is_valid_for_methods_of_any_name(tmp_path):
    pytest.importorskip("highspy")
    text = 'C:\\users\\mine.py:"best"'
    rows = [row_of(INSTANCE, Run(INSTANCE.hash, text, 0, 1.0, 1), outcome_of(nearest_server(INSTANCE)))]
    write_folder(tmp_path, INSTANCE, "one claim", [parse_selector("milp-strong")], rows)
    assert run_script(tmp_path, "milp-strong")[1] == pytest.approx(rows[0].objective, rel=1e-6)


def test_bench_documents_a_claim_that_the_library_refutes(tmp_path):
    entry = family("small").cells({"regime": "scarce", "clients": 10, "servers": 3})[0].build(0)
    row = row_of(entry, Run(entry.hash, "milp-strong", 0, 1.0, 1), verified(
        entry, status="optimal", home=nearest_server(entry), bound=1.0, trace=(),
    ))  # fmt: skip
    lie = dataclasses.replace(row, status="optimal", failure=None, error=None)
    [found] = [one for one in wrong_answers([lie]) if "library" in one.methods]
    made = document(found, entry, {"milp-strong": wrong_solver("milp-strong")}, LIMITS, tmp_path)
    folder = Path(made.file).parent
    assert read_instance(made.file).hash == entry.hash
    assert "library, seed 0" in (folder / "README.md").read_text()
    assert (folder / "reproduce-milp-strong.py").exists()
