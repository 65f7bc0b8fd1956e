"""How close annealing comes: to the best known on the paper family, and to the optimum where enumeration gives it.

python benchmarks/anneal_quality.py paper [seconds] [reference seconds]
python benchmarks/anneal_quality.py optimum [seconds]
"""

import itertools
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import numpy.typing as npt

from instances.compiled import compiled
from instances.evaluation import evaluate
from instances.families import FAMILIES
from instances.groups import IntArray
from instances.instance import Instance
from instances.nearest import nearest_server
from instances.state import State, StateArrays, move_apply, state_objective
from relocbench.solving import solve

PROCESSES = 2
Job = tuple[str, dict[str, float | str], int, int, float]


def cost_of(job: Job) -> float:
    """Anneal an instance (family, cell, seed) with a seed of its own for some seconds and return its cost."""
    family, overrides, seed, run_seed, seconds = job
    instance = FAMILIES[family].cells(overrides)[0].build(seed)
    return solve(instance, "anneal", seed=run_seed, time_limit=seconds).evaluation.objective


def paper(seconds: float, reference: float) -> None:
    """Compare runs of ``seconds`` on 10 seeds with longer ones on the first four, cell by cell."""
    sigmas = [float(cell["sigma"]) for cell in FAMILIES["paper"].grid]
    short: list[Job] = [("paper", {"sigma": s}, seed, 1, seconds) for s in sigmas for seed in range(10)]
    long: list[Job] = [("paper", {"sigma": s}, seed, 2, reference) for s in sigmas for seed in range(4)]
    with ProcessPoolExecutor(PROCESSES) as pool:
        costs = dict(zip([(job[1]["sigma"], job[2]) for job in short], pool.map(cost_of, short), strict=True))
        best = dict(zip([(job[1]["sigma"], job[2]) for job in long], pool.map(cost_of, long), strict=True))
    print(f"{seconds:g} s against {reference:g} s: excess over the better of the two, in %")
    for sigma in sigmas:
        excess = [100 * (costs[sigma, seed] / min(costs[sigma, seed], best[sigma, seed]) - 1) for seed in range(4)]
        gain = [100 * (1 - costs[sigma, seed] / best[sigma, seed]) for seed in range(4)]
        print(
            f"σ = {sigma:4g}  mean {np.mean(excess):.3f}  worst {max(excess):.3f}  (short - long {-np.mean(gain):+.3f})"
        )
    for key, cost in costs.items():
        print("cost", *key, f"{cost:.9g}")


@compiled
def least_cost(s: StateArrays, digits: IntArray) -> float:
    """Return the least cost of all assignments, counting through them like an odometer."""
    least = state_objective(s)
    servers = len(s.server)
    while True:
        place = 0
        while place < len(digits) and digits[place] == servers - 1:
            digits[place] = 0
            move_apply(s, place, 0)
            place += 1
        if place == len(digits):
            return least
        digits[place] += 1
        move_apply(s, place, digits[place])
        least = min(least, state_objective(s))


def optimum_of(instance: Instance) -> float:
    start: npt.NDArray[np.int32] = np.zeros(instance.n_clients, np.int32)
    return float(least_cost(State(instance, start).arrays, start.copy()))


def optimum(seconds: float) -> None:
    """Count how often the optimum is found on every tiny instance and the small ones of ten clients."""
    jobs: list[Job] = [
        ("tiny", dict(cell), seed, 1, seconds)  # type: ignore[misc]
        for cell, seed in itertools.product(FAMILIES["tiny"].grid, range(FAMILIES["tiny"].replicates))
    ]
    for regime, seed in itertools.product(("loose", "scarce", "overloaded"), range(FAMILIES["small"].replicates)):
        jobs.append(("small", {"regime": regime, "clients": 10}, seed, 1, seconds))
    with ProcessPoolExecutor(PROCESSES) as pool:
        costs = list(pool.map(cost_of, jobs))
    found: dict[tuple[str, str], list[bool]] = {}
    for job, cost in zip(jobs, costs, strict=True):
        instance = FAMILIES[job[0]].cells(job[1])[0].build(job[2])
        least = optimum_of(instance)
        assert least - 1e-6 <= min(cost, evaluate(instance, nearest_server(instance)).objective)
        found.setdefault((job[0], str(job[1]["regime"])), []).append(cost <= least + 1e-6)
    for (family, regime), hits in found.items():
        print(f"{family:6} {regime:11} {sum(hits)} of {len(hits)}")
    print(f"all: {np.mean(list(itertools.chain(*found.values()))):.1%} of runs of {seconds:g} s")


if __name__ == "__main__":
    numbers = [float(text) for text in sys.argv[2:]]
    if sys.argv[1] == "paper":
        paper(*(numbers or [30.0, 90.0]))
    else:
        optimum(*(numbers or [2.0]))
