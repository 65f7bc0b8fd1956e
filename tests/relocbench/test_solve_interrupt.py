import os
import signal
import subprocess
import sys
import time

import pytest

import relocbench
from relocbench.instances.files.homes_file import read_solution
from relocbench.instances.library.library import Library

INSTANCE = Library().read("paper-s10-3")
PROGRAM = """
import time
from pathlib import Path
from relocbench.instances.evaluation import evaluate

def is_real_run(instance):
    return instance.name == "paper-s10-3"

def reports(instance, *, seed, time_limit, on_progress=None):
    home = [0] * instance.n_clients
    if is_real_run(instance):
        on_progress.keep(home)
        on_progress(0.0, evaluate(instance, home).objective, float("-inf"))
        time.sleep(1000)
    return home

def says_nothing(instance, *, seed, time_limit):
    if is_real_run(instance):
        Path(__file__).with_name("started").touch()
        time.sleep(1000)
    return [0] * instance.n_clients
"""


@pytest.fixture
def started(tmp_path):
    """Return a function that starts ``relocbench solve``; lines of progress are printed all the time."""
    (tmp_path / "mine.py").write_text(PROGRAM)
    processes = []

    def start(method):
        command = [sys.executable, "-m", "relocbench", "solve", "library:paper-s10-3", "--method", method]
        process = subprocess.Popen(
            [*command, "--time-limit", "500", "--out", "out.json"],
            cwd=tmp_path,
            env=os.environ | {"RELOCBENCH_PROGRESS": "0.05", "PYTHONPATH": ":".join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["anneal", "mine.py:reports"])
def test_an_interrupt_keeps_the_best_homes_so_far(started, tmp_path, method):
    process = started(method)
    assert any("ΣD = " in line for line in process.stderr)  # waits for the first progress
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"relocbench: {method}: interrupted after" in err
    assert "Traceback" not in err
    assert out.startswith(f"{method}: feasible, Y = ")
    stored = read_solution(tmp_path / "out.json", INSTANCE)
    assert (stored.method, stored.status, stored.bound) == (method, "feasible", None)


@pytest.mark.slow
def test_an_interrupt_before_the_first_homes_gives_one_line(started, tmp_path):
    process = started("mine.py:says_nothing")
    while not (tmp_path / "started").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    line = "relocbench: mine.py:says_nothing: interrupted before it reported homes; nothing was written"
    assert err.splitlines()[-1] == line
    assert "Traceback" not in err
    assert not (tmp_path / "out.json").exists()


def test_a_second_interrupt_ends_the_process_at_once():
    program = """
import os, signal
from relocbench.terminal import second_interrupt_ends_at_once
with second_interrupt_ends_at_once():
    try:
        os.kill(os.getpid(), signal.SIGINT)
    except KeyboardInterrupt:
        print("first", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    print("still running", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "first\n", "")


@pytest.mark.parametrize("method", ["anneal", "enumerate"])
def test_from_python_an_interrupt_is_raised_unless_the_incumbent_is_wanted(method):
    instance = relocbench.generate("tiny", seed=0, regime="scarce", shape="plain")

    def interrupt(*point):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        relocbench.solve(instance, method, time_limit=5, on_progress=interrupt)
    result = relocbench.solve(instance, method, time_limit=5, on_progress=interrupt, keep_incumbent=True)
    assert (result.stopped, result.solution.status) == ("interrupted", "feasible")
    assert result.evaluation.objective == pytest.approx(relocbench.evaluate(instance, result.solution.home).objective)
