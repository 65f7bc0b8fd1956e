"""The nearest server of every client, without an M×L matrix."""

import numpy as np

from instances.compiled import compiled
from instances.groups import FloatArray, IntArray
from instances.instance import Instance


def nearest_server(instance: Instance) -> IntArray:
    """Return for each client the server with the least ``dH``; ties go to the lowest index."""
    if instance.client_server_delay is not None:
        return np.asarray(instance.client_server_delay.argmin(axis=1), np.int32)
    return _nearest(instance.client_x, instance.client_y, instance.server_x, instance.server_y, instance.delay_per_km)


@compiled
def _nearest(
    client_x: FloatArray, client_y: FloatArray, server_x: FloatArray, server_y: FloatArray, delay_per_km: float
) -> IntArray:
    home = np.empty(len(client_x), np.int32)
    for m in range(len(client_x)):
        best = np.inf
        for l in range(len(server_x)):
            dx = client_x[m] - server_x[l]
            dy = client_y[m] - server_y[l]
            # The delay itself, not its square: a tie is a tie of delays.
            delay = delay_per_km * np.sqrt(dx * dx + dy * dy)
            if delay < best:
                best = delay
                home[m] = l
    return home
