"""Measure the costs and times of methods on instances; every run is isolated in a process."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relocbench.formulations.incumbent import slack
from relocbench.reports.gate.judged_instances import JudgedInstance
from relocbench.reports.gate.machine_speed import SpeedMeter
from relocbench.runs.methods import Selector
from relocbench.runs.progress import progress
from relocbench.runs.run_store import Row
from relocbench.runs.sweep import EarlyStop, Limits, Task, early_stops, has_failed, sweep


@dataclass(frozen=True)
class FailedRun:
    """A run that gave no valid assignment.

    Attributes
    ----------
    method, instance, seed
        The run.
    kind
        The kind of failure, as in :class:`runs.outcome.Outcome`; ``bound`` if the cost is below the proved bound.
    error
        The error message, on one line.
    """

    method: str
    instance: str
    seed: int
    kind: str
    error: str


@dataclass(frozen=True)
class MethodRuns:
    """The runs of a method.

    Attributes
    ----------
    rows
        For each name of an instance, one row per seed, in the order of the seeds.
    failed
        The runs that gave no valid assignment.
    stopped
        Why the other runs of the method were not made; None if all were made.
    """

    rows: Mapping[str, Sequence[Row]]
    failed: tuple[FailedRun, ...]
    stopped: EarlyStop | None = None

    @property
    def complete(self) -> Mapping[str, Sequence[Row]]:
        """The rows of the instances on which every run gave a valid assignment; none if the method was stopped."""
        if self.stopped is not None:
            return {}
        incomplete = {run.instance for run in self.failed}
        return {name: rows for name, rows in self.rows.items() if name not in incomplete}


@dataclass(frozen=True)
class Job:
    """Runs of one method.

    Attributes
    ----------
    selector
        The method.
    instances
        The instances by name.
    seeds
        The seeds of the method.
    time_limit
        The time limit of each run in seconds.
    """

    selector: Selector
    instances: Mapping[str, JudgedInstance]
    seeds: Sequence[int]
    time_limit: float


def measure(
    jobs: Sequence[Job], *, memory_limit: int, processes: int = 1, meter: SpeedMeter | None = None
) -> list[MethodRuns]:
    """Run methods on instances.

    Parameters
    ----------
    jobs
        The runs of each method.
    memory_limit
        The memory limit of each process in bytes.
    processes
        The number of processes at the same time.
    meter
        Measures the speed of the machine before, between and after the runs, if times are compared.

    Returns
    -------
    list of MethodRuns
        One for each job. A method whose first runs all fail is stopped (:data:`runs.sweep.FIRST_RUNS`).
    """
    if meter is not None:
        meter.measure()
    stops: dict[tuple[str, float], EarlyStop] = {}
    rows: dict[tuple[str, str, int, float], Row] = {}
    for time_limit in sorted({job.time_limit for job in jobs}):
        # Large instances run first, so that all processes end at about the same time.
        tasks = sorted(
            (
                Task(judged.instance, job.selector, seed)
                for job in jobs
                if job.time_limit == time_limit
                for judged in job.instances.values()
                for seed in job.seeds
            ),
            key=lambda task: -task.instance.n_clients,
        )
        # No store is used: stored rows may come from an earlier version of the code under test.
        running = sweep(
            tasks, None, Limits(time_limit, memory_limit), jobs=processes, reuse=True, counts_as_failed=has_failed
        )
        with contextlib.closing(running):
            found = []
            for row in progress(running, len(tasks), "running methods"):
                found.append(row)
                if meter is not None:
                    meter.measure_sometimes()
        rows |= {(row.selector, row.hash, row.seed, time_limit): row for row in found}
        stops |= {(stop.method, time_limit): stop for stop in early_stops(found, tasks)}
    if meter is not None:
        meter.measure()
    return [_method_runs(job, rows, stops.get((str(job.selector), job.time_limit))) for job in jobs]


def _method_runs(job: Job, rows: Mapping[tuple[str, str, int, float], Row], stopped: EarlyStop | None) -> MethodRuns:
    method = str(job.selector)
    own = {
        name: [row for seed in job.seeds if (row := rows.get((method, judged.instance.hash, seed, job.time_limit)))]
        for name, judged in job.instances.items()
    }
    failed = [
        FailedRun(method, name, row.seed, *problem)
        for name, part in own.items()
        for row in part
        if (problem := _problem(row, job.instances[name])) is not None
    ]
    return MethodRuns(own, tuple(failed), stopped)


def _problem(row: Row, judged: JudgedInstance) -> tuple[str, str] | None:
    if row.failure is not None or row.objective is None:
        return row.failure or row.status, row.error or f"ended as {row.status} without homes"
    bound = judged.bound
    if bound is not None and row.objective < bound - slack(bound):
        source = f"the bound of {judged.file}" if judged.file else "the library"
        return "bound", f"costs {row.objective!r}, nothing can cost less than {bound!r}: {source} or the cost is wrong"
    return None
