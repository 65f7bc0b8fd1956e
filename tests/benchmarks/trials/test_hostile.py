import ast
import json

import pytest

from benchmarks.trials import hostile, hostile_commands
from benchmarks.trials.commands import Finished
from benchmarks.trials.hostile_commands import COMMANDS, ENTRIES, Scene, case_of, expected_cost, expected_homes
from benchmarks.trials.hostile_methods import HOSTILE, NOISE, HostileMethod
from benchmarks.trials.rational_cost import cost, least_cost

ANSWERING, FAILING = HostileMethod("answering"), HostileMethod("failing", may_answer=False)


def finished(**values):
    return Finished(
        **{"code": 0, "out": "", "err": "", "printed": 0, "hung": False, "left": (), "seconds": 1.0} | values
    )


def judged(command, folder, methods, done):
    return hostile._judged(Scene(folder, methods), done, COMMANDS[command][2])


def test_every_hostile_method_is_a_program_with_a_name_of_its_own():
    assert len({method.name for method in HOSTILE}) == len(HOSTILE) > 80
    for method in HOSTILE:
        names = {node.name for node in ast.parse(method.source()).body if isinstance(node, ast.FunctionDef)}
        assert "method" in names


def test_homes_of_the_first_instance_are_valid_but_have_another_cost_on_the_second():
    first, second = map(expected_homes, ENTRIES)
    assert len(first) == len(second)
    assert max(first) < len(case_of(ENTRIES[1])["servers"]["x"])
    assert cost(case_of(ENTRIES[1]), first) != expected_cost(ENTRIES[1])
    for entry in ENTRIES:
        assert expected_cost(entry) > least_cost(case_of(entry))[0]


@pytest.mark.parametrize(
    ("done", "verdict", "problem"),
    [
        (finished(hung=True), "hung", "did not end"),
        (finished(left=("sleep 1000",)), "wrong", "left processes running: sleep 1000"),
        (finished(code=-9), "crashed", "signal 9"),
        (finished(out=f"{NOISE} "), "wrong", "on the terminal"),
        (finished(code=1, err="Traceback (most recent call last)\nValueError"), "crashed", "ValueError"),
        (finished(code=2, err="one\ntwo\n"), "wrong", "2 lines"),
        (finished(code=3), "wrong", "exit code 3"),
        (finished(code=0), "wrong", "exit code 0, although a method gave no valid answer"),
        (finished(code=1), "right", ""),
        (finished(code=2, err="relocbench: method failing.py:method: cannot be imported\n"), "right", ""),
    ],
)
def test_what_a_command_must_not_do(tmp_path, done, verdict, problem):
    found, note = judged("solve", tmp_path, [FAILING], done)
    assert found == verdict
    assert problem in note


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({}, ""),
        ({"objective": 1.0}, "the cost of answering.py:method"),
        ({"home": [0] * 6}, "other homes"),
        ({"status": "optimal"}, "calls homes optimal"),
    ],
)
def test_a_solution_file_must_have_the_exact_cost(tmp_path, change, problem):
    home, exact = list(expected_homes(ENTRIES[0])), float(expected_cost(ENTRIES[0]))
    solution = {"home": home, "objective": exact, "status": "feasible"} | change
    (tmp_path / "sol.json").write_text(json.dumps(solution))
    verdict, note = judged("solve", tmp_path, [ANSWERING], finished())
    assert verdict == ("wrong" if problem else "right")
    assert problem in note


def test_a_baseline_with_the_cost_of_another_instance_is_found(tmp_path):
    scene = Scene(tmp_path, [ANSWERING])
    hostile_commands._write_baseline(scene)
    content = json.loads((tmp_path / "baseline.json").read_text())
    (tmp_path / "new.json").write_text(json.dumps(content))
    assert judged("update-baseline", tmp_path, [ANSWERING], finished()) == ("right", "")
    lines = content["methods"][0]["instances"]
    lines[1]["costs"][0] = lines[0]["costs"][0]
    (tmp_path / "new.json").write_text(json.dumps(content))
    verdict, note = judged("update-baseline", tmp_path, [ANSWERING], finished())
    assert (verdict, ENTRIES[1] in note) == ("wrong", True)


def test_a_well_behaved_method_must_not_fail(tmp_path):
    failed = [{"method": "good.py:method", "error": "no answer"}]
    out = json.dumps({"failed": failed, "changes": []})
    verdict, note = judged("check", tmp_path, [ANSWERING], finished(code=1, out=out))
    assert verdict == "wrong"
    assert "the well-behaved method failed" in note


def test_an_answer_that_cannot_be_read_is_wrong(tmp_path):
    for out in ("", "{}", "no JSON"):
        verdict, note = judged("check", tmp_path, [ANSWERING], finished(code=1, out=out))
        assert (verdict, "cannot be read" in note) == ("wrong", True)


def test_a_program_that_dies_with_the_method_is_found(tmp_path):
    lines = "\n".join([json.dumps(["good.py:method", [], None])])
    verdict, note = judged("python-check", tmp_path, [ANSWERING], finished(out=lines))
    assert verdict == "wrong"
    assert "the program that called it ended" in note


@pytest.mark.slow
@pytest.mark.parametrize("command", ["solve", "python-solve", "check", "update-baseline", "bench", "show"])
def test_a_well_behaved_method_passes_every_command(command):
    verdict, note, _ = hostile._try(command, [HostileMethod("other")])
    assert (verdict, note) == ("right", "")
