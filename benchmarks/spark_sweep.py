"""Compare Spark on two cores with joblib on two processes, for a sweep of 2,000 jobs of about 50 ms.

python benchmarks/spark_sweep.py
"""

import time
from collections.abc import Callable

from joblib import Parallel, delayed

from relocbench.heuristics import anneal
from relocbench.instances.generators.families import FAMILIES
from relocbench.spark.parallel_map import parallel_map
from relocbench.spark.session import session

JOBS = 2000
# The two alternate, because other work on the machine comes and goes.
ROUNDS = 4
# Jobs in the order of a grid, the short ones first. The mean job takes about 50 ms.
MOVES = [20_000 + 200_000 * number // JOBS for number in range(JOBS)]


def job(moves: int) -> float:
    begin = time.perf_counter()
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(moves)
    anneal.solve(instance, seed=moves, time_limit=1e9, moves=moves)
    return time.perf_counter() - begin


def main() -> None:
    job(100)  # compiles the kernels
    with session("local[2]") as running, Parallel(n_jobs=2) as parallel:

        def by_joblib(moves: list[int]) -> list[float]:
            return list(parallel(delayed(job)(number) for number in moves))

        def by_spark(moves: list[int]) -> list[float]:
            return parallel_map(running, moves, job, "running")

        for way in (by_joblib, by_spark):
            way(MOVES[::50])  # starts the processes and loads the code
        seconds = dict.fromkeys((by_spark, by_joblib), 0.0)
        for number in range(ROUNDS):
            for way in sorted(seconds, key=lambda way: way is by_spark, reverse=bool(number % 2)):
                seconds[way] += measured(way, MOVES[number::ROUNDS])
    print(f"Spark has {seconds[by_joblib] / seconds[by_spark]:.1%} of joblib's throughput")


def measured(way: Callable[[list[int]], list[float]], moves: list[int]) -> float:
    begin = time.perf_counter()
    busy = way(moves)
    seconds = time.perf_counter() - begin
    mean, name = sum(busy) / len(busy), way.__name__.removeprefix("by_")
    print(
        f"{name:7} {seconds:6.1f} s, jobs of {mean * 1000:.0f} ms, {sum(busy) / seconds / 2:.1%} of two cores busy",
        flush=True,
    )
    return seconds


if __name__ == "__main__":
    main()
