"""The rows of a trace: a CSV file that says where a client was at some time, by position or by cell."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.csv_rows import csv_rows
from relocbench.instances.files.places import LATITUDE_NAMES, LONGITUDE_NAMES, map_centre, project
from relocbench.instances.instance_tables import points_of
from relocbench.instances.kernels.ragged import FloatArray
from relocbench.instances.tables import Table
from relocbench.instances.timeline.epoch import LARGEST_TIME

# The columns that hold the time, with their unit in seconds.
TIME_COLUMNS = {
    **dict.fromkeys(("time", "timestamp", "second", "seconds"), 1.0),
    **dict.fromkeys(("minute", "minutes"), 60.0),
    **dict.fromkeys(("hour", "hours"), 3600.0),
}
CLIENT_COLUMNS = ("client", "client_id", "user", "user_id", "id", "taxi", "vehicle", "device", "node")
CELL_COLUMNS = ("cell", "cell_id", "site", "site_id", "tower")


class TraceRows:
    """The rows of a trace, in the order of time.

    Parameters
    ----------
    path
        The CSV file.
    servers
        The table of the servers. Degrees are projected around the mean of their positions.
    sites
        The table of the sites, with the ids that the trace may use; None if there is none.

    Attributes
    ----------
    server_at
        The positions of the servers in km (``L×2``).

    Raises
    ------
    InputError
        If a table has no positions, or one has degrees and the other one has not.
    """

    def __init__(self, path: Path, servers: Table, sites: Table | None) -> None:
        self._path = path
        self._centre: tuple[float, float] | None = None
        self._rows_in_degrees = False
        self.server_at = self._positions(servers, are_servers=True)
        self._site_at: dict[str, tuple[float, float]] = {}
        self._sites = "" if sites is None else sites.label
        if sites is not None:
            ids = sites.ids(*CELL_COLUMNS, "id", "name")
            if ids is None:
                raise InputError(sites.label, "expected a column cell with the ids that the trace uses")
            at = self._positions(sites)
            self._site_at = {str(one): (float(x), float(y)) for one, (x, y) in zip(ids, at, strict=True)}

    def _positions(self, table: Table, are_servers: bool = False) -> FloatArray:
        """Return the positions of a table in km. All degrees are projected around the mean of the servers."""
        points = points_of(table)
        if are_servers and points.in_degrees:
            self._centre = map_centre(points.at)
        self._check_kind(table.label, points.in_degrees)
        return points.at if self._centre is None else project(points.at, self._centre)

    def _check_kind(self, label: str, in_degrees: bool) -> None:
        if in_degrees and self._centre is None:
            raise InputError(label, "expected x and y as the servers have, got latitude and longitude")
        if not in_degrees and self._centre is not None:
            raise InputError(label, "expected latitude and longitude as the servers have, got x and y")

    def in_km(self, at: FloatArray) -> FloatArray:
        """Return positions that :meth:`rows` has given, in km. Many at once take much less time than one by one.

        Parameters
        ----------
        at
            Positions (``n×2``).

        Returns
        -------
        array
            The positions in km.
        """
        return project(at, self._centre) if self._rows_in_degrees and self._centre is not None else at

    def rows(self) -> Iterator[tuple[int, float, str, tuple[float, float]]]:
        """Read the rows one after the other. They can be read again.

        Yields
        ------
        tuple
            Line, seconds, client and position of a row; see :meth:`in_km` for the unit of the position.

        Raises
        ------
        InputError
            If the file cannot be read, or a row is wrong or out of order.
        """
        try:
            yield from self._rows()
        except InputError as error:
            raise error.inside(str(self._path)) from error

    def _rows(self) -> Iterator[tuple[int, float, str, tuple[float, float]]]:
        rows = csv_rows(self._path)
        header = [name.lower() for name in next(rows)[1]]
        time_name = next((name for name in TIME_COLUMNS if name in header), None)
        client_name = next((name for name in CLIENT_COLUMNS if name in header), None)
        if time_name is None or client_name is None:
            problem = "expected columns time and client, and x and y, latitude and longitude, or cell"
            raise InputError("", f"{problem}; got {shown(header, 80)}")
        time_at, client_at = header.index(time_name), header.index(client_name)
        unit, position = TIME_COLUMNS[time_name], self._position_reader(header)
        before = -math.inf
        for line, row in rows:
            row += [""] * (len(header) - len(row))
            time = unit * _number(line, time_name, row[time_at], LARGEST_TIME / unit)
            if time < before:
                problem = f"expected at least {shown(before / unit)}, the {time_name} of an earlier row"
                raise InputError(f"line {line}: {time_name}", f"{problem}, got {row[time_at]}; sort the rows by time")
            before = time
            if not row[client_at]:
                raise InputError(f"line {line}: {client_name}", "is missing; every row needs a client")
            yield line, time, row[client_at], position(line, row)

    def _position_reader(self, header: list[str]) -> Callable[[int, list[str]], tuple[float, float]]:
        """Return the function that reads the position from a row."""
        cell_name = next((name for name in CELL_COLUMNS if name in header), None)
        latitude = next((name for name in LATITUDE_NAMES if name in header), None)
        longitude = next((name for name in LONGITUDE_NAMES if name in header), None)
        if "x" in header and "y" in header:
            self._check_kind("", in_degrees=False)
            x, y = header.index("x"), header.index("y")
            return lambda line, row: (_number(line, "x", row[x], 1e9), _number(line, "y", row[y], 1e9))
        if latitude is not None and longitude is not None:
            self._check_kind("", in_degrees=True)
            self._rows_in_degrees = True
            first, second = header.index(latitude), header.index(longitude)
            return lambda line, row: (
                _number(line, latitude, row[first], 90),
                _number(line, longitude, row[second], 180),
            )
        if cell_name is None:
            problem = "expected columns x and y, latitude and longitude, or cell"
            raise InputError("", f"{problem}; got {shown(header, 80)}")
        if not self._site_at:
            raise InputError(cell_name, "the trace names cells; give the file of sites with their positions (--sites)")
        cell = header.index(cell_name)

        def site(line: int, row: list[str]) -> tuple[float, float]:
            found = self._site_at.get(row[cell])
            if found is None:
                problem = f"{shown(row[cell])} is not in {self._sites}; add the site there, or remove the row"
                raise InputError(f"line {line}: {cell_name}", problem)
            return found

        return site

    def client_ids(self) -> list[str]:
        """Return the clients in the order of their first appearance.

        Returns
        -------
        list of str
            Their ids.

        Raises
        ------
        InputError
            If the file has no row, or a row is wrong.
        """
        found = list(dict.fromkeys(client for _, _, client, _ in self.rows()))
        if not found:
            raise InputError(str(self._path), "expected at least one row, got none")
        return found


def _number(line: int, name: str, text: str, largest: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -largest <= value <= largest:
        raise InputError(
            f"line {line}: {name}", f"expected a number from {-largest:g} to {largest:g}, got {shown(text)}"
        )
    return value
