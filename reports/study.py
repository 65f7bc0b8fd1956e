"""How the methods do on the paper's instances."""

from dataclasses import dataclass

import numpy as np

from instances.families import family
from relocbench.solving import solve
from relocbench.terminal import progress

FAMILY = "paper"
# Resampling fewer seeds than this would show an interval that means nothing.
FEWEST_FOR_INTERVAL = 5
REFERENCE = "anneal[moves=2e6]"
# The paper's four, the reference, and RELOC under other readings and with other numbers of clusters.
PLOTTED = ("random", "nearest", "otos", "reloc", REFERENCE)
METHODS = (
    *PLOTTED,
    "reloc[relation=exact]",
    "reloc[relation=nmf]",
    "reloc[cooperation=topic]",
    "reloc[revisit=true]",
    "reloc[k=1]",
    "reloc[k=2]",
    "reloc[k=8]",
    "reloc[k=16]",
    "reloc[k=auto]",
)


@dataclass(frozen=True)
class StudyRow:
    """One assignment of one instance.

    ``storage_used`` is the mean over servers of what they hold as a share of what they can, ``fullest_storage`` the
    largest, ``distance_km`` the mean from a client to its home.
    """

    instance: str
    hash: str
    sigma: float
    seed: int
    method: str
    y: float
    y1: float
    y2: float
    least_theta: float
    storage_used: float
    fullest_storage: float
    distance_km: float
    seconds: float


def run_study(seeds: int) -> list[StudyRow]:
    """Run every method on every cell of the family."""
    jobs = [(cell, seed, method) for cell in family(FAMILY).cells() for seed in range(seeds) for method in METHODS]
    rows = []
    for cell, seed, method in progress(jobs, len(jobs), "studying"):
        instance = cell.build(seed)
        result = solve(instance, method, seed=seed)
        home, cost = result.solution.home, result.evaluation
        use = cost.storage / instance.storage
        delay = instance.client_delay(np.arange(instance.n_clients), home)
        rows.append(
            StudyRow(
                instance=instance.name,
                hash=instance.hash,
                sigma=float(cell.varied["sigma"]),
                seed=seed,
                method=method,
                y=cost.y,
                y1=cost.y1,
                y2=cost.y2,
                least_theta=float(cost.theta.min()),
                storage_used=float(use.mean()),
                fullest_storage=float(use.max()),
                distance_km=float(delay.mean() / instance.delay_per_km),
                seconds=result.seconds,
            )
        )
    return rows


def sigmas_of(rows: list[StudyRow]) -> list[float]:
    """Return the spreads, ascending."""
    return sorted({row.sigma for row in rows})


def values_of(rows: list[StudyRow], method: str, sigma: float, what: str = "y") -> list[float]:
    """Return one number of each seed, in the order of seeds, so that methods can be compared pair by pair."""
    chosen = sorted((row for row in rows if row.method == method and row.sigma == sigma), key=lambda row: row.seed)
    return [float(getattr(row, what)) for row in chosen]


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval (percentiles of 4,000 resampled means, seeded)."""
    sample = np.array(values)
    rng = np.random.default_rng(0)
    means = sample[rng.integers(len(sample), size=(4000, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(sample.mean()), float(low), float(high)


def columns(rows: list[StudyRow]) -> list[str]:
    """Return the table's headings."""
    return ["method", *(f"σ = {sigma:g} km" for sigma in sigmas_of(rows))]


def table_rows(rows: list[StudyRow]) -> list[list[str]]:
    """Return the table: a line a method, a column a spread, mean Y and its interval."""
    table = []
    for method in METHODS:
        line = [method]
        for sigma in sigmas_of(rows):
            values = values_of(rows, method, sigma)
            mean, low, high = mean_interval(values)
            line.append(f"{mean:.3f} [{low:.3f}, {high:.3f}]" if len(values) >= FEWEST_FOR_INTERVAL else f"{mean:.3f}")
        table.append(line)
    return table
