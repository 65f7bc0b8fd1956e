"""Code of other people runs in a worker process only, under the limits of its run, and cannot deceive the workbench."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

import relocbench
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.external_function import checked_description
from relocbench.runs.isolation import process_tree, supervisor, worker_process
from relocbench.runs.isolation.cgroup import create_group, end_group
from relocbench.runs.isolation.messages import RunRecord
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.run_error import RunError
from relocbench.runs.selectors import as_selector
from relocbench.runs.solve import run_isolated
from relocbench.runs.sweep import Limits, Task, sweep
from tests.instances.files.bad_files import run_command
from tests.runs import hostile_methods
from tests.runs.fake_methods import fake
from tests.runs.isolation.test_supervisor import alive, wait_for

CELLS = FAMILIES["tiny"].cells({"regime": "scarce"})
INSTANCE, OTHER = CELLS[0].build(0), CELLS[1].build(1)
MIB = 1 << 20
WHERE = "tests.runs.hostile_methods"


def hostile(name):
    return as_selector(f"{WHERE}:{name}")


def run(name, *, time_limit=20.0, **arguments):
    return run_isolated(INSTANCE, hostile(name), time_limit=time_limit, **arguments)


@pytest.fixture
def mine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "mine.py"


GOOD = "def f(instance, *, seed, time_limit):\n    return [0] * instance.n_clients\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("import os; os._exit(0)", "method mine.py:f: cannot be imported (the process exited with code 0"),
        ("import sys; sys.exit(0)", "method mine.py:f: cannot be imported (SystemExit: 0)"),
        ("import time; time.sleep(1000)", "method mine.py:f: cannot be imported (was not imported within 2 s; killed)"),
        ("import os; os.kill(os.getpid(), 8)", "cannot be imported (the process was killed by SIGFPE"),
        ("raise BaseException", "method mine.py:f: cannot be imported (BaseException (mine.py, line 1))"),
    ],
)
@pytest.mark.parametrize("command", ["solve", "check"])
def test_a_module_that_cannot_be_imported_ends_the_command_with_one_line(mine, monkeypatch, command, content, problem):
    monkeypatch.setattr(supervisor, "IMPORT_LIMIT", 2.0)
    mine.write_text(f"{content}\n{GOOD}")
    source = ["library:tiny-loose-plain-0"] if command == "solve" else []
    code, out, err = run_command(command, *source, "--method", "mine.py:f")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert problem in err


def test_this_process_never_imports_a_method(mine):
    mine.write_text(f"import os\nprint('hello', os.getpid())\n{GOOD}")
    before = set(sys.modules)
    result = relocbench.solve(INSTANCE, "mine.py:f")
    assert result.solution.home.tolist() == [0] * INSTANCE.n_clients
    assert not [name for name in set(sys.modules) - before if name.startswith("mine")]


def test_parameters_are_known_without_an_import_in_this_process(mine):
    mine.write_text(
        "from typing import Literal\n"
        "def f(instance, *, seed, time_limit, a: int | Literal['auto'] = 3, b: Literal['x', 'y'] = 'x', c=0.5, **d):\n"
        "    return [0] * instance.n_clients\n"
    )
    assert as_selector("mine.py:f[a=auto,b=y,c=2]").settings == {"a": "auto", "b": "y", "c": 2.0}
    with pytest.raises(InputError, match="b: expected x, y, got 'z'"):
        as_selector("mine.py:f[b=z]")


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [
        ("hangs_always", "time_limit", "did not finish on a small instance within the time limit of 2 s; killed"),
        ("hangs", "time_limit", "did not stop at its time limit of 2 s; killed"),
    ],
)
def test_the_time_limit_holds_for_the_warm_up_too(monkeypatch, name, status, error):
    monkeypatch.setattr(supervisor, "GRACE", 0.2)
    outcome = run(name, time_limit=2.0)
    assert (outcome.status, outcome.error) == (status, error)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("exits", "hostile_methods:exits: error: SystemExit: 0"),
        ("exits_at_once", "hostile_methods:exits_at_once: error: the process exited with code 0"),
        ("eats_memory", "hostile_methods:eats_memory: memory_limit: used 0."),
    ],
)
def test_the_command_solve_reports_a_failed_method_and_writes_no_file(tmp_path, name, error):
    out = tmp_path / "sol.json"
    code, printed, err = run_command(
        "solve", "library:tiny-loose-plain-0", "--method", f"{WHERE}:{name}", "--out", str(out), "--memory-limit", "0.3"
    )
    assert (code, printed, out.exists()) == (1, "", False)
    assert error in err


def test_the_command_show_reports_a_failed_method(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, printed, err = run_command("show", "library:tiny-loose-plain-0", "--method", f"{WHERE}:exits_at_once")
    assert (code, printed, err.count("\n"), list(tmp_path.iterdir())) == (1, "", 1, [])
    assert "exits_at_once: error: the process exited with code 0" in err


def test_a_crash_is_an_exception_in_python_and_not_the_end_of_the_process():
    with pytest.raises(RunError, match="crashes: error: the process was killed by SIGSEGV") as caught:
        relocbench.solve(INSTANCE, fake("crashes"))
    assert caught.value.outcome.failure == "died"
    result = relocbench.solve(INSTANCE, fake("hangs"), time_limit=0.2)
    assert "did not stop at its time limit" in result.stopped
    assert result.solution.home.tolist() == nearest_server(INSTANCE).tolist()


@pytest.mark.parametrize("name", ["forks_and_both_answer", "answers_twice"])
def test_two_answers_never_give_one_instance_the_costs_of_another(name):
    tasks = [Task(instance, hostile(name), seed) for seed in range(2) for instance in (INSTANCE, OTHER)]
    rows = list(sweep(tasks, None, Limits(20.0), reuse=True))
    assert len(rows) == 4
    for row in rows:
        instance = INSTANCE if row.hash == INSTANCE.hash else OTHER
        if row.status != "error":
            assert row.objective == evaluate(instance, row.home).objective
            assert row.home == nearest_server(instance).tolist()
        else:
            assert row.error == "answered twice"


def test_a_message_of_another_run_ends_the_run():
    record = RunRecord("this")
    record.add(b'["that", "home", [0]]')
    assert (record.home, record.invalid) == (None, "sent a message of another run")


def test_a_process_is_believed_about_the_time_only_as_far_as_nobody_looked():
    usage = {"cpu": 1.0, "peak": 1, "threads": 1, "kind": "raised", "message": ""}
    now = time.perf_counter()
    for ready, ended, expected in (
        (now - 2.0, now - 1.0, 1.0),  # both were read late: the process says how long it took
        (now - 2.0, now - 1.9999, 0.5),  # the supervisor looked after that, and there was no answer
        (now + 9.0, now + 9.0, 0.0),  # no message is from the future
        (now - 2.0, 0.0, 2.0),  # a clock that runs backwards says nothing: the moment of reading counts
    ):
        record = RunRecord("this", begin=now - 10.0)
        record.add(json.dumps(["this", "ready", {"cpu": 0.0, "clock": ready}]).encode(), now - 3.0)
        record.add(json.dumps(["this", "failure", usage | {"clock": ended}]).encode(), now - 1.5)
        assert record.ended_at - record.ready_at == pytest.approx(expected, abs=0.2)


def test_a_process_is_used_again_only_if_the_method_left_nothing_behind():
    with Worker() as worker:

        def process(name):
            return worker.run(INSTANCE, hostile(name), time_limit=20.0).facts["process"]

        first = process("reports_process_number")
        assert process("reports_process_number") == first
        assert process("leaves_a_thread") == first
        second = process("leaves_a_process")
        assert second != first
        assert process("reports_process_number") != second


@pytest.fixture(params=["groups", "no groups"])
def groups(request, monkeypatch):
    """Run a test with the control groups of the machine, and without."""
    if request.param == "no groups":
        monkeypatch.setattr(worker_process, "create_group", lambda limit: None)
    elif (group := create_group(1 << 30)) is None:
        pytest.skip("this machine has no control groups for this user")
    else:
        end_group(group)


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("name", "failure"), [("leaves_a_process", None), ("kills_its_guard", "died"), ("kills_its_group", "died")]
)
def test_nothing_that_a_method_has_started_survives_its_run(tmp_path, name, failure):
    log = tmp_path / "run.log"
    outcome = run(name, log=log)
    assert outcome.failure == failure
    left = [int(line.split()[1]) for line in log.read_text().splitlines() if line.startswith("left")]
    assert len(left) == (name != "kills_its_group")
    assert wait_for(lambda: not any(map(alive, left)), 2.0)


def test_a_process_is_remembered_when_the_guard_above_it_is_gone(monkeypatch):
    process = worker_process.WorkerProcess.__new__(worker_process.WorkerProcess)
    process.id, process._known = 1, {}
    lists = iter([[process_tree.Process(5, 1, False, 1, 0.0, 0.0)], []])
    monkeypatch.setattr(worker_process, "descendants", lambda root: next(lists))
    assert (process.usage().memory, process.usage().memory) == (1, 0)
    assert list(process._known) == [5]


@pytest.mark.usefixtures("groups")
def test_every_process_of_a_run_is_reaped(tmp_path):
    """Without this, the first process of a container could be left with dead processes."""
    log = tmp_path / "run.log"
    run("leaves_a_process", log=log)
    [left] = [line.split()[1] for line in log.read_text().splitlines() if line.startswith("left")]
    assert not Path(f"/proc/{left}").exists()


@pytest.mark.usefixtures("groups")
def test_the_memory_of_a_process_that_has_left_the_session_counts():
    outcome = run("escapes_and_eats_memory", memory_limit=500 * MIB)
    assert (outcome.status, outcome.failure) == ("memory_limit", "stopped")


@pytest.mark.parametrize("name", ["changes_the_instance", "changes_the_evaluator"])
def test_a_method_is_judged_by_the_instance_and_the_evaluator_of_this_process(name):
    honest = evaluate(INSTANCE, [0] * INSTANCE.n_clients).objective
    outcome = run(name)
    assert outcome.objective == honest > 0
    assert outcome.seconds > 0
    assert evaluate(INSTANCE, [0] * INSTANCE.n_clients).objective == honest
    assert relocbench.solve(INSTANCE, f"{WHERE}:{name}").evaluation.objective == honest


def test_a_proof_that_nobody_has_checked_is_only_claimed():
    outcome = run("claims_to_be_optimal")
    assert (outcome.status, outcome.failure) == ("claimed", None)
    assert outcome.bound == pytest.approx(outcome.objective)


@pytest.mark.parametrize("name", sorted(name for name in vars(hostile_methods) if name.startswith("sends_")))
def test_a_forged_final_message_is_refused(name):
    outcome = run(name)
    assert (outcome.status, outcome.failure) == ("error", "raised")
    assert outcome.error.startswith("sent an invalid message: ")


def test_an_answer_to_another_question_is_refused(mine):
    outcome = run("answers_another_question")
    assert (outcome.status, outcome.failure, outcome.error) == (
        "error",
        "raised",
        "sent an answer to another question",
    )
    mine.write_text(
        "import sys, time\n"
        "frame = sys._getframe()\n"
        "while 'reporter' not in frame.f_locals: frame = frame.f_back\n"
        "content = {'home': [], 'bound': 0, 'status': '', 'trace': [], 'facts': {}}\n"
        "content |= {'seconds': 0, 'cpu': 0, 'peak': 0, 'threads': 1}\n"
        "frame.f_locals['reporter'].send('result', content)\n"
        "time.sleep(1000)\n"
    )
    with pytest.raises(InputError, match="sent an answer to another question"):
        as_selector("mine.py:f")


def test_a_module_may_delete_its_log(mine):
    mine.write_text(f"import os, shutil\nshutil.rmtree(os.path.dirname(os.readlink('/proc/self/fd/1')))\n{GOOD}")
    assert str(as_selector("mine.py:f")) == "mine.py:f"


def test_a_wrong_limit_on_importing_is_reported_in_one_line(mine, monkeypatch):
    monkeypatch.setenv("RELOCBENCH_IMPORT_LIMIT", "1m")
    mine.write_text(GOOD)
    code, _, err = run_command("solve", "library:tiny-loose-plain-0", "--method", "mine.py:f")
    assert (code, err) == (2, "relocbench: method mine.py:f: expected a number, got '1m'\n")
    assert run_command("solve", "library:tiny-loose-plain-0", "--method", "nearest")[0] == 0


def test_a_description_of_arguments_that_is_no_description_is_refused():
    for described in ([["a", 5, None]], [["a", ["x"], None]], [["a b", "int", 0]], [1], [["a", {"any of": 1}, 0]]):
        with pytest.raises(InputError, match="invalid description"):
            checked_description({"arguments": described, "proves": "nothing", "code": "", "files": {}})


def test_a_method_may_delete_its_log(tmp_path):
    outcome = run("deletes_its_log", log=tmp_path / "run.log")
    assert (outcome.status, outcome.error) == ("feasible", None)


def test_an_endless_message_is_refused(monkeypatch):
    monkeypatch.setattr(worker_process, "MAX_MESSAGE", 1 << 22)
    outcome = run("writes_forever")
    assert (outcome.status, outcome.failure) == ("error", "raised")
    assert outcome.error.startswith("sent an invalid message: b'xxx")


def test_an_exception_that_cannot_be_printed_is_reported_by_its_name():
    outcome = run("raises_what_cannot_be_printed")
    assert (outcome.failure, outcome.error.split()[0]) == ("raised", "Unprintable")


def test_a_worker_of_one_method_is_not_used_for_another_method_after_external_code():
    """A start that is external code could change the modules of this project in the process."""
    with_start = as_selector(f"anneal[moves=10,start={WHERE}:changes_the_evaluator]")
    rows = list(
        sweep([Task(INSTANCE, with_start), Task(INSTANCE, as_selector("anneal[moves=10]"))], None, Limits(), reuse=True)
    )
    for row in rows:
        assert row.objective == evaluate(INSTANCE, row.home).objective


def test_psutil_lists_the_same_processes_as_proc():
    child = os.fork()
    if not child:
        time.sleep(100)
        os._exit(0)
    try:
        [here] = [process for process in process_tree.descendants(os.getpid()) if process.id == child]
        [there] = [process for process in process_tree._processes_of_psutil() if process.id == child]
        assert (here.parent, here.ended) == (there.parent, there.ended) == (os.getpid(), False)
        assert here.memory == pytest.approx(there.memory, rel=0.5)
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_groups_of_dead_supervisors_are_removed(tmp_path, monkeypatch):
    (tmp_path / "relocbench-999999999-0").mkdir()
    (tmp_path / f"relocbench-{os.getpid()}-x").mkdir()
    monkeypatch.setattr("relocbench.runs.isolation.cgroup._own_group", lambda: tmp_path)
    assert create_group(1) is None  # a plain folder cannot kill a group
    assert [path.name for path in sorted(Path(tmp_path).iterdir())] == [f"relocbench-{os.getpid()}-x"]
