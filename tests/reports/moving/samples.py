"""Results of studies of moving clients without running anything."""

from pathlib import Path

from relocbench.reports.moving.plan import Subject
from relocbench.reports.moving.rows import BoundRow, ScheduleRow, TimeRow
from relocbench.reports.moving.study import Results

SEEDS = 5
# The cost per publication of each period in minutes, by speed and method.
USUAL = {
    (5.0, "reloc"): {1: 2.10, 5: 2.04, 10: 2.00, 60: 2.08},
    (5.0, "nearest"): {1: 1.90, 5: 1.91, 10: 1.92, 60: 1.95},
    (50.0, "reloc"): {1: 2.30, 5: 2.20, 10: 2.40, 60: 2.90},
    (50.0, "nearest"): {1: 2.40, 5: 2.50, 10: 2.70, 60: 3.10},
}
RELOCATE = {5.0: 1.50, 50.0: 1.60}
CLUSTERS = {5.0: {"1": 2.2, "4": 2.1, "16": 2.0}, 50.0: {"1": 2.2, "4": 2.0, "16": 2.1}}
TIMES = {1_000: 0.02, 10_000: 0.2, 100_000: 2.0}


def results(costs=USUAL, relocate=RELOCATE, clusters=CLUSTERS, times=TIMES, seeds=SEEDS, bound=1.25, delay_bound=None):
    """Return results with given costs; the seeds differ a little, all policies alike."""
    speeds = sorted({speed for speed, _ in costs})
    subjects, rows, bounds = [], [], []
    for speed in speeds:
        for seed in range(seeds):
            name = f"moving-v{speed:g}-x1-{seed}"
            subjects.append(Subject(Path(f"{name}.parquet"), name, name, f"{speed:g} km/h", speed, seed, 60))
            bounds.append(
                BoundRow(
                    timeline=name, hash=name, epoch=0, start=0.0, length=60.0, clients=9, publications=1.0, bound=1.0
                )
            )

            def add(cost, policy, method, period=None, k=None, at=(speed, seed, name)):
                rows.append(_row(cost, policy, method, period, k, at, bound, delay_bound or bound))

            for (own, method), of_period in costs.items():
                if own == speed:
                    for minutes, cost in of_period.items():
                        add(cost, f"every[k={minutes}]", method, 60.0 * minutes)
            if speed in relocate:
                add(relocate[speed], "relocate", "reloc")
            for k, cost in clusters.get(speed, {}).items():
                add(cost, "every[k=5]", f"reloc[k={k}]", 300.0, k)
    measured = tuple(TimeRow(method="reloc", clients=n, servers=16, seconds=s) for n, s in times.items())
    return Results(tuple(subjects), tuple(rows), tuple(bounds), measured, {}, Path("replays"))


def _row(cost, policy, method, period, k, at, bound, delay_bound):
    speed, seed, name = at
    total = 1000.0 * (cost + 0.001 * seed)
    return ScheduleRow(
        group=f"{speed:g} km/h",
        timeline=name,
        hash=name,
        speed=speed,
        seed=seed,
        policy=policy,
        method=method,
        period=period,
        clusters_only=k is not None,
        total=total,
        delay_cost=0.9 * total,
        handover_cost=0.07 * total,
        spool_cost=0.03 * total,
        bound=1000.0 * bound,
        delay_bound=1000.0 * delay_bound,
        publications=1000.0,
        y=0.9 * cost,
        handovers=7,
        handovers_per_client_hour=3.0,
        spool_moved=12.0,
        overloaded_share=0.25,
        solves=4,
        solve_seconds=0.1,
        clusters=None if k is None or k == "auto" else float(k),
        replay="x.parquet",
    )
