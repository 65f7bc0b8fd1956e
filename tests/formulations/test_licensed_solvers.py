"""What can be tested of licensed solvers without them; docs/formulations.md says what was tried with them."""

import importlib.util
import json
import types

import pytest

from relocbench.formulations import milp_basic
from relocbench.formulations.solvers import licensed_solvers
from relocbench.formulations.solvers.availability import SOLVERS, missing_solver
from relocbench.formulations.solvers.licensed_solvers import LICENSED_SOLVERS, Options, run_licensed
from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import family
from relocbench.runs.selectors import parse_selector, require_available
from relocbench.runs.solve import solve_here

OPTIONS = Options(time_limit=12.5, threads=2, seed=7, presolve=False)
INSTALLED = [name for name, (module, _) in SOLVERS.items() if importlib.util.find_spec(module) is not None]


@pytest.mark.parametrize("name", LICENSED_SOLVERS)
def test_time_limit_threads_and_gap_reach_the_solver_under_its_own_names(name):
    options = LICENSED_SOLVERS[name].options(OPTIONS)
    expected = {
        "gurobi": {"TimeLimit": 12.5, "Threads": 2, "Seed": 7, "MIPGap": 0.0, "MIPGapAbs": 0.0, "Presolve": 0},
        "cplex": {"timelimit": 12.5, "threads": 2, "randomseed": 7, "mip.tolerances.mipgap": 0.0},
        "xpress": {"TIMELIMIT": 12.5, "THREADS": 2, "RANDOMSEED": 7, "MIPRELSTOP": 0.0, "MIPRELCUTOFF": 0.0},
        "copt": {"TimeLimit": 12.5, "Threads": 2, "RelGap": 0.0, "AbsGap": 0.0, "Presolve": 0},
    }
    assert expected[name].items() <= options.items()


@pytest.mark.parametrize("name", sorted(set(LICENSED_SOLVERS) - set(INSTALLED)))
def test_an_absent_solver_says_what_to_install(name):
    reason = missing_solver(name)
    assert reason is not None
    assert f"pip install {SOLVERS[name][1]}" in reason
    with pytest.raises(InputError, match=f"solver {name}: .* not installed: pip install"):
        require_available([parse_selector(f"milp-basic[solver={name}]")])


@pytest.mark.parametrize("name", sorted(set(LICENSED_SOLVERS) & set(INSTALLED)))
def test_an_installed_solver_finds_the_optimum(name):
    instance = family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(0)
    best = solve_here(instance, "enumerate").objective
    texts = [f"milp-basic[solver={name}]", f"milp-strong[solver={name},start=reloc]"]
    for text in [*texts, *([] if name == "copt" else [f"pyomo-gdp[solver={name}]"])]:
        result = solve_here(instance, text)
        assert result.status == "optimal"
        assert result.objective == pytest.approx(best, rel=1e-6)


def test_the_list_of_methods_names_what_is_missing(run):
    listed = {one["name"]: one for one in json.loads(run("methods", "--json")[1])}
    assert set(listed["milp-strong"]["solvers"]) == set(SOLVERS)
    assert listed["milp-strong"]["solvers"]["gurobi"] == missing_solver("gurobi")
    assert "solvers" not in listed["cpsat"]


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Model too large for size-limited license; visit https://example.org", InputError),
        ("?120 Error: Problem has too many rows and columns. The maximum is 5000", InputError),
        ("CPLEX Error  1016: Community Edition. Problem size limits exceeded.", InputError),
        ("something else", RuntimeError),
    ],
)
def test_a_licence_that_does_not_suffice_is_one_line(monkeypatch, message, error):
    import pulp

    class Interface:
        def __init__(self, **settings):
            pass

        def buildSolverModel(self, problem):  # noqa: N802
            raise RuntimeError(message)

    monkeypatch.setattr(pulp, "COPT", Interface)
    monkeypatch.setattr(licensed_solvers.importlib, "import_module", lambda name: types.ModuleType(name))
    with pytest.raises(error, match="copt: its licence does not suffice" if error is InputError else "something"):
        run_licensed("copt", pulp.LpProblem("p"), [], OPTIONS, None, False)


def test_a_relaxation_needs_a_solver_whose_multipliers_prove_the_bound(monkeypatch):
    instance = family("tiny").cells({"regime": "scarce", "shape": "plain"})[0].build(0)
    monkeypatch.setattr("relocbench.formulations.solvers.pulp_solver.require_solver", lambda name: None)
    with pytest.raises(InputError, match="relax needs highs, scip or cbc"):
        milp_basic.solve(instance, seed=0, time_limit=5.0, solver="gurobi", relax=True)
