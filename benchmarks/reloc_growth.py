"""Measure how RELOC's assignment loop grows with each factor of the paper's O(|T|·max|C_n|·max|T'|·M').

python benchmarks/reloc_growth.py [plot.svg]
"""

import math
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.readings import Reading
from relocbench.heuristics.relations import svd_factors
from relocbench.heuristics.reloc import relation_finder
from relocbench.heuristics.reloc_loop import Rules, place
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

ROUNDS = 5
BASE = {"topics": 512, "members": 16, "per_client": 2, "related": 100}
SWEEPS = {
    "topics |T|": ("topics", (128, 256, 512, 1024, 2048)),
    "members |C_n|": ("members", (4, 8, 16, 32, 64)),
    "topics per client |T'|": ("per_client", (1, 2, 4, 8, 16)),
    "related M'": ("related", (6, 12, 25, 50, 100, 200)),
}


def best_seconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def loop_seconds(instance: Instance, related: int, revisit: bool) -> float:
    """Return the time of the assignment loop alone, over all clusters."""
    finder = relation_finder(instance, Reading(), related, 0)
    assert finder is not None
    tasks = []
    for cluster in cluster_tasks(instance, make_clusters(instance, 4, 0)):
        found = finder(cluster)
        tasks.append(cluster.task._replace(related_start=found.start, related=found.item))
    rules = Rules(cooperate=True, revisit=revisit)
    return best_seconds(lambda: [place(task, rules) for task in tasks])


def worst_case(topics: int, members: int, per_client: int) -> Instance:
    """Return an instance of these sizes whose servers are always full.

    Then the loop reads every list of related clients to its end, and every client moves with all its topics. This
    is the worst case, for which the paper states its bound.
    """
    clients = topics * members // per_client
    rng = np.random.default_rng(0)
    rounds = [rng.permutation(clients).reshape(-1, members) for _ in range(per_client)]
    groups = Ragged.of([group.tolist() for group in np.concatenate(rounds)])
    return Instance(
        cloud_delay=5.0,
        delay_per_km=0.1,
        server_x=np.tile(np.arange(4.0), 4),
        server_y=np.repeat(np.arange(4.0), 4),
        storage_capacity=np.full(16, 1e-3),
        compute_capacity=np.full(16, 1e-3),
        client_x=4 * rng.random(clients),
        client_y=4 * rng.random(clients),
        spool=np.ones(len(groups)),
        publishers=groups,
        subscribers=groups,
    )


def main() -> None:
    paper = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    parts = {
        "assignment loop": loop_seconds(paper, 100, revisit=False),
        "K-means": best_seconds(partial(make_clusters, paper, 4, 0)),
        "factorisation": best_seconds(partial(svd_factors, paper, 16)),
    }
    print("paper's size:", ", ".join(f"{name} {1e3 * value:.2f} ms" for name, value in parts.items()))
    curves: dict[str, list[tuple[float, float]]] = {}
    for name, (factor, values) in SWEEPS.items():
        points = []
        for value in values:
            sizes = BASE | {factor: value}
            related = sizes.pop("related")
            points.append((float(value), loop_seconds(worst_case(**sizes), related, revisit=True)))
        slope = np.polyfit(*np.log(np.array(points)).T, 1)[0]
        print(f"{name:22} exponent {slope:.2f}   " + "  ".join(f"{x:g}: {1e3 * t:.2f} ms" for x, t in points))
        curves[f"{name} ({slope:.2f})"] = points
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(plot(curves), encoding="utf-8")


def plot(curves: dict[str, list[tuple[float, float]]]) -> str:
    """Draw time against each factor, both relative to the smallest, on logarithmic axes with the line of growth 1."""
    colours = ("#d1495b", "#2a6f97", "#3a8f5c", "#b8860b")
    left, top, side = 60, 20, 360
    decades = math.log10(40)

    def at(ratio: float) -> float:
        return math.log10(max(ratio, 0.5)) / decades * side

    parts = [
        '<rect width="700" height="430" fill="white"/>',
        f'<line x1="{left}" y1="{top + side}" x2="{left + side}" y2="{top}" stroke="#bbb" stroke-dasharray="5 4"/>',
        f'<text x="{left + side / 2}" y="{top + side + 40}" text-anchor="middle">factor, relative to its least</text>',
        f'<text x="{left}" y="{top - 6}">time of the loop, relative; dashed: linear</text>',
    ]
    for ratio in (1, 2, 4, 8, 16, 32):
        parts.append(f'<text x="{left + at(ratio)}" y="{top + side + 18}" text-anchor="middle">{ratio}</text>')
        parts.append(f'<text x="{left - 8}" y="{top + side - at(ratio) + 4}" text-anchor="end">{ratio}</text>')
    for (name, points), colour, line in zip(curves.items(), colours, range(4), strict=True):
        ratios = [(x / points[0][0], t / points[0][1]) for x, t in points]
        path = " ".join(f"{left + at(x):.1f},{top + side - at(t):.1f}" for x, t in ratios)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(f'<text x="{left + side + 20}" y="{top + 30 + 22 * line}" fill="{colour}">{name}</text>')
    style = "text{font:13px system-ui,sans-serif}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 430"><style>{style}</style>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    main()
