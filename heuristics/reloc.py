"""RELOC, Algorithm 1 of the paper, run cluster by cluster.

The parts of Algorithm 1 are in these modules:

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
from dataclasses import dataclass
from typing import Literal

import numpy as np

from relocbench.heuristics.clusters import Clusters, make_clusters
from relocbench.heuristics.relations import most_related_by_factors, most_related_exactly, nmf_factors, svd_factors
from relocbench.heuristics.reloc_loop import place
from relocbench.heuristics.reloc_tasks import Cluster, cluster_tasks
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation, evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, offsets
from relocbench.instances.solution import Solution

Relation = Literal["svd", "exact", "nmf"]
Cooperation = Literal["client", "topic"]
# A function that takes the clients of one cluster (ascending) and returns the related clients of each of them,
# strongest first, as a ragged array of positions in that list (line 22 of Algorithm 1).
Related = Callable[[IntArray], tuple[OffsetArray, IntArray]]


@dataclass(frozen=True)
class Steps:
    """Which steps of Algorithm 1 are run, and in which reading.

    Attributes
    ----------
    related
        Returns the related clients within a cluster (line 22). With None the relation step (lines 24 to 31) is omitted.
    cooperate, whole_topic, revisit
        As for :func:`heuristics.reloc_loop.place`.
    """

    related: Related | None
    cooperate: bool
    whole_topic: bool = False
    revisit: bool = False


@dataclass(frozen=True)
class Snapshot:
    """The homes after one of the three steps of RELOC.

    Attributes
    ----------
    step
        ``locality``, ``relation`` or ``cooperation``.
    home
        The homes.
    evaluation
        Their cost, and the loads and ``θ`` of each server.
    """

    step: str
    home: IntArray
    evaluation: Evaluation


def solve(
    instance: Instance,
    *,
    seed: int,
    time_limit: float,
    k: int | Literal["auto"] = 4,
    related: int = 100,
    rank: int = 16,
    relation: Relation = "svd",
    cooperation: Cooperation = "client",
    revisit: bool = False,
    threads: int = 2,
) -> Solution:
    """Run Algorithm 1 of the paper.

    Parameters
    ----------
    instance
        The problem.
    seed
        The seed of K-means and of ``relation=nmf``.
    time_limit
        With ``k=auto``, no further ``k`` is tried after this many seconds. Otherwise not used.
    k
        ``K``, the number of clusters (line 17). ``auto`` tries several values and keeps the homes with the least ``Y``.
    related
        ``M′``, the number of related clients that are considered, strongest first (line 22).
    rank
        The number of columns of the factorisation (line 19).
    relation
        The score of a relation: from the ``svd`` or ``nmf`` of the client×topic incidence matrix, or ``exact``, the
        number of shared topics.
    cooperation
        What leaves an overloaded server (lines 36 to 42): the ``client``, or all publishers of the ``topic`` on the
        server.
    revisit
        Whether a client gets a new home in each of its topics. Otherwise it keeps its first home.
    threads
        The number of clusters that run at the same time. The homes do not depend on it.

    Returns
    -------
    Solution
        The homes.

    Raises
    ------
    InputError
        If a parameter is out of range.
    """
    if k != "auto" and k < 1:
        raise InputError("method reloc: k", f"expected at least 1, got {k}")
    if related < 0 or rank < 1 or threads < 1:
        raise InputError("method reloc", "expected related >= 0, rank >= 1 and threads >= 1")
    relations = relation_finder(instance, relation, related, rank, seed)
    best: tuple[float, IntArray] | None = None
    begin = time.perf_counter()
    for clusters in _clusterings(instance, k, seed):
        if best is not None and time.perf_counter() - begin > time_limit:
            break
        steps = Steps(relations, cooperate=True, whole_topic=cooperation == "topic", revisit=revisit)
        home = run_clusters(instance, cluster_tasks(instance, clusters), steps, threads)
        cost = evaluate(instance, home).objective if k == "auto" else 0.0
        if best is None or cost < best[0]:
            best = (cost, home)
    assert best is not None
    return Solution(best[1])


def snapshots(instance: Instance, *, seed: int, k: int = 4, related: int = 100, rank: int = 16) -> list[Snapshot]:
    """Return the homes after each of the three steps of RELOC, for the step-by-step figure.

    Algorithm 1 alternates the steps client by client. Each snapshot is the result of the whole loop without the later
    steps.

    Parameters
    ----------
    instance, seed, k, related, rank
        As for :func:`solve`.

    Returns
    -------
    list
        The snapshots of the locality, relation and cooperation steps.
    """
    clusters = make_clusters(instance, k, seed)
    relations = relation_finder(instance, "svd", related, rank, seed)
    found = []
    for name, steps in (
        ("locality", Steps(None, cooperate=False)),
        ("relation", Steps(relations, cooperate=False)),
        ("cooperation", Steps(relations, cooperate=True)),
    ):
        home = run_clusters(instance, cluster_tasks(instance, clusters), steps)
        found.append(Snapshot(name, home, evaluate(instance, home)))
    return found


def relation_finder(instance: Instance, relation: Relation, related: int, rank: int, seed: int) -> Related | None:
    """Return the function that finds the related clients within a cluster (lines 18, 19 and 22 of Algorithm 1).

    Parameters
    ----------
    instance, relation, related, rank, seed
        As for :func:`solve`.

    Returns
    -------
    function or None
        The function; None if ``related`` is 0.
    """
    if related == 0:
        return None
    if relation == "exact":

        def by_shared_topics(clients: IntArray) -> tuple[OffsetArray, IntArray]:
            sizes = instance.topics.sizes[clients]
            start = offsets(sizes)
            entries = np.arange(start[-1]) + np.repeat(instance.topics.start[clients] - start[:-1], sizes)
            return most_related_exactly(start, instance.topics.item[entries], related)

        return by_shared_topics
    factors = svd_factors(instance, rank) if relation == "svd" else nmf_factors(instance, rank, seed)
    return factor_relations(factors, related)


def factor_relations(factors: FloatArray, related: int) -> Related:
    """Return the function that finds the related clients within a cluster by a given factorisation.

    Parameters
    ----------
    factors
        ``F`` of :mod:`heuristics.relations`, one row per client.
    related
        ``M′``, as for :func:`solve`.

    Returns
    -------
    function
        The function.
    """
    return lambda clients: most_related_by_factors(factors[clients], related)


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
        start, item = steps.related(cluster.clients)
        task = task._replace(related_start=start, related=item)
    local = place(task, steps.cooperate, steps.whole_topic, steps.revisit)
    # The loop never reaches a client without a topic. Every server is equally good for it, so it gets the first one.
    return cluster.servers[np.maximum(local, 0)]


def _clusterings(instance: Instance, k: int | Literal["auto"], seed: int) -> Iterator[Clusters]:
    """Yield the clusterings to try (line 17 of Algorithm 1): one for a given ``k``, several for ``auto``."""
    if k != "auto":
        yield make_clusters(instance, k, seed)
        return
    # From many clusters to few, because many small clusters take the least time.
    yield make_clusters(instance, instance.n_servers, seed)
    for power in range(instance.n_servers.bit_length() - 1, -1, -1):
        if 2**power < instance.n_servers:
            yield make_clusters(instance, 2**power, seed)
