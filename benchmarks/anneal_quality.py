"""Measure annealing against longer runs on the paper family, against proven optima, and where capacity is scarce.

python benchmarks/anneal_quality.py paper [seconds] [reference seconds]
python benchmarks/anneal_quality.py optimum [seconds]
python benchmarks/anneal_quality.py scarce [seconds] [runs] [folder for the best homes]
"""

import itertools
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.library.library import Library
from relocbench.runs.solve import Result
from relocbench.runs.solve import solve_here as solve

PROCESSES = 2
Job = tuple[str, dict[str, float | str], int, int, float]


def run(job: Job) -> Result:
    """Run annealing on the instance of a job (family, cell, seed, seed of the run, seconds)."""
    family, overrides, seed, run_seed, seconds = job
    instance = FAMILIES[family].cells(overrides)[0].build(seed)
    return solve(instance, "anneal", seed=run_seed, time_limit=seconds)


def cost_of(job: Job) -> float:
    """Return the cost that :func:`run` finds."""
    return run(job).evaluation.objective


def cost_and_home_of(job: Job) -> tuple[float, IntArray]:
    """Return the cost and the homes that :func:`run` finds."""
    result = run(job)
    return result.evaluation.objective, result.home


def paper(seconds: float, reference: float) -> None:
    """Compare runs of ``seconds`` on 10 seeds with longer runs on the first four seeds, for each cell."""
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


def optimum_of(instance: Instance) -> float | None:
    """Return the proven optimum, or None if two minutes are too short for the proof."""
    method = "enumerate" if instance.n_servers**instance.n_clients <= 10**6 else "branch-price"
    result = solve(instance, method, time_limit=120)
    return result.evaluation.objective if result.solution.status == "optimal" else None


def excess_of(job: Job) -> float | None:
    """Return the excess of annealing over the optimum in percent, or None if the optimum is not proved."""
    instance = FAMILIES[job[0]].cells(job[1])[0].build(job[2])
    least = optimum_of(instance)
    return None if least is None else 100 * (cost_of(job) / least - 1)


def optimum(seconds: float) -> None:
    """Count how often annealing finds the optimum, on all tiny instances and on small ones up to 30 clients."""
    jobs: list[Job] = [
        ("tiny", dict(cell), seed, 1, seconds)
        for cell, seed in itertools.product(FAMILIES["tiny"].grid, range(FAMILIES["tiny"].replicates))
    ]
    for cell, seed in itertools.product(FAMILIES["small"].grid, range(FAMILIES["small"].replicates)):
        if int(cell["clients"]) <= 30:
            jobs.append(("small", dict(cell), seed, 1, seconds))
    found: dict[tuple[str, str, object], list[float]] = {}
    with ProcessPoolExecutor(PROCESSES) as pool:
        for job, excess in zip(jobs, pool.map(excess_of, jobs), strict=True):
            if excess is not None:
                found.setdefault((job[0], str(job[1]["regime"]), job[1].get("clients", "4-7")), []).append(excess)
    print(f"{seconds:g} s of annealing against the optimum, where it is proved")
    for (family, regime, clients), misses in found.items():
        hits = sum(miss <= 1e-4 for miss in misses)
        print(
            f"{family:6} {regime:11} {clients!s:>4} clients: {hits} of {len(misses)}, worst {max(misses):.2f} % above"
        )


def scarce(seconds: float, runs: float, folder: Path | None) -> None:
    """Compare independent runs where capacity is scarce with the best homes of these runs and of the library.

    Parameters
    ----------
    seconds
        The time limit of a run.
    runs
        The number of runs for each size of spools.
    folder
        The best homes that the runs find are written here, if it is given.
    """
    spools = (4.0, 5.0, 6.0)
    jobs: list[Job] = [
        ("paper-spooler", {"spool_per_member": p}, 0, run + 1, seconds) for p in spools for run in range(int(runs))
    ]
    found: dict[float, list[float]] = {p: [] for p in spools}
    with ProcessPoolExecutor(PROCESSES) as pool:
        for job, (cost, home) in zip(jobs, pool.map(cost_and_home_of, jobs), strict=True):
            spool = float(job[1]["spool_per_member"])
            if folder is not None and cost < min(found[spool], default=np.inf):
                np.save(folder / f"paper-spooler-p{spool:g}-0.npy", home)
            found[spool].append(cost)
            print("cost", spool, job[3], f"{cost:.9g}", flush=True)
    library = Library()
    print(f"{seconds:g} s of annealing against the best known homes: excess in %")
    for p, costs in found.items():
        name = f"paper-spooler-p{p:g}-0"
        known = [library.entry(name).objective] if library.names(name) else []
        best = min(costs + known)
        excess = [100 * (cost / best - 1) for cost in costs]
        print(f"p = {p:g}  best known {best:.2f}  mean {np.mean(excess):.2f}  worst {max(excess):.2f}")


if __name__ == "__main__":
    numbers = [float(text) for text in sys.argv[2:4]]
    if sys.argv[1] == "paper":
        paper(*(numbers or [30.0, 90.0]))
    elif sys.argv[1] == "scarce":
        scarce(*(numbers or [120.0, 5.0]), Path(sys.argv[4]) if len(sys.argv) > 4 else None)
    else:
        optimum(*(numbers or [2.0]))
