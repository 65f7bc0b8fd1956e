"""An instance cut into one task per cluster."""

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
    """One cluster: its clients and servers (ascending) and the task made of them."""

    clients: IntArray
    servers: IntArray
    task: ClusterTask


def cluster_tasks(instance: Instance, clusters: Clusters, preferred: IntArray | None = None) -> Iterator[Cluster]:
    """Yield every cluster that has clients, with nobody related yet; what that costs grows with its clients only."""
    client_order = np.argsort(clusters.of_client, kind="stable").astype(np.int32)
    client_bounds = np.searchsorted(clusters.of_client[client_order], np.arange(clusters.count + 1))
    position = np.empty(instance.n_clients, np.int32)
    member_cluster = clusters.of_client[instance.members.item]
    # Stable: within a cluster the entries stay in the order of topics and of members.
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
    """Return the task of one cluster, with nobody related yet.

    Parameters
    ----------
    entry_client, entry_topic, entry_publishes, entry_spool
        The memberships in the order in which Algorithm 1 meets them: the client by its place in the cluster, the topic
        by any number, its spool.
    storage_capacity, compute_capacity, client_x, client_y, server_x, server_y, delay, delay_per_km, preferred
        As the task holds them.
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
