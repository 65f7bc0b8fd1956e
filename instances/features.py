"""The features of an instance: a few numbers that say what kind of instance it is.

Studies use them to describe where a method loses. Each feature is defined for every instance, is computed in the time
of one evaluation, and does not depend on the names or the order of clients, servers and topics. *Nearest homes* are the
assignment of every client to its nearest server; *random clients* are two clients drawn independently.
"""

from typing import Final

import numpy as np

from relocbench.instances.evaluation import evaluate, use
from relocbench.instances.instance import PUBLISHES, Instance
from relocbench.instances.kernels.ragged import FloatArray, OffsetArray
from relocbench.instances.load import share_of, storage_once
from relocbench.instances.nearest_server import nearest_server

# A load of servers without capacity is infinite; programs that read the features need a number.
LARGEST: Final = 1e9

# The name and the meaning of each feature, in the order of tables and files.
FEATURES: Final[dict[str, str]] = {
    "clients": "number of clients",
    "servers": "number of servers",
    "topics": "number of topics",
    "topic_size": "mean number of members of a topic",
    "topic_size_spread": "standard deviation of the number of members of a topic, divided by the mean",
    "topics_per_client": "mean number of topics of a client that has one",
    "overlap": "share of the memberships that belong to clients with more than one topic",
    "publishers": "share of the memberships that publish",
    "storage_load": "storage that nearest homes need, divided by the storage of all servers",
    "storage_once": "storage that is needed if every topic is open on one server only, divided by the storage of all "
    "servers",
    "compute_load": "compute load, divided by the compute capacity of all servers",
    "fullest_server": "largest use of storage or compute of a server with nearest homes",
    "capacity_spread": "standard deviation of the storage capacities, divided by their mean",
    "locality": "1 minus the mean delay between the nearest servers of a publisher and its receivers, divided by that "
    "of random clients; 0 if topics are spread like all clients, 1 if each is at one server",
    "client_delay_share": "mean delay of a client to its nearest server, divided by the sum of this delay and the mean "
    "delay between the nearest servers of random clients",
    "cloud_delay_share": "delay to the cloud and back, divided by the sum of this delay and the mean delay between the "
    "nearest servers of random clients",
}


def features_of(instance: Instance) -> dict[str, float]:
    """Return the features of an instance.

    Parameters
    ----------
    instance
        The problem.

    Returns
    -------
    dict
        The value of each feature of :data:`FEATURES`, a finite number.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # sums of the largest numbers may overflow
        found = _features(instance)
    return {name: float(np.nan_to_num(found[name], nan=0.0, posinf=LARGEST).clip(max=LARGEST)) for name in FEATURES}


def _features(instance: Instance) -> dict[str, float]:
    homes = nearest_server(instance)
    nearest = evaluate(instance, homes)
    share = np.bincount(homes, minlength=instance.n_servers) / max(instance.n_clients, 1)
    between = float(share @ np.asarray(instance.server_delay) @ share)
    to_server = float(instance.client_delay(np.arange(instance.n_clients), homes).mean()) if instance.n_clients else 0.0
    sizes, degrees = instance.members.sizes, instance.topics.sizes
    memberships = int(sizes.sum())
    several = int(degrees[degrees > 1].sum())
    publishing = int(np.count_nonzero(instance.member_role & PUBLISHES))
    spread = float(nearest.spread.sum()) / max(nearest.n_publications, 1)
    used = np.maximum(
        use(nearest.storage_load, instance.storage_capacity), use(nearest.compute_load, instance.compute_capacity)
    )
    return {
        "clients": float(instance.n_clients),
        "servers": float(instance.n_servers),
        "topics": float(instance.n_topics),
        "topic_size": _mean(sizes),
        "topic_size_spread": _relative_spread(sizes),
        "topics_per_client": _mean(degrees[degrees > 0]),
        "overlap": several / max(memberships, 1),
        "publishers": publishing / max(memberships, 1),
        "storage_load": share_of(float(nearest.storage_load.sum()), float(instance.storage_capacity.sum())),
        "storage_once": storage_once(instance),
        "compute_load": share_of(float(nearest.compute_load.sum()), float(instance.compute_capacity.sum())),
        "fullest_server": float(used.max(initial=0.0)),
        "capacity_spread": _relative_spread(instance.storage_capacity),
        "locality": 1 - spread / between if between else 0.0,
        "client_delay_share": share_of(to_server, to_server + between),
        "cloud_delay_share": share_of(2 * instance.cloud_delay, 2 * instance.cloud_delay + between),
    }


def _mean(values: FloatArray | OffsetArray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _relative_spread(values: FloatArray | OffsetArray) -> float:
    largest = values.max(initial=0)
    if not largest:
        return 0.0
    parts = values / largest  # so that squares of large numbers do not overflow
    return float(parts.std() / parts.mean())
