"""The nearest server of every client, without an M×L matrix."""

import math

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# Few enough to look at all of them, enough that most searches end in the first two rings.
SERVERS_PER_SQUARE = 2


def nearest_server(instance: Instance) -> IntArray:
    """Return for each client the server with the least ``dH``; ties go to the lowest index."""
    if instance.client_server_delay is not None:
        return np.asarray(instance.client_server_delay.argmin(axis=1), np.int32)
    return nearest_by_distance(
        instance.client_x, instance.client_y, instance.server_x, instance.server_y, instance.delay_per_km
    )


def nearest_by_distance(
    client_x: FloatArray, client_y: FloatArray, server_x: FloatArray, server_y: FloatArray, delay_per_km: float
) -> IntArray:
    """Return the same for points whose delay is ``γ`` times the distance."""
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
    """Sort the servers into ``side²`` squares and search outwards from each client's own, ring by ring."""
    low_x, low_y = server_x.min(), server_y.min()
    width = max(server_x.max() - low_x, server_y.max() - low_y) / side
    start, member = _squares(server_x, server_y, low_x, low_y, width, side)
    home = np.zeros(len(client_x), np.int32)
    for m in range(len(client_x)):
        column = _square(client_x[m], low_x, width, side)
        row = _square(client_y[m], low_y, width, side)
        best = np.inf
        for ring in range(side):
            # Servers in this ring or beyond are at least so far away; the factor covers what rounding does.
            if delay_per_km * (ring - 1) * width * (1.0 - 1e-9) > best:
                break
            for r in range(max(row - ring, 0), min(row + ring, side - 1) + 1):
                inner = row - ring < r < row + ring
                for c in range(max(column - ring, 0), min(column + ring, side - 1) + 1):
                    if inner and column - ring < c < column + ring:
                        continue
                    for i in range(start[r * side + c], start[r * side + c + 1]):
                        l = member[i]
                        # The delay itself, not its square: a tie is a tie of delays.
                        delay = euclidean_delay(client_x[m] - server_x[l], client_y[m] - server_y[l], delay_per_km)
                        if delay < best or (delay == best and l < home[m]):
                            best = delay
                            home[m] = l
    return home


@compiled
def _squares(
    x: FloatArray, y: FloatArray, low_x: float, low_y: float, width: float, side: int
) -> tuple[OffsetArray, IntArray]:
    """Return the servers of each square, row by row."""
    square = np.empty(len(x), np.int64)
    start = np.zeros(side * side + 1, np.int64)
    for l in range(len(x)):
        square[l] = _square(y[l], low_y, width, side) * side + _square(x[l], low_x, width, side)
        start[square[l] + 1] += 1
    start = np.cumsum(start)
    return start, np.argsort(square, kind="mergesort").astype(np.int32)


@compiled
def _square(at: float, low: float, width: float, side: int) -> int:
    """Return the column or row that a coordinate falls into; outside the squares, the nearest one."""
    if width == 0.0:
        return 0
    return int(min(max(np.floor((at - low) / width), 0.0), side - 1.0))
