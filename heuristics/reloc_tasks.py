"""The decomposition of an instance into one task per cluster, for the main loop of Algorithm 1.

Lines 23, 25 and 38 of Algorithm 1 restrict every choice to the servers of the client's own cluster. Running the loop on
each cluster by itself, with topics and clients in the same order, therefore gives the same homes as the whole run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.clusters import Clusters
from relocbench.heuristics.reloc_loop import ClusterTask
from relocbench.instances.instance import PUBLISHES, Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster.

    Attributes
    ----------
    clients, servers
        The clients and the servers of the cluster, by their numbers in the instance, ascending.
    task
        The same cluster with its own numbering, as the loop takes it.
    """

    clients: IntArray
    servers: IntArray
    task: ClusterTask


def cluster_tasks(instance: Instance, clusters: Clusters, preferred: IntArray | None = None) -> Iterator[Cluster]:
    """Yield every cluster that has clients. The lists of related clients are still empty.

    The work for one cluster grows with the number of its own clients only.

    Parameters
    ----------
    instance
        The problem.
    clusters
        The clusters of line 17 of Algorithm 1.
    preferred
        The preferred server of each client (OTOS). With None the nearest server with ``θ = 1`` is chosen (RELOC).

    Yields
    ------
    Cluster
        The clusters in ascending order.
    """
    client_order = np.argsort(clusters.of_client, kind="stable").astype(np.int32)
    client_bounds = np.searchsorted(clusters.of_client[client_order], np.arange(clusters.count + 1))
    position = np.empty(instance.n_clients, np.int32)
    member_cluster = clusters.of_client[instance.members.item]
    # A stable sort keeps the entries of a cluster in the order of topics and members (lines 20 and 21 of Algorithm 1).
    entry_order = np.argsort(member_cluster, kind="stable")
    entry_bounds = np.searchsorted(member_cluster[entry_order], np.arange(clusters.count + 1))
    member_topic = instance.members.owner()

    for k in range(clusters.count):
        clients = client_order[client_bounds[k] : client_bounds[k + 1]]
        if not len(clients):
            continue
        servers = np.flatnonzero(clusters.of_server == k).astype(np.int32)
        position[clients] = np.arange(len(clients), dtype=np.int32)
        entries = entry_order[entry_bounds[k] : entry_bounds[k + 1]]
        delay = np.empty((0, 0))
        if instance.client_server_delay is not None:
            delay = np.ascontiguousarray(instance.client_server_delay[np.ix_(clients, servers)])
        task = make_task(
            entry_client=position[instance.members.item[entries]],
            entry_topic=member_topic[entries],
            entry_publishes=(instance.member_role[entries] & PUBLISHES) > 0,
            entry_spool=instance.spool[member_topic[entries]],
            storage_capacity=instance.storage_capacity[servers],
            compute_capacity=instance.compute_capacity[servers],
            client_x=instance.client_x[clients],
            client_y=instance.client_y[clients],
            server_x=instance.server_x[servers],
            server_y=instance.server_y[servers],
            delay=delay,
            delay_per_km=instance.delay_per_km,
            preferred=np.empty(0, np.int32) if preferred is None else preferred[clients],
        )
        yield Cluster(clients, servers, task)


def make_task(
    *,
    entry_client: IntArray,
    entry_topic: npt.NDArray[np.integer[Any]],
    entry_publishes: npt.NDArray[np.bool_],
    entry_spool: FloatArray,
    storage_capacity: FloatArray,
    compute_capacity: FloatArray,
    client_x: FloatArray,
    client_y: FloatArray,
    server_x: FloatArray,
    server_y: FloatArray,
    delay: FloatArray,
    delay_per_km: float,
    preferred: IntArray,
) -> ClusterTask:
    """Return the task of one cluster. The lists of related clients are still empty.

    Parameters
    ----------
    entry_client, entry_topic, entry_publishes, entry_spool
        The memberships in the order of lines 20 and 21 of Algorithm 1: the client by its position in the cluster, the
        topic by any number, whether the client publishes to the topic, and the spool of the topic.
    storage_capacity, compute_capacity, client_x, client_y, server_x, server_y, delay, delay_per_km, preferred
        The fields of the same names in the task.

    Returns
    -------
    ClusterTask
        The task; its topics are numbered from 0.
    """
    _, first, topic = np.unique(entry_topic, return_index=True, return_inverse=True)
    return ClusterTask(
        entry_client=entry_client,
        entry_topic=topic.astype(np.int32),
        entry_publishes=entry_publishes,
        client_start=offsets(np.bincount(entry_client, minlength=len(client_x))),
        client_entry=np.argsort(entry_client, kind="stable").astype(np.int64),
        spool=entry_spool[first],
        storage_capacity=storage_capacity,
        compute_capacity=compute_capacity,
        client_x=client_x,
        client_y=client_y,
        server_x=server_x,
        server_y=server_y,
        delay=delay,
        delay_per_km=delay_per_km,
        preferred=preferred,
        related_start=np.zeros(len(client_x) + 1, np.int64),
        related=np.empty(0, np.int32),
    )
