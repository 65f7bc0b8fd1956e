import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.runs.isolation import supervisor
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.selectors import parse_selector
from relocbench.runs.solve import run_isolated, solve_here
from tests.runs.fake_methods import fake

INSTANCE = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(0)
MIB = 1 << 20


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


@pytest.fixture(scope="module")
def worker():
    with Worker(memory_limit=400 * MIB) as shared:
        yield shared


def test_an_isolated_run_returns_the_same_as_a_run_in_this_process():
    points = []
    outcome = run_isolated(INSTANCE, "enumerate", seed=1, on_progress=lambda *point: points.append(point))
    here = solve_here(INSTANCE, "enumerate", seed=1)
    assert (outcome.status, outcome.failure, outcome.error) == ("optimal", None, None)
    assert outcome.home.tolist() == here.solution.home.tolist()
    assert outcome.objective == pytest.approx(here.evaluation.objective, rel=1e-12)
    assert outcome.bound == pytest.approx(here.solution.bound)
    assert dict(outcome.facts) == dict(here.solution.facts)
    assert [point[1:] for point in outcome.trace] == [point[1:] for point in points]
    assert outcome.peak_memory > 10 * MIB
    assert outcome.cpu_seconds > 0


@pytest.mark.parametrize(
    ("method", "settings", "status", "failure", "error"),
    [
        ("crashes", {}, "error", "died", "the process was killed by SIGSEGV before it returned a result"),
        ("exits", {"code": 3}, "error", "died", "the process exited with code 3 before it returned a result"),
        ("raises", {}, "error", "raised", "RuntimeError: no luck today"),
        ("calls_exit", {}, "error", "raised", "SystemExit: 7"),
        ("writes_garbage", {}, "error", "raised", "sent an invalid message: b'garbage'"),
        ("wrong_homes", {}, "error", "raised", "InputError: home: expected 4 servers, one per client, got 5"),
        ("eats_memory", {"slowly": True}, "memory_limit", "stopped", "the limit is 0.390625 GiB; killed"),
        ("children_eat_memory", {}, "memory_limit", "stopped", "the limit is 0.390625 GiB; killed"),
    ],
)
def test_every_failure_becomes_an_outcome_and_the_next_run_succeeds(worker, method, settings, status, failure, error):
    outcome = worker.run(INSTANCE, fake(method, **settings), time_limit=30.0)
    assert (outcome.status, outcome.failure) == (status, failure)
    assert error in outcome.error
    assert worker.run(INSTANCE, fake("quiet"), time_limit=1.0).status == "feasible"


def test_a_large_allocation_is_refused_by_the_system():
    with Worker(memory_limit=300 * MIB) as small:
        outcome = small.run(INSTANCE, fake("allocates_at_once"), time_limit=30.0)
    assert (outcome.status, outcome.failure) == ("memory_limit", "raised")
    assert outcome.error == "ran out of memory, the limit is 0.292969 GiB"


def test_a_method_that_ignores_its_time_limit_is_killed_and_its_reports_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "GRACE", 0.2)
    log = tmp_path / "run.log"
    outcome = run_isolated(INSTANCE, fake("hangs"), time_limit=0.3, log=log)
    assert (outcome.status, outcome.failure) == ("time_limit", "stopped")
    assert "did not stop at its time limit of 0.3 s" in outcome.error
    assert outcome.objective == pytest.approx(evaluate(INSTANCE, outcome.home).objective)
    assert outcome.bound == pytest.approx(outcome.objective / 2)
    child = int(log.read_text().split()[1])
    assert wait_for(lambda: not alive(child))


def test_a_method_that_is_not_ready_in_time_is_killed():
    with Worker(startup_limit=0.05) as impatient:
        outcome = impatient.run(INSTANCE, fake("quiet"))
    assert (outcome.status, outcome.failure) == ("error", "stopped")
    assert "was not ready to run after 0.05 s" in outcome.error


def test_a_stop_kills_the_process_and_interrupts_the_call(tmp_path):
    log, stop = tmp_path / "run.log", threading.Event()

    def stop_when_running():
        wait_for(lambda: log.exists() and log.read_text())
        stop.set()

    threading.Thread(target=stop_when_running).start()
    with pytest.raises(KeyboardInterrupt):
        run_isolated(INSTANCE, fake("hangs"), time_limit=100.0, log=log, stop=stop)
    assert wait_for(lambda: not alive(int(log.read_text().split()[1])))


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_workers_and_their_children_end_when_the_supervisor_ends(tmp_path, sent):
    log = tmp_path / "run.log"
    script = (
        "from pathlib import Path\n"
        "from tests.runs.fake_methods import fake\n"
        "from tests.runs.isolation.test_supervisor import INSTANCE\n"
        "from relocbench.runs.solve import run_isolated\n"
        f"run_isolated(INSTANCE, fake('hangs'), time_limit=100.0, log=Path({str(log)!r}))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    assert wait_for(lambda: log.exists() and log.read_text().strip(), 60.0)
    pids = [int(log.read_text().split()[1])]
    pids.append(int(Path(f"/proc/{pids[0]}/stat").read_text().rpartition(")")[2].split()[1]))
    assert all(map(alive, pids))
    parent.send_signal(sent)
    parent.wait()
    assert wait_for(lambda: not any(map(alive, pids)))


def test_all_output_goes_to_the_log_and_a_long_log_is_truncated(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(supervisor, "MAX_LOG_SIZE", 4 * MIB)
    log = tmp_path / "logs" / "run.log"
    outcome = run_isolated(INSTANCE, fake("prints_endlessly"), log=log)
    assert outcome.status == "feasible"
    with log.open("rb") as file:
        assert file.read(300).startswith(b"hello from Python\nhello from below\n")
    assert b"[the log was cut here]" in log.read_bytes()
    assert log.stat().st_size < 60 * MIB
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("method", "problem"),
    [
        ("bound_above_own_cost", "claims the bound 9.75694315368421"),
        ("reports_false_incumbent", "reported the incumbent 4.37847157684210"),
    ],
)
def test_a_false_claim_is_an_error_that_names_both_numbers(worker, method, problem):
    outcome = worker.run(INSTANCE, fake(method))
    assert (outcome.status, outcome.failure) == ("error", "claim")
    assert problem in outcome.error
    assert "8.75694315368421" in outcome.error


def test_a_method_refuses_an_instance_that_it_does_not_support(worker):
    large = FAMILIES["small"].cells({"regime": "loose", "clients": 39})[0].build(0)
    outcome = worker.run(large, parse_selector("enumerate"))
    assert (outcome.status, outcome.failure) == ("error", "refused")
    assert outcome.error.startswith("method enumerate: expected at most")


def test_the_number_of_threads_is_passed_to_libraries():
    assert run_isolated(INSTANCE, fake("threads_seen", threads=3)).facts == {"threads": 3.0}
    assert run_isolated(INSTANCE, fake("threads_seen")).facts == {"threads": 1.0}


def test_a_closed_worker_leaves_no_open_files():
    before = len(os.listdir("/proc/self/fd"))
    with Worker() as worker:
        worker.run(INSTANCE, fake("exits"))
        worker.run(INSTANCE, fake("quiet"))
    assert len(os.listdir("/proc/self/fd")) == before
