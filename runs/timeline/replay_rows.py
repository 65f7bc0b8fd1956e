"""The result of a replay: one row per epoch, in Parquet."""

import dataclasses
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.errors import InputError
from relocbench.instances.files.parquet_columns import as_input_error, check_schema
from relocbench.instances.files.parquet_sizes import PageSizes
from relocbench.instances.timeline.schedule_cost import ScheduleCost


@dataclass(frozen=True, kw_only=True)
class EpochRow:
    """What happened in one epoch: the definition of a row of the result of a replay. Costs and delays are in ms.

    Attributes
    ----------
    epoch, start, length
        Number of the epoch, its start and its length in seconds.
    clients, arrivals, topics
        Clients that are present, those of them that were absent in the epoch before, and topics.
    y
        Mean delay of a publication.
    total, delay_cost, handover_cost, spool_cost
        The cost and its three parts.
    handovers, spool_moved
        Clients that changed their home, and messages of spool that were copied.
    publications, client_seconds, overloaded_seconds
        As in :class:`instances.timeline.schedule_cost.ScheduleCost`.
    least_theta
        The smallest ``θ`` of a server with the homes at the end of the epoch.
    solved
        Whether the policy computed new homes in this epoch.
    solve_seconds
        Seconds that the policy took, with everything that it ran.
    delayed
        Seconds from the start of the epoch until new homes came into force; 0 unless staleness was asked for. None if
        none came into force.
    solved_y
        Mean delay of a publication of this epoch with the new homes; None if none were computed.
    clusters
        The number of clusters of RELOC; None for other methods, and if the method did not run.
    home
        The homes at the end of the epoch, one server for each client that is present.
    """

    epoch: int
    start: float
    length: float
    clients: int
    arrivals: int
    topics: int
    y: float
    total: float
    delay_cost: float
    handover_cost: float
    spool_cost: float
    handovers: int
    spool_moved: float
    publications: float
    client_seconds: float
    overloaded_seconds: float
    least_theta: float
    solved: bool
    solve_seconds: float
    delayed: float | None
    solved_y: float | None
    clusters: int | None
    home: list[int]

    @property
    def cost(self) -> ScheduleCost:
        """The cost of the epoch."""
        names = [spec.name for spec in fields(ScheduleCost) if spec.name != "seconds"]
        return ScheduleCost(seconds=self.length, **{name: getattr(self, name) for name in names})


TYPES = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    float | None: pa.float64(),
    int | None: pa.int64(),
    list[int]: pa.list_(pa.int32()),
}
SCHEMA = pa.schema(
    [pa.field(spec.name, TYPES[spec.type], nullable="None" in str(spec.type)) for spec in fields(EpochRow)]  # type: ignore[index]
)


def rows_table(rows: Iterable[EpochRow]) -> pa.Table:
    """Return rows as a table.

    Parameters
    ----------
    rows
        The rows.

    Returns
    -------
    pyarrow.Table
        A table with the columns of ``SCHEMA``.
    """
    return pa.Table.from_pylist([dataclasses.asdict(row) for row in rows], schema=SCHEMA)


def read_rows(path: Path) -> Iterator[EpochRow]:
    """Read the rows of a file one after the other.

    Parameters
    ----------
    path
        The file.

    Yields
    ------
    EpochRow
        The rows in the order of the epochs.

    Raises
    ------
    InputError
        If the file cannot be read, or is not the result of a replay.
    """
    try:
        with as_input_error(""):
            source = pa.OSFile(str(path))
        with source:
            with as_input_error(""):
                file, sizes = pq.ParquetFile(source), PageSizes(source)
                check_schema(file.schema_arrow, SCHEMA)
            for group in range(file.num_row_groups):
                with as_input_error(f"row group {group}"):
                    sizes.check(group)
                    table = file.read_row_group(group, SCHEMA.names, use_threads=False).cast(SCHEMA)
                    table.validate(full=True)
                for values in table.to_pylist():
                    yield EpochRow(**values)
    except InputError as error:
        raise error.inside(str(path)) from error
