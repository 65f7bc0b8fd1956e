import json

import pytest

from relocbench.instances.instance_source import read_instance
from relocbench.runs.solve import solve_here

pytest.importorskip("pulp")


@pytest.fixture
def inst(run, tmp_path):
    path = tmp_path / "inst.json"
    run("generate", "--family", "tiny", "--regime", "scarce", "--set", "shape=plain", "--seed", 0, "--out", path)
    return path


def answer(tmp_path, inst, claimed=None, extra=""):
    """Write what a solver would write about the optimum."""
    best = solve_here(read_instance(inst), "enumerate")
    lines = [f"objective value: {best.objective if claimed is None else claimed!r}"]
    lines += [f"x_{m}_{l} 1 (obj:1)" for m, l in enumerate(best.home)]
    (tmp_path / "answer.sol").write_text("\n".join(lines) + f"\n{extra}")
    return best


def test_a_model_is_exported_and_its_answer_becomes_a_solution_file(run, tmp_path, inst):
    model, sol = tmp_path / "model.mps", tmp_path / "sol.json"
    code, out, _ = run("export", inst, "--model", "milp-strong", "--format", "mps", "--out", model)
    assert code == 0
    assert "ΣD in ms = 1 × objective" in out
    assert model.exists()
    assert json.loads((tmp_path / "model.mps.json").read_text())["unit_ms"] == 1.0
    best = answer(tmp_path, inst)
    read = ("export", inst, "--model", "milp-strong", "--read-solution", tmp_path / "answer.sol")
    code, out, _ = run(*read, "--out", sol)
    assert code == 0
    assert "the file claims" in out
    assert run("evaluate", inst, sol, "--json")[0] == 0
    code, out, _ = run(*read, "--json")
    found = json.loads(out)
    assert (code, found["home"], found["agrees"]) == (0, best.home.tolist(), True)
    assert found["objective"] == pytest.approx(best.objective, rel=1e-12)


def test_a_false_objective_is_reported_with_exit_code_1(run, tmp_path, inst):
    best = answer(tmp_path, inst, claimed=7.0)
    code, out, _ = run("export", inst, "--model", "milp-strong", "--read-solution", tmp_path / "answer.sol")
    assert code == 1
    assert f"the file claims 7 ms: WRONG by {7.0 - best.objective:+.6g} ms" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--model", "anneal", "--out", "m.mps"), "--model: expected one of milp-basic, milp-strong"),
        (("--model", "milp-strong", "--out", "m.txt"), "--out: expected a name ending in .mps or .lp for milp-strong"),
        (("--model", "cpsat", "--format", "mps", "--out", "m.mps"), "--format: expected one of cpsat-proto"),
        (("--model", "milp-strong"), "--out: expected the name of the model file"),
        (("--model", "milp-strong[start=reloc]", "--out", "m.mps"), "does not depend on a start"),
        (("--model", "cfn", "--format", "cfn", "--read-solution", "a.sol"), "cannot be combined"),
        (("--model", "milp-strong", "--read-solution", "absent.sol"), "absent.sol: cannot be read"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(run, inst, arguments, message):
    code, _, err = run("export", inst, *arguments)
    assert code == 2
    assert message in err
    assert len(err.strip().splitlines()) == 1


def test_a_wrong_home_in_an_answer_is_one_line(run, tmp_path, inst):
    answer(tmp_path, inst, extra="x_3_0 1\n")
    code, _, err = run("export", inst, "--model", "milp-strong", "--read-solution", tmp_path / "answer.sol")
    assert code == 2
    assert "answer.sol: there are two homes for client 3: x_3_0 and x_3_" in err
