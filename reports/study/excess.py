"""The excess of each run over its reference: measured, summarised by regime, and compared between methods."""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.gap import excess
from relocbench.reports.statistics import Interval, Paired, blocked_interval, holm, paired, shifted_geometric_mean
from relocbench.reports.study.references import OPTIMUM, Reference
from relocbench.reports.study.subjects import Subject
from relocbench.runs.run_store import Row

FORMAT = "relocbench-excess/2"
# Objectives with a smaller relative difference count as equal, because optimality is proved to this tolerance.
SAME = 1e-6
# The shift of geometric means of an excess: 1 %.
SHIFT = 0.01
# The significance level of comparisons.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Measurement:
    """One run and its excess over the reference of its instance.

    Attributes
    ----------
    instance, hash
        The name and the content hash of the instance.
    group, regime, block, sigma
        See :class:`reports.study.subjects.Subject`. Runs with the same block are one independent sample.
    clients, servers, topics
        The size of the instance.
    selector, seed, time_limit
        The run.
    status, error
        How the run ended.
    objective, y
        ``ΣD`` and ``Y`` of the homes; None if the run has none.
    reference, reference_kind, reference_by
        The reference cost, ``proven optimum`` or ``certified bound``, and its source.
    best_known
        The least objective in the study and in the library.
    excess
        ``objective / reference - 1``; None if the run has no homes or the instance has no reference.
    optimal
        Whether the homes are optimal; None if that is not known.
    seconds
        The run time of the method.
    command
        The command that repeats the run.
    """

    instance: str
    hash: str
    group: str
    regime: str
    block: str
    sigma: float | None
    clients: int
    servers: int
    topics: int
    selector: str
    seed: int
    time_limit: float
    status: str
    error: str | None
    objective: float | None
    y: float | None
    reference: float | None
    reference_kind: str | None
    reference_by: str | None
    best_known: float | None
    excess: float | None
    optimal: bool | None
    seconds: float
    command: str


SCHEMA = pa.schema(
    [
        pa.field("format", pa.string(), nullable=False),
        ("instance", pa.string()),
        ("hash", pa.string()),
        ("group", pa.string()),
        ("regime", pa.string()),
        ("block", pa.string()),
        ("sigma", pa.float64()),
        ("clients", pa.int64()),
        ("servers", pa.int64()),
        ("topics", pa.int64()),
        ("selector", pa.string()),
        ("seed", pa.int64()),
        ("time_limit", pa.float64()),
        ("status", pa.string()),
        ("error", pa.string()),
        ("objective", pa.float64()),
        ("y", pa.float64()),
        ("reference", pa.float64()),
        ("reference_kind", pa.string()),
        ("reference_by", pa.string()),
        ("best_known", pa.float64()),
        ("excess", pa.float64()),
        ("optimal", pa.bool_()),
        ("seconds", pa.float64()),
        ("command", pa.string()),
    ]
)


def measure(
    subjects: Sequence[Subject],
    rows: Iterable[Row],
    references: Mapping[str, Reference],
    best: Mapping[str, float],
) -> list[Measurement]:
    """Measure the excess of runs.

    Parameters
    ----------
    subjects
        The instances of the study.
    rows
        The runs.
    references
        The reference of each instance, by hash.
    best
        The least objective known of each instance, by hash.

    Returns
    -------
    list of Measurement
        One for each row.
    """
    by_hash = {subject.instance.hash: subject for subject in subjects}
    return [_measurement(by_hash[row.hash], row, references.get(row.hash), best.get(row.hash)) for row in rows]


def best_known(rows: Iterable[Row], library: Mapping[str, float]) -> dict[str, float]:
    """Return the least objective known of each instance.

    Parameters
    ----------
    rows
        The runs of the study.
    library
        The objectives in the library, by hash.

    Returns
    -------
    dict
        The least objective, by hash.
    """
    found = dict(library)
    for row in rows:
        if row.objective is not None:
            found[row.hash] = min(row.objective, found.get(row.hash, row.objective))
    return found


def write_measurements(measurements: Sequence[Measurement], path: Path) -> None:
    """Write measurements as Parquet, completely or not at all.

    Parameters
    ----------
    measurements
        What to write.
    path
        The file.
    """
    with written_whole(path) as temporary:
        pq.write_table(as_table(measurements), temporary)


def as_table(measurements: Sequence[Measurement]) -> pa.Table:
    """Return measurements as an Arrow table.

    Parameters
    ----------
    measurements
        The measurements.

    Returns
    -------
    pyarrow.Table
        One row per measurement, with the columns of the data file.
    """
    return pa.Table.from_pylist([{"format": FORMAT, **asdict(one)} for one in measurements], schema=SCHEMA)


def read_measurements(path: Path) -> list[Measurement]:
    """Read a file that :func:`write_measurements` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    list of Measurement
        One for each row.

    Raises
    ------
    InputError
        If the file cannot be read or has another format, such as the ``gaps.parquet`` of earlier versions.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(str(path), f"expected a Parquet file ({str(error).splitlines()[0]})") from error
    formats = set(table["format"].to_pylist()) if "format" in table.column_names else set()
    if formats - {FORMAT} or not table.schema.equals(SCHEMA):
        raise InputError(str(path), f'expected format "{FORMAT}"; run the study again to write it')
    return [Measurement(**row) for row in table.drop_columns("format").to_pylist()]


def _measurement(subject: Subject, row: Row, reference: Reference | None, best: float | None) -> Measurement:
    above, optimal = None, None
    # The homes of a run that ended in an error are not an answer of the method.
    objective = None if row.status == "error" else row.objective
    if reference is not None and objective is not None:
        above = excess(objective, reference.value)
        if reference.kind == OPTIMUM:
            optimal = objective <= reference.value + SAME * reference.value
        elif best is not None and objective > best + SAME * best:
            optimal = False
    return Measurement(
        instance=row.instance,
        hash=row.hash,
        group=subject.group,
        regime=subject.regime,
        block=subject.block,
        sigma=subject.sigma,
        clients=row.clients,
        servers=row.servers,
        topics=row.topics,
        selector=row.selector,
        seed=row.seed,
        time_limit=row.time_limit,
        status=row.status,
        error=row.error,
        objective=objective,
        y=row.y if objective is not None else None,
        reference=None if reference is None else reference.value,
        reference_kind=None if reference is None else reference.kind,
        reference_by=None if reference is None else reference.by,
        best_known=best,
        excess=above,
        optimal=optimal,
        seconds=row.seconds,
        command=subject.command(row.selector, row.seed, row.time_limit, row.code),
    )


@dataclass(frozen=True)
class Summary:
    """The excess of one method in one regime.

    Attributes
    ----------
    group, regime, selector
        The group, the regime and the method.
    instances, blocks, runs, failed
        The number of instances, of blocks (independent samples), of runs, and of runs without an excess.
    optima, bounds
        The number of instances whose reference is a proven optimum, and a certified bound.
    mean, low, high
        The mean excess over instances, where the seeds of an instance are averaged first, and its 95 % interval (None
        for fewer than five blocks).
    geometric
        The geometric mean of the excess over instances, shifted by :data:`SHIFT`; poor instances count less in it.
    median, worst
        The median excess over instances, and the largest excess of a run.
    hits, hits_of
        The number of optimal runs, and the number of runs on instances with a proven optimum.
    seconds
        The median time of a run.
    """

    group: str
    regime: str
    selector: str
    instances: int
    blocks: int
    runs: int
    failed: int
    optima: int
    bounds: int
    mean: float
    low: float | None
    high: float | None
    geometric: float
    median: float
    worst: float
    hits: int
    hits_of: int
    seconds: float


def summaries(measurements: Sequence[Measurement], by: str = "regime") -> list[Summary]:
    """Summarise the excess of each method in each regime.

    Parameters
    ----------
    measurements
        The runs.
    by
        The attribute to summarise by, ``regime`` or ``group``.

    Returns
    -------
    list of Summary
        In the order in which regimes and methods first appear.
    """
    rows: dict[tuple[str, str], dict[str, list[Measurement]]] = {}
    selectors = list(dict.fromkeys(one.selector for one in measurements))
    for one in measurements:
        rows.setdefault((one.group, getattr(one, by)), {}).setdefault(one.selector, []).append(one)
    return [
        _summary(group, name, selector, parts[selector])
        for (group, name), parts in rows.items()
        for selector in selectors
        if any(one.excess is not None for one in parts.get(selector, ()))
    ]


def per_instance(measurements: Iterable[Measurement]) -> dict[str, float]:
    """Return the mean excess over seeds of each instance.

    Parameters
    ----------
    measurements
        The runs of one method.

    Returns
    -------
    dict
        The mean excess by hash, for the instances that have one.
    """
    found: dict[str, list[float]] = {}
    for one in measurements:
        if one.excess is not None:
            found.setdefault(one.hash, []).append(one.excess)
    return {key: statistics.fmean(values) for key, values in found.items()}


def interval(measurements: Iterable[Measurement]) -> Interval:
    """Return the mean excess of one method over instances, with an interval over blocks.

    Parameters
    ----------
    measurements
        The runs of one method, at least one of them with an excess.

    Returns
    -------
    Interval
        The mean, its 95 % interval and the number of blocks.
    """
    every = list(measurements)
    means, blocks = per_instance(every), {one.hash: one.block for one in every}
    return blocked_interval(list(means.values()), [blocks[key] for key in means])


def interval_text(found: Interval) -> str:
    """Return the interval of a mean for a hover text.

    Parameters
    ----------
    found
        The mean and its interval.

    Returns
    -------
    str
        The limits and the number of independent samples, with a leading comma.
    """
    limits = "" if found.low is None or found.high is None else f", 95 % [{found.low:.2%}, {found.high:.2%}]"
    return f"{limits}, n = {found.blocks}"


def _summary(group: str, regime: str, selector: str, measurements: Sequence[Measurement]) -> Summary:
    means = list(per_instance(measurements).values())
    found = interval(measurements)
    proved = {one.hash for one in measurements if one.reference_kind == OPTIMUM and one.excess is not None}
    on_proved = [one for one in measurements if one.hash in proved]
    return Summary(
        group=group,
        regime=regime,
        selector=selector,
        instances=len(means),
        blocks=found.blocks,
        runs=len(measurements),
        failed=sum(one.excess is None for one in measurements),
        optima=len(proved),
        bounds=len(means) - len(proved),
        mean=found.mean,
        low=found.low,
        high=found.high,
        geometric=shifted_geometric_mean(means, SHIFT) or 0.0,
        median=statistics.median(means),
        worst=max(one.excess for one in measurements if one.excess is not None),
        hits=sum(bool(one.optimal) for one in on_proved),
        hits_of=len(on_proved),
        seconds=statistics.median(one.seconds for one in measurements),
    )


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same instances of a group.

    Attributes
    ----------
    group
        The group of instances.
    first, second
        The selectors of the methods.
    paired
        The comparison of their mean excess, block by block.
    p
        The p-value, adjusted for all tests of the study; None if there are too few blocks for a test.
    tests
        The number of tests that the p-value is adjusted for.
    """

    group: str
    first: str
    second: str
    paired: Paired
    p: float | None
    tests: int

    @property
    def better(self) -> str | None:
        """The better method; None if the difference is not significant or was not tested."""
        if self.p is None or self.p > SIGNIFICANT:
            return None
        return self.first if self.paired.difference < 0 else self.second


def comparisons(measurements: Sequence[Measurement]) -> list[Comparison]:
    """Compare all pairs of methods within each group.

    The mean excess over the seeds of a method is taken first, then the mean difference over the instances of a block.
    The blocks are the sample of the test.

    Parameters
    ----------
    measurements
        The runs of the study.

    Returns
    -------
    list of Comparison
        One for each pair of methods with common instances.
    """
    blocks = {one.hash: one.block for one in measurements}
    found: list[tuple[str, str, str, Paired]] = []
    for group in dict.fromkeys(one.group for one in measurements):
        inside = [one for one in measurements if one.group == group]
        selectors = list(dict.fromkeys(one.selector for one in inside))
        means = {name: per_instance(one for one in inside if one.selector == name) for name in selectors}
        for first, second in itertools.combinations(selectors, 2):
            common = [key for key in means[first] if key in means[second]]
            if common:
                one, other = ([means[name][key] for key in common] for name in (first, second))
                pair = paired(one, other, [blocks[key] for key in common], SAME)
                found.append((group, first, second, pair))
    tested = [pair.p for *_, pair in found if pair.p is not None]
    adjusted = iter(holm(tested))
    return [
        Comparison(group, first, second, pair, None if pair.p is None else next(adjusted), len(tested))
        for group, first, second, pair in found
    ]
