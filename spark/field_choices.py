"""Where a full-scale field departs from the paper's: capacities, and real places of servers and clients."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import pyarrow as pa

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.csv_rows import csv_rows
from relocbench.instances.files.places import Places, read_places, snap
from relocbench.instances.generators.paper_generator import PaperParameters, place_servers
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.load import rounded_capacities
from relocbench.spark.assign import nearest_homes
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.placement import PAPER, Area, Field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

CapacityRule = Literal["topics", "demand"]
# Of the paper's instances (the family ``paper``): the members of all topics, and the sum of the squared topic sizes.
# Both are means over the seeds 0 to 4, between which they hardly differ, because topic sizes are a stratified sample.
PAPER_MEMBERSHIPS = 613.6
PAPER_SQUARED_SIZES = 8061.6


@dataclass(frozen=True, kw_only=True)
class FieldChoices:
    """Choices that determine a field besides the parameters of the paper. The defaults change nothing.

    Attributes
    ----------
    rule
        What the paper's capacities are in proportion to: the number of ``topics`` per server, or the ``demand`` per
        server, that is, ``Σ|C|`` for storage and ``Σ|P|·|C|`` for compute.
    capacity_file
        A CSV file with the columns ``storage`` and ``compute`` and one row for each server, instead of the paper's.
    load
        If given, all capacities are scaled by one factor so that nearest homes have this load, as in
        :func:`instances.load.with_load`.
    sites, people
        CSV files with latitude and longitude of possible places of servers and clients.
    """

    rule: CapacityRule = "topics"
    capacity_file: Path | None = None
    load: float | None = None
    sites: Path | None = None
    people: Path | None = None

    def __post_init__(self) -> None:
        if self.rule not in get_args(CapacityRule):
            raise InputError("--capacities", f"expected topics, demand or a CSV file, got {shown(self.rule)}")
        if self.load is not None and not 0 < self.load < np.inf:
            raise InputError("--load", f"expected a number above 0, got {shown(self.load)}")
        if self.people is not None and self.sites is None:
            raise InputError("--people", "needs --sites")

    def inputs(self) -> dict[str, Any]:
        """Return what the record of the field notes. Defaults are left out, as in records of earlier versions.

        Returns
        -------
        dict
            The choices; files by their SHA-256.
        """
        noted: dict[str, Any] = {} if self.rule == "topics" else {"capacities": self.rule}
        if self.load is not None:
            noted["load"] = float(self.load)
        files = {"capacity_file": self.capacity_file, "sites": self.sites, "people": self.people}
        return noted | {name: _sha256(path) for name, path in files.items() if path is not None}

    @cached_property
    def places(self) -> Places | None:
        """The real places, or None for the square field of the paper."""
        return None if self.sites is None else read_places(self.sites, self.people)

    def area(self, parameters: PaperParameters) -> Area:
        """Return the area in which clients are placed.

        Parameters
        ----------
        parameters
            The side of the field, if there are no real places.

        Returns
        -------
        tuple of two arrays
            The lower left and the upper right corner.
        """
        if self.places is not None:
            return self.places.bounds()
        return np.zeros(2), np.full(2, parameters.field_km)

    def server_positions(self, parameters: PaperParameters, seed: int) -> FloatArray:
        """Place the servers.

        Parameters
        ----------
        parameters
            The number of servers, and the side of the field.
        seed
            The seed of the field.

        Returns
        -------
        array of shape (servers, 2)
            The positions in km.
        """
        rng = stream("spark", "servers", seed)
        return (
            place_servers(parameters, rng)
            if self.places is None
            else self.places.choose_servers(parameters.servers, rng)
        )

    def snapped(self, clients: "DataFrame", count: int) -> "DataFrame":
        """Move clients to the places of people, if there are any.

        If there are fewer places than clients, each client takes the nearest place. Otherwise each place is used at
        most once, in the order of the clients' ids; then one task has all clients.

        Parameters
        ----------
        clients
            The dataset of clients.
        count
            The number of clients.

        Returns
        -------
        pyspark.sql.DataFrame
            The same dataset with other positions.
        """
        assert self.places is not None
        people = self.places.clients
        assert people is not None
        move, schema = _move_to(people), ", ".join(f"{name} {kind}" for name, kind in clients.dtypes)
        if len(people) < count:

            def move_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for batch in batches:
                    yield from move(pa.Table.from_batches([batch]), False).to_batches()

            return clients.mapInArrow(move_batches, schema)
        whole = clients.selectExpr("*", "0 AS everybody").groupBy("everybody")
        return whole.applyInArrow(lambda table: move(table.drop_columns("everybody").sort_by("client"), True), schema)

    def capacities(
        self, clients: "DataFrame", field: Field, demand: Callable[[], tuple[float, float]], proportional: bool
    ) -> tuple[FloatArray, FloatArray]:
        """Return the capacities of the servers.

        Parameters
        ----------
        clients
            The dataset of clients.
        field
            The field with the capacities of the parameters.
        demand
            Returns ``Σ|C|`` over the topics with a publisher, and ``Σ|P|·|C|``.
        proportional
            Whether the capacities of the parameters are multiplied according to ``rule``.

        Returns
        -------
        tuple of two arrays
            Storage and compute capacities.

        Raises
        ------
        InputError
            If the file is wrong, or there is no demand or no capacity to scale.
        """
        servers = len(field.server_x)
        storage, compute = field.storage_capacity, field.compute_capacity
        if self.capacity_file is not None:
            storage, compute = read_capacities(self.capacity_file, servers)
        elif proportional and self.rule == "demand":
            stored, processed = demand()
            storage = storage * (stored / PAPER_MEMBERSHIPS * PAPER.servers / servers)
            compute = compute * (processed / PAPER_SQUARED_SIZES * PAPER.servers / servers)
            storage, compute = rounded_capacities(storage), rounded_capacities(compute)
        elif proportional:
            share = field.topics / PAPER.topics * PAPER.servers / servers
            storage, compute = storage * share, compute * share
        if self.load is None:
            return storage, compute
        field = replace(field, storage_capacity=storage, compute_capacity=compute)
        cost = evaluate_homes(clients, nearest_homes(clients, field), field, Path("nearest"))
        pairs = ((cost.storage_load, storage), (cost.compute_load, compute))
        present = max(float(load.sum() / total) if (total := capacity.sum()) else np.inf for load, capacity in pairs)
        if not 0 < present < np.inf:
            raise InputError("--load", "expected servers with capacities and topics with a spool, got none")
        factor = present / self.load
        return rounded_capacities(storage * factor), rounded_capacities(compute * factor)


def read_capacities(path: Path, servers: int) -> tuple[FloatArray, FloatArray]:
    """Read the capacities of servers from a CSV file.

    Parameters
    ----------
    path
        The file. It has the columns ``storage`` and ``compute``, and one row for each server in their order. Other
        columns are ignored.
    servers
        The number of servers.

    Returns
    -------
    tuple of two arrays
        Storage and compute capacities.

    Raises
    ------
    InputError
        If the file cannot be read, or lacks a column or a row, or has a capacity below 0.
    """
    rows = csv_rows(path)
    values: list[list[float]] = []
    try:
        header = [name.lower() for name in next(rows)[1]]
        for name in ("storage", "compute"):
            if name not in header:
                raise InputError("", f"expected a column named {name}, got columns {shown(header, 80)}")
        for line, row in rows:
            values.append([_capacity(line, name, row, header.index(name)) for name in ("storage", "compute")])
    except InputError as error:
        raise error.inside(str(path)) from error
    if len(values) != servers:
        raise InputError(str(path), f"expected one row for each of {servers} servers, got {len(values)}")
    columns = np.array(values).T
    return columns[0].copy(), columns[1].copy()


def _capacity(line: int, name: str, row: list[str], column: int) -> float:
    text = row[column] if column < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 <= value < np.inf:
        raise InputError(f"line {line}: {name}", f"expected a number of at least 0, got {shown(text)}")
    return value


def _move_to(places: FloatArray) -> Callable[[pa.Table, bool], pa.Table]:
    def move(table: pa.Table, once: bool) -> pa.Table:
        wanted = np.stack([table["x"].to_numpy(), table["y"].to_numpy()], axis=1)
        at = snap(wanted, places, once)
        for number, name in enumerate(("x", "y")):
            table = table.set_column(table.schema.get_field_index(name), name, pa.array(at[:, number]))
        return table

    return move


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error
