import json
import subprocess
import sys

import pytest

import relocbench
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.homes_file import read_solution
from relocbench.instances.instance_source import read_instance
from relocbench.instances.library.library import Library
from relocbench.reports.gate import measurement
from relocbench.reports.gate.baseline import SHIPPED, read_baseline, write_baseline
from relocbench.reports.gate.baseline_update import update
from relocbench.reports.gate.check import check
from relocbench.reports.gate.comparison import Rule
from relocbench.runs.selectors import as_selector
from relocbench.runs.solve import solve_here as solve
from tests.instances.files.bad_files import run_command
from tests.reports.gate import heuristics

PLACE = "tests.reports.gate.heuristics"
LIBRARY = Library()


def selector(name):
    return f"{PLACE}:{name}"


@pytest.fixture(scope="module")
def baseline(tmp_path_factory):
    """Return a baseline of the good versions on the instances of fewer than 400 clients."""
    path = tmp_path_factory.mktemp("gate") / "baseline.json"
    assert update([selector("worsened"), selector("nearest")], baseline=path, instances="[tsp]*", jobs=2).written
    return path


def findings(verdict, method, scope="all"):
    return [found for found in verdict.findings if (found.method, found.scope) == (method, scope)]


@pytest.mark.slow
def test_worse_heuristics_fail_and_a_noisier_one_passes(baseline):
    worse = {by: selector(f"worsened[by={by}]") for by in (0.01, 0.03, 0.1)}
    noisier = selector("worsened[spread=0.05]")
    same = selector("worsened")
    verdict = check([*worse.values(), noisier, same], baseline=baseline, against=selector("worsened"), jobs=2)
    assert not verdict.passed
    assert not verdict.failed
    for by, method in worse.items():
        [found] = findings(verdict, method)
        assert found.worse
        assert found.change == pytest.approx(by, rel=0.35)
        assert found.size == 60
    for harmless in (noisier, same):
        assert not any(finding.worse for finding in verdict.findings if finding.method == harmless)
    assert {change.change for change in verdict.changes if change.method == same} == {0.0}
    assert sum(change.change != 0 for change in verdict.changes if change.method == noisier) > 50


def test_the_smallest_instance_shows_the_regression(baseline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = (
        "check",
        "--method",
        selector("bad_for_crowds"),
        "--against",
        selector("nearest"),
        "--baseline",
        baseline,
    )
    code, out, _ = run_command(*command, "--instances", "small-*", "--out", tmp_path / "out")
    assert code == 1
    assert "FAILED" in out
    assert "over the optimum" in out
    [written] = [line for line in out.splitlines() if line.startswith("smallest instance")]
    [file] = [path for path in (tmp_path / "out").iterdir() if not path.name.endswith(".before.json")]
    assert str(file) in written
    small = read_instance(file)
    # The fault needs four members and a second server.
    assert (small.n_clients, small.n_servers, small.n_topics) == (4, 2, 1)
    before = read_solution(file.with_suffix(".before.json"), small)
    assert evaluate(small, before.home).objective == pytest.approx(before.objective)
    now = solve(small, as_selector(selector("bad_for_crowds"))).evaluation.objective
    assert now > before.objective * 1.05


@pytest.mark.parametrize(
    ("name", "error", "seeds", "shrink_seconds"),
    [
        ("forgets_one", "InputError: home: expected 6 servers, one per client, got 5", range(5), 60),
        ("dies", "the process exited with code 3 before it returned a result", [1], 0),
    ],
)
def test_an_invalid_or_missing_assignment_fails_and_is_shrunk(baseline, tmp_path, name, error, seeds, shrink_seconds):
    code, out, _ = run_command(
        "check",
        *(
            "--method",
            selector(name),
            "--against",
            selector("nearest"),
            "--baseline",
            baseline,
            "--instances",
            "tiny-loose-*",
        ),
        *("--out", tmp_path, "--shrink-seconds", shrink_seconds, "--json"),
    )
    answer = json.loads(out)
    large = [entry for entry in LIBRARY.names("tiny-loose-*") if LIBRARY.entry(entry).clients >= 6]
    assert code == 1
    assert not answer["passed"]
    assert {(run["instance"], run["seed"]) for run in answer["failed"]} == {(e, seed) for e in large for seed in seeds}
    assert not any(finding["worse"] for finding in answer["findings"])
    [written] = answer["smallest"]
    assert written["says"] == error
    assert read_instance(written["file"]).n_clients == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("raises", "RuntimeError: always (heuristics.py, line "),
        ("hangs", "did not finish on a small instance within the time limit of 0.5 s; killed"),
    ],
)
def test_a_method_whose_first_runs_fail_is_stopped_and_the_others_are_not(tmp_path, name, error):
    path = tmp_path / "baseline.json"
    conditions = {"baseline": path, "instances": "tiny-loose-*", "seeds": [0, 1], "time_limit": 0.5}
    assert update(selector("nearest"), **conditions).written
    verdict = check([selector(name), selector("nearest")], baseline=path, against=selector("nearest"))
    assert not verdict.passed
    [stopped] = verdict.stopped
    assert (stopped.method, stopped.runs, stopped.planned) == (selector(name), 3, 10)
    assert f"stopped after 3 of 10 runs, because the first 3 runs failed: {error}" in str(verdict)
    assert verdict.to_json()["stopped"] == (
        {"method": selector(name), "runs": 3, "planned": 10, "error": stopped.error},
    )
    assert {run.method for run in verdict.failed} == {selector(name)}
    assert {change.method for change in verdict.changes} == {selector("nearest")}
    assert len(verdict.changes) == 5
    before = path.read_bytes()
    changed = update([selector(name), selector("nearest")], **conditions)
    assert not changed.written
    assert path.read_bytes() == before
    assert [renewed.stopped is not None for renewed in changed.renewed] == [True, False]


def test_a_cost_below_the_proved_bound_fails(baseline, monkeypatch):
    monkeypatch.setattr(measurement, "slack", lambda bound: -10 * bound)
    verdict = check(selector("nearest"), baseline=baseline, instances="tiny-loose-plain-0")
    assert not verdict.passed
    assert {run.kind for run in verdict.failed} == {"bound"}
    assert "nothing can cost less than" in verdict.failed[0].error


def test_a_method_without_a_baseline_is_compared_with_reloc(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict = check(selector("nearest"), instances="tiny-*")
    assert verdict.subjects[0].against == "reloc"
    assert verdict.notes[0].startswith(f"{PLACE}:nearest has no baseline of its own")
    # A named file must exist; otherwise a check with a forgotten baseline would always pass.
    code, _, err = run_command("check", "--method", selector("nearest"), "--baseline", tmp_path / "none.json")
    assert (code, err.count("\n")) == (2, 1)
    assert "none.json: cannot be read (No such file or directory)" in err


def test_an_update_writes_the_baseline_and_reports_the_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(f"from {PLACE} import nearest as mine\n")
    command = ("check", "--method", "mine.py:mine", "--update-baseline")
    code, out, _ = run_command(*command, "--instances", "tiny-*", "--seed", "0-1", "--time-limit", "5")
    assert (code, out) == (
        0,
        "mine.py:mine: 15 instances, 2 seeds, new\nwritten: relocbench-baseline.json\n",
    )
    record = read_baseline(tmp_path / "relocbench-baseline.json").records["mine.py:mine"]
    assert (record.seeds, record.time_limit, record.pattern) == ((0, 1), 5.0, "tiny-*")
    for name, line in record.lines.items():
        instance = LIBRARY.read(name)
        assert line.costs == pytest.approx([evaluate(instance, line.home).objective] * 2)
    assert run_command("check", "--method", "mine.py:mine")[0] == 0
    # Without --method, an update repeats the methods of the file under the same conditions.
    (tmp_path / "mine.py").write_text(f"from {PLACE} import bad_for_crowds as mine\n")
    code, out, _ = run_command("check", "--update-baseline", "--json")
    answer = json.loads(out)
    assert (code, answer["written"]) == (0, True)
    [found] = answer["methods"]
    changed = {change["instance"]: change for change in found["changes"] if change["change"]}
    assert changed
    assert (found["instances"], found["seeds"], found["added"], found["gone"]) == (15, [0, 1], [], [])
    again = read_baseline(tmp_path / "relocbench-baseline.json").records["mine.py:mine"]
    for name, change in changed.items():
        assert change["before"] == pytest.approx(record.lines[name].costs[0])
        assert change["now"] == pytest.approx(again.lines[name].costs[0])
    code, out, _ = run_command("check", "--update-baseline", "--instances", "tiny-loose-*")
    assert code == 0
    assert "removed: tiny-scarce-" in out


def test_a_baseline_with_failures_is_not_written(tmp_path):
    path = tmp_path / "baseline.json"
    command = ("check", "--update-baseline", "--baseline", path, "--instances", "tiny-loose-*")
    code, out, _ = run_command(*command, "--method", selector("forgets_one"))
    assert code == 1
    assert "runs without a valid assignment" in out
    assert "not written, because runs failed" in out
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--method", "nobody"), "method: expected one of random, nearest"),
        (("--method", "none.py:f"), "method none.py:f: expected a Python file, the file does not exist"),
        (("--method", "otos"), "baseline.json: has no costs of otos; --update-baseline adds them"),
        (("--against", "nobody"), "baseline.json: has no costs of nobody"),
        (("--instances", "x-*"), "instances: expected a pattern of instances that baseline.json has, got 'x-*'"),
        (("--seed", "1"), "--seed: needs --update-baseline"),
        (("--update-baseline", "--against", "otos"), "--against: cannot be combined with --update-baseline"),
        (("--update-baseline", "--instances", "x-*"), "instances: expected a pattern of names in the library"),
    ],
)
def test_wrong_use_gives_one_line_and_exit_code_2(baseline, arguments, complaint):
    code, out, err = run_command("check", "--baseline", baseline, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_an_instance_that_has_changed_is_refused(baseline, tmp_path):
    text = baseline.read_text(encoding="utf-8").replace(LIBRARY.entry("tiny-loose-plain-0").instance, "0" * 64)
    (tmp_path / "old.json").write_text(text, encoding="utf-8")
    code, _, err = run_command("check", "--baseline", tmp_path / "old.json")
    assert code == 2
    assert "tiny-loose-plain-0: the library has another instance of that name" in err


def test_the_gate_from_python(baseline, monkeypatch):
    assert relocbench.check is check
    assert "check" in dir(relocbench)
    verdict = relocbench.check(heuristics.nearest, baseline=baseline, against=selector("nearest"), instances="tiny-*")
    verdict.assert_passed()
    strict = Rule(alpha=1.0, effect=-1.0, instance_effect=-1.0)
    worse = relocbench.check(
        selector("bad_for_crowds"), baseline=baseline, against=selector("nearest"), instances="tiny-*", rule=strict
    )
    with pytest.raises(AssertionError, match=r"bad_for_crowds: FAILED, against .*baseline\.json"):
        worse.assert_passed()


def test_the_gate_in_a_test_file(tmp_path, baseline):
    records = read_baseline(baseline).records
    old = records[selector("nearest")]
    renamed = type(old)(**{**vars(old), "method": "mine.py:mine"})
    write_baseline(type(read_baseline(baseline))({"mine.py:mine": renamed}), tmp_path / "baseline.json")
    (tmp_path / "mine.py").write_text(f"from {PLACE} import nearest as mine, bad_for_crowds\n")
    (tmp_path / "test_mine.py").write_text(
        "from relocbench import check\n"
        "def test_my_heuristic_got_no_worse():\n"
        "    check('mine.py:mine', baseline='baseline.json', instances='small-*').assert_passed()\n"
        "def test_the_other_one():\n"
        "    check('mine.py:bad_for_crowds', baseline='baseline.json', against='mine.py:mine').assert_passed()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir=."],
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "mine.py:bad_for_crowds: FAILED, against baseline.json (mine.py:mine)" in done.stdout


@pytest.mark.slow
def test_the_heuristics_of_this_project_did_not_get_worse():
    verdict = check(baseline=SHIPPED, jobs=2)
    assert {subject.method for subject in verdict.subjects} == {"nearest", "otos", "reloc", "anneal[moves=50000]"}
    assert {subject.instances for subject in verdict.subjects} == {len(LIBRARY.entries)}
    verdict.assert_passed()
