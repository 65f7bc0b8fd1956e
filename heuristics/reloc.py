"""RELOC, the paper's Algorithm 1, run cluster by cluster; docs/reading.md says how each open point is read."""

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


# Clients of a cluster (ascending) -> for each of them the related ones, strongest first, by position in that list.
Related = Callable[[IntArray], tuple[OffsetArray, IntArray]]


@dataclass(frozen=True)
class Steps:
    """What the loop does: whom it asks (nobody if None), and how :func:`heuristics.reloc_loop.place` cooperates."""

    related: Related | None
    cooperate: bool
    whole_topic: bool = False
    revisit: bool = False


@dataclass(frozen=True)
class Snapshot:
    """Homes after one of RELOC's steps: ``locality``, ``relation`` or ``cooperation``."""

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
    """Run RELOC.

    Parameters
    ----------
    instance, seed, time_limit
        As for every method; the time limit only keeps ``k=auto`` from trying more. The seed steers K-means (and
        ``relation=nmf``).
    k
        ``K``, the number of clusters; ``auto`` tries several and keeps the one with the least ``Y``.
    related
        ``M′``, how many related clients are asked, strongest first.
    rank
        Columns of the factorisation.
    relation
        How relations are scored: ``svd`` or ``nmf`` of the client×topic incidence, or ``exact``: shared topics.
    cooperation
        What leaves an overloaded server: the ``client``, or all publishers of the ``topic`` there.
    revisit
        Whether a client met again in a later topic is placed anew.
    threads
        Clusters worked on at once; the homes do not depend on it.
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
    """Return the homes after each of the three steps, with loads and ``θ`` per server, for the step-by-step figure.

    Each step is the whole loop with the later steps left out.
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
    """Return a function that lists the most related clients within a cluster; None if nobody is to be asked."""
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
    """Return such a function for factors that are there already, one row a client."""
    return lambda clients: most_related_by_factors(factors[clients], related)


def run_clusters(instance: Instance, clusters: Iterator[Cluster], steps: Steps, threads: int = 1) -> IntArray:
    """Run the loop on every cluster and put the homes together."""
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
    """Run the loop on one cluster and return the home of each of its clients."""
    task = cluster.task
    if steps.related is not None:
        start, item = steps.related(cluster.clients)
        task = task._replace(related_start=start, related=item)
    local = place(task, steps.cooperate, steps.whole_topic, steps.revisit)
    # A client in no topic is never met by the loop: any server will do, and the first of its cluster is one.
    return cluster.servers[np.maximum(local, 0)]


def _clusterings(instance: Instance, k: int | Literal["auto"], seed: int) -> Iterator[Clusters]:
    if k != "auto":
        yield make_clusters(instance, k, seed)
        return
    # From many to few: many small clusters are the quickest.
    yield make_clusters(instance, instance.n_servers, seed)
    for power in range(instance.n_servers.bit_length() - 1, -1, -1):
        if 2**power < instance.n_servers:
            yield make_clusters(instance, 2**power, seed)
