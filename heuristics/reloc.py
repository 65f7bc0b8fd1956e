"""RELOC, Algorithm 1 of the paper, run cluster by cluster.

The parts of Algorithm 1 are in these modules:

- :mod:`heuristics.readings`: the points that the paper leaves open, and named readings of them
- :mod:`heuristics.clusters`: the locality step, line 17
- :mod:`heuristics.relations`: the relation step, lines 18, 19 and 22
- :mod:`heuristics.reloc_tasks`: the decomposition into clusters
- :mod:`heuristics.reloc_loop`: the loop over topics and clients with the cooperation step, lines 20 to 45 and 1 to 14

docs/reading.md explains how each point that the paper leaves open is read.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from relocbench.heuristics.clusters import Clusters, make_clusters
from relocbench.heuristics.readings import (
    DEFAULT_READING,
    AsRead,
    Cooperation,
    Factorised,
    Initial,
    Order,
    Rank,
    Reading,
    ReadingName,
    Relation,
    Ties,
    named_reading,
)
from relocbench.heuristics.relations import (
    RelatedClients,
    most_related_by_factors,
    most_related_exactly,
    relation_factors,
    tie_break,
)
from relocbench.heuristics.relations_kernel import TieBreak
from relocbench.heuristics.reloc_loop import (
    FIRST_IN_LIST,
    MOST_LOADED_HOME,
    NEAREST_HOME,
    Rules,
    place,
    place_whole_topics,
)
from relocbench.heuristics.reloc_tasks import Cluster, Visits, cluster_tasks
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, offsets
from relocbench.instances.solution import Solution

Step = Literal["locality", "relation", "cooperation"]
STEPS: tuple[Step, ...] = get_args(Step)
# A function that returns the related clients of each client of a cluster (line 22 of Algorithm 1).
Related = Callable[[Cluster], RelatedClients]


@dataclass(frozen=True)
class Steps:
    """Which steps of Algorithm 1 are run, and in which reading.

    Attributes
    ----------
    related
        Returns the related clients within a cluster (line 22). With None the relation step (lines 24 to 31) is omitted.
    rules
        The reading of the loop.
    """

    related: Related | None
    rules: Rules


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    k: int | Literal["auto"] = 4,
    near: int = 0,
    related: int = 100,
    reading: ReadingName = DEFAULT_READING,
    relation: Relation | AsRead = "reading",
    rank: Rank | AsRead = "reading",
    factorised: Factorised | AsRead = "reading",
    diagonal: bool | AsRead = "reading",
    ties: Ties | AsRead = "reading",
    initial: Initial | AsRead = "reading",
    cooperation: Cooperation | AsRead = "reading",
    revisit: bool | AsRead = "reading",
    topic_order: Order | AsRead = "reading",
    client_order: Order | AsRead = "reading",
    threads: int = 2,
) -> Solution:
    """Run Algorithm 1 of the paper.

    Parameters
    ----------
    instance
        The problem.
    seed
        The seed of K-means, of ``relation=nmf`` and of everything that is ``random``.
    time_limit
        With ``k=auto``, no further ``k`` is tried after this many seconds. Otherwise not used.
    k
        ``K``, the number of clusters (line 17). ``auto`` tries several values and keeps the homes with the least ``Y``.
    near
        With ``k=auto``: try only this number of clusters, its double and its half, in this order. A policy for moving
        clients sets it to the choice of the epoch before. 0 for all values.
    related
        ``M′``, the number of related clients that are considered, strongest first (line 22).
    reading
        A named reading of the points that the paper leaves open (``heuristics.readings.READINGS``).
    relation, rank, factorised, diagonal, ties, initial, cooperation, revisit, topic_order, client_order
        The fields of :class:`heuristics.readings.Reading`. With ``reading``, a field is as in the named reading.
    threads
        The number of clusters that run at the same time. The homes do not depend on it.

    Returns
    -------
    Solution
        The homes. Its facts have the number of clusters ``k``.

    Raises
    ------
    InputError
        If a parameter is out of range, or two parameters contradict each other.
    """
    if k != "auto" and k < 1:
        raise InputError("method reloc: k", f"expected at least 1, got {k}")
    if related < 0 or threads < 1 or near < 0:
        raise InputError("method reloc", "expected related >= 0, threads >= 1 and near >= 0")
    chosen = named_reading(
        reading,
        relation=relation,
        rank=rank,
        factorised=factorised,
        diagonal=diagonal,
        ties=ties,
        initial=initial,
        cooperation=cooperation,
        revisit=revisit,
        topic_order=topic_order,
        client_order=client_order,
    )
    algorithm = Algorithm(instance, chosen, related, seed, threads)
    best: tuple[float, IntArray, int] | None = None
    begin = time.perf_counter()
    for clusters in _clusterings(instance, k, near, seed):
        if best is not None and time.perf_counter() - begin > time_limit:
            break
        home = algorithm.home(clusters)
        cost = evaluate(instance, home).objective if k == "auto" else 0.0
        if best is None or cost < best[0]:
            best = (cost, home, clusters.count)
    assert best is not None
    return Solution(best[1], facts={"k": float(best[2])})


class Algorithm:
    """Algorithm 1 in one reading on one instance. The relations, which no number of clusters changes, are found once.

    Parameters
    ----------
    instance
        The problem.
    reading
        The reading of the points that the paper leaves open.
    related, seed, threads
        As for :func:`solve`.
    """

    def __init__(self, instance: Instance, reading: Reading, related: int = 100, seed: int = 0, threads: int = 1):
        self._instance = instance
        self._steps = Steps(relation_finder(instance, reading, related, seed), loop_rules(reading))
        self._visits = Visits(reading.topic_order, reading.client_order, seed)
        self._threads = threads

    def home(self, clusters: Clusters, last_step: Step = "cooperation") -> IntArray:
        """Return the homes after one of the three steps.

        Algorithm 1 alternates the steps client by client. The homes after an earlier step are the result of the whole
        loop without the later steps.

        Parameters
        ----------
        clusters
            The clusters (line 17).
        last_step
            The last step to run.

        Returns
        -------
        array
            The home of each client.
        """
        steps = self._steps
        if last_step != "cooperation":
            steps = replace(steps, rules=steps.rules._replace(cooperate=False))
        if last_step == "locality":
            steps = replace(steps, related=None)
        tasks = cluster_tasks(self._instance, clusters, visits=self._visits)
        return run_clusters(self._instance, tasks, steps, self._threads)


def loop_rules(reading: Reading) -> Rules:
    """Return the rules of the loop in a reading (lines 20 to 45 of Algorithm 1).

    Parameters
    ----------
    reading
        The reading.

    Returns
    -------
    Rules
        The rules, with cooperation.
    """
    return Rules(
        cooperate=True,
        whole_topic=reading.cooperation == "topic",
        revisit=reading.revisit,
        ties={"placed": NEAREST_HOME, "loaded": MOST_LOADED_HOME}.get(reading.ties, FIRST_IN_LIST),
        least_used_first=reading.initial == "least-used",
    )


def relation_finder(instance: Instance, reading: Reading, related: int, seed: int) -> Related | None:
    """Return the function that finds the related clients within a cluster (lines 18, 19 and 22 of Algorithm 1).

    Parameters
    ----------
    instance, related, seed
        As for :func:`solve`.
    reading
        The reading.

    Returns
    -------
    function or None
        The function; None if ``related`` is 0.
    """
    if related == 0:
        return None
    if reading.relation == "exact":

        def by_shared_topics(cluster: Cluster) -> RelatedClients:
            sizes = instance.topics.sizes[cluster.clients]
            start = offsets(sizes)
            entries = np.arange(start[-1]) + np.repeat(instance.topics.start[cluster.clients] - start[:-1], sizes)
            ties = cluster_ties(cluster, reading, seed)
            return most_related_exactly(start, instance.topics.item[entries], related, ties)

        return by_shared_topics
    return factor_relations(relation_factors(instance, reading, seed), reading, related, seed)


def factor_relations(factors: FloatArray, reading: Reading, related: int, seed: int) -> Related:
    """Return the function that finds the related clients within a cluster by a given factorisation.

    Parameters
    ----------
    factors
        ``F`` of :mod:`heuristics.relations`, one row per client.
    reading, related, seed
        As for :func:`relation_finder`.

    Returns
    -------
    function
        The function.
    """
    return lambda cluster: most_related_by_factors(
        factors[cluster.clients], related, cluster_ties(cluster, reading, seed)
    )


def cluster_ties(cluster: Cluster, reading: Reading, seed: int) -> TieBreak:
    """Return the order of equally related clients within a cluster (line 22 of Algorithm 1).

    Parameters
    ----------
    cluster
        The cluster.
    reading, seed
        As for :func:`relation_finder`.

    Returns
    -------
    TieBreak
        The order.
    """
    return tie_break(reading.ties, cluster.task.client_x, cluster.task.client_y, cluster.client_id, seed)


def run_clusters(instance: Instance, clusters: Iterator[Cluster], steps: Steps, threads: int = 1) -> IntArray:
    """Run lines 20 to 45 of Algorithm 1 on every cluster and combine the homes.

    Parameters
    ----------
    instance
        The problem.
    clusters
        The clusters to run.
    steps
        The steps of Algorithm 1 to run.
    threads
        The number of clusters that run at the same time.

    Returns
    -------
    array
        The home of each client; 0 for clients of no given cluster.
    """
    home = np.zeros(instance.n_clients, np.int32)

    def run(cluster: Cluster) -> None:
        home[cluster.clients] = place_cluster(cluster, steps)

    if threads == 1:
        for cluster in clusters:
            run(cluster)
        return home
    with ThreadPoolExecutor(threads) as pool:
        deque(pool.map(run, clusters), maxlen=0)
    return home


def place_cluster(cluster: Cluster, steps: Steps) -> IntArray:
    """Run lines 20 to 45 of Algorithm 1 on one cluster.

    Parameters
    ----------
    cluster
        The cluster.
    steps
        The steps of Algorithm 1 to run.

    Returns
    -------
    array
        The home of each client of the cluster, by the server's number in the instance.
    """
    task = cluster.task
    if steps.related is not None:
        found = steps.related(cluster)
        task = task._replace(related_start=found.start, related=found.item, related_level=found.level)
    local = place_whole_topics(task) if steps.rules.at_once else place(task, steps.rules)
    # The loop never reaches a client without a topic. Every server is equally good for it, so it gets the first one.
    return cluster.servers[np.maximum(local, 0)]


def _clusterings(instance: Instance, k: int | Literal["auto"], near: int, seed: int) -> Iterator[Clusters]:
    """Yield the clusterings to try (line 17 of Algorithm 1): one for a given ``k``, several for ``auto``."""
    if k != "auto":
        yield make_clusters(instance, k, seed)
        return
    if near:
        for count in dict.fromkeys(min(max(1, value), instance.n_servers) for value in (near, 2 * near, near // 2)):
            yield make_clusters(instance, count, seed)
        return
    for count in auto_counts(instance.n_servers):
        yield make_clusters(instance, count, seed)


def auto_counts(n_servers: int) -> list[int]:
    """Return the numbers of clusters that ``k=auto`` tries.

    Parameters
    ----------
    n_servers
        The number of servers.

    Returns
    -------
    list of int
        The number of servers and all smaller powers of two, from many clusters to few, because many small clusters take
        the least time.
    """
    return [n_servers, *(2**power for power in range(n_servers.bit_length() - 1, -1, -1) if 2**power < n_servers)]
