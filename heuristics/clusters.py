"""The locality step of RELOC (line 17 of Algorithm 1): clusters of servers, and the nearest cluster of every client."""

from dataclasses import dataclass

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray, IntArray

# scikit-learn's seeds are 32 bits wide.
LARGEST_SEED = 2**32


@dataclass(frozen=True, eq=False)
class Clusters:
    """A partition of servers and clients into clusters. Every cluster has at least one server.

    Attributes
    ----------
    count
        The number of clusters, ``K``.
    of_server, of_client
        The cluster of each server and of each client.
    """

    count: int
    of_server: IntArray
    of_client: IntArray


def make_clusters(instance: Instance, k: int, seed: int) -> Clusters:
    """Divide the servers by K-means on their positions, and put every client into the cluster of the nearest centroid.

    This is line 17 of Algorithm 1.

    Parameters
    ----------
    instance
        The problem.
    k
        The number of clusters. It is reduced to the number of distinct server positions.
    seed
        The seed of K-means.

    Returns
    -------
    Clusters
        The clusters of servers and clients; a client at equal distances goes to the lowest cluster.
    """
    of_server, centre = divide_servers(instance.server_x, instance.server_y, k, seed)
    return Clusters(len(centre), of_server, nearest_centroid(instance.client_x, instance.client_y, centre))


def divide_servers(server_x: FloatArray, server_y: FloatArray, k: int, seed: int) -> tuple[IntArray, FloatArray]:
    """Divide servers into clusters by K-means.

    Parameters
    ----------
    server_x, server_y
        The positions of the servers.
    k, seed
        As for :func:`make_clusters`.

    Returns
    -------
    of_server, centre
        The cluster of each server, and the centroid of each cluster.
    """
    from sklearn.cluster import KMeans

    at = np.stack([server_x, server_y], axis=1)
    # K-means starts from random servers. Sorting them by position makes the result independent of their numbering.
    order = np.lexsort((server_y, server_x))
    count = min(k, len(np.unique(at, axis=0)))
    # With one thread the order of summation, and so the last bit of each sum, is the same on every machine.
    with one_thread():
        found = KMeans(count, n_init=10, random_state=seed % LARGEST_SEED).fit(at[order])
    of_server = np.empty(len(at), np.int32)
    of_server[order] = found.labels_
    return of_server, found.cluster_centers_


@compiled
def nearest_centroid(x: FloatArray, y: FloatArray, centre: FloatArray) -> IntArray:
    """Return the nearest centroid of each point; ties go to the lowest index.

    Parameters
    ----------
    x, y
        The positions of the points.
    centre
        The position of each centroid, as rows ``(x, y)``.

    Returns
    -------
    array
        One index of a centroid per point.
    """
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
