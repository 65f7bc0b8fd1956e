"""Run a study of moving clients: all its units, here or on Spark, and collect their rows."""

import contextlib
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError
from relocbench.instances.timeline.prices import Prices
from relocbench.reports.moving.plan import Plan, Subject, pairs, subjects
from relocbench.reports.moving.rows import BoundRow, ScheduleRow, TimeRow, write_rows
from relocbench.reports.moving.timing import measured_times
from relocbench.reports.moving.units import (
    CertifyUnit,
    ReplayUnit,
    StudyInterruptedError,
    SummaryUnit,
    Unit,
    blocks,
    read_result,
    write_result,
)
from relocbench.runs.processes import in_processes
from relocbench.runs.progress import progress
from relocbench.runs.timeline.epoch_bounds import timeline_bound
from relocbench.runs.timeline.policy_selectors import as_policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Results:
    """The results of a study.

    Attributes
    ----------
    subjects
        The timelines.
    schedules
        One row per timeline, policy and method.
    bounds
        One row per timeline and epoch.
    times
        The measured times of the methods.
    summaries
        The sizes of each timeline by its hash, as ``relocbench moving describe`` prints them, with its prices.
    replays
        The folder with one file per replay.
    """

    subjects: tuple[Subject, ...]
    schedules: tuple[ScheduleRow, ...]
    bounds: tuple[BoundRow, ...]
    times: tuple[TimeRow, ...]
    summaries: dict[str, dict[str, Any]]
    replays: Path

    def write(self, folder: Path) -> list[Path]:
        """Write the rows.

        Parameters
        ----------
        folder
            The folder for ``schedules.parquet``, ``bounds.parquet`` and ``times.parquet``.

        Returns
        -------
        list of Path
            The files.
        """
        return [
            write_rows(ScheduleRow, self.schedules, folder / "schedules.parquet"),
            write_rows(BoundRow, self.bounds, folder / "bounds.parquet"),
            write_rows(TimeRow, self.times, folder / "times.parquet"),
        ]


def run_study(plan: Plan, folder: Path, *, jobs: int = 2, spark: "SparkSession | None" = None) -> Results:
    """Run a study. Units whose results are in the folder are not repeated.

    Parameters
    ----------
    plan
        What to study.
    folder
        The folder for timelines, replays and results.
    jobs
        The number of processes, without Spark.
    spark
        A session that runs the units. All executors must see the folder under the same path.

    Returns
    -------
    Results
        The rows. They are the same with any number of processes and on Spark, except for measured times, and for
        bounds that have a time limit (``bound_time``).

    Raises
    ------
    InputError
        If a timeline, policy or method is wrong.
    RunError
        If a run of a method failed.
    """
    folder = folder.resolve()
    chosen = subjects(plan, folder / "timelines")
    replayed = {one: [ReplayUnit(one, pair, plan.time_limit) for pair in pairs(plan, one.epochs)] for one in chosen}
    times = measured_times(plan, folder / "units")
    # Slow units first, so that no process works alone at the end.
    units: list[Unit] = [unit for group in replayed.values() for unit in group]
    units.sort(key=lambda unit: -_effort(unit))
    units += [*(unit for one in chosen for unit in blocks(one)), *map(SummaryUnit, chosen)]
    found = _run_units(units, folder, jobs, spark, "replaying and bounding")
    certified = _certified(plan, replayed, found, folder, jobs, spark)
    schedules: list[ScheduleRow] = []
    bounds: list[BoundRow] = []
    summaries = {}
    for one in chosen:
        summaries[one.hash] = summary = found[SummaryUnit(one).digest]
        rows, delay_bound = _bound(one, [found[unit.digest] for unit in blocks(one)], summary["publication_period"])
        bounds += rows
        both = max(certified.get(one, 0.0), delay_bound), delay_bound
        schedules += [_schedule(one, unit, found[unit.digest], both, rows) for unit in replayed[one]]
    return Results(tuple(chosen), tuple(schedules), tuple(bounds), tuple(times), summaries, folder / "replays")


def _effort(unit: Unit) -> float:
    """Return about how long a replay takes, in any unit."""
    assert isinstance(unit, ReplayUnit)
    policy = as_policy(unit.pair.policy)
    share = 20.0 if policy.name == "relocate" else 1.0 / int(policy.settings.get("k", 1))
    return share * unit.subject.epochs


def _certified(
    plan: Plan,
    replayed: Mapping[Subject, Sequence[ReplayUnit]],
    found: Mapping[str, dict[str, Any]],
    folder: Path,
    jobs: int,
    spark: "SparkSession | None",
) -> dict[Subject, float]:
    """Bound all epochs of each timeline together, beginning with its best schedule; nothing if no time is given."""
    if not plan.bound_time:
        return {}
    units = {}
    for one, group in replayed.items():
        best = min((found[unit.digest] for unit in group), key=lambda result: result["total"])
        units[one] = CertifyUnit(one, best["replay"], plan.bound_time)
    results = _run_units(list(units.values()), folder, jobs, spark, "bounding all epochs together")
    return {one: results[unit.digest]["bound"] for one, unit in units.items()}


def _run_units(
    units: Sequence[Unit], folder: Path, jobs: int, spark: "SparkSession | None", what: str
) -> dict[str, dict[str, Any]]:
    """Run the units that have no result, and return the results of all by their digests."""
    results = folder / "units"
    results.mkdir(parents=True, exist_ok=True)
    # A digest depends on the code at this moment. The processes use it, even if a file is edited while they work.
    files = {unit.digest: (unit, results / f"{unit.digest}.json") for unit in units}
    missing = [(unit, file) for unit, file in files.values() if read_result(file) is None]
    run = functools.partial(_run_unit, folder / "replays")
    if spark is not None:
        from relocbench.spark.parallel_map import parallel_map

        parallel_map(spark, missing, run, what, len(missing))
    else:
        for _ in progress(in_processes(run, missing, jobs), len(missing), what):
            pass
    found = {}
    for digest, (_, file) in files.items():
        if (result := read_result(file)) is None:
            raise InputError(str(file), "expected the result of a unit, it is missing; run the same command again")
        found[digest] = result
    return found


def _run_unit(replays: Path, item: tuple[Unit, Path]) -> None:
    unit, file = item
    with contextlib.suppress(StudyInterruptedError):  # a replay has stored its epochs
        write_result(file, unit.run(replays))


def _bound(one: Subject, parts: Sequence[dict[str, Any]], period: float) -> tuple[list[BoundRow], float]:
    columns = {name: [value for part in parts for value in part[name]] for name in parts[0]}
    bound = timeline_bound(columns["length"], columns["bound"], Prices(publication_period=period))
    rows = [
        BoundRow(
            timeline=one.name,
            hash=one.hash,
            epoch=number,
            start=columns["start"][number],
            length=columns["length"][number],
            clients=columns["clients"][number],
            publications=columns["publications"][number],
            bound=value,
        )
        for number, value in enumerate(bound.epochs)
    ]
    return rows, bound.total


def _schedule(
    one: Subject,
    unit: ReplayUnit,
    found: dict[str, Any],
    bounds: tuple[float, float],
    epochs: Sequence[BoundRow],
) -> ScheduleRow:
    policy = as_policy(unit.pair.policy)
    period = None
    if policy.name == "every":
        count = min(int(policy.settings.get("k", 10)), len(epochs))
        # The epochs of a trace may have gaps between them, so the mean length counts.
        period = count * math.fsum(row.length for row in epochs) / len(epochs)
    same = (
        *("policy", "method", "total", "delay_cost", "handover_cost", "spool_cost", "publications", "y", "handovers"),
        *("handovers_per_client_hour", "spool_moved", "overloaded_share", "solves", "solve_seconds", "clusters"),
        "replay",
    )
    return ScheduleRow(
        group=one.group,
        timeline=one.name,
        hash=one.hash,
        speed=one.speed,
        seed=one.seed,
        period=period,
        clusters_only=unit.pair.clusters_only,
        bound=bounds[0],
        delay_bound=bounds[1],
        **{name: found[name] for name in same},
    )
