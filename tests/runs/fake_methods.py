"""Methods that make false claims, crash, hang or use too much memory, but not on the instance of the warm-up."""

import ctypes
import math
import os
import subprocess
import sys
import time

import numpy as np

from relocbench.instances.evaluation import evaluate
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Solution
from relocbench.runs.methods import Method, Selector
from relocbench.runs.solve import solve_here as solve


def fake(name, proves="optimality", **settings):
    """Return a selector for one of the functions below, which are not in the registry."""
    return Selector(Method(name, "", proves, f"tests.runs.fake_methods:{name}"), settings)


def is_real_run(instance):
    """Return whether this is not the instance of the warm-up."""
    return "-clients-3-servers-2-" not in instance.name


def _nearest(instance):
    home = nearest_server(instance)
    return home, evaluate(instance, home).objective


def quiet(instance, *, seed, time_limit):
    return Solution(nearest_server(instance))


def reports_process_number(instance, *, seed, time_limit):
    return Solution(nearest_server(instance), facts={"process": float(os.getpid())})


def hangs(instance, *, seed, time_limit, on_progress=None):
    """Report homes and a bound, then ignore the time limit together with a child process."""
    home, cost = _nearest(instance)
    if is_real_run(instance):
        on_progress.keep(home)
        on_progress(0.0, cost, cost / 2)
        child = subprocess.Popen(["sleep", "1000"])
        print(f"child {child.pid}", flush=True)
        time.sleep(1000)
    return Solution(home)


def eats_memory(instance, *, seed, time_limit, slowly: bool = False):
    held = []
    while is_real_run(instance):
        held.append(np.ones(1 << 22))  # 32 MiB
        if slowly:
            time.sleep(0.02)
    return Solution(nearest_server(instance))


def allocates_at_once(instance, *, seed, time_limit):
    if is_real_run(instance):
        np.ones(1 << 28)  # 2 GiB
    return Solution(nearest_server(instance))


def children_eat_memory(instance, *, seed, time_limit):
    """Start two children, each below the memory limit, which exceed it together."""
    if is_real_run(instance):
        eat = [sys.executable, "-c", "import time; held = b'1' * (250 << 20); time.sleep(1000)"]
        children = [subprocess.Popen(eat) for _ in range(2)]
        for child in children:
            child.wait()
    return Solution(nearest_server(instance))


def crashes(instance, *, seed, time_limit):
    if is_real_run(instance):
        os.write(2, b"about to read address zero\n")
        ctypes.string_at(0)
    return Solution(nearest_server(instance))


def exits(instance, *, seed, time_limit, code: int = 0):
    if is_real_run(instance):
        os._exit(code)
    return Solution(nearest_server(instance))


def raises(instance, *, seed, time_limit):
    if is_real_run(instance):
        raise RuntimeError("no luck\ntoday")
    return Solution(nearest_server(instance))


def calls_exit(instance, *, seed, time_limit):
    if is_real_run(instance):
        sys.exit(7)
    return Solution(nearest_server(instance))


def prints_endlessly(instance, *, seed, time_limit, mebibytes: int = 100):
    """Print a lot from Python and from below it, and still return homes."""
    print("hello from Python")
    os.write(1, b"hello from below\n")
    if is_real_run(instance):
        for _ in range(mebibytes):
            os.write(1, b"blah " * 200_000)
            time.sleep(0.001)
    return Solution(nearest_server(instance))


def writes_garbage(instance, *, seed, time_limit):
    """Write an invalid message to every open file descriptor."""
    if is_real_run(instance):
        for number in range(3, 64):
            try:
                os.write(number, b"garbage\n")
            except OSError:
                continue
        time.sleep(1000)
    return Solution(nearest_server(instance))


def wrong_homes(instance, *, seed, time_limit):
    return Solution(np.full(instance.n_clients + is_real_run(instance), 0, np.int32))


def reports_false_incumbent(instance, *, seed, time_limit, on_progress=None):
    """Report an incumbent that costs less than the homes returned."""
    home, cost = _nearest(instance)
    if is_real_run(instance):
        on_progress(0.0, cost / 2, -math.inf)
    return Solution(home, trace=((0.0, cost / 2, -math.inf),))


def threads_seen(instance, *, seed, time_limit, threads: int = 1):
    return Solution(nearest_server(instance), facts={"threads": float(os.environ["OMP_NUM_THREADS"])})


def nearest_is_optimal(instance, *, seed, time_limit):
    """Claim that the nearest servers are optimal."""
    home, cost = _nearest(instance)
    return Solution(home, bound=cost, status="optimal")


def bound_above_own_cost(instance, *, seed, time_limit):
    home, cost = _nearest(instance)
    return Solution(home, bound=cost + 1.0, status="optimal")


def bound_too_high(instance, *, seed, time_limit):
    """Return poor homes and a bound above the optimum but below their cost, like an invalid relaxation."""
    best = solve(instance, "enumerate", time_limit=10).solution.home
    worst = max(
        (np.full(instance.n_clients, server, np.int32) for server in range(instance.n_servers)),
        key=lambda home: evaluate(instance, home).objective,
    )
    low, high = (evaluate(instance, home).objective for home in (best, worst))
    return Solution(worst, bound=0.5 * (low + high), status="time_limit")


def wrong_for_lone_publishers(instance, *, seed, time_limit):
    """Return the optimum, except if a topic has one publisher and three or more subscribers."""
    odd = (instance.publishers.sizes == 1) & (instance.subscribers.sizes >= 3)
    if not odd.any():
        return solve(instance, "enumerate", time_limit=10).solution
    home = np.full(instance.n_clients, instance.n_servers - 1, np.int32)
    return Solution(home, bound=evaluate(instance, home).objective, status="optimal")
