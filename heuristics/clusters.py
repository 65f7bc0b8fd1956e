"""RELOC's first step: the field divided into clusters of servers, and every client in the nearest one."""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# scikit-learn's seeds are 32 bits wide.
LARGEST_SEED = 2**32


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each server and each client belongs to; every cluster has a server."""

    count: int
    of_server: IntArray
    of_client: IntArray


def make_clusters(instance: Instance, k: int, seed: int) -> Clusters:
    """Divide the servers by K-means on their positions; a client goes to the nearest centroid, ties to the lowest.

    There are never more clusters than places with a server.
    """
    of_server, centre = divide_servers(instance.server_x, instance.server_y, k, seed)
    return Clusters(len(centre), of_server, nearest_centroid(instance.client_x, instance.client_y, centre))


def divide_servers(server_x: FloatArray, server_y: FloatArray, k: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Return the cluster of each server, and the centroid of each cluster."""
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    at = np.stack([server_x, server_y], axis=1)
    # K-means starts from random servers: in the order of their positions it starts alike whatever they are called.
    order = np.lexsort((server_y, server_x))
    count = min(k, len(np.unique(at, axis=0)))
    # One thread: the order of a sum, and with it a last bit, is then the same on every machine.
    with threadpool_limits(1):
        found = KMeans(count, n_init=10, random_state=seed % LARGEST_SEED).fit(at[order])
    of_server = np.empty(len(at), np.int32)
    of_server[order] = found.labels_
    return of_server, found.cluster_centers_


@compiled
def nearest_centroid(x: FloatArray, y: FloatArray, centre: FloatArray) -> IntArray:
    """Return for each point the nearest centroid; ties go to the lowest."""
    cluster = np.zeros(len(x), np.int32)
    for m in range(len(x)):
        best = np.inf
        for k in range(len(centre)):
            dx = x[m] - centre[k, 0]
            dy = y[m] - centre[k, 1]
            if dx * dx + dy * dy < best:
                best = dx * dx + dy * dy
                cluster[m] = k
    return cluster
