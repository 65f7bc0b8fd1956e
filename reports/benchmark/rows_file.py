"""The benchmark as one Parquet file: the rows of the runs with their assessment."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.files.atomic_write import written_whole
from relocbench.reports.benchmark.assessment import AssessedRun
from relocbench.reports.benchmark.measures import primal_dual_integral, primal_integral
from relocbench.runs.run_store import table_of

# These facts about models and searches get columns of their own, because a map column is hard to query.
FACTS = ("variables", "constraints", "binaries", "nodes", "root_bound")


def write_rows(runs: Sequence[AssessedRun], path: Path) -> Path:
    """Write one row per run as Parquet, completely or not at all.

    Parameters
    ----------
    runs
        The runs.
    path
        The file.

    Returns
    -------
    Path
        The file.
    """
    table = table_of([run.row for run in runs])
    columns: dict[str, pa.Array] = {
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
    columns |= {name: pa.array([run.row.facts.get(name) for run in runs], pa.float64()) for name in FACTS}
    for name, column in columns.items():
        table = table.append_column(name, column)
    with written_whole(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")
    return path
