"""Measure how often `relocbench check --criterion time --criterion integral` fails, for times that are real.

python benchmarks/gate_times.py [--sessions 8] [--instances '[pl]*']

Several sessions run the same methods one after the other, each with its own measurements of the reference computations,
and under whatever other load the machine has. Each pair of sessions is then compared as a baseline and a check of the
same method. For the power, the times of the check are multiplied. The change of the speed of another machine is
simulated: the times of the method and of each reference computation are multiplied by lognormal factors.
"""

import argparse
import itertools
import math
import statistics
from dataclasses import replace

import numpy as np

from relocbench.instances.library.library import Library
from relocbench.reports.gate.baseline import Line, Record
from relocbench.reports.gate.comparison import compare
from relocbench.reports.gate.judged_instances import JudgedInstance, library_instances
from relocbench.reports.gate.machine_speed import SpeedMeter, speed_change
from relocbench.reports.gate.measurement import Job, MethodRuns, measure
from relocbench.reports.gate.times import CRITERIA, timed_comparisons, times_of
from relocbench.runs.isolation.supervisor import MEMORY_LIMIT
from relocbench.runs.selectors import as_selector

METHODS = ("reloc", "adaptive", "anneal[moves=50000]")
SEEDS = (0, 1, 2)
SLOWER = (1.0, 1.1, 1.25, 1.5, 2.0)
# How much the change of speed differs between kinds of work on another machine: a standard deviation of logarithms.
OTHER_MACHINES = (0.0, 0.05, 0.15)
REPEATS = 20

Session = tuple[dict[str, MethodRuns], dict[str, float]]


def session(instances: dict[str, JudgedInstance]) -> Session:
    """Run all methods once, and measure the reference computations meanwhile."""
    meter = SpeedMeter()
    work = [Job(as_selector(method), instances, SEEDS, 60.0) for method in METHODS]
    found = measure(work, memory_limit=MEMORY_LIMIT, meter=meter)
    return dict(zip(METHODS, found, strict=True)), meter.seconds


def record(method: str, runs: MethodRuns, seconds: dict[str, float], instances: dict[str, JudgedInstance]) -> Record:
    """Return the record that a baseline would have."""
    lines = {
        name: Line(
            rows[0].hash,
            tuple(row.objective or 0.0 for row in rows),
            (),
            times=times_of(rows, instances[name], with_integrals=True),
        )
        for name, rows in runs.complete.items()
    }
    return Record(method, SEEDS, 60.0, "*", 0, {}, lines, reference_seconds=seconds)


def scaled(runs: MethodRuns, factor: float) -> MethodRuns:
    """Return runs that took a multiple of their time."""
    rows = {
        name: [
            replace(
                row,
                cpu_seconds=row.cpu_seconds * factor,
                seconds=row.seconds * factor,
                trace=[(at * factor, incumbent, bound) for at, incumbent, bound in row.trace],
            )
            for row in part
        ]
        for name, part in runs.rows.items()
    }
    return replace(runs, rows=rows)


def share(
    sessions: list[Session],
    method: str,
    criterion: str,
    factor: float,
    spread: float,
    instances: dict[str, JudgedInstance],
) -> float:
    """Return the share of comparisons of two sessions that fail."""
    rng = np.random.default_rng(0)
    records = [record(method, runs[method], seconds, instances) for runs, seconds in sessions]
    failed = []
    for first, second in itertools.permutations(range(len(sessions)), 2):
        runs, seconds = sessions[second]
        for _ in range(REPEATS if spread else 1):
            own, *kernels = np.exp(spread * rng.standard_normal(len(seconds) + 1)).tolist()
            other = {name: value * kernel for (name, value), kernel in zip(seconds.items(), kernels, strict=True)}
            now = scaled(runs[method], factor * own)
            timed = timed_comparisons(method, records[first], now, other, [criterion])  # type: ignore[list-item]
            failed.append(any(finding.worse for finding in compare({}, timed=timed)))
    return statistics.fmean(failed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--instances", default="[pl]*")
    given = parser.parse_args()
    library = Library()
    instances = library_instances(library, library.names(given.instances))
    sessions = [session(instances) for _ in range(given.sessions)]
    print(
        f"library version {library.version}, {len(instances)} instances, {len(SEEDS)} seeds, {len(sessions)} sessions\n"
    )
    speeds = [speed_change(a[1], b[1]) for a, b in itertools.permutations(sessions, 2)]
    print(f"speed of the machine between two sessions: {spread_of([one.log for one in speeds]):.1%}")
    print(f"disagreement of the reference computations: {math.sqrt(statistics.fmean(s.spread**2 for s in speeds)):.1%}")
    for method in METHODS:
        changes = [
            math.log1p(finding.change)
            for a, b in itertools.permutations(sessions, 2)
            for timed in [
                timed_comparisons(method, record(method, a[0][method], a[1], instances), b[0][method], b[1], ["time"])
            ]
            for finding in compare({}, timed=timed)
            if finding.scope == "all"
        ]
        print(f"change of the time of {method} between two sessions, corrected: {spread_of(changes):.1%}")
    print("\n| method | criterion | machine |", " | ".join(f"{factor - 1:+.0%}" for factor in SLOWER), "|")
    print("|---|---|---:|" + "---:|" * len(SLOWER))
    for method, criterion, spread in itertools.product(METHODS, CRITERIA[1:], OTHER_MACHINES):
        if criterion == "integral" and method == "reloc":
            continue  # it reports no progress
        shares = [share(sessions, method, criterion, factor, spread, instances) for factor in SLOWER]
        print(
            f"| `{method}` | {criterion} | {spread:.0%} |", " | ".join(f"{one:.1%}" for one in shares), "|", flush=True
        )


def spread_of(changes: list[float]) -> float:
    """Return the root of the mean square of changes of logarithms."""
    return math.sqrt(statistics.fmean(change**2 for change in changes))


if __name__ == "__main__":
    main()
