"""How the methods do on the paper's instances."""

from dataclasses import dataclass

import numpy as np

from instances.evaluation import evaluate
from instances.families import family
from instances.groups import IntArray
from instances.regimes import classify
from relocbench.methods import METHODS
from relocbench.solving import solve
from relocbench.terminal import progress

FAMILY = "paper"
# Not a method: the assignment that shows that the capacities suffice, found to learn the regime of an instance.
REFERENCE = "one that fits"


@dataclass(frozen=True)
class StudyRow:
    """One assignment of one instance."""

    instance: str
    hash: str
    sigma: float
    seed: int
    regime: str
    method: str
    y: float
    y1: float
    y2: float
    least_theta: float
    fullest_storage: float
    seconds: float | None


def run_study(seeds: int) -> list[StudyRow]:
    """Run every method on every cell of the family."""
    jobs = [(cell, seed) for cell in family(FAMILY).cells() for seed in range(seeds)]
    rows = []
    for cell, seed in progress(jobs, len(jobs), "studying"):
        instance = cell.build(seed)
        regime = classify(instance)
        found: list[tuple[str, IntArray, float | None]] = []
        for name in METHODS:
            result = solve(instance, name, seed=seed)
            found.append((name, result.solution.home, result.seconds))
        if regime.witness is not None:
            found.append((REFERENCE, regime.witness, None))
        for method, home, seconds in found:
            cost = evaluate(instance, home)
            rows.append(
                StudyRow(
                    instance=instance.name,
                    hash=instance.hash,
                    sigma=float(cell.varied["sigma"]),
                    seed=seed,
                    regime=regime.kind,
                    method=method,
                    y=cost.y,
                    y1=cost.y1,
                    y2=cost.y2,
                    least_theta=float(cost.theta.min()),
                    fullest_storage=float((cost.storage / instance.storage).max()),
                    seconds=seconds,
                )
            )
    return rows


def methods_of(rows: list[StudyRow]) -> list[str]:
    """Return the methods in the order in which they ran."""
    return list(dict.fromkeys(row.method for row in rows))


def sigmas_of(rows: list[StudyRow]) -> list[float]:
    """Return the spreads, ascending."""
    return sorted({row.sigma for row in rows})


def mean_interval(values: list[float]) -> tuple[float, float, float]:
    """Return the mean and its 95 % bootstrap interval (percentiles of 4,000 resampled means, seeded)."""
    sample = np.array(values)
    rng = np.random.default_rng(0)
    means = sample[rng.integers(len(sample), size=(4000, len(sample)))].mean(axis=1)
    low, high = np.percentile(means, [2.5, 97.5])
    return float(sample.mean()), float(low), float(high)


def columns(rows: list[StudyRow]) -> list[str]:
    """Return the table's headings."""
    return ["σ, km", *methods_of(rows), "scarce"]


def table_rows(rows: list[StudyRow]) -> list[list[str]]:
    """Return the table: a line a spread, a column a method, and how many of the instances are proved scarce."""
    table = []
    for sigma in sigmas_of(rows):
        line = [f"{sigma:g}"]
        here = [row for row in rows if row.sigma == sigma]
        for method in methods_of(rows):
            values = [row.y for row in here if row.method == method]
            if values:
                mean, low, high = mean_interval(values)
                line.append(f"{mean:.3f} [{low:.3f}, {high:.3f}]")
            else:
                line.append("none found")
        instances = {row.instance: row.regime for row in here}
        scarce = sum(regime == "scarce" for regime in instances.values())
        table.append([*line, f"{scarce} of {len(instances)}"])
    return table
