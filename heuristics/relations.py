"""The relation step of RELOC (lines 18, 19 and 22 of Algorithm 1): the most strongly related clients of each client.

``G`` is the client×topic incidence matrix, and ``Z = G·Gᵀ`` (line 18) counts the topics that two clients share. ``Z``
is never formed. A factorisation ``Z ≈ F·Fᵀ`` with a few columns (line 19) gives the score of two clients as the inner
product of their rows of ``F``. Line 22 takes the ``M′`` clients with the largest scores.
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.clusters import LARGEST_SEED
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# Up to this many topics the eigenvectors of ``Gᵀ·G`` are computed with a dense matrix.
DENSE_TOPICS = 1500
# Scores are compared to nine decimals, so that scores which are equal in exact arithmetic are ties despite rounding.
SCORE_STEPS = 1e9
# Rows that are scored together: enough for vector instructions, few enough to stop early.
TILE = 256


def svd_factors(instance: Instance, rank: int) -> FloatArray:
    """Return the best factorisation ``Z ≈ F·Fᵀ`` of a given rank (line 19 of Algorithm 1).

    ``F = G·V``, where the columns of ``V`` are the first right singular vectors of ``G``.

    Parameters
    ----------
    instance
        The problem.
    rank
        The number of columns of ``F``; at most ``N - 1`` are used.

    Returns
    -------
    array
        ``F``, one row per client.
    """
    from scipy.sparse.linalg import eigsh
    from threadpoolctl import threadpool_limits

    incidence = _incidence(instance)
    columns = max(1, min(rank, instance.n_topics - 1))
    gram = incidence.T @ incidence
    # With one thread and a fixed initial vector the factors do not depend on the number of cores.
    with threadpool_limits(1):
        if instance.n_topics <= DENSE_TOPICS:
            vectors = np.linalg.eigh(gram.toarray())[1][:, ::-1][:, :columns]
        else:
            start = np.random.default_rng(0).random(instance.n_topics)
            vectors = eigsh(gram, k=columns, v0=start, tol=1e-8)[1][:, ::-1]
        return np.ascontiguousarray(incidence @ vectors)


def nmf_factors(instance: Instance, rank: int, seed: int) -> FloatArray:
    """Return ``Z ≈ F·Fᵀ`` from a non-negative factorisation of ``G`` (line 19 of Algorithm 1, another reading).

    ``F = W·R``, where ``G ≈ W·H`` and ``H·Hᵀ = R·Rᵀ``.

    Parameters
    ----------
    instance
        The problem.
    rank
        The number of columns of ``F``; at most ``N - 1`` and at most ``M`` are used.
    seed
        The seed of the factorisation.

    Returns
    -------
    array
        ``F``, one row per client.
    """
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    columns = max(1, min(rank, instance.n_topics - 1, instance.n_clients))
    with threadpool_limits(1), warnings.catch_warnings():
        # RELOC only needs approximate scores, so a factorisation that has not fully converged is good enough.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NMF(columns, init="nndsvda", random_state=seed % LARGEST_SEED, max_iter=500, tol=1e-3)
        weights = model.fit_transform(_incidence(instance))
        topics = model.components_
        # R comes from eigenvectors, because a Cholesky factorisation would fail on a singular matrix H·Hᵀ.
        values, vectors = np.linalg.eigh(topics @ topics.T)
        return np.ascontiguousarray(weights @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _incidence(instance: Instance) -> Any:
    """Return ``G`` as a sparse matrix (line 18 of Algorithm 1)."""
    from scipy.sparse import csr_array

    ones = np.ones(len(instance.topics.item))
    return csr_array((ones, instance.topics.item, instance.topics.start), shape=(instance.n_clients, instance.n_topics))


def most_related_by_factors(factors: FloatArray, most: int) -> tuple[OffsetArray, IntArray]:
    """Return the most strongly related clients of each client, by a factorisation (line 22 of Algorithm 1).

    Parameters
    ----------
    factors
        The rows of ``F`` of the clients of one cluster. Line 25 of Algorithm 1 skips the clients of other clusters.
    most
        ``M′``, the largest number of related clients to return for each client.

    Returns
    -------
    start, item
        A ragged array: for each row the other rows with a positive score, strongest first; ties go to the lowest index.
    """
    return _top_scores(factors, min(most, max(len(factors) - 1, 0)))


def most_related_exactly(
    topic_start: OffsetArray, topic: npt.NDArray[np.integer[Any]], most: int
) -> tuple[OffsetArray, IntArray]:
    """Return the most strongly related clients of each client, by the number of shared topics (line 22, ``Z`` itself).

    Parameters
    ----------
    topic_start, topic
        The topics of each client of one cluster, as a ragged array.
    most
        ``M′``, the largest number of related clients to return for each client.

    Returns
    -------
    start, item
        As :func:`most_related_by_factors` returns them.
    """
    _, number = np.unique(topic, return_inverse=True)
    topics = int(number.max(initial=-1)) + 1
    return _top_counts(topic_start, number.astype(np.int64), topics, min(most, len(topic_start) - 1))


@compiled
def _top_scores(factors: FloatArray, most: int) -> tuple[OffsetArray, IntArray]:
    """Compare each row with the others from the longest to the shortest, and stop when no larger score is possible.

    The inner product of two rows is at most the product of their lengths. With few columns for many topics most rows
    are short, so that each search ends early. Without this rule the work would grow with the square of the rows.
    """
    rows, columns = factors.shape
    length = np.sqrt((factors * factors).sum(axis=1))
    order = np.argsort(-length)
    by_column = factors[order].T.copy()
    start = np.zeros(rows + 1, np.int64)
    item = np.empty(rows * most, np.int32)
    tile = np.empty(TILE)
    # A heap of the strongest relations so far, with the weakest of them on top, and a place for the next candidate.
    score = np.empty(most + 1, np.int64)
    other = np.empty(most + 1, np.int32)
    for m in range(rows):
        count = 0
        for low in range(0, rows if most > 0 else 0, TILE):
            # An upper bound on all further scores, slightly enlarged to cover rounding.
            possible = (length[m] * length[order[low]] * (1.0 + 1e-12) + 1e-15) * SCORE_STEPS + 0.5
            if possible < 1.0 or (count == most and possible < score[0]):
                break
            width = min(TILE, rows - low)
            # The inner loop runs over the rows of a tile, because the compiler can then use vector instructions.
            tile[:width] = 0.0
            for c in range(columns):
                mine = factors[m, c]
                for i in range(width):
                    tile[i] += mine * by_column[c, low + i]
            for i in range(width):
                step = np.int64(np.floor(tile[i] * SCORE_STEPS + 0.5))
                if step <= 0 or (count == most and step < score[0]) or order[low + i] == m:
                    continue
                score[count] = step
                other[count] = order[low + i]
                if count < most:
                    count += 1
                    _rise(score, other, count - 1)
                elif _weaker(score, other, 0, most):
                    _swap(score, other, 0, most)
                    _sink(score, other, count)
        start[m + 1] = start[m] + count
        # Removing the weakest relation repeatedly fills the list from its end.
        for i in range(count - 1, -1, -1):
            item[start[m] + i] = other[0]
            score[0] = score[i]
            other[0] = other[i]
            _sink(score, other, i)
    return start, item[: start[rows]]


@compiled
def _weaker(score: npt.NDArray[np.int64], other: IntArray, a: int, b: int) -> bool:
    """Return whether relation ``a`` comes after relation ``b``: a smaller score, or a higher index at equal scores."""
    return bool(score[a] < score[b] or (score[a] == score[b] and other[a] > other[b]))


@compiled
def _swap(score: npt.NDArray[np.int64], other: IntArray, a: int, b: int) -> None:
    score[a], score[b] = score[b], score[a]
    other[a], other[b] = other[b], other[a]


@compiled
def _rise(score: npt.NDArray[np.int64], other: IntArray, i: int) -> None:
    """Restore the heap after a new element at place ``i``."""
    while i > 0 and _weaker(score, other, i, (i - 1) // 2):
        _swap(score, other, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def _sink(score: npt.NDArray[np.int64], other: IntArray, count: int) -> None:
    """Restore the heap of ``count`` elements after a change at its top."""
    i = 0
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _weaker(score, other, child + 1, child):
            child += 1
        if not _weaker(score, other, child, i):
            return
        _swap(score, other, i, child)
        i = child


@compiled
def _top_counts(
    topic_start: OffsetArray, topic: npt.NDArray[np.int64], topics: int, most: int
) -> tuple[OffsetArray, IntArray]:
    """Count the shared topics of each client with the others, and return the others with the largest counts."""
    rows = len(topic_start) - 1
    # The members of each topic, in ascending order.
    member_start = np.zeros(topics + 1, np.int64)
    for e in range(len(topic)):
        member_start[topic[e] + 1] += 1
    for n in range(topics):
        member_start[n + 1] += member_start[n]
    fill = member_start[:-1].copy()
    member = np.empty(len(topic), np.int32)
    for m in range(rows):
        for e in range(topic_start[m], topic_start[m + 1]):
            member[fill[topic[e]]] = m
            fill[topic[e]] += 1

    start = np.zeros(rows + 1, np.int64)
    item = np.empty(16, np.int32)
    shared = np.zeros(rows, np.int64)
    found = np.empty(rows, np.int32)
    for m in range(rows):
        count = 0
        largest = 0
        for e in range(topic_start[m], topic_start[m + 1]):
            for i in range(member_start[topic[e]], member_start[topic[e] + 1]):
                r = member[i]
                if r == m:
                    continue
                if shared[r] == 0:
                    found[count] = r
                    count += 1
                shared[r] += 1
                largest = max(largest, shared[r])
        kept = min(most, count)
        start[m + 1] = start[m] + kept
        if start[m + 1] > len(item):
            longer = np.empty(2 * start[m + 1], np.int32)
            longer[: start[m]] = item[: start[m]]
            item = longer
        ordered = np.sort(found[:count])
        end = start[m]
        for level in range(largest, 0, -1):
            for r in ordered:
                if shared[r] == level and end < start[m + 1]:
                    item[end] = r
                    end += 1
        for i in range(count):
            shared[found[i]] = 0
    return start, item[: start[rows]]
