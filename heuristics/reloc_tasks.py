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
from relocbench.heuristics.readings import Order
from relocbench.heuristics.reloc_loop import ClusterTask
from relocbench.instances.instance import PUBLISHES, Instance
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets
from relocbench.instances.kernels.random_streams import stream


@dataclass(frozen=True, eq=False)
class Visits:
    """The order in which topics and their members are visited (lines 20 and 21 of Algorithm 1).

    It depends only on ids, sizes and the seed, which every cluster knows. So it is the same for all clusters.

    Attributes
    ----------
    topic_order, client_order
        As for :class:`heuristics.readings.Reading`. Topics or clients of equal size are visited as given.
    seed
        The seed of ``random``.
    client_id, topic_id
        The ids of the clients and topics of an instance, from which ``random`` is drawn. With None the ids are their
        numbers.
    """

    topic_order: Order = "given"
    client_order: Order = "given"
    seed: int = 0
    client_id: IdArray | None = None
    topic_id: IdArray | None = None


@dataclass(frozen=True, eq=False)
class Cluster:
    """One cluster.

    Attributes
    ----------
    clients, servers
        The clients and the servers of the cluster, by their numbers in the instance, ascending.
    task
        The same cluster with its own numbering, as the loop takes it.
    client_id
        The ids of the clients, from which random choices are drawn.
    """

    clients: IntArray
    servers: IntArray
    task: ClusterTask
    client_id: IdArray


def cluster_tasks(
    instance: Instance, clusters: Clusters, preferred: IntArray | None = None, visits: Visits | None = None
) -> Iterator[Cluster]:
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
    visits
        The order of topics and clients. With None they are visited as given.

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
    topic_size = instance.members.sizes
    visits = visits or Visits()
    client_ids = np.arange(instance.n_clients) if visits.client_id is None else visits.client_id
    topic_id = member_topic if visits.topic_id is None else visits.topic_id[member_topic]

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
        client_id = client_ids[clients]
        task = make_task(
            visits,
            client_id=client_id,
            entry_client=position[instance.members.item[entries]],
            entry_topic=topic_id[entries],
            entry_size=topic_size[member_topic[entries]],
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
        yield Cluster(clients, servers, task, client_id)


def make_task(
    visits: Visits,
    *,
    client_id: IdArray,
    entry_client: IntArray,
    entry_topic: npt.NDArray[np.integer[Any]],
    entry_size: npt.NDArray[np.integer[Any]],
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
    visits
        The order of topics and clients.
    client_id
        The id of each client.
    entry_client, entry_topic, entry_size, entry_publishes, entry_spool
        The memberships in the given order of topics and clients: the client by its position in the cluster, the topic
        by its id, the number of its members in all clusters, whether the client publishes to it, and its spool.
    storage_capacity, compute_capacity, client_x, client_y, server_x, server_y, delay, delay_per_km, preferred
        The fields of the same names in the task.

    Returns
    -------
    ClusterTask
        The task; its topics are numbered from 0.
    """
    order = visiting_order(visits, client_id, entry_client, entry_topic, entry_size)
    if order is not None:
        entry_client, entry_topic = entry_client[order], entry_topic[order]
        entry_publishes, entry_spool = entry_publishes[order], entry_spool[order]
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
        related_level=np.empty(0, np.int32),
    )


def visiting_order(
    visits: Visits,
    client_id: IdArray,
    entry_client: IntArray,
    entry_topic: npt.NDArray[np.integer[Any]],
    entry_size: npt.NDArray[np.integer[Any]],
) -> OffsetArray | None:
    """Return the order in which the memberships of one cluster are visited (lines 20 and 21 of Algorithm 1).

    Parameters
    ----------
    visits, client_id, entry_client, entry_topic, entry_size
        As for :func:`make_task`.

    Returns
    -------
    array or None
        Positions of the memberships; None for the given order.
    """
    if visits.topic_order == visits.client_order == "given":
        return None
    # The first membership of a topic gives its place in the given order.
    _, first, topic = np.unique(entry_topic, return_index=True, return_inverse=True)
    degree = np.bincount(entry_client, minlength=len(client_id))
    by_topic = _visit_key(visits.topic_order, "topics", visits.seed, entry_topic, entry_size)
    by_client = _visit_key(visits.client_order, "clients", visits.seed, client_id, degree)[entry_client]
    return np.lexsort((np.arange(len(entry_topic)), by_client, first[topic], by_topic)).astype(np.int64)


def _visit_key(
    order: Order, purpose: str, seed: int, ids: npt.NDArray[np.integer[Any]], size: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[Any]:
    """Return the key by which topics or clients are sorted; the least is visited first."""
    if order == "random":
        return hash_ids(ids.astype(np.int64), int(stream("reloc", purpose, seed).integers(2**62)))
    return {"given": 0, "large": -1, "small": 1}[order] * size
