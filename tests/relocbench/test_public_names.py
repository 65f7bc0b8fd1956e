"""The names that ``import relocbench`` offers: they resolve, they are typed, and importing them loads nothing heavy."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import relocbench

ROOT = Path(__file__).parents[2]
HEAVY = {
    *("numba", "numpy", "pandas", "plotly", "pyarrow", "pyspark", "scipy", "sklearn"),
    *("highspy", "ortools", "pulp", "pyomo", "pyscipopt", "pytoulbar2"),
}


def test_every_public_name_resolves_and_is_documented():
    assert sorted(relocbench.__all__) == sorted({*relocbench._LAZY, "__version__"})
    assert set(relocbench.__all__) <= set(dir(relocbench))
    for name in relocbench._LAZY:
        assert inspect.getdoc(getattr(relocbench, name)), name
        assert f"``{name}``" in relocbench.__doc__, name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = relocbench.nothing
    with pytest.raises(AttributeError, match=r"relocbench\.read_instance is now relocbench\.read"):
        _ = relocbench.read_instance


def test_the_lazy_imports_are_those_that_mypy_sees():
    tree = ast.parse(Path(relocbench.__file__).read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    seen = {
        alias.asname or alias.name: f"{imported.module}:{alias.name}"
        for imported in block.body
        for alias in imported.names
    }
    assert seen == relocbench._LAZY


@pytest.mark.parametrize(
    "program",
    [
        "import relocbench",
        "import sys; sys.argv = ['relocbench', '--help']\n"
        "from relocbench.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass",
    ],
    ids=["import", "help"],
)
def test_importing_the_package_and_printing_the_help_load_nothing_heavy(program):
    program += f"\nimport sys; print('loaded:', sorted({HEAVY} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "loaded: []"


RIGHT = """
from pathlib import Path

import relocbench
from relocbench import Certified, Evaluation, GateVerdict, InputError, Instance, Library, Result, Rule, Solution, Study

def mine(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    return Solution(relocbench.solve(instance, "nearest", seed=seed).solution.home)

def use(path: Path) -> float:
    try:
        instance: Instance = relocbench.read(path)
    except InputError as error:
        raise SystemExit(f"{error.field}: {error.problem}") from error
    result: Result = relocbench.solve(instance, mine, seed=1, time_limit=2.0)
    cost: Evaluation = relocbench.evaluate(instance, result.solution.home)
    mine_too: Instance = Instance.of(servers=[(0, 0)], clients=[(1, 2)], topics=[[0]], storage=1, compute=1)
    certified: Certified = relocbench.certify(relocbench.generate("paper", seed=3, sigma=10), time_limit=5)
    relocbench.write(certified, path)
    home = relocbench.read_homes(path, relocbench.with_load(instance, 1.1))
    verdict: relocbench.Verdict = relocbench.verify(instance, path)
    study: Study = relocbench.study("nearest,reloc", [instance], seeds=[0], jobs=2)
    gate: GateVerdict = relocbench.check(mine, rule=Rule(effect=0.01))
    gate.assert_passed()
    names: list[str] = Library().names("paper-*")
    assert len(home) == mine_too.n_clients
    return cost.y + result.evaluation.y + float(verdict.bound or 0) + len(study.measurements) + len(names)
"""
# Each line with the kind of error that mypy must report for it.
WRONG = """
import relocbench

instance = relocbench.generate("paper", seed=3, sigma=10)
relocbench.solv(instance, "nearest")  # attr-defined
relocbench.solve("instance", "nearest")  # arg-type
relocbench.solve(instance, "nearest", sed=1)  # call-arg
relocbench.solve(instance, "nearest").cost  # attr-defined
relocbench.evaluate(instance, [0]).objective.real.nothing  # attr-defined
relocbench.verify(instance, "cert.json").proofed  # attr-defined
text: str = relocbench.certify(instance)  # assignment
relocbench.write(5, "five.json")  # arg-type
relocbench.read_instance("inst.json")  # attr-defined
"""


@pytest.mark.slow
def test_mypy_accepts_right_and_rejects_wrong_use_of_the_public_names(tmp_path):
    pytest.importorskip("mypy")
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(RIGHT)
    wrong.write_text(WRONG)
    # With the project's own settings mypy can use the cache of the last check of the project.
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", right, wrong]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    found = re.findall(r"wrong\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    lines = enumerate(WRONG.splitlines(), start=1)
    expected = [(str(number), line.partition("# ")[2]) for number, line in lines if "# " in line]
    assert found == expected, done.stdout + done.stderr
    assert f"Found {len(expected)} errors in 1 file" in done.stdout
