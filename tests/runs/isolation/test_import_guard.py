import pytest

from relocbench.instances.errors import InputError
from relocbench.runs.isolation.import_guard import importing, refuse_during_import
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import solve
from tests.instances.files.bad_files import run_command
from tests.samples import random_instance

PROGRAM = """import relocbench

def f(instance, *, seed, time_limit):
    return relocbench.solve(instance, "nearest", seed=seed).solution.home

instance = relocbench.generate("tiny", seed=0, regime="loose", shape="plain")
"""
REMEDY = 'when it is imported; put the call below `if __name__ == "__main__":`'


@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("relocbench.solve", "relocbench.solve(instance, 'nearest')"),
        ("relocbench.study", "relocbench.study(f, [instance])"),
        ("relocbench.certify", "relocbench.certify(instance)"),
    ],
)
def test_a_call_at_the_top_level_of_an_imported_file_is_refused_with_its_line(tmp_path, function, call):
    (tmp_path / "mine.py").write_text(f"{PROGRAM}\n{call}\n")
    with pytest.raises(InputError) as caught:
        parse_selector(f"{tmp_path}/mine.py:f")
    assert f"mine.py, line 8, calls {function} {REMEDY}" in str(caught.value)


def test_the_command_explains_it_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gate.py").write_text(f"{PROGRAM}\nrelocbench.check(f, instances='tiny-*').assert_passed()\n")
    code, out, err = run_command("check", "--method", "gate.py:f", "--instances", "tiny-*")
    assert (code, out) == (2, "")
    assert err == f"relocbench: method gate.py:f: gate.py, line 8, calls relocbench.check {REMEDY}\n"


def test_a_guarded_call_and_a_call_inside_the_heuristic_are_fine(tmp_path):
    (tmp_path / "mine.py").write_text(f"{PROGRAM}\nif __name__ == '__main__':\n    relocbench.check(f)\n")
    instance = random_instance(0)
    found = solve(instance, f"{tmp_path}/mine.py:f")
    assert found.solution.home.tolist() == solve(instance, "nearest").solution.home.tolist()


def test_nothing_is_refused_outside_of_an_import():
    with importing(), pytest.raises(InputError):
        refuse_during_import("relocbench.solve")
    refuse_during_import("relocbench.solve")
