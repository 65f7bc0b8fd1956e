"""OTOS: one server per topic, followed by the cooperation step of RELOC where a server is overloaded."""

import numpy as np

from relocbench.heuristics.clusters import Clusters
from relocbench.heuristics.readings import DEFAULT_READING, READINGS, AsRead, Cooperation
from relocbench.heuristics.reloc import Steps, run_clusters
from relocbench.heuristics.reloc_loop import Rules
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.delays import euclidean_delay
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.solution import Solution


def solve(
    instance: Instance, *, seed: int, time_limit: float, cooperation: Cooperation | AsRead = "reading"
) -> Solution:
    """Assign every client to the server of its first topic, and relieve overloaded servers.

    The server of a topic is the one with the least total delay to the members of the topic; ties go to the lowest
    index. The first topic of a client is the one with the lowest index of which it is a member.

    Parameters
    ----------
    instance
        The problem.
    seed, time_limit
        Not used; every method has them.
    cooperation
        What leaves an overloaded server: the ``client`` that overloads it, or the whole ``topic``. With ``reading`` it
        is as in the default reading of RELOC, because the paper uses the same mechanism for both methods.

    Returns
    -------
    Solution
        The homes.
    """
    one_cluster = Clusters(1, np.zeros(instance.n_servers, np.int32), np.zeros(instance.n_clients, np.int32))
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
    in_a_topic = instance.topics.sizes > 0
    preferred[in_a_topic] = server_of_topic[instance.topics.item[instance.topics.start[:-1][in_a_topic]]]
    steps = Steps(None, loop_rules(cooperation))
    return Solution(run_clusters(instance, cluster_tasks(instance, one_cluster, preferred), steps))


def loop_rules(cooperation: Cooperation | AsRead = "reading") -> Rules:
    """Return the rules of the loop over topics and clients.

    Parameters
    ----------
    cooperation
        As for :func:`solve`.

    Returns
    -------
    Rules
        The rules.
    """
    if cooperation == "reading":
        cooperation = READINGS[DEFAULT_READING].cooperation
    return Rules(cooperate=True, at_once=cooperation == "topic")


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
    """Return the server of each topic: the one with the least total delay to its members, ties to the lowest index.

    Parameters
    ----------
    start, member
        The members of each topic, as a ragged array.
    client_x, client_y, server_x, server_y
        The positions of clients and servers.
    delay_per_km
        ``γ``.
    delay
        The explicit client-server delays, or an empty array; then delays are ``γ`` times the distance.

    Returns
    -------
    array
        One server per topic.
    """
    chosen = np.zeros(len(start) - 1, np.int32)
    total = np.empty(len(server_x))
    for n in range(len(start) - 1):
        total[:] = 0.0
        for e in range(start[n], start[n + 1]):
            m = member[e]
            if delay.shape[0] > 0:
                for l in range(len(server_x)):
                    total[l] += delay[m, l]
            else:
                # The inner loop runs over the servers, because the compiler can then use vector instructions.
                for l in range(len(server_x)):
                    total[l] += euclidean_delay(client_x[m] - server_x[l], client_y[m] - server_y[l], delay_per_km)
        chosen[n] = np.argmin(total)
    return chosen
