"""Gaps: what each run costs above what is proved, summed up by regime and compared method by method."""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.statistics import FEWEST_FOR_INTERVAL, Paired, holm, mean_interval, paired
from relocbench.reports.study.references import OPTIMUM, Reference
from relocbench.reports.study.subjects import Subject
from relocbench.runs.outcome import above
from relocbench.runs.run_store import Row

# Costs that differ by less, relatively, are the same: proofs of optimality go no further.
SAME = 1e-6
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Gap:
    """One run, and how far it is above what is proved.

    Attributes
    ----------
    group, regime, sigma
        What the instance belongs to; see :class:`reports.study.subjects.Subject`.
    reference, reference_kind, reference_by
        What the gap is measured against.
    best_known
        The least cost that anything in the study, or the library, has.
    gap
        ``objective / reference - 1``; None where there are no homes or nothing is proved.
    optimal
        Whether the homes are optimal; None where no optimum is known and they are not provably worse.
    command
        What repeats the run.
    """

    instance: str
    hash: str
    group: str
    regime: str
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
    gap: float | None
    optimal: bool | None
    seconds: float
    command: str


SCHEMA = pa.schema(
    [
        ("instance", pa.string()),
        ("hash", pa.string()),
        ("group", pa.string()),
        ("regime", pa.string()),
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
        ("gap", pa.float64()),
        ("optimal", pa.bool_()),
        ("seconds", pa.float64()),
        ("command", pa.string()),
    ]
)


def gaps_of(
    subjects: Sequence[Subject],
    rows: Iterable[Row],
    references: Mapping[str, Reference],
    best: Mapping[str, float],
) -> list[Gap]:
    """Return the gap of each row; ``best`` are the least costs known, by hash."""
    by_hash = {subject.instance.hash: subject for subject in subjects}
    return [_gap(by_hash[row.hash], row, references.get(row.hash), best.get(row.hash)) for row in rows]


def best_known(rows: Iterable[Row], library: Mapping[str, float]) -> dict[str, float]:
    """Return the least cost of each instance."""
    found = dict(library)
    for row in rows:
        if row.objective is not None:
            found[row.hash] = min(row.objective, found.get(row.hash, row.objective))
    return found


def write_gaps(gaps: Sequence[Gap], path: Path) -> None:
    """Write gaps as Parquet, whole or not at all."""
    with written_whole(path) as temporary:
        pq.write_table(pa.Table.from_pylist([asdict(gap) for gap in gaps], schema=SCHEMA), temporary)


def _gap(subject: Subject, row: Row, told: Reference | None, best: float | None) -> Gap:
    gap, optimal = None, None
    # What a row in error has for homes is not what the method meant.
    cost = None if row.status == "error" else row.objective
    if told is not None and cost is not None:
        gap = above(cost, told.value)
        if told.kind == OPTIMUM:
            optimal = cost <= told.value + SAME * max(1.0, told.value)
        elif best is not None and cost > best + SAME * max(1.0, best):
            optimal = False
    return Gap(
        instance=row.instance,
        hash=row.hash,
        group=subject.group,
        regime=subject.regime,
        sigma=subject.sigma,
        clients=row.clients,
        servers=row.servers,
        topics=row.topics,
        selector=row.selector,
        seed=row.seed,
        time_limit=row.time_limit,
        status=row.status,
        error=row.error,
        objective=cost,
        y=row.y if cost is not None else None,
        reference=None if told is None else told.value,
        reference_kind=None if told is None else told.kind,
        reference_by=None if told is None else told.by,
        best_known=best,
        gap=gap,
        optimal=optimal,
        seconds=row.seconds,
        command=subject.command(row.selector, row.seed, row.time_limit),
    )


@dataclass(frozen=True)
class Summary:
    """One method in one regime.

    Attributes
    ----------
    instances, runs, failed
        How many, and how many runs have no gap.
    optima, bounds
        Of how many instances the optimum is proved, and of how many only a bound.
    mean, low, high
        The mean over instances of the mean over seeds, and its interval (None for fewer than five instances).
    median, worst
        Over instances, and over runs.
    hits, hits_of
        How many runs are optimal, of those on instances whose optimum is proved.
    seconds
        The median of a run.
    """

    regime: str
    selector: str
    instances: int
    runs: int
    failed: int
    optima: int
    bounds: int
    mean: float
    low: float | None
    high: float | None
    median: float
    worst: float
    hits: int
    hits_of: int
    seconds: float


def summaries(gaps: Sequence[Gap], by: str = "regime") -> list[Summary]:
    """Sum up by regime (or another attribute) and method, both in the order they first appear."""
    parts: dict[tuple[str, str], list[Gap]] = {}
    regimes = list(dict.fromkeys(getattr(gap, by) for gap in gaps))
    selectors = list(dict.fromkeys(gap.selector for gap in gaps))
    for gap in gaps:
        parts.setdefault((getattr(gap, by), gap.selector), []).append(gap)
    order = itertools.product(regimes, selectors)
    return [_summary(*key, parts[key]) for key in order if any(gap.gap is not None for gap in parts.get(key, ()))]


def per_instance(gaps: Iterable[Gap]) -> dict[str, float]:
    """Return the mean gap over seeds of each instance that has one, by hash."""
    found: dict[str, list[float]] = {}
    for gap in gaps:
        if gap.gap is not None:
            found.setdefault(gap.hash, []).append(gap.gap)
    return {key: statistics.fmean(values) for key, values in found.items()}


def _summary(regime: str, selector: str, gaps: Sequence[Gap]) -> Summary:
    means = list(per_instance(gaps).values())
    mean, low, high = mean_interval(means)
    enough = len(means) >= FEWEST_FOR_INTERVAL
    proved = {gap.hash for gap in gaps if gap.reference_kind == OPTIMUM and gap.gap is not None}
    on_proved = [gap for gap in gaps if gap.hash in proved]
    return Summary(
        regime=regime,
        selector=selector,
        instances=len(means),
        runs=len(gaps),
        failed=sum(gap.gap is None for gap in gaps),
        optima=len(proved),
        bounds=len(means) - len(proved),
        mean=mean,
        low=low if enough else None,
        high=high if enough else None,
        median=statistics.median(means),
        worst=max(gap.gap for gap in gaps if gap.gap is not None),
        hits=sum(bool(gap.optimal) for gap in on_proved),
        hits_of=len(on_proved),
        seconds=statistics.median(gap.seconds for gap in gaps),
    )


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same instances of a group; ``p`` is adjusted for all comparisons of the study."""

    group: str
    first: str
    second: str
    paired: Paired
    p: float

    @property
    def better(self) -> str | None:
        """The method that is better, if chance does not explain it."""
        if self.p > SIGNIFICANT:
            return None
        return self.first if self.paired.effect < 0 else self.second


def comparisons(gaps: Sequence[Gap]) -> list[Comparison]:
    """Compare all methods with each other within each group, on the instances that both have."""
    told: list[tuple[str, str, str, Paired]] = []
    for group in dict.fromkeys(gap.group for gap in gaps):
        inside = [gap for gap in gaps if gap.group == group]
        selectors = list(dict.fromkeys(gap.selector for gap in inside))
        means = {name: per_instance(gap for gap in inside if gap.selector == name) for name in selectors}
        for first, second in itertools.combinations(selectors, 2):
            common = [key for key in means[first] if key in means[second]]
            if common:
                pair = paired([means[first][key] for key in common], [means[second][key] for key in common], SAME)
                told.append((group, first, second, pair))
    adjusted = holm([pair.p for *_, pair in told])
    return [Comparison(*one, p) for one, p in zip(told, adjusted, strict=True)]
