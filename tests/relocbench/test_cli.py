import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import relocbench
from relocbench.cli import app
from relocbench.instances.files.homes_file import read_solution
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import read_instance, read_instances
from relocbench.runs.methods import METHODS
from relocbench.runs.version import __version__
from tests.instances.files.bad_files import run_command
from tests.runs.fake_methods import fake


def test_generate_solve_and_evaluate_work_together(run, tmp_path):
    inst, sol = tmp_path / "inst.json", tmp_path / "sol.json"
    assert run("generate", "--family", "paper", "--sigma", 10, "--seed", 3, "--out", inst)[0] == 0
    assert read_instance(inst).hash == FAMILIES["paper"].cells({"sigma": 10})[0].build(3).hash
    solved = ("solve", inst, "--method", "nearest", "--seed", 0, "--time-limit", 60, "--out", sol)
    assert run(*solved)[0] == 0
    code, out, _ = run("evaluate", inst, sol, "--json")
    assert code == 0
    answer = json.loads(out)
    assert {"Y", "Y1", "Y2", "objective", "theta", "storage", "compute"} <= answer.keys()
    assert answer["Y"] == pytest.approx(answer["Y1"] + answer["Y2"])
    assert len(answer["theta"]) == len(answer["storage"]) == len(answer["compute"]) == 16
    assert answer["objective"] == pytest.approx(json.loads(sol.read_text())["objective"])


def test_evaluate_prints_the_exact_cost_and_a_table(run, tmp_path):
    inst, sol = tmp_path / "inst.json", tmp_path / "sol.json"
    run("generate", "--family", "tiny", "--regime", "scarce", "--set", "shape=roles", "--seed", 0, "--out", inst)
    run("solve", inst, "--method", "random", "--seed", 5, "--out", sol)
    code, out, _ = run("evaluate", inst, sol, "--exact", "--json")
    numerator, denominator = map(int, json.loads(out)["exact_objective"].split("/"))
    assert code == 0
    assert numerator / denominator == pytest.approx(json.loads(out)["objective"], rel=1e-12)
    code, out, _ = run("evaluate", inst, sol)
    assert code == 0
    assert "storage a / A" in out


@pytest.mark.parametrize(
    ("field", "value", "problem"), [("objective", 1.0, ", got 1.0"), ("bound", 1e9, "bound: expected at most")]
)
def test_evaluate_exits_with_1_on_a_false_claim(run, tmp_path, field, value, problem):
    inst, sol = tmp_path / "inst.json", tmp_path / "sol.json"
    run("generate", "--family", "preliminary", "--storage", 7, "--seed", 0, "--out", inst)
    run("solve", inst, "--method", "nearest", "--out", sol)
    sol.write_text(json.dumps(json.loads(sol.read_text()) | {field: value}))
    code, out, err = run("evaluate", inst, sol, "--json")
    assert code == 1
    assert problem in err
    assert json.loads(out)["objective"] > 1.0


def test_generate_writes_families_folders_and_single_files(run, tmp_path):
    assert run("generate", "--family", "tiny", "--seed", "0-1", "--out", tmp_path / "tiny.parquet")[0] == 0
    assert len(list(read_instances(tmp_path / "tiny.parquet"))) == 30
    code, out, _ = run("generate", "--family", "preliminary", "--seed", "1,4", "--out", tmp_path / "each", "--json")
    assert code == 0
    assert json.loads(out)["instances"] == 4
    assert sorted(path.name for path in (tmp_path / "each").iterdir())[0] == "preliminary-a10-b50-1.json"
    code, _, err = run("generate", "--family", "paper", "--out", tmp_path / "paper.json")
    assert code == 2
    assert "expected one instance for a JSON file, got 50" in err


def test_generate_uses_real_graphs_and_places(run, tmp_path):
    edges = "".join(f"{a}\t{b}\n" for a in range(40) for b in range(a + 1, a + 4))
    (tmp_path / "edges.txt").write_text("# a b\n" + edges)
    (tmp_path / "sites.csv").write_text("lat,lon\n" + "".join(f"{10 + i / 100},{20 - i / 50}\n" for i in range(9)))
    out = tmp_path / "inst.json"
    real = ("--social", tmp_path / "edges.txt", "--sites", tmp_path / "sites.csv")
    code, _, err = run(
        "generate", "--family", "paper", "--sigma", 5, "--seed", 0, "--topics", 12, "--servers", 9, *real, "--out", out
    )
    assert (code, err) == (0, "")
    instance = read_instance(out)
    assert instance.name == "paper-s5-servers-9-topics-12-0-edges-sites"
    assert (instance.parameters["social"], instance.parameters["sites"]) == ("edges.txt", "sites.csv")
    assert instance.n_topics == 12
    assert set(instance.members.sizes.tolist()) <= {2, 3, 4}
    assert instance.server_y.max() - instance.server_y.min() == pytest.approx(8 / 100 * 111.195, rel=1e-3)


def test_solve_prints_its_result(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "paper", "--sigma", 5, "--seed", 0, "--out", inst)
    code, out, _ = run("solve", inst, "--method", "nearest", "--json")
    answer = json.loads(out)
    assert code == 0
    assert (answer["method"], answer["status"], answer["bound"]) == ("nearest", "feasible", None)
    code, out, _ = run("solve", inst, "--method", "random", "--seed", 1)
    assert code == 0
    assert "random: feasible, Y = " in out


def test_solve_prints_its_trace_as_json(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "paper", "--sigma", 5, "--seed", 0, "--out", inst)
    code, out, _ = run("solve", inst, "--method", "anneal[moves=100000]", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["trace"][-1][1] == pytest.approx(answer["objective"])
    assert answer["trace"][0][2] is None


def test_the_same_seed_gives_the_same_homes(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "paper", "--sigma", 5, "--seed", 0, "--out", inst)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        run("solve", inst, "--method", "random", "--seed", seed, "--out", tmp_path / f"{name}.json")
    a, b, c = (read_solution(tmp_path / f"{name}.json", read_instance(inst)).home.tolist() for name in "abc")
    assert a == b != c


def test_solve_refuses_to_overwrite_its_instance_and_other_suffixes(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "preliminary", "--storage", 7, "--seed", 0, "--out", inst)
    before = inst.read_text()
    code, _, err = run("solve", inst, "--method", "nearest", "--out", inst)
    assert (code, inst.read_text()) == (2, before)
    assert "expected another file than the instance's" in err
    code, _, err = run("solve", inst, "--method", "nearest", "--out", tmp_path / "sol.json.gz")
    assert code == 2
    assert "expected a name ending in .json" in err


def test_describe_writes_an_assignment_without_overload(run, tmp_path):
    inst, sol = tmp_path / "inst.json", tmp_path / "sol.json"
    run("generate", "--family", "small", "--regime", "scarce", "--clients", 15, "--seed", 0, "--out", inst)
    assert run("describe", inst, "--witness", sol)[0] == 0
    code, out, _ = run("evaluate", inst, sol, "--json")
    assert code == 0
    assert set(json.loads(out)["theta"]) == {1.0}
    run("generate", "--family", "small", "--regime", "overloaded", "--clients", 15, "--seed", 0, "--out", inst)
    code, _, err = run("describe", inst, "--witness", sol)
    assert code == 2
    assert "this instance is overloaded: no assignment without overload is known" in err


def test_a_closed_pipe_and_an_ascii_terminal_cause_no_error(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "preliminary", "--storage", 7, "--seed", 0, "--out", inst)
    command = f"'{sys.executable}' -c 'from relocbench.cli import run; run()'"
    for pipe in (
        f"{command} describe {inst} | true",
        f"PYTHONIOENCODING=ascii {command} solve {inst} --method nearest",
    ):
        done = subprocess.run(["sh", "-c", pipe], capture_output=True, text=True, check=False)
        assert done.stderr == ""


def test_describe_prints_the_regime(run, tmp_path):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "small", "--regime", "overloaded", "--clients", 15, "--seed", 0, "--out", inst)
    code, out, _ = run("describe", inst, "--json")
    assert code == 0
    assert json.loads(out)["regime"] == "overloaded"
    assert json.loads(out)["clients"] == 15
    assert "overloaded" in run("describe", inst)[1]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("generate", "--family", "papper", "--out", "x.json"), "relocbench: family: expected one of paper"),
        (("generate", "--family", "paper", "--seed", "x", "--out", "x.json"), "relocbench: --seed: expected 3, 0-9"),
        (("generate", "--family", "paper", "--seed", "0-999999999", "--out", "x.json"), "relocbench: --seed: expected"),
        (("generate", "--family", "paper", "--seed", "9" * 5000, "--out", "x.json"), "relocbench: --seed: expected"),
        (
            ("generate", "--family", "paper", "--set", "sigma", "--out", "x.json"),
            "relocbench: --set: expected NAME=",
        ),
        (
            ("generate", "--family", "paper", "--people", "p.csv", "--out", "x.json"),
            "relocbench: --people: needs",
        ),
        (("generate", "--family", "paper", "--out", "x.txt"), "relocbench: x.txt: expected .json"),
        (("solve", "none.json", "--method", "nearest"), "relocbench: none.json: cannot be read (No such file"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_2(run, arguments, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments)
    assert code == 2
    assert err.startswith(problem)
    assert err.count("\n") == 1
    assert out == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("quickest", "method: expected one of random, nearest"),
        ("nearest[", "method: expected name or name[parameter=value,...], got 'nearest['"),
        ("nearest[k=3]", "method nearest: expected parameter=value with one of: no parameters; got 'k=3'"),
    ],
)
def test_unknown_methods_and_parameters_are_refused(run, tmp_path, selector, problem):
    inst = tmp_path / "inst.json"
    run("generate", "--family", "preliminary", "--storage", 7, "--seed", 0, "--out", inst)
    code, _, err = run("solve", inst, "--method", selector)
    assert code == 2
    assert problem in err


def test_lists_are_printed_as_tables_and_as_json(run):
    for command, first in (("methods", "random"), ("families", "paper")):
        code, out, _ = run(command, "--json")
        assert code == 0
        assert json.loads(out)[0]["name"] == first
        assert first in run(command)[1]
    code, out, _ = run("info", "--json")
    assert code == 0
    assert {"relocbench", "python", "numpy", "numba", "pyarrow", "cores", "java"} <= json.loads(out).keys()
    assert "numba" in run("info")[1]


def test_methods_prints_why_a_method_is_not_available(run, monkeypatch):
    missing = "abacus not installed: pip install 'relocbench[solvers]'"
    monkeypatch.setitem(METHODS, "otos", dataclasses.replace(METHODS["otos"], needs=("abacus",)))
    listed = {entry["name"]: entry["unavailable"] for entry in json.loads(run("methods", "--json")[1])}
    assert (listed["otos"], listed["nearest"]) == (missing, None)
    assert "abacus" in run("methods")[1]


@pytest.fixture
def tiny(run, tmp_path):
    path = tmp_path / "tiny.json"
    run("generate", "--family", "tiny", "--regime", "scarce", "--set", "shape=roles", "--seed", 0, "--out", path)
    return path


@pytest.fixture
def register(monkeypatch):
    """Return a function that adds faulty methods to the registry."""

    def add(*names):
        for name in names:
            monkeypatch.setitem(METHODS, name, fake(name).method)

    return add


def test_exact_methods_run_in_a_worker_process(run, tiny, tmp_path):
    sol, log = tmp_path / "sol.json", tmp_path / "solver.log"
    code, out, err = run("solve", tiny, "--method", "enumerate", "--log", log, "--out", sol, "--json")
    answer = json.loads(out)
    assert (code, err, answer["status"]) == (0, "", "optimal")
    assert answer["bound"] == pytest.approx(answer["objective"])
    assert log.exists()
    assert run("evaluate", tiny, sol)[0] == 0


def test_the_failure_of_an_exact_method_is_one_line_with_its_log(run, tiny, register):
    register("crashes", "exits")
    code, out, err = run("solve", tiny, "--method", "crashes")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("relocbench: crashes: error: the process was killed by SIGSEGV")
    log = Path(err.rpartition("log: ")[2].strip())
    assert log.read_text() == "about to read address zero\n"
    log.unlink()
    code, out, err = run("solve", tiny, "--method", "exits")
    assert (code, err) == (1, "relocbench: exits: error: the process exited with code 0 before it returned a result\n")


def test_unavailable_methods_and_unsupported_instances_exit_with_2(run, tiny, tmp_path, monkeypatch):
    large = tmp_path / "large.json"
    run("generate", "--family", "small", "--regime", "loose", "--clients", 39, "--seed", 0, "--out", large)
    code, _, err = run("solve", large, "--method", "enumerate")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("relocbench: method enumerate: expected at most")
    monkeypatch.setitem(METHODS, "enumerate", dataclasses.replace(METHODS["enumerate"], needs=("abacus",)))
    for command in (("solve", tiny), ("bench", tiny)):
        code, _, err = run(*command, "--method", "enumerate")
        assert (code, err) == (
            2,
            "relocbench: method enumerate: abacus not installed: pip install 'relocbench[solvers]'\n",
        )


def test_bench_stores_every_outcome_and_continues(run, tiny, tmp_path, register):
    register("exits")
    out = tmp_path / "store"
    command = ("bench", tiny, "--method", "enumerate", "--method", "exits", "--time-limit", 20, "--out", out)
    code, text, _ = run(*command)
    assert code == 0
    assert "1 / 1" in text
    assert "exits on tiny-scarce-roles-0: the process exited with code 0 before it returned a result" in text
    written = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert len(written) == 2
    code, text, _ = run(*command, "--json")
    answer = json.loads(text)
    assert (code, answer["runs"], len(answer["errors"])) == (0, 2, 1)
    assert [(entry["method"], entry["proved"]) for entry in answer["summary"]] == [("enumerate", 1), ("exits", 0)]
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")} == written
    run(*command, "--retry-errors")
    assert sum(path.stat().st_mtime_ns != written[path] for path in out.glob("*.parquet")) == 1


def test_an_interrupted_bench_names_its_folder_and_continues(run, tiny, tmp_path, monkeypatch):
    out = tmp_path / "store"
    command = ("bench", tiny, "--method", "nearest", "--seed", "0-2", "--time-limit", 20, "--out", out)

    def interrupted(items, total, what):
        yield next(items)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("relocbench.commands.bench.progress", interrupted)
        code, text, err = run(*command)
    assert (code, text) == (130, "")
    assert err == f"relocbench: interrupted; the finished work is in {out}, the same command continues from there\n"
    written = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    assert 1 <= len(written) < 3
    assert run(*command)[0] == 0
    assert len(list(out.glob("*.parquet"))) == 3
    assert {path: path.stat().st_mtime_ns for path in written} == written


def test_bench_takes_a_family_and_refuses_wrong_combinations(run, tiny, tmp_path):
    out = tmp_path / "store"
    family = ("--family", "tiny", "--regime", "loose", "--set", "shape=plain", "--seeds", "0-1")
    code, text, _ = run("bench", *family, "--method", "nearest", "--seed", "0,1", "--jobs", 2, "--out", out, "--json")
    assert (code, json.loads(text)["runs"]) == (0, 4)
    for wrong, problem in (
        ((tiny,), "--method: expected at least one"),
        (("--method", "nearest"), "bench: expected instance files"),
        ((tiny, "--method", "nearest", "--regime", "loose"), "--regime: needs --family"),
        ((tiny, "--method", "nearest", "--out", tiny), "expected a folder for runs, got a file"),
    ):
        code, _, err = run("bench", *wrong)
        assert code == 2, wrong
        assert problem in err


def test_the_cross_check_exits_with_1_on_a_false_claim_and_names_a_small_instance(run, tiny, tmp_path, register):
    command = ("bench", "--cross-check", tiny, "--method", "enumerate", "--out", tmp_path / "store")
    code, text, _ = run(*command, "--method", "nearest")
    assert code == 0
    assert "1 instance, 2 methods, 2 runs" in text
    assert "all agree" in text
    register("nearest_is_optimal")
    code, text, _ = run(*command, "--method", "nearest_is_optimal", "--json")
    [found] = json.loads(text)["disagreements"]
    assert (code, found["kind"]) == (1, "optimum")
    assert read_instance(found["file"]).n_clients <= 2


def test_version_is_printed(run):
    assert run("--version")[:2] == (0, f"relocbench {__version__}\n")


def commands(group, *words):
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, *words, word)
        yield (*words, word)


@pytest.mark.parametrize("words", [*commands(typer.main.get_command(app))], ids=" ".join)
def test_every_command_has_help_with_an_example(run, words):
    code, out, _ = run(*words, "--help")
    assert code == 0
    assert f"Example: relocbench {' '.join(words)}" in " ".join(out.replace("│", " ").split())


@pytest.mark.parametrize(
    ("words", "selector"),
    [
        (("solve",), "reloc[k=8]"),
        (("study",), "anneal[moves=2e6]"),
        (("export",), "milp-strong[condition=together]"),
        (("moving", "certify"), "relocate[ahead=4]"),
        (("moving", "study"), "threshold[worse=0.05]"),
        (("spark", "run"), "reloc[k=auto]"),
    ],
)
def test_help_shows_the_settings_of_selectors(run, words, selector):
    out = run(*words, "--help")[1]
    assert selector in "".join(out.replace("│", " ").split())
    assert "\\" not in out


def test_python_functions_return_the_same_as_the_command():
    instance = relocbench.generate("paper", seed=3, sigma=10)
    assert isinstance(instance, relocbench.Instance)
    result = relocbench.solve(instance, "nearest")
    assert relocbench.evaluate(instance, result.solution.home).y == result.evaluation.y
    with pytest.raises(ValueError, match="expected parameters that choose one cell, 5 are left; give sigma"):
        relocbench.generate("paper")


@pytest.mark.parametrize("command", [("solve", "x.json"), ("bench", "x.json"), ("check",), ("study",)])
def test_a_memory_limit_without_end_is_refused(command):
    code, _, err = run_command(*command, "--method", "nearest", "--memory-limit", "inf")
    assert code == 2
    assert "Invalid value for '--memory-limit'" in err
