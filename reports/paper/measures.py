"""What is known of each assignment, and how it is looked up: one row an assignment, as in the Parquet file."""

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.evaluation import evaluate, mean_distance, use
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.reports.statistics import mean_interval

Interval = tuple[float, float, float]

# What the best homes known are called among the methods, and RELOC's homes after each of its steps.
BEST = "best known"
STEPS = {step: f"reloc after {step}" for step in ("locality", "relation", "cooperation")}
# A cost is proved optimal when it is within this share of the bound, as in a certificate.
PROVED = 1e-6


@dataclass(frozen=True)
class Case:
    """An instance, and where it stands: which study, at which value, with which seed."""

    study: str
    x: float
    seed: int
    instance: Instance


@dataclass(frozen=True)
class Measured:
    """One assignment of one instance.

    Attributes
    ----------
    study, x
        ``sigma`` or ``spool``, and the value of σ or p.
    instance, hash, seed, method
        What was solved, and how.
    y, y1, y2
        Mean delay of a publication and its parts, ms.
    bound
        What no assignment's ``y`` is below, by a verified certificate; best homes only. At a larger spool, that of a
        smaller one, where it is higher (:func:`carried`).
    storage_use, fullest_storage, compute_use, fullest_compute
        Share of the capacity that is asked for: mean over servers, and the largest.
    distance_km
        Mean from a client to its home.
    least_theta
        Of all servers.
    seconds
        What the method took; None for what was not timed.
    """

    study: str
    x: float
    instance: str
    hash: str
    seed: int
    method: str
    y: float
    y1: float
    y2: float
    bound: float | None
    storage_use: float
    fullest_storage: float
    compute_use: float
    fullest_compute: float
    distance_km: float
    least_theta: float
    seconds: float | None

    @property
    def proved(self) -> bool:
        """Whether the bound says that nothing is better."""
        return self.bound is not None and self.y - self.bound <= PROVED * max(self.y, 1e-9)


def measured(
    case: Case, home: IntArray, method: str, seconds: float | None = None, bound: float | None = None
) -> Measured:
    """Measure an assignment; ``bound`` is one on ``ΣD``."""
    instance = case.instance
    cost = evaluate(instance, home)
    storage, compute = (
        use(cost.storage_load, instance.storage_capacity),
        use(cost.compute_load, instance.compute_capacity),
    )
    return Measured(
        study=case.study,
        x=case.x,
        instance=instance.name,
        hash=instance.hash,
        seed=case.seed,
        method=method,
        y=cost.y,
        y1=cost.y1,
        y2=cost.y2,
        bound=None if bound is None else bound / max(cost.n_publications, 1),
        storage_use=float(storage.mean()),
        fullest_storage=float(storage.max()),
        compute_use=float(compute.mean()),
        fullest_compute=float(compute.max()),
        distance_km=mean_distance(instance, home),
        least_theta=float(cost.theta.min()),
        seconds=seconds,
    )


def carried(rows: Sequence[Measured]) -> list[Measured]:
    """Return rows of one map with ascending spools, each with the highest bound of those up to it.

    Larger spools leave every ``θ`` as it is or lower it, which costs no less where the cloud is far (docs/model.md,
    fact 1): so what no assignment is below at a smaller spool, none is below at a larger one.
    """
    highest = None
    told = []
    for row in sorted(rows, key=lambda row: row.x):
        highest = max((bound for bound in (highest, row.bound) if bound is not None), default=None)
        told.append(dataclasses.replace(row, bound=highest))
    return told


class Measures:
    """All assignments, looked up by study, value and method."""

    def __init__(self, rows: Iterable[Measured]) -> None:
        self.rows = list(rows)
        self._found = {(row.study, row.x, row.method, row.seed): row for row in self.rows}

    def values(self, study: str) -> list[float]:
        """Return the values that a study goes through, ascending."""
        return sorted({row.x for row in self.rows if row.study == study})

    @property
    def seeds(self) -> list[int]:
        """The replicates, ascending."""
        return sorted({row.seed for row in self.rows})

    def of(self, study: str, x: float, method: str) -> list[Measured]:
        """Return what a method did at a value, in the order of seeds; what failed is not there."""
        found = [self._found.get((study, x, method, seed)) for seed in self.seeds]
        return [row for row in found if row is not None]

    def mean(self, study: str, x: float, method: str, what: str) -> Interval | None:
        """Return mean and 95 % interval of a number; None where no run gave it."""
        numbers = [value for row in self.of(study, x, method) if (value := getattr(row, what)) is not None]
        return mean_interval(numbers) if numbers else None

    def differences(self, study: str, x: float, method: str, others: Sequence[str], what: str = "y") -> list[float]:
        """Return by how much a method's number is above the least of the others', instance by instance."""
        told = []
        for seed in self.seeds:
            mine = self._found.get((study, x, method, seed))
            theirs = [self._found.get((study, x, other, seed)) for other in others]
            if mine is not None and None not in theirs:
                told.append(getattr(mine, what) - min(getattr(row, what) for row in theirs))
        return told

    def write(self, path: Path) -> None:
        """Write all rows as Parquet."""
        with written_whole(path) as temporary:
            columns = [dataclasses.asdict(row) | {"proved": row.proved} for row in self.rows]
            pq.write_table(pa.Table.from_pylist(columns), temporary)
