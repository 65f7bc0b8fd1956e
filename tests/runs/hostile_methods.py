"""Methods of other people that misbehave: each does one thing that could harm or deceive the workbench."""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np

from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Solution


def is_real_run(instance):
    """Return whether this is not the instance of the warm-up."""
    return not instance.name.startswith("preliminary")


def behaves(instance, *, seed, time_limit):
    return nearest_server(instance)


def reports_process_number(instance, *, seed, time_limit):
    return Solution(nearest_server(instance), facts={"process": float(os.getpid())})


def hangs_always(instance, *, seed, time_limit):
    time.sleep(1000)


def hangs(instance, *, seed, time_limit):
    if is_real_run(instance):
        time.sleep(1000)
    return nearest_server(instance)


def exits(instance, *, seed, time_limit):
    sys.exit(0)


def exits_at_once(instance, *, seed, time_limit):
    os._exit(0)


def eats_memory(instance, *, seed, time_limit):
    held = []
    while is_real_run(instance):
        held.append(np.ones(1 << 22))
        time.sleep(0.01)
    return nearest_server(instance)


def forks_and_both_answer(instance, *, seed, time_limit):
    if is_real_run(instance) and not os.fork():
        time.sleep(0.2)
        return [0] * instance.n_clients
    return nearest_server(instance)


def answers_twice(instance, *, seed, time_limit):
    """Let a child answer and end before this process answers."""
    if is_real_run(instance) and (child := os.fork()):
        time.sleep(0.5)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return nearest_server(instance)


def leaves_a_thread(instance, *, seed, time_limit):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    return reports_process_number(instance, seed=seed, time_limit=time_limit)


def leaves_a_process(instance, *, seed, time_limit):
    """Start a process that leaves the session, and end its parent."""
    if is_real_run(instance):
        program = "import os, time; os.setsid(); os.fork() and os._exit(0)\n"
        program += "print('left', os.getpid(), flush=True); time.sleep(1000)"
        subprocess.run([sys.executable, "-c", program], check=True)
        time.sleep(0.5)
    return reports_process_number(instance, seed=seed, time_limit=time_limit)


def escapes_and_eats_memory(instance, *, seed, time_limit):
    if is_real_run(instance):
        program = "import os, time; os.setsid(); os.fork() and os._exit(0); held = b'1' * (700 << 20); time.sleep(1000)"
        subprocess.run([sys.executable, "-c", program], check=True, env={})
        time.sleep(1000)
    return nearest_server(instance)


def kills_its_guard(instance, *, seed, time_limit):
    """Start a process without the mark in its environment, then kill the process above this one."""
    if is_real_run(instance):
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        child = subprocess.Popen(
            [sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True, env={}
        )
        print(f"left {child.pid}", flush=True)
        time.sleep(0.5)
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(1000)
    return nearest_server(instance)


def kills_its_group(instance, *, seed, time_limit):
    if is_real_run(instance):
        os.killpg(0, signal.SIGKILL)
    return nearest_server(instance)


def changes_the_instance(instance, *, seed, time_limit):
    """Make every delay zero, so that the worst homes seem to cost nothing."""
    for name in ("client_x", "client_y", "server_x", "server_y", "storage_capacity", "spool", "server_delay"):
        array = getattr(instance, name)
        address = array.__array_interface__["data"][0]
        ctypes.memset(address, 0, array.nbytes)
    object.__setattr__(instance, "cloud_delay", 0.0)
    return [0] * instance.n_clients


def changes_the_evaluator(instance, *, seed, time_limit):
    from relocbench.instances import evaluation
    from relocbench.runs import solve

    cheap = types.SimpleNamespace(objective=0.0)
    solve.evaluate = evaluation.evaluate = lambda *_: cheap
    time.perf_counter = lambda: 0.0
    return [0] * instance.n_clients


def claims_to_be_optimal(instance, *, seed, time_limit):
    from relocbench.instances.evaluation import evaluate

    home = nearest_server(instance)
    return Solution(home, bound=evaluate(instance, home).objective, status="optimal")


def raises_what_cannot_be_printed(instance, *, seed, time_limit):
    class Unprintable(BaseException):
        def __str__(self):
            raise RuntimeError

    if is_real_run(instance):
        raise Unprintable


def writes_forever(instance, *, seed, time_limit):
    """Write a message without an end to every open socket."""
    if is_real_run(instance):
        for number in range(3, 64):
            try:
                os.set_blocking(number, True)
                while os.write(number, b"x" * 65536):
                    pass
            except OSError:
                continue
    return nearest_server(instance)


def deletes_its_log(instance, *, seed, time_limit):
    if is_real_run(instance):
        os.unlink(os.readlink("/proc/self/fd/1"))
        time.sleep(0.5)
    return nearest_server(instance)


def sends(content, kind="result"):
    """Return a method that sends a final message with the given content in its own name."""

    def method(instance, *, seed, time_limit):
        if is_real_run(instance):
            frame = sys._getframe()
            while "reporter" not in frame.f_locals:
                frame = frame.f_back
            frame.f_locals["reporter"].send(kind, content(instance))
            time.sleep(1000)
        return nearest_server(instance)

    return method


def _result(instance, **changed):
    correct = {"home": [0] * instance.n_clients, "bound": 0.0, "status": "feasible", "trace": [], "facts": {}}
    return correct | {"seconds": 0.1, "cpu": 0.1, "peak": 1, "threads": 1} | changed


sends_homes_of_text = sends(lambda instance: _result(instance, home="0" * instance.n_clients))
sends_huge_homes = sends(lambda instance: _result(instance, home=[10**30] * instance.n_clients))
sends_a_trace_of_text = sends(lambda instance: _result(instance, trace=[["a", "b", "c"]]))
sends_a_status_of_numbers = sends(lambda instance: _result(instance, status=[1]))
sends_endless_seconds = sends(lambda instance: _result(instance, seconds=float("inf")))
sends_a_bound_of_text = sends(lambda instance: _result(instance, bound="high"))
sends_facts_of_lists = sends(lambda instance: _result(instance, facts={"x": []}))
sends_nothing = sends(lambda instance: None)
answers_another_question = sends(lambda instance: {}, kind="description")
