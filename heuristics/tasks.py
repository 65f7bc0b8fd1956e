"""An instance cut into one task per cluster."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heuristics.clusters import Clusters
from heuristics.placing import ClusterTask
from instances.groups import IntArray, offsets
from instances.instance import PUBLISHES, Instance


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
        entry_client = position[instance.members.item[entries]]
        topics, entry_topic = np.unique(member_topic[entries], return_inverse=True)
        by_client = np.argsort(entry_client, kind="stable")
        client_start = offsets(np.bincount(entry_client, minlength=len(clients)))
        delay = np.empty((0, 0))
        if instance.client_server_delay is not None:
            delay = np.ascontiguousarray(instance.client_server_delay[np.ix_(clients, servers)])
        task = ClusterTask(
            entry_client=entry_client,
            entry_topic=entry_topic.astype(np.int32),
            entry_publishes=(instance.member_role[entries] & PUBLISHES) > 0,
            client_start=client_start,
            client_entry=by_client.astype(np.int64),
            spool=instance.spool[topics],
            storage=instance.storage[servers],
            compute=instance.compute[servers],
            client_x=instance.client_x[clients],
            client_y=instance.client_y[clients],
            server_x=instance.server_x[servers],
            server_y=instance.server_y[servers],
            delay=delay,
            delay_per_km=instance.delay_per_km,
            preferred=np.empty(0, np.int32) if preferred is None else preferred[clients],
            related_start=np.zeros(len(clients) + 1, np.int64),
            related=np.empty(0, np.int32),
        )
        yield Cluster(clients, servers, task)
