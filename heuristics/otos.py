"""OTOS: one server a topic, with RELOC's cooperation step against overload."""

import numpy as np

from relocbench.heuristics.clusters import Clusters
from relocbench.heuristics.reloc import Steps, run_clusters
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Give every client the server that is best for its first topic; an overloaded server passes clients on.

    A topic's server is the one with the least summed delay to the topic's members, ties to the lowest index. The first
    topic of a client is the first that names it.
    """
    everything = Clusters(1, np.zeros(instance.n_servers, np.int32), np.zeros(instance.n_clients, np.int32))
    server_of_topic = topic_servers(
        instance.members.start,
        instance.members.item,
        instance.client_x,
        instance.client_y,
        instance.server_x,
        instance.server_y,
        instance.delay_per_km,
        instance.explicit_client_delay,
    )
    preferred = np.zeros(instance.n_clients, np.int32)
    named = instance.topics.sizes > 0
    preferred[named] = server_of_topic[instance.topics.item[instance.topics.start[:-1][named]]]
    steps = Steps(related=None, cooperate=True)
    return Solution(run_clusters(instance, cluster_tasks(instance, everything, preferred), steps))


@compiled
def topic_servers(
    start: OffsetArray,
    member: IntArray,
    client_x: FloatArray,
    client_y: FloatArray,
    server_x: FloatArray,
    server_y: FloatArray,
    delay_per_km: float,
    delay: FloatArray,
) -> IntArray:
    """Return for each topic the server with the least summed delay to its members, ties to the lowest index."""
    chosen = np.zeros(len(start) - 1, np.int32)
    for n in range(len(start) - 1):
        best = np.inf
        for l in range(len(server_x)):
            total = 0.0
            for e in range(start[n], start[n + 1]):
                m = member[e]
                if delay.shape[0] > 0:
                    total += delay[m, l]
                else:
                    total += euclidean_delay(client_x[m] - server_x[l], client_y[m] - server_y[l], delay_per_km)
            if total < best:
                best = total
                chosen[n] = l
    return chosen
