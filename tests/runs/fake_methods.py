"""Methods that lie, crash, hang and eat memory; the warm-up, which is on a toy, they survive."""

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
from relocbench.runs.methods import Method
from relocbench.runs.selectors import Selector
from relocbench.runs.solve import solve


def fake(name, proves="optimality", **settings):
    """Select one of the functions below, which no registry knows."""
    return Selector(Method(name, "", proves, f"tests.runs.fake_methods:{name}"), settings)


def in_earnest(instance):
    """Whether this is not the toy of the warm-up."""
    return "-clients-3-servers-2-" not in instance.name


def _nearest(instance):
    home = nearest_server(instance)
    return home, evaluate(instance, home).objective


def quiet(instance, *, seed, time_limit):
    return Solution(nearest_server(instance))


def tells_its_process(instance, *, seed, time_limit):
    return Solution(nearest_server(instance), facts={"process": float(os.getpid())})


def hangs(instance, *, seed, time_limit, on_progress=None):
    """Report homes and a bound, start a child that hangs as well, and ignore all limits."""
    home, cost = _nearest(instance)
    if in_earnest(instance):
        on_progress.keep(home)
        on_progress(0.0, cost, cost / 2)
        child = subprocess.Popen(["sleep", "1000"])
        print(f"child {child.pid}", flush=True)
        time.sleep(1000)
    return Solution(home)


def eats_memory(instance, *, seed, time_limit, slowly: bool = False):
    held = []
    while in_earnest(instance):
        held.append(np.ones(1 << 22))  # 32 MiB
        if slowly:
            time.sleep(0.02)
    return Solution(nearest_server(instance))


def asks_for_much(instance, *, seed, time_limit):
    if in_earnest(instance):
        np.ones(1 << 28)  # 2 GiB
    return Solution(nearest_server(instance))


def children_eat_memory(instance, *, seed, time_limit):
    """Two children, each well below the limit, both together above it."""
    if in_earnest(instance):
        eat = [sys.executable, "-c", "import time; held = b'1' * (250 << 20); time.sleep(1000)"]
        children = [subprocess.Popen(eat) for _ in range(2)]
        for child in children:
            child.wait()
    return Solution(nearest_server(instance))


def crashes(instance, *, seed, time_limit):
    if in_earnest(instance):
        os.write(2, b"about to read address zero\n")
        ctypes.string_at(0)
    return Solution(nearest_server(instance))


def exits(instance, *, seed, time_limit, code: int = 0):
    if in_earnest(instance):
        os._exit(code)
    return Solution(nearest_server(instance))


def raises(instance, *, seed, time_limit):
    if in_earnest(instance):
        raise RuntimeError("no luck\ntoday")
    return Solution(nearest_server(instance))


def wants_out(instance, *, seed, time_limit):
    if in_earnest(instance):
        sys.exit(7)
    return Solution(nearest_server(instance))


def babbles(instance, *, seed, time_limit, mebibytes: int = 100):
    """Print without end, in Python and below it, and still give an answer."""
    print("hello from Python")
    os.write(1, b"hello from below\n")
    if in_earnest(instance):
        for _ in range(mebibytes):
            os.write(1, b"blah " * 200_000)
            time.sleep(0.001)
    return Solution(nearest_server(instance))


def writes_garbage(instance, *, seed, time_limit):
    """Write nonsense into every channel there is."""
    if in_earnest(instance):
        for number in range(3, 64):
            try:
                os.write(number, b"garbage\n")
            except OSError:
                continue
        time.sleep(1000)
    return Solution(nearest_server(instance))


def wrong_homes(instance, *, seed, time_limit):
    return Solution(np.full(instance.n_clients + (in_earnest(instance)), 0, np.int32))


def boasts(instance, *, seed, time_limit, on_progress=None):
    """Report an incumbent that no homes have, with homes that cost more."""
    home, cost = _nearest(instance)
    if in_earnest(instance):
        on_progress(0.0, cost / 2, -math.inf)
    return Solution(home, trace=((0.0, cost / 2, -math.inf),))


def threads_seen(instance, *, seed, time_limit, threads: int = 1):
    return Solution(nearest_server(instance), facts={"threads": float(os.environ["OMP_NUM_THREADS"])})


def nearest_is_optimal(instance, *, seed, time_limit):
    """Say that the nearest servers are optimal, always."""
    home, cost = _nearest(instance)
    return Solution(home, bound=cost, status="optimal")


def bound_above_own_cost(instance, *, seed, time_limit):
    home, cost = _nearest(instance)
    return Solution(home, bound=cost + 1.0, status="optimal")


def bound_too_high(instance, *, seed, time_limit):
    """Have poor homes and a bound between their cost and the optimum, as a wrong relaxation does."""
    best = solve(instance, "enumerate", time_limit=10).solution.home
    worst = max(
        (np.full(instance.n_clients, server, np.int32) for server in range(instance.n_servers)),
        key=lambda home: evaluate(instance, home).objective,
    )
    low, high = (evaluate(instance, home).objective for home in (best, worst))
    return Solution(worst, bound=0.5 * (low + high), status="time_limit")


def wrong_for_lone_publishers(instance, *, seed, time_limit):
    """Be right, except where a topic with one publisher has three subscribers or more."""
    odd = (instance.publishers.sizes == 1) & (instance.subscribers.sizes >= 3)
    if not odd.any():
        return solve(instance, "enumerate", time_limit=10).solution
    home = np.full(instance.n_clients, instance.n_servers - 1, np.int32)
    return Solution(home, bound=evaluate(instance, home).objective, status="optimal")
