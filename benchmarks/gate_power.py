"""Measure which regressions `relocbench check` detects, and how often it fails a method that is not worse.

python benchmarks/gate_power.py

The noise between seeds is real: methods run on the whole library with many seeds. Each repetition draws for each
instance some seeds for the baseline and other seeds for the check, and changes the costs of the check as a regression
would.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from relocbench.instances.library.library import Library
from relocbench.reports.gate.comparison import Pairs, compare, group_of
from relocbench.runs.solve import solve_here as solve

# Methods in increasing order of noise between seeds, and the number of seeds to draw from.
METHODS = {"otos": 1, "anneal[moves=50000]": 24, "anneal[moves=2000]": 40, "random": 40}
SEEDS = 5
REPEATS, FEWER_REPEATS = 1000, 300
Costs = npt.NDArray[np.float64]
Worsen = Callable[[Costs, np.random.Generator], Costs]

LIBRARY = Library()
NAMES = LIBRARY.names()
PAPER = np.array([group_of(name) == "paper" for name in NAMES])[:, None]
LARGE = np.array([group_of(name) == "large" for name in NAMES])[:, None]


def times(factor: float) -> Worsen:
    return lambda costs, rng: costs * factor


def where(chosen: npt.NDArray[np.bool_], factor: float) -> Worsen:
    return lambda costs, rng: np.where(chosen, costs * factor, costs)


def one_instance(factor: float) -> Worsen:
    def worsen(costs: Costs, rng: np.random.Generator) -> Costs:
        costs = costs.copy()
        costs[rng.integers(len(costs))] *= factor
        return costs

    return worsen


def noisier(spread: float) -> Worsen:
    return lambda costs, rng: costs * np.exp(spread * rng.standard_normal(costs.shape))


def different(spread: float) -> Worsen:
    return lambda costs, rng: costs * np.exp(spread * rng.standard_normal((len(costs), 1)))


HARMLESS: dict[str, Worsen] = {
    "the same": times(1.0),
    "noisier, 5 %": noisier(0.05),
    "noisier, 20 %": noisier(0.2),
    "different, 3 %": different(0.03),
    "different, 10 %": different(0.1),
}
WORSE: dict[str, Worsen] = {
    "0.5 % worse": times(1.005),
    "1 % worse": times(1.01),
    "2 % worse": times(1.02),
    "3 % worse": times(1.03),
    "10 % worse": times(1.1),
    "`paper` 3 % worse": where(PAPER, 1.03),
    "`large` 10 % worse": where(LARGE, 1.1),
    "one instance 2 × as much": one_instance(2.0),
}


def main() -> None:
    instances = [LIBRARY.read(name) for name in NAMES]
    print(f"library version {LIBRARY.version}, {len(NAMES)} instances, {SEEDS} seeds; share of checks that fail\n")
    print("| method | noise between seeds |", " | ".join([*HARMLESS, *WORSE]), "|")
    print("|---|---:|" + "---:|" * (len(HARMLESS) + len(WORSE)))
    for method, seeds in METHODS.items():
        runs = [
            [solve(instance, method, seed=seed).evaluation.objective for seed in range(seeds)] for instance in instances
        ]
        table = np.array(runs)
        noise = np.log(table).std(axis=1, ddof=1).mean() if seeds > 1 else 0.0
        rng = np.random.default_rng(0)
        shares = [share(table, worsen, REPEATS, rng) for worsen in HARMLESS.values()]
        shares += [share(table, worsen, FEWER_REPEATS, rng) for worsen in WORSE.values()]
        print(f"| `{method}` | {noise:.1%} |", " | ".join(f"{value:.1%}" for value in shares), "|", flush=True)


def share(table: Costs, worsen: Worsen, repeats: int, rng: np.random.Generator) -> float:
    """Return the share of checks that fail."""
    failed = 0
    for _ in range(repeats):
        before, now = drawn(table, rng)
        now = worsen(now, rng)
        pairs = {name: Pairs(a.tolist(), b.tolist()) for name, a, b in zip(NAMES, before, now, strict=True)}
        failed += any(finding.worse for finding in compare({"m": pairs}))
    return failed / repeats


def drawn(table: Costs, rng: np.random.Generator) -> tuple[Costs, Costs]:
    """Draw for each instance seeds for the baseline and other seeds for the check."""
    if table.shape[1] == 1:
        return np.repeat(table, SEEDS, axis=1), np.repeat(table, SEEDS, axis=1)
    order = rng.permuted(np.broadcast_to(np.arange(table.shape[1]), table.shape), axis=1)[:, : 2 * SEEDS]
    chosen = np.take_along_axis(table, order, axis=1)
    return chosen[:, :SEEDS], chosen[:, SEEDS:]


if __name__ == "__main__":
    main()
