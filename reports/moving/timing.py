"""The time of one run of each method, on instances like those of the paper with more clients."""

import hashlib
import json
import math
import time
from pathlib import Path
from typing import Any

from relocbench.instances.generators.families import family
from relocbench.reports.moving.plan import Plan
from relocbench.reports.moving.rows import TimeRow
from relocbench.reports.moving.units import read_result, write_result
from relocbench.runs.methods import Selector
from relocbench.runs.progress import progress
from relocbench.runs.solve import solve_here, warm_up

# The size of the paper's instances, from which larger ones are made: capacities and servers grow with the clients.
PAPER_TOPICS, PAPER_CLIENTS, PAPER_SERVERS, PAPER_STORAGE, PAPER_COMPUTE = 64, 390, 16, 640.0, 3200.0
MOST_SERVERS = 256
# A run is repeated as long as all runs of a size took less than this, at most so often. The least time counts.
TIMING_SECONDS, TIMING_RUNS = 3.0, 5


def measured_times(plan: Plan, results: Path) -> list[TimeRow]:
    """Measure one run of each method at each size of a plan, by itself, before other processes run.

    Parameters
    ----------
    plan
        The plan.
    results
        The folder in which measured times are kept. They are not measured again.

    Returns
    -------
    list of TimeRow
        The times, by increasing size.
    """
    found = []
    work = [(selector, size) for size in sorted(plan.sizes) for selector in plan.selectors]
    for selector, size in progress(work, len(work), "measuring times"):
        path = results / _file_name(selector, size)
        result = read_result(path)
        if result is None:
            result = _measured(selector, size, plan.time_limit)
            write_result(path, result)
        found.append(TimeRow(method=str(selector), **result))
    return found


def _file_name(selector: Selector, size: int) -> str:
    """Return the name of the file with a measured time. Other code of the method has another name."""
    text = json.dumps([str(selector), size, selector.version()])
    return f"time-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"


def _measured(selector: Selector, size: int, time_limit: float) -> dict[str, Any]:
    scale = size / PAPER_CLIENTS
    topics = max(1, round(PAPER_TOPICS * scale))
    servers = min(MOST_SERVERS, max(PAPER_SERVERS, round(PAPER_SERVERS * math.sqrt(scale))))
    # Capacities grow in proportion to the clients of a server, so they are as tight as at the paper's size.
    share = topics / PAPER_TOPICS * PAPER_SERVERS / servers
    settings = {
        "topics": topics,
        "servers": servers,
        "storage": PAPER_STORAGE * share,
        "compute": PAPER_COMPUTE * share,
    }
    instance = family("paper").cells({"sigma": 5.0, **settings})[0].build(0)
    warm_up(selector)
    taken: list[float] = []
    while not taken or (len(taken) < TIMING_RUNS and sum(taken) < TIMING_SECONDS):
        begin = time.perf_counter()
        solve_here(instance, selector, seed=0, time_limit=max(time_limit, 600.0))
        taken.append(time.perf_counter() - begin)
    return {"clients": instance.n_clients, "servers": servers, "seconds": min(taken)}
