"""What the methods do on the paper's instances, as the paper's claims need it."""

from dataclasses import dataclass

import numpy as np

from instances.families import family
from relocbench.solving import solve
from relocbench.terminal import progress

FAMILY = "paper"
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
class PaperRow:
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


def run_paper(seeds: int) -> list[PaperRow]:
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
            PaperRow(
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


def sigmas_of(rows: list[PaperRow]) -> list[float]:
    """Return the spreads, ascending."""
    return sorted({row.sigma for row in rows})


def values_of(rows: list[PaperRow], method: str, sigma: float, what: str = "y") -> list[float]:
    """Return one number of each seed, in the order of seeds, so that methods can be compared pair by pair."""
    chosen = sorted((row for row in rows if row.method == method and row.sigma == sigma), key=lambda row: row.seed)
    return [float(getattr(row, what)) for row in chosen]
