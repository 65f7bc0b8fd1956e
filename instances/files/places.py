"""Real places of servers and clients: read from CSV files with latitude and longitude, and projected to km."""

import array
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.csv_rows import csv_rows
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray

EARTH_RADIUS_KM = 6371.0088
LATITUDE_NAMES = ("latitude", "lat")
LONGITUDE_NAMES = ("longitude", "lon", "lng", "long")


@dataclass(frozen=True, eq=False)
class Places:
    """Points on a plane map, as ``n×2`` arrays in km.

    Attributes
    ----------
    sites
        Possible positions of servers.
    clients
        Possible positions of clients; None for any position.
    """

    sites: FloatArray
    clients: FloatArray | None = None

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return the bounding box of all points.

        Returns
        -------
        tuple of two arrays
            The lower left and the upper right corner.
        """
        points = self.sites if self.clients is None else np.concatenate([self.sites, self.clients])
        return points.min(axis=0), points.max(axis=0)

    def choose_servers(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Choose sites at random.

        Parameters
        ----------
        count
            Number of servers.
        rng
            Random stream.

        Returns
        -------
        array of shape (count, 2)
            Different sites, in the order of the file.

        Raises
        ------
        InputError
            If there are fewer sites.
        """
        if count > len(self.sites):
            raise InputError("servers", f"expected at most {len(self.sites)}, the number of sites, got {count}")
        return self.sites[np.sort(rng.permutation(len(self.sites))[:count])]


def read_places(sites: str | Path, clients: str | Path | None = None) -> Places:
    """Read sites and, optionally, clients, and project both to a plane map around the mean of the sites.

    The columns latitude and longitude (or lat, lon, lng, long) are used, in upper or lower case. Others are ignored.

    Parameters
    ----------
    sites
        CSV file with the possible positions of servers.
    clients
        CSV file with the possible positions of clients.

    Returns
    -------
    Places
        The points in km.

    Raises
    ------
    InputError
        If a file cannot be read, lacks a column, has no rows, or has a value that is not a valid degree.
    """
    site_degrees = _read_degrees(Path(sites))
    centre = map_centre(site_degrees)
    projected = project(site_degrees, centre)
    return Places(projected, None if clients is None else project(_read_degrees(Path(clients)), centre))


def snap(wanted: FloatArray, points: FloatArray, once: bool | None = None) -> FloatArray:
    """Replace each position by the nearest point.

    Parameters
    ----------
    wanted
        The positions, processed in their order.
    points
        The points.
    once
        Whether each point is used at most once. By default it is, if there are at least as many as positions.

    Returns
    -------
    array of the shape of ``wanted``
        The chosen points.
    """
    return points[_snap(wanted, points, len(wanted) <= len(points) if once is None else once)]


def map_centre(degrees: FloatArray) -> tuple[float, float]:
    """Return the mean of places.

    Parameters
    ----------
    degrees
        Latitude and longitude of each place (``n×2``).

    Returns
    -------
    tuple of two floats
        Latitude and longitude of the mean.
    """
    first = float(degrees[0, 1])
    turned = [_around(float(longitude), first) for longitude in degrees[:, 1]]
    return math.fsum(degrees[:, 0]) / len(degrees), math.fsum(turned) / len(turned)


def _around(longitude: float, reference: float) -> float:
    """Return the longitude within 180° of the reference, so that the date line does not split a map."""
    return reference + (longitude - reference + 180.0) % 360.0 - 180.0


def project(degrees: FloatArray, centre: tuple[float, float]) -> FloatArray:
    """Project to km with one scale for all longitudes. The error is 0.01 % in a city and 0.5 % over 100 km.

    Parameters
    ----------
    degrees
        Latitude and longitude of each place (``n×2``).
    centre
        Latitude and longitude of the point that becomes (0, 0).

    Returns
    -------
    array of shape (n, 2)
        East and north of the centre, in km, rounded to millimetres.
    """
    narrow = math.cos(math.radians(centre[0]))
    kilometres = np.empty_like(degrees)
    for point, (latitude, longitude) in zip(kilometres, degrees, strict=True):
        point[0] = EARTH_RADIUS_KM * narrow * math.radians(_around(float(longitude), centre[1]) - centre[1])
        point[1] = EARTH_RADIUS_KM * math.radians(float(latitude) - centre[0])
    return np.round(kilometres, 6)  # rounded to millimetres, because the last bits of cos() differ between machines


def _read_degrees(path: Path) -> FloatArray:
    rows = csv_rows(path)
    try:
        header = [name.lower() for name in next(rows)[1]]
        latitude = _find(header, LATITUDE_NAMES)
        longitude = _find(header, LONGITUDE_NAMES)
        degrees = array.array("d")
        for line, row in rows:
            degrees.append(_degree(line, "latitude", row, latitude, 90))
            degrees.append(_degree(line, "longitude", row, longitude, 180))
    except InputError as error:
        raise error.inside(str(path)) from error
    if not degrees:
        raise InputError(str(path), "expected at least one place, got none")
    return np.array(degrees).reshape(-1, 2)


def _find(header: list[str], names: tuple[str, ...]) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    raise InputError("", f"expected a column named {names[0]}, got columns {shown(header, 80)}")


def _degree(line: int, what: str, row: list[str], column: int, limit: int) -> float:
    text = row[column] if column < len(row) else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not -limit <= value <= limit:
        raise InputError(f"line {line}: {what}", f"expected degrees from -{limit} to {limit}, got {shown(text)}")
    return value


@compiled
def _snap(wanted: FloatArray, points: FloatArray, once: bool) -> npt.NDArray[np.int64]:
    taken = np.zeros(len(points), np.bool_)
    choice = np.empty(len(wanted), np.int64)
    for i in range(len(wanted)):
        best = np.inf
        for j in range(len(points)):
            if once and taken[j]:
                continue
            dx = wanted[i, 0] - points[j, 0]
            dy = wanted[i, 1] - points[j, 1]
            if dx * dx + dy * dy < best:
                best = dx * dx + dy * dy
                choice[i] = j
        taken[choice[i]] = True
    return choice
