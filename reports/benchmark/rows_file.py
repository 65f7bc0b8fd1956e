"""The benchmark as one Parquet file: the rows of the runs, and what was made of each."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.benchmark.assessment import Judged
from relocbench.reports.benchmark.measures import primal_dual_integral, primal_integral
from relocbench.runs.run_store import table_of

# What models and searches say of their size; columns of their own, as a map is tedious to query.
FACTS = ("variables", "constraints", "binaries", "nodes", "root_bound")


def write_table(runs: Sequence[Judged], path: Path) -> Path:
    """Write a row for each run and return where."""
    table = table_of([run.row for run in runs])
    more: dict[str, pa.Array] = {
        "group": pa.array([run.group for run in runs], pa.string()),
        "library": pa.array([run.library for run in runs], pa.string()),
        "outcome": pa.array([run.outcome for run in runs], pa.string()),
        "wrong": pa.array([run.wrong or None for run in runs], pa.string()),
        "best_cost": pa.array([run.best for run in runs], pa.float64()),
        "best_bound": pa.array([run.bound for run in runs], pa.float64()),
        "optimum_known": pa.array([run.optimum_known for run in runs], pa.bool_()),
        "excess": pa.array([run.excess for run in runs], pa.float64()),
        "root_gap": pa.array([run.root_gap for run in runs], pa.float64()),
        "primal_dual_integral": pa.array([primal_dual_integral(run) for run in runs], pa.float64()),
        "primal_integral": pa.array([primal_integral(run) for run in runs], pa.float64()),
    }
    more |= {name: pa.array([run.row.facts.get(name) for run in runs], pa.float64()) for name in FACTS}
    for name, column in more.items():
        table = table.append_column(name, column)
    with written_whole(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return path
