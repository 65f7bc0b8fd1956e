"""The measures of each assignment, one row per assignment as in the Parquet file, and how to look them up."""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.easier import is_easier
from relocbench.instances.evaluation import evaluate, mean_distance, use
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.load import storage_once
from relocbench.reports.statistics import Interval, blocked_interval

# The name of the best known homes in the column of methods.
BEST = "best known"
# An objective is proved optimal if its gap is at most this, as in a certificate.
PROVED = 1e-6


@dataclass(frozen=True)
class Case:
    """An instance of a study.

    Attributes
    ----------
    group
        ``paper`` for the paper's own families, or the least topic size for instances of ``paper-tightness``.
    study, x
        ``sigma`` or ``spool``, and the value of σ or p.
    seed
        The seed of the instance.
    instance
        The instance.
    """

    group: str
    study: str
    x: float
    seed: int
    instance: Instance


@dataclass(frozen=True)
class Measured:
    """One assignment of one instance.

    Attributes
    ----------
    group, study, x
        As for :class:`Case`.
    instance, hash, seed, method
        The instance, its seed, and the method.
    y, y1, y2
        The mean delay of a publication and its parts, in ms.
    bound
        A certified lower bound on ``y``; only for the best known homes. It may come from a smaller spool, where that
        bound is higher (:func:`carry_bounds`).
    storage_use, fullest_storage, compute_use, fullest_compute
        The load as a share of the capacity: the mean over servers, and the largest.
    storage_once
        The storage that is needed if every topic is open on one server only, as a share of the capacities: the
        tightness of the instance, the same for all methods.
    distance_km
        The mean distance from a client to its home.
    least_theta
        The least ``θ`` of a server.
    """

    group: str
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
    storage_once: float
    distance_km: float
    least_theta: float

    @property
    def proved(self) -> bool:
        """Whether the bound proves that the homes are optimal."""
        return self.bound is not None and self.y - self.bound <= PROVED * self.y


def measure(case: Case, home: IntArray, method: str, bound: float | None = None) -> Measured:
    """Measure an assignment.

    Parameters
    ----------
    case
        The instance.
    home
        The homes.
    method
        The name of the method.
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
        group=case.group,
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
        storage_once=storage_once(instance),
        distance_km=mean_distance(instance, home),
        least_theta=float(cost.theta.min()),
    )


def interval(values: Sequence[float]) -> Interval:
    """Return the mean of one value per seed and its 95 % interval.

    Parameters
    ----------
    values
        The values; at least one.

    Returns
    -------
    Interval
        The mean and the interval.
    """
    return blocked_interval(values, range(len(values)))


def carry_bounds(rows: Sequence[Measured], instances: Mapping[str, Instance]) -> list[Measured]:
    """Carry bounds from easier to harder instances, such as from smaller to larger spools on the same map.

    Parameters
    ----------
    rows
        The rows.
    instances
        The instances of the rows by hash.

    Returns
    -------
    list of Measured
        The rows, each with the highest of its own bound and those of easier instances.
    """
    bounds = [(instances[row.hash], row.bound) for row in rows if row.bound is not None]
    found = []
    for row in rows:
        carried = [bound for easier, bound in bounds if is_easier(easier, instances[row.hash])]
        own = [] if row.bound is None else [row.bound]
        found.append(dataclasses.replace(row, bound=max(own + carried, default=None)))
    return found


class Measures:
    """The assignments of one group, with lookups by study, value and method.

    Parameters
    ----------
    rows
        The assignments.

    Attributes
    ----------
    rows
        The assignments.
    seeds
        The seeds of the instances, ascending.
    """

    def __init__(self, rows: Iterable[Measured]) -> None:
        self.rows = list(rows)
        self.seeds = sorted({row.seed for row in self.rows})
        self._found = {(row.study, row.x, row.method, row.seed): row for row in self.rows}
        self._values: dict[str, set[float]] = {}
        self._instances: dict[str, dict[str, dict[str, Measured]]] = {}
        for row in self.rows:
            self._values.setdefault(row.study, set()).add(row.x)
            self._instances.setdefault(row.study, {}).setdefault(row.hash, {})[row.method] = row

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
        return sorted(self._values.get(study, ()))

    def instances(self, study: str) -> list[Mapping[str, Measured]]:
        """Return the assignments of each instance of a study.

        Parameters
        ----------
        study
            The study.

        Returns
        -------
        list
            The assignments of each instance by method.
        """
        return list(self._instances.get(study, {}).values())

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
        return interval(numbers) if numbers else None

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


def write_rows(rows: Iterable[Measured], path: Path) -> None:
    """Write rows as Parquet, completely or not at all.

    Parameters
    ----------
    rows
        The rows.
    path
        The file.
    """
    columns = [dataclasses.asdict(row) | {"proved": row.proved} for row in rows]
    with written_whole(path) as temporary:
        pq.write_table(pa.Table.from_pylist(columns), temporary)


def read_rows(path: Path) -> list[Measured]:
    """Read the rows that :func:`write_rows` has written.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Measured
        The rows.
    """
    names = [field.name for field in dataclasses.fields(Measured)]
    return [Measured(**row) for row in pq.read_table(path, columns=names).to_pylist()]
