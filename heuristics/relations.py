"""RELOC's second step: which clients are most strongly related, by the topics they share.

``G`` is the client×topic incidence and ``Z = G·Gᵀ`` counts the topics two clients share. ``Z`` is never formed: a
factorisation ``Z ≈ F·Fᵀ`` with a few columns gives the score of two clients as the product of their rows of ``F``.
"""

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.clusters import LARGEST_SEED
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray

# Up to this many topics the eigenvectors of the topics' Gram matrix are computed densely.
DENSE_TOPICS = 1500
# Scores are compared to nine decimals: what is equal in exact arithmetic is a tie, whatever the last bits say.
SCORE_STEPS = 1e9
# Rows looked at together: long enough for vector instructions, short enough to stop early.
TILE = 256


def svd_factors(instance: Instance, rank: int) -> FloatArray:
    """Return ``F = G·V`` with ``V`` the first right singular vectors of ``G``: the best factorisation of that rank."""
    from scipy.sparse.linalg import eigsh
    from threadpoolctl import threadpool_limits

    incidence = _incidence(instance)
    columns = max(1, min(rank, instance.n_topics - 1))
    gram = incidence.T @ incidence
    # One thread, and a fixed start: the same factors with any number of cores.
    with threadpool_limits(1):
        if instance.n_topics <= DENSE_TOPICS:
            vectors = np.linalg.eigh(gram.toarray())[1][:, ::-1][:, :columns]
        else:
            start = np.random.default_rng(0).random(instance.n_topics)
            vectors = eigsh(gram, k=columns, v0=start, tol=1e-8)[1][:, ::-1]
        return np.ascontiguousarray(incidence @ vectors)


def nmf_factors(instance: Instance, rank: int, seed: int) -> FloatArray:
    """Return ``F = W·R`` from a non-negative factorisation ``G ≈ W·H`` with ``H·Hᵀ = R·Rᵀ``."""
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    columns = max(1, min(rank, instance.n_topics - 1, instance.n_clients))
    with threadpool_limits(1), warnings.catch_warnings():
        # A factorisation that has not quite settled is as good a hint as one that has.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NMF(columns, init="nndsvda", random_state=seed % LARGEST_SEED, max_iter=500, tol=1e-3)
        weights = model.fit_transform(_incidence(instance))
        topics = model.components_
        # The root of H·Hᵀ through its eigenvectors, which unlike Cholesky's takes a singular matrix.
        values, vectors = np.linalg.eigh(topics @ topics.T)
        return np.ascontiguousarray(weights @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _incidence(instance: Instance) -> Any:
    from scipy.sparse import csr_array

    ones = np.ones(len(instance.topics.item))
    return csr_array((ones, instance.topics.item, instance.topics.start), shape=(instance.n_clients, instance.n_topics))


def most_related_by_factors(factors: FloatArray, most: int) -> tuple[OffsetArray, IntArray]:
    """Return for each row the ``most`` others with the largest positive score, strongest first, ties by index.

    The rows are the clients of one cluster: no other can matter to RELOC.
    """
    return _top_scores(factors, min(most, max(len(factors) - 1, 0)))


def most_related_exactly(
    topic_start: OffsetArray, topic: npt.NDArray[np.integer[Any]], most: int
) -> tuple[OffsetArray, IntArray]:
    """Return the same by the raw number of shared topics; ``topic_start, topic`` list the topics of each client."""
    _, number = np.unique(topic, return_inverse=True)
    topics = int(number.max(initial=-1)) + 1
    return _top_counts(topic_start, number.astype(np.int64), topics, min(most, len(topic_start) - 1))


@compiled
def _top_scores(factors: FloatArray, most: int) -> tuple[OffsetArray, IntArray]:
    """Search the rows from the longest to the shortest, and stop where no product can be large enough any more.

    A product of two rows is at most the product of their lengths. With few columns for many topics most rows are short,
    so that each search ends early: without this the work would grow with the square of the rows.
    """
    rows, columns = factors.shape
    length = np.sqrt((factors * factors).sum(axis=1))
    order = np.argsort(-length)
    by_column = factors[order].T.copy()
    start = np.zeros(rows + 1, np.int64)
    item = np.empty(rows * most, np.int32)
    tile = np.empty(TILE)
    # The best so far as a heap with the weakest on top, and one place for the next.
    score = np.empty(most + 1, np.int64)
    other = np.empty(most + 1, np.int32)
    for m in range(rows):
        count = 0
        for low in range(0, rows if most > 0 else 0, TILE):
            # A little more than the largest possible product, whatever rounding does.
            possible = (length[m] * length[order[low]] * (1.0 + 1e-12) + 1e-15) * SCORE_STEPS + 0.5
            if possible < 1.0 or (count == most and possible < score[0]):
                break
            width = min(TILE, rows - low)
            # Column by column over a tile of rows, which the compiler turns into vector instructions.
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
        # The weakest comes off the heap first and goes to the end of the list.
        for i in range(count - 1, -1, -1):
            item[start[m] + i] = other[0]
            score[0] = score[i]
            other[0] = other[i]
            _sink(score, other, i)
    return start, item[: start[rows]]


@compiled
def _weaker(score: npt.NDArray[np.int64], other: IntArray, a: int, b: int) -> bool:
    return bool(score[a] < score[b] or (score[a] == score[b] and other[a] > other[b]))


@compiled
def _swap(score: npt.NDArray[np.int64], other: IntArray, a: int, b: int) -> None:
    score[a], score[b] = score[b], score[a]
    other[a], other[b] = other[b], other[a]


@compiled
def _rise(score: npt.NDArray[np.int64], other: IntArray, i: int) -> None:
    while i > 0 and _weaker(score, other, i, (i - 1) // 2):
        _swap(score, other, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def _sink(score: npt.NDArray[np.int64], other: IntArray, count: int) -> None:
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
    rows = len(topic_start) - 1
    # The members of each topic, ascending.
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
