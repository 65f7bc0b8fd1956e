"""The run store: a folder with one small Parquet file per finished run, so that no finished run is lost.

:class:`Row` defines what a file contains.
"""

import functools
import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import UnionType
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.evaluation import mean_distance, use
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.parquet_sizes import check_page_sizes
from relocbench.instances.gap import gap
from relocbench.instances.instance import Instance
from relocbench.runs.environment import information
from relocbench.runs.outcome import Outcome, Point

FORMAT = "relocbench-run/1"


@dataclass(frozen=True)
class Run:
    """What identifies a run.

    Attributes
    ----------
    hash
        Content hash of the instance.
    selector, seed
        The method with its settings, and the seed.
    time_limit, memory_limit
        Seconds and bytes.
    code
        The version of the method's code, from :mod:`runs.method_code`.
    """

    hash: str
    selector: str
    seed: int
    time_limit: float
    memory_limit: int
    code: str = ""

    @property
    def digest(self) -> str:
        """The name of the run's files, without suffix. A run of a new version replaces that of an earlier one."""
        key = [self.hash, self.selector, self.seed, float(self.time_limit), self.memory_limit]
        return hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run and its outcome: the definition of a row of the run store.

    ``SCHEMA`` has the column ``format`` (always ``FORMAT``) and then one column per field of this class, in this order.
    A field whose type includes None is a column with missing values. Delays are in ms.

    Attributes
    ----------
    instance, hash
        Name and content hash of the instance.
    parameters
        The parameters that the instance was generated with, as JSON.
    clients, servers, topics
        The sizes of the instance.
    selector, seed
        The method with its settings, and the seed.
    time_limit, memory_limit
        Seconds and bytes.
    status, failure, error
        As in :class:`runs.outcome.Outcome`.
    objective
        ``ΣD`` of the homes; missing without homes, like every field below that depends on them.
    y, y1, y2
        Mean delay ``Y = Y1 + Y2``.
    bound
        The lower bound that the method claims.
    gap
        ``(objective - bound) / objective``.
    seconds, cpu_seconds
        Time of the method, without loading and compiling.
    peak_memory
        Resident bytes of the process and its children.
    least_theta
        The smallest ``θ`` of all servers.
    most_storage_use, most_compute_use
        The largest load of a server as a share of its capacity.
    mean_distance
        Mean distance between a client and its home, in km.
    home
        One server per client.
    trace
        Progress as (seconds, incumbent, bound).
    facts
        What the method reports about its own work, such as the size of its model.
    log
        The log file, relative to the folder of the store.
    versions
        Versions and hardware, from :func:`runs.environment.information`.
    code
        The version of the method's code, from :mod:`runs.method_code`; empty in rows of earlier versions.
    """

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
    trace: list[Point] = field(default_factory=list)
    facts: dict[str, float] = field(default_factory=dict)
    log: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    code: str = ""

    @property
    def run(self) -> Run:
        """What identifies the run."""
        return Run(self.hash, self.selector, self.seed, self.time_limit, self.memory_limit, self.code)


POINT = pa.struct([("seconds", pa.float64()), ("incumbent", pa.float64()), ("bound", pa.float64())])
# The Arrow type for each type of a field of Row.
ARROW_TYPES = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    list[int]: pa.list_(pa.int32()),
    list[Point]: pa.list_(POINT),
    dict[str, float]: pa.map_(pa.string(), pa.float64()),
    dict[str, str]: pa.map_(pa.string(), pa.string()),
}


def _column(name: str, annotation: Any) -> pa.Field:
    """Return the column for a field of a row; ``X | None`` becomes a nullable column."""
    options = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return pa.field(name, ARROW_TYPES[options[0]], nullable=type(None) in options)


SCHEMA = pa.schema([_column("format", str), *(_column(*item) for item in get_type_hints(Row).items())])


def row_of(instance: Instance, run: Run, outcome: Outcome, log: str | None = None) -> Row:
    """Return the row for a run and its outcome.

    Parameters
    ----------
    instance
        The problem.
    run
        What identifies the run.
    outcome
        Its verified outcome.
    log
        The log file, relative to the folder of the store.

    Returns
    -------
    Row
        The row.
    """
    costs: dict[str, Any] = {}
    bound = outcome.bound if math.isfinite(outcome.bound) else None
    if outcome.evaluation is not None and outcome.home is not None:
        cost, home = outcome.evaluation, outcome.home
        costs = {
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
        code=run.code,
        **costs,
    )


class Store:
    """A folder of finished runs.

    Several processes may write at the same time. A process that is killed while it writes leaves no incomplete file.

    Parameters
    ----------
    folder
        Contains one Parquet file per run, and their logs in ``logs``. It is created by the first write.

    Raises
    ------
    InputError
        If the path is a file.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(str(folder), "expected a folder for runs, got a file")

    def find(self, run: Run) -> Row | None:
        """Find a run.

        Parameters
        ----------
        run
            What identifies the run.

        Returns
        -------
        Row or None
            Its row; None if the store does not contain it, the file cannot be read, or the row is of other code.
        """
        row = self._any_version(run)
        return row if row is not None and row.code == run.code else None

    def is_out_of_date(self, run: Run) -> bool:
        """Return whether the store contains a run only as another version of the method's code made it.

        Parameters
        ----------
        run
            What identifies the run.

        Returns
        -------
        bool
            Whether there is a row, and it has to be made again.
        """
        row = self._any_version(run)
        return row is not None and row.code != run.code

    def _any_version(self, run: Run) -> Row | None:
        path = self.folder / f"{run.digest}.parquet"
        try:
            found = _read_row(path) if path.exists() else None
        except InputError:
            return None
        return found if found is not None and replace(found.run, code=run.code) == run else None

    def finished(self, run: Run, retry_errors: bool) -> Row | None:
        """Find a run that does not have to be run again.

        Parameters
        ----------
        run
            What identifies the run.
        retry_errors
            Whether a run that ended in an error has to be run again.

        Returns
        -------
        Row or None
            Its row; None if it has to be run.
        """
        row = self.find(run)
        return None if row is not None and retry_errors and row.status == "error" else row

    def write(self, row: Row) -> None:
        """Add a row, or replace the row of the same run.

        Parameters
        ----------
        row
            The row.
        """
        with written_whole(self.folder / f"{row.run.digest}.parquet") as temporary:
            pq.write_table(table_of([row]), temporary, compression="zstd")

    def log(self, run: Run) -> Path:
        """Return the path of a run's log.

        Parameters
        ----------
        run
            What identifies the run.

        Returns
        -------
        Path
            The path; the file need not exist.
        """
        return self.folder / "logs" / f"{run.digest}.log"


def table_of(rows: Iterable[Row]) -> pa.Table:
    """Return rows as a table.

    Parameters
    ----------
    rows
        The rows.

    Returns
    -------
    pa.Table
        A table with the schema ``SCHEMA``.
    """
    return pa.Table.from_pylist(list(map(_columns, rows)), schema=SCHEMA)


def read(folder: str | Path) -> tuple[list[Row], list[str]]:
    """Read a store.

    Parameters
    ----------
    folder
        The folder of the store.

    Returns
    -------
    rows
        Every run that can be read, sorted by instance, selector and seed.
    problems
        For each file that cannot be read one line with its name and the reason.

    Raises
    ------
    InputError
        If there is no such folder.
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
    """Return the values of a row as Arrow takes them: points as structs, mappings as lists of pairs."""
    values = {spec.name: getattr(row, spec.name) for spec in fields(Row)} | {"format": FORMAT}
    values["trace"] = [dict(zip(POINT.names, point, strict=True)) for point in row.trace]
    return values | {name: list(values[name].items()) for name in ("facts", "versions")}


def _read_row(path: Path) -> Row:
    try:
        with pa.OSFile(str(path)) as source:
            file = pq.ParquetFile(source)
            check_page_sizes(source)
            return _row_in(file)
    except InputError as error:
        raise error.inside(str(path)) from error
    except (pa.ArrowException, OSError, ValueError, KeyError, MemoryError) as error:
        raise InputError(str(path), f"cannot be read as a run ({reason(error)})") from error


def _row_in(file: pq.ParquetFile) -> Row:
    if "format" not in file.schema_arrow.names:
        raise InputError("", "expected a file of the run store, the column format is missing")
    table = file.read(use_threads=False)  # for a single row, threads cost more than they save
    found = table.column("format")[0].as_py() if len(table) == 1 else None
    if found != FORMAT:
        raise InputError("", f'expected one row of format "{FORMAT}", got {shown(found)}')
    table.validate(full=True)
    if "code" not in table.column_names:  # written by a version that did not record it
        table = table.append_column(SCHEMA.field("code"), [[""]])
    table = table.select(SCHEMA.names).cast(SCHEMA)
    [values] = table.to_pylist(maps_as_pydicts="strict")
    values["trace"] = [(point["seconds"], point["incumbent"], point["bound"]) for point in values["trace"]]
    del values["format"]
    return Row(**values)


@functools.cache
def _versions() -> dict[str, str]:
    # Without Java: no run uses it, and a task of Spark sees another Java than a local run, whose row must be the same.
    return {name: str(value) for name, value in information(java=False).items() if value is not None}
