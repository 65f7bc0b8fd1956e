"""Runs as rows, and the folder that keeps them: one small Parquet file each, so that nothing finished is ever lost."""

import functools
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.evaluation import mean_distance, use
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.instance import Instance
from relocbench.runs.environment import information
from relocbench.runs.outcome import Outcome, gap

FORMAT = "relocbench-run/1"
POINT = pa.struct([("seconds", pa.float64()), ("incumbent", pa.float64()), ("bound", pa.float64())])
SCHEMA = pa.schema(
    [
        pa.field("format", pa.string(), nullable=False),
        pa.field("instance", pa.string(), nullable=False),  # its name
        pa.field("hash", pa.string(), nullable=False),
        pa.field("parameters", pa.string(), nullable=False),  # JSON
        pa.field("clients", pa.int64(), nullable=False),
        pa.field("servers", pa.int64(), nullable=False),
        pa.field("topics", pa.int64(), nullable=False),
        pa.field("selector", pa.string(), nullable=False),
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("time_limit", pa.float64(), nullable=False),  # seconds
        pa.field("memory_limit", pa.int64(), nullable=False),  # bytes
        pa.field("status", pa.string(), nullable=False),
        pa.field("failure", pa.string()),
        pa.field("error", pa.string()),
        pa.field("objective", pa.float64()),
        pa.field("y", pa.float64()),
        pa.field("y1", pa.float64()),
        pa.field("y2", pa.float64()),
        pa.field("bound", pa.float64()),
        pa.field("gap", pa.float64()),
        pa.field("seconds", pa.float64(), nullable=False),
        pa.field("cpu_seconds", pa.float64(), nullable=False),
        pa.field("peak_memory", pa.int64(), nullable=False),  # bytes
        pa.field("least_theta", pa.float64()),
        pa.field("most_storage_use", pa.float64()),
        pa.field("most_compute_use", pa.float64()),
        pa.field("mean_distance", pa.float64()),  # km from a client to its home
        pa.field("home", pa.list_(pa.int32())),
        pa.field("trace", pa.list_(POINT), nullable=False),
        pa.field("facts", pa.map_(pa.string(), pa.float64()), nullable=False),
        pa.field("log", pa.string()),  # within the store's folder
        pa.field("versions", pa.map_(pa.string(), pa.string()), nullable=False),
    ]
)


@dataclass(frozen=True)
class Run:
    """What is run: an instance, a method, a seed and limits (seconds, bytes)."""

    hash: str
    selector: str
    seed: int
    time_limit: float
    memory_limit: int

    @property
    def digest(self) -> str:
        """What the run's files are called."""
        key = [self.hash, self.selector, self.seed, float(self.time_limit), self.memory_limit]
        return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run and what came of it; a field is None where it has no value. ``SCHEMA`` says what the units are."""

    instance: str
    hash: str
    parameters: str
    clients: int
    servers: int
    topics: int
    selector: str
    seed: int
    time_limit: float
    memory_limit: int
    status: str
    failure: str | None = None
    error: str | None = None
    objective: float | None = None
    y: float | None = None
    y1: float | None = None
    y2: float | None = None
    bound: float | None = None
    gap: float | None = None
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    least_theta: float | None = None
    most_storage_use: float | None = None
    most_compute_use: float | None = None
    mean_distance: float | None = None
    home: list[int] | None = None
    trace: list[tuple[float, float, float]] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    log: str | None = None
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def run(self) -> Run:
        """What was run."""
        return Run(self.hash, self.selector, self.seed, self.time_limit, self.memory_limit)


def row_of(instance: Instance, run: Run, outcome: Outcome, log: str | None = None) -> Row:
    """Return a run's outcome as a row."""
    told: dict[str, Any] = {}
    bound = outcome.bound if math.isfinite(outcome.bound) else None
    if outcome.evaluation is not None and outcome.home is not None:
        cost, home = outcome.evaluation, outcome.home
        told = {
            "objective": outcome.objective,
            "y": cost.y,
            "y1": cost.y1,
            "y2": cost.y2,
            "gap": gap(outcome.objective, bound),
            "least_theta": float(cost.theta.min()),
            "most_storage_use": float(use(cost.storage_load, instance.storage_capacity).max()),
            "most_compute_use": float(use(cost.compute_load, instance.compute_capacity).max()),
            "mean_distance": mean_distance(instance, home),
            "home": home.tolist(),
        }
    return Row(
        instance=instance.name,
        hash=instance.hash,
        parameters=json.dumps(dict(instance.parameters)),
        clients=instance.n_clients,
        servers=instance.n_servers,
        topics=instance.n_topics,
        selector=run.selector,
        seed=run.seed,
        time_limit=float(run.time_limit),
        memory_limit=run.memory_limit,
        status=outcome.status,
        failure=outcome.failure,
        error=outcome.error,
        bound=bound,
        seconds=outcome.seconds,
        cpu_seconds=outcome.cpu_seconds,
        peak_memory=outcome.peak_memory,
        trace=list(outcome.trace),
        facts=dict(outcome.facts),
        log=log,
        versions=_versions(),
        **told,
    )


class Store:
    """A folder of finished runs; several writers, and one that is killed, do no harm.

    Parameters
    ----------
    folder
        Holds one Parquet file a run, and their logs below ``logs``. Made when first written to.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(str(folder), "expected a folder for runs, got a file")

    def find(self, run: Run) -> Row | None:
        """Return the row of a run, if it is there and can be read."""
        path = self.folder / f"{run.digest}.parquet"
        try:
            found = _read_row(path) if path.exists() else None
        except InputError:
            return None
        return found if found is not None and found.run == run else None

    def finished(self, run: Run, retry_errors: bool) -> Row | None:
        """Return the row of a run that need not be run again; an error is, where errors are to be retried."""
        row = self.find(run)
        return None if row is not None and retry_errors and row.status == "error" else row

    def write(self, row: Row) -> None:
        """Add a row, or replace the one of the same run."""
        with written_whole(self.folder / f"{row.run.digest}.parquet") as temporary:
            pq.write_table(table_of([row]), temporary, compression="zstd")

    def log(self, run: Run) -> Path:
        """Return where a run's log goes."""
        return self.folder / "logs" / f"{run.digest}.log"


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table of ``SCHEMA``."""
    return pa.Table.from_pylist(list(map(_columns, rows)), schema=SCHEMA)


def read(folder: str | Path) -> tuple[list[Row], list[str]]:
    """Read a store.

    Returns
    -------
    rows
        Every run that can be read, in the order of instance, selector and seed.
    problems
        For each file that cannot be read one line with its name and why.
    """
    if not Path(folder).is_dir():
        raise InputError(str(folder), "expected a folder of runs")
    rows, problems = [], []
    for path in sorted(Path(folder).glob("*.parquet")):
        try:
            rows.append(_read_row(path))
        except InputError as error:
            problems.append(str(error))
    return sorted(rows, key=lambda row: (row.instance, row.hash, row.selector, row.seed, row.time_limit)), problems


def _columns(row: Row) -> dict[str, Any]:
    values = {spec.name: getattr(row, spec.name) for spec in fields(Row)} | {"format": FORMAT}
    values["trace"] = [dict(zip(POINT.names, point, strict=True)) for point in row.trace]
    return values | {name: list(values[name].items()) for name in ("facts", "versions")}


def _read_row(path: Path) -> Row:
    try:
        file = pq.ParquetFile(path)
        names = set(file.schema_arrow.names)
        if "format" not in names:
            raise InputError(str(path), "expected a run, the column format is missing")
        table = file.read(use_threads=False)  # for one row they cost more than they bring
        stated = table.column("format")[0].as_py() if len(table) == 1 else None
        if stated != FORMAT:
            raise InputError(str(path), f'expected one row of format "{FORMAT}", got {shown(stated)}')
        table.validate(full=True)
        table = table.select(SCHEMA.names).cast(SCHEMA)
        [values] = table.to_pylist(maps_as_pydicts="strict")
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise InputError(str(path), f"cannot be read as a run ({reason(error)})") from error
    values["trace"] = [(point["seconds"], point["incumbent"], point["bound"]) for point in values["trace"]]
    del values["format"]
    return Row(**values)


@functools.cache
def _versions() -> dict[str, str]:
    return {name: str(value) for name, value in information().items() if value is not None}
