"""The rows of a study of moving clients: one per schedule, one per epoch with its bound, one per measured time."""

import dataclasses
import types
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.instances.files.atomic_write import written_whole


@dataclass(frozen=True, kw_only=True)
class ScheduleRow:
    """A timeline under one policy with one method. Costs and delays are in ms.

    Attributes
    ----------
    group, timeline, hash, speed, seed
        The timeline, as in :class:`reports.moving.plan.Subject`.
    policy, method
        What was replayed.
    period
        The seconds after which ``every[k=…]`` computes homes again; None for other policies.
    clusters_only
        Whether the row only compares numbers of clusters.
    total, delay_cost, handover_cost, spool_cost
        The cost of the schedule and its parts.
    bound
        The certified lower bound on the cost of every schedule of the timeline.
    delay_bound
        The certified lower bound on ``delay_cost`` of every schedule: the sum of the bounds of the epochs. It is less
        than ``bound`` if that counts relocation, otherwise the same.
    publications
        The number of publications. ``total / publications`` is comparable with ``Y``.
    y
        Mean delay of a publication, without relocation.
    handovers, handovers_per_client_hour, spool_moved, overloaded_share
        As in :class:`instances.timeline.schedule_cost.ScheduleCost`.
    solves, solve_seconds
        How often homes were computed, and how long that took.
    clusters
        The mean number of clusters that RELOC used; None for other methods.
    replay
        The file of the replay in the folder ``replays``.
    """

    group: str
    timeline: str
    hash: str
    speed: float | None
    seed: int
    policy: str
    method: str
    period: float | None
    clusters_only: bool
    total: float
    delay_cost: float
    handover_cost: float
    spool_cost: float
    bound: float
    delay_bound: float
    publications: float
    y: float
    handovers: int
    handovers_per_client_hour: float
    spool_moved: float
    overloaded_share: float
    solves: int
    solve_seconds: float
    clusters: float | None
    replay: str

    @property
    def cost(self) -> float:
        """The cost per publication, in ms."""
        return self.total / self.publications if self.publications else 0.0

    @property
    def ratio(self) -> float | None:
        """The cost divided by the bound; None if the bound is 0."""
        return self.total / self.bound if self.bound > 0 else None


@dataclass(frozen=True, kw_only=True)
class BoundRow:
    """The bound of one epoch.

    Attributes
    ----------
    timeline, hash
        The timeline.
    epoch, start, length
        The epoch, its start and its length in seconds.
    clients, publications
        Clients that are present, and publications that are made in the epoch.
    bound
        The certified lower bound on what the epoch costs in any schedule, in ms, without relocation.
    """

    timeline: str
    hash: str
    epoch: int
    start: float
    length: float
    clients: int
    publications: float
    bound: float


@dataclass(frozen=True, kw_only=True)
class TimeRow:
    """The time of one run of a method.

    Attributes
    ----------
    method
        The selector.
    clients, servers
        The size of the instance.
    seconds
        The least time of several runs.
    """

    method: str
    clients: int
    servers: int
    seconds: float


TYPES = {int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()}
Row = ScheduleRow | BoundRow | TimeRow


def schema_of(kind: type[Row]) -> pa.Schema:
    """Return the schema of a kind of rows.

    Parameters
    ----------
    kind
        The class of the rows.

    Returns
    -------
    pyarrow.Schema
        One column per field.
    """
    columns = []
    for name, hint in typing.get_type_hints(kind).items():
        options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
        [plain] = [one for one in options if one is not type(None)]
        columns.append(pa.field(name, TYPES[plain], nullable=len(options) > 1))
    return pa.schema(columns)


def write_rows(kind: type[Row], rows: Iterable[Row], path: Path) -> Path:
    """Write rows to a Parquet file, completely or not at all.

    Parameters
    ----------
    kind
        The class of the rows.
    rows
        The rows.
    path
        The file.

    Returns
    -------
    Path
        The file.
    """
    values: list[dict[str, Any]] = [dataclasses.asdict(row) for row in rows]
    with written_whole(path) as temporary:
        pq.write_table(pa.Table.from_pylist(values, schema=schema_of(kind)), temporary, compression="zstd")
    return path
