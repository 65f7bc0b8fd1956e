"""Run RELOC and the baselines on 10⁴ to 10⁶ memberships: seconds for each part, peak memory, measured exponent.

python benchmarks/scale.py
"""

import resource
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from relocbench.heuristics import nearest, otos, reloc
from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.relations import svd_factors
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.solution import Solution

# Topics, servers, K. Servers and clusters grow with the topics, so a cluster has about 10,000 clients and 16 servers.
SIZES = ((1_050, 16, 1), (10_500, 112, 7), (105_000, 1_024, 64))


def timed(work: Callable[[], Solution]) -> tuple[float, Solution]:
    begin = time.perf_counter()
    solution = work()
    return time.perf_counter() - begin, solution


def main() -> None:
    methods = {
        "nearest": nearest.solve,
        "otos": otos.solve,
        "reloc": reloc.solve,
        "reloc[relation=exact]": partial(reloc.solve, relation="exact"),
    }
    for method in methods.values():
        method(FAMILIES["paper"].cells({"sigma": 5})[0].build(0), seed=0, time_limit=1.0)  # compiles the kernels
    sizes, times = [], {name: [] for name in methods}
    for topics, servers, clusters in SIZES:
        # Capacities grow in proportion, so they are as tight as at the paper's size.
        share = topics / 64 * 16 / servers
        settings = {"topics": topics, "servers": servers, "storage": 640 * share, "compute": 3200 * share}
        instance = FAMILIES["paper"].cells({"sigma": 10, **settings})[0].build(0)
        sizes.append(len(instance.members.item))
        print(f"{sizes[-1]:,} memberships, {instance.n_clients:,} clients, {servers} servers, K = {clusters}")
        begin = time.perf_counter()
        make_clusters(instance, clusters, 0)
        between = time.perf_counter()
        svd_factors(instance, 16)
        print(f"  of RELOC: K-means {between - begin:.2f} s, factorisation {time.perf_counter() - between:.2f} s")
        for name, method in methods.items():
            more = {"k": clusters} if name.startswith("reloc") else {}
            seconds, solution = timed(partial(method, instance, seed=0, time_limit=1e9, **more))
            times[name].append(seconds)
            print(f"  {name:22} {seconds:8.2f} s   Y = {evaluate(instance, solution.home).y:.3f}")
        print(f"  peak memory so far {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    for name, seconds in times.items():
        steps = np.diff(np.log(seconds)) / np.diff(np.log(sizes))
        exponent = np.polyfit(np.log(sizes), np.log(seconds), 1)[0]
        print(f"{name:22} exponent {exponent:.2f}  (step by step {np.round(steps, 2)})")


if __name__ == "__main__":
    main()
