"""The wheel works in a project that has its own packages named instances, reports, spark and so on."""

import zipfile
from pathlib import Path

import pytest

from tests.wheel import run_in

ROOT = Path(__file__).parent.parent
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark", "reports")
HEURISTIC = """
def mine(instance, *, seed, time_limit):
    return [0] * instance.n_clients
"""
GATE = """
import relocbench
from mine import mine

def test_my_heuristic_is_no_worse_than_it_was():
    assert relocbench.check(mine, baseline="baseline.json", instances="tiny-loose-*")
"""
RIGHT = """
import relocbench

instance: relocbench.Instance = relocbench.generate("preliminary", seed=0, storage=7)
y: float = relocbench.solve(instance, "nearest").evaluation.y
print(y)
"""
WRONG = """
import relocbench

relocbench.no_such_name
relocbench.solve("an instance", "nearest")
y: str = relocbench.evaluate(relocbench.generate("preliminary", storage=7), [0]).y
"""


@pytest.fixture
def project(tmp_path, python):
    """Return a function that runs Python in a user's project, in which every room's name is taken."""
    for room in ROOMS:
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text('raise ImportError("a module of the user\'s project")\n')
    (tmp_path / "mine.py").write_text(HEURISTIC)

    def run(*arguments, code=0):
        done = run_in(tmp_path, python, *arguments)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    run.folder = tmp_path
    return run


def test_the_wheel_puts_one_package_into_site_packages(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"relocbench"}
    for room in ROOMS:
        assert f"relocbench/{room}/__init__.py" in names
        here = {
            path.relative_to(ROOT).as_posix() for path in (ROOT / room).rglob("*.*") if "__pycache__" not in path.parts
        }
        files = {name for name in here if (ROOT / name).is_file()}
        assert files == {name.removeprefix("relocbench/") for name in names if name.startswith(f"relocbench/{room}/")}
    assert "relocbench/py.typed" in names


def test_the_command_works_in_a_project_that_has_packages_of_the_same_names(project):
    project(
        "-m",
        "relocbench",
        "generate",
        "--family",
        "preliminary",
        "--set",
        "storage=7",
        "--seed",
        "0",
        "--out",
        "i.json",
    )
    project("-m", "relocbench", "solve", "i.json", "--method", "mine.py:mine", "--out", "s.json")
    project("-m", "relocbench", "evaluate", "i.json", "s.json", "--json")
    # An exact method runs in a process of its own, which is started in the same folder.
    assert "optimal" in project("-m", "relocbench", "solve", "library:tiny-loose-plain-0", "--method", "cfn")


def test_the_gate_is_a_test_of_such_a_project(project):
    (project.folder / "test_gate.py").write_text(GATE)
    gate = ("-m", "relocbench", "check", "--method", "mine.py:mine", "--instances", "tiny-loose-*", "--seed", "0")
    project(*gate, "--update-baseline", "--baseline", "baseline.json")
    assert "1 passed" in project("-m", "pytest", "-q", "test_gate.py")


def test_the_type_checker_knows_the_public_names(project):
    (project.folder / "right.py").write_text(RIGHT)
    (project.folder / "wrong.py").write_text(WRONG)
    assert float(project("right.py")) > 0
    errors = project("-m", "mypy", "--strict", "right.py", "wrong.py", code=1)
    assert "right.py" not in errors
    for line in (4, 5, 6):
        assert f"wrong.py:{line}: error" in errors


def test_code_shipped_from_an_installed_wheel_is_that_of_the_checkout(project):
    script = "from pathlib import Path; from relocbench.spark.code_shipping import write_archive; "
    project("-c", script + "write_archive(Path('shipped.zip'))")
    from relocbench.spark.code_shipping import write_archive

    write_archive(project.folder / "here.zip")
    with zipfile.ZipFile(project.folder / "shipped.zip") as there, zipfile.ZipFile(project.folder / "here.zip") as here:
        code = [name for name in here.namelist() if name.endswith(".py")]
        assert code == [name for name in there.namelist() if name.endswith(".py")]
        assert all(there.read(name) == here.read(name) for name in code)
