"""Compare `adaptive` with RELOC on 10³ to 10⁵ clients: the ratio of their times within one run, and `Y`.

python benchmarks/adaptive_scale.py
"""

import os
import time
from collections.abc import Callable
from functools import partial

from relocbench.heuristics import adaptive, nearest, otos, reloc
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.solution import Solution

# Topics and servers. 16,900 topics have about 100,000 clients.
SIZES = ((169, 25), (1_690, 64), (16_900, 100), (16_900, 256), (16_900, 1_024))
OURS = "adaptive"
METHODS: dict[str, Callable[..., Solution]] = {
    "nearest": nearest.solve,
    "otos": otos.solve,
    "reloc[reading=pseudocode]": partial(reloc.solve, reading="pseudocode"),
    "reloc[reading=prose]": partial(reloc.solve, reading="prose"),
    "reloc[reading=prose,ties=placed]": partial(reloc.solve, reading="prose", ties="placed"),
    OURS: adaptive.solve,
}
ROUNDS = 5


def main() -> None:
    for method in METHODS.values():
        method(FAMILIES["paper"].cells({"sigma": 5})[0].build(0), seed=0, time_limit=1e9)  # compiles the kernels
    for topics, servers in SIZES:
        # Capacities grow in proportion, so they are as tight as at the paper's size.
        share = topics / 64 * 16 / servers
        settings = {"topics": topics, "servers": servers, "storage": 640 * share, "compute": 3200 * share}
        instance = FAMILIES["paper"].cells({"sigma": 10, **settings})[0].build(0)
        print(f"{instance.n_clients:,} clients, {servers} servers; load of the machine {os.getloadavg()[0]:.1f}")
        # The methods take turns, so that other work on the machine slows all of them down alike. The least time counts.
        least = dict.fromkeys(METHODS, float("inf"))
        y = {}
        for _ in range(ROUNDS):
            for name, method in METHODS.items():
                begin = time.perf_counter()
                home = method(instance, seed=0, time_limit=1e9).home
                least[name] = min(least[name], time.perf_counter() - begin)
                y[name] = evaluate(instance, home).y
        for name, seconds in least.items():
            ratio = f"   ratio of {OURS} {least[OURS] / seconds:.2f}" if name.startswith("reloc") else ""
            print(f"  {name:34} {1e3 * seconds:8.1f} ms   Y = {y[name]:.3f}{ratio}")


if __name__ == "__main__":
    main()
