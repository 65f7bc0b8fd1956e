"""Search for the nearest server of every client without an M×L matrix."""

import math

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# Mean number of servers in a square of the search grid: few enough to compare all of them, and enough that most
# searches end in the first two rings.
SERVERS_PER_SQUARE = 2


def nearest_server(instance: Instance) -> IntArray:
    """Return for each client the server with the least ``dH``. Among equal delays the lowest index is chosen.

    Parameters
    ----------
    instance
        The problem.

    Returns
    -------
    array
        One server per client.
    """
    if instance.client_server_delay is not None:
        return np.asarray(instance.client_server_delay.argmin(axis=1), np.int32)
    return nearest_by_distance(
        instance.client_x, instance.client_y, instance.server_x, instance.server_y, instance.delay_per_km
    )


def nearest_by_distance(
    client_x: FloatArray, client_y: FloatArray, server_x: FloatArray, server_y: FloatArray, delay_per_km: float
) -> IntArray:
    """Return for each client the nearest server, for delays that are ``γ`` times the distance.

    Parameters
    ----------
    client_x, client_y, server_x, server_y
        Positions in km.
    delay_per_km
        ``γ``.

    Returns
    -------
    array
        One server per client; among equal delays the lowest index.
    """
    side = max(1, math.isqrt(len(server_x) // SERVERS_PER_SQUARE))
    return _nearest(client_x, client_y, server_x, server_y, delay_per_km, side)


@compiled
def _nearest(
    client_x: FloatArray,
    client_y: FloatArray,
    server_x: FloatArray,
    server_y: FloatArray,
    delay_per_km: float,
    side: int,
) -> IntArray:
    """Sort the servers into ``side²`` squares and search ring by ring around the square of each client."""
    low_x, low_y = server_x.min(), server_y.min()
    width = max(server_x.max() - low_x, server_y.max() - low_y) / side
    start, member = _squares(server_x, server_y, low_x, low_y, width, side)
    home = np.zeros(len(client_x), np.int32)
    for m in range(len(client_x)):
        column = _square(client_x[m], low_x, width, side)
        row = _square(client_y[m], low_y, width, side)
        best = np.inf
        for ring in range(side):
            # A lower bound on the delay to every server in this ring or beyond; the factor covers rounding errors.
            if delay_per_km * (ring - 1) * width * (1.0 - 1e-9) > best:
                break
            for r in range(max(row - ring, 0), min(row + ring, side - 1) + 1):
                inner = row - ring < r < row + ring
                for c in range(max(column - ring, 0), min(column + ring, side - 1) + 1):
                    if inner and column - ring < c < column + ring:
                        continue
                    for i in range(start[r * side + c], start[r * side + c + 1]):
                        l = member[i]
                        # Ties are defined by equal delays, so squared distances must not be compared instead.
                        delay = euclidean_delay(client_x[m] - server_x[l], client_y[m] - server_y[l], delay_per_km)
                        if delay < best or (delay == best and l < home[m]):
                            best = delay
                            home[m] = l
    return home


@compiled
def _squares(
    x: FloatArray, y: FloatArray, low_x: float, low_y: float, width: float, side: int
) -> tuple[OffsetArray, IntArray]:
    """Return the servers of each square in compressed form, row by row."""
    square = np.empty(len(x), np.int64)
    start = np.zeros(side * side + 1, np.int64)
    for l in range(len(x)):
        square[l] = _square(y[l], low_y, width, side) * side + _square(x[l], low_x, width, side)
        start[square[l] + 1] += 1
    start = np.cumsum(start)
    return start, np.argsort(square, kind="mergesort").astype(np.int32)


@compiled
def _square(at: float, low: float, width: float, side: int) -> int:
    """Return the column or row of a coordinate; for a coordinate outside the grid, the nearest one."""
    if width == 0.0:
        return 0
    return int(min(max(np.floor((at - low) / width), 0.0), side - 1.0))
