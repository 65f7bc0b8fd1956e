"""Measure evaluated single-client moves per second, against a full evaluation of each changed assignment.

python benchmarks/moves.py
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.incremental_state import State, StateArrays, move_apply, move_delta
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.nearest_server import nearest_server

ROUNDS = 5
BATCH = 200_000


@compiled
def evaluate_moves(s: StateArrays, clients: npt.NDArray[np.int64], servers: npt.NDArray[np.int64]) -> float:
    total = 0.0
    for i in range(len(clients)):
        total += move_delta(s, clients[i], servers[i])
    return total


@compiled
def apply_moves(s: StateArrays, clients: npt.NDArray[np.int64], servers: npt.NDArray[np.int64]) -> None:
    for i in range(len(clients)):
        move_apply(s, clients[i], servers[i])


def best_rate(work: Callable[[], object], count: int) -> float:
    """Return the best rate of several rounds, because other work on the machine can only lower a rate."""
    work()
    rates = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        rates.append(count / (time.perf_counter() - begin))
    return max(rates)


def main() -> None:
    rng = np.random.default_rng(0)
    print(f"{'instance':28} {'start':8} {'evaluated/s':>12} {'applied/s':>12} {'full/s':>10} {'ratio':>8}")
    for overrides in ({"sigma": 1}, {"sigma": 20}, {"sigma": 10, "topics": 16_000, "servers": 100}):
        instance = FAMILIES["paper"].cells(overrides)[0].build(0)
        starts: dict[str, IntArray] = {
            "nearest": nearest_server(instance),
            "random": rng.integers(instance.n_servers, size=instance.n_clients).astype(np.int32),
        }
        clients = rng.integers(instance.n_clients, size=BATCH)
        servers = rng.integers(instance.n_servers, size=BATCH)
        for label, home in starts.items():
            arrays = State(instance, home).arrays
            evaluated = best_rate(partial(evaluate_moves, arrays, clients, servers), BATCH)
            full = best_rate(partial(evaluate, instance, home), 1)
            applied = best_rate(partial(apply_moves, arrays, clients, servers), BATCH)
            name = f"{instance.n_clients:,} clients, {instance.n_servers} servers"
            print(f"{name:28} {label:8} {evaluated:12,.0f} {applied:12,.0f} {full:10,.0f} {evaluated / full:8,.0f}")


if __name__ == "__main__":
    main()
