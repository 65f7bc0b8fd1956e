"""The measures of each assignment, one row per assignment as in the Parquet file, and how to look them up."""

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

# A mean with the lower and upper end of its interval.
Interval = tuple[float, float, float]

# The name of the best known homes in the column of methods.
BEST = "best known"
# The names of RELOC's homes after each of its steps.
STEPS = {step: f"reloc after {step}" for step in ("locality", "relation", "cooperation")}
# An objective is proved optimal if its gap is at most this, as in a certificate.
PROVED = 1e-6


@dataclass(frozen=True)
class Case:
    """An instance of a study.

    Attributes
    ----------
    study, x
        ``sigma`` or ``spool``, and the value of σ or p.
    seed
        The seed of the instance.
    instance
        The instance.
    """

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
        The instance, its seed, and the method.
    y, y1, y2
        The mean delay of a publication and its parts, in ms.
    bound
        A certified lower bound on ``y``; only for the best known homes. It may come from a smaller spool, where that
        bound is higher (:func:`carry_bounds`).
    storage_use, fullest_storage, compute_use, fullest_compute
        The load as a share of the capacity: the mean over servers, and the largest.
    distance_km
        The mean distance from a client to its home.
    least_theta
        The least ``θ`` of a server.
    seconds
        The run time of the method; None if it was not measured.
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
        """Whether the bound proves that the homes are optimal."""
        return self.bound is not None and self.y - self.bound <= PROVED * self.y


def measure(
    case: Case, home: IntArray, method: str, seconds: float | None = None, bound: float | None = None
) -> Measured:
    """Measure an assignment.

    Parameters
    ----------
    case
        The instance.
    home
        The homes.
    method
        The name of the method.
    seconds
        The run time of the method, if it was measured.
    bound
        A lower bound on ``ΣD``, if one is known.

    Returns
    -------
    Measured
        The measures.
    """
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


def carry_bounds(rows: Sequence[Measured]) -> list[Measured]:
    """Carry bounds from smaller to larger spools.

    A larger spool lowers every ``θ`` or leaves it unchanged. This never lowers the cost if the cloud is far
    (docs/model.md, fact 1), so a bound at a smaller spool also holds at a larger one.

    Parameters
    ----------
    rows
        Rows of instances that differ only in the size of their spools.

    Returns
    -------
    list of Measured
        The rows by ascending spool, each with the highest bound up to its spool.
    """
    highest = None
    found = []
    for row in sorted(rows, key=lambda row: row.x):
        highest = max((bound for bound in (highest, row.bound) if bound is not None), default=None)
        found.append(dataclasses.replace(row, bound=highest))
    return found


class Measures:
    """All assignments, with lookups by study, value and method.

    Parameters
    ----------
    rows
        The assignments.
    """

    def __init__(self, rows: Iterable[Measured]) -> None:
        self.rows = list(rows)
        self._found = {(row.study, row.x, row.method, row.seed): row for row in self.rows}

    def values(self, study: str) -> list[float]:
        """Return the values of a study.

        Parameters
        ----------
        study
            ``sigma`` or ``spool``.

        Returns
        -------
        list of float
            The values, ascending.
        """
        return sorted({row.x for row in self.rows if row.study == study})

    @property
    def seeds(self) -> list[int]:
        """The seeds of the instances, ascending."""
        return sorted({row.seed for row in self.rows})

    def of(self, study: str, x: float, method: str) -> list[Measured]:
        """Return the assignments of a method at a value.

        Parameters
        ----------
        study, x, method
            The study, the value and the method.

        Returns
        -------
        list of Measured
            One for each seed; failed runs are left out.
        """
        found = [self._found.get((study, x, method, seed)) for seed in self.seeds]
        return [row for row in found if row is not None]

    def mean(self, study: str, x: float, method: str, what: str) -> Interval | None:
        """Return the mean of a measure over the seeds.

        Parameters
        ----------
        study, x, method
            The study, the value and the method.
        what
            The name of the attribute of :class:`Measured`.

        Returns
        -------
        Interval or None
            The mean with its 95 % interval; None if no run has the measure.
        """
        numbers = [value for row in self.of(study, x, method) if (value := getattr(row, what)) is not None]
        return mean_interval(numbers) if numbers else None

    def differences(self, study: str, x: float, method: str, others: Sequence[str], what: str = "y") -> list[float]:
        """Return the differences between a method and the best of other methods, instance by instance.

        Parameters
        ----------
        study, x, method
            The study, the value and the method.
        others
            The other methods.
        what
            The name of the attribute of :class:`Measured`; smaller is better.

        Returns
        -------
        list of float
            The value of the method minus the least value of the others, for each seed that all have.
        """
        found = []
        for seed in self.seeds:
            own = self._found.get((study, x, method, seed))
            rest = [self._found.get((study, x, other, seed)) for other in others]
            if own is not None and None not in rest:
                found.append(getattr(own, what) - min(getattr(row, what) for row in rest))
        return found

    def write(self, path: Path) -> None:
        """Write all rows as Parquet, completely or not at all.

        Parameters
        ----------
        path
            The file.
        """
        with written_whole(path) as temporary:
            columns = [dataclasses.asdict(row) | {"proved": row.proved} for row in self.rows]
            pq.write_table(pa.Table.from_pylist(columns), temporary)
