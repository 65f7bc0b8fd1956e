"""The relation step of RELOC (lines 18, 19 and 22 of Algorithm 1): the most strongly related clients of each client.

``G`` is the client×topic incidence matrix, and ``Z = G·Gᵀ`` (line 18) counts the topics that two clients share. ``Z``
is never formed. A factorisation ``Z ≈ F·Fᵀ`` with a few columns (line 19) gives the score of two clients as the inner
product of their rows of ``F``. Line 22 takes the ``M′`` clients with the largest scores.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.heuristics.clusters import LARGEST_SEED
from relocbench.heuristics.readings import Factorised, Rank, Reading, Ties
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import uniform
from relocbench.instances.kernels.random_streams import stream

# Up to this many topics the eigenvectors of ``Gᵀ·G`` are computed with a dense matrix, and up to this many clients
# those of ``Z`` without its diagonal.
DENSE_TOPICS = 1500
DENSE_CLIENTS = 1500
# Scores are compared to nine decimals, so that scores which are equal in exact arithmetic are ties despite rounding.
SCORE_STEPS = 1e9
# Rows that are scored together: enough for vector instructions, few enough to stop early.
TILE = 256


# Which key decides between relations of equal score.
BY_INDEX, BY_DISTANCE, AT_RANDOM = 0, 1, 2


class TieBreak(NamedTuple):
    """The order of equally related clients within one cluster, as far as it is known before the loop.

    Attributes
    ----------
    key
        ``BY_INDEX``, ``BY_DISTANCE`` or ``AT_RANDOM``. Equal keys go to the lowest index.
    levels
        Whether the levels of equal scores are returned, for a rule that depends on the state of the servers.
    x, y
        The positions of the clients, for ``BY_DISTANCE``.
    own, other
        Two words of each client, for ``AT_RANDOM``: the order of the clients ``r`` beside ``m`` is drawn from
        ``own[m]`` and ``other[r]``.
    """

    key: int
    levels: bool
    x: FloatArray
    y: FloatArray
    own: npt.NDArray[np.uint64]
    other: npt.NDArray[np.uint64]


class RelatedClients(NamedTuple):
    """The related clients of each client of a cluster, strongest first (``C′`` in line 22 of Algorithm 1).

    Attributes
    ----------
    start, item
        A ragged array of positions in the cluster.
    level
        The level of each item among the related clients of the same client: equal for equal scores, and larger for
        smaller scores. It is empty if the order of ties is already final.
    """

    start: OffsetArray
    item: IntArray
    level: IntArray


def tie_break(ties: Ties, client_x: FloatArray, client_y: FloatArray, client_id: IdArray, seed: int) -> TieBreak:
    """Return the order of equally related clients within one cluster.

    Parameters
    ----------
    ties
        As for :class:`heuristics.readings.Reading`.
    client_x, client_y, client_id
        The positions and the ids of the clients of the cluster.
    seed
        The seed of ``random``.

    Returns
    -------
    TieBreak
        The order. ``placed`` and ``loaded`` are decided in the loop (:mod:`heuristics.reloc_loop`).
    """
    key = {"nearest": BY_DISTANCE, "random": AT_RANDOM}.get(ties, BY_INDEX)
    none = np.empty(0, np.uint64)
    own = hash_ids(client_id, int(stream("reloc", "ties", seed).integers(2**62))) if key == AT_RANDOM else none
    other = client_id.astype(np.uint64) if key == AT_RANDOM else none
    return TieBreak(key, ties in ("placed", "loaded"), client_x, client_y, own, other)


def relation_factors(instance: Instance, reading: Reading, seed: int) -> FloatArray:
    """Return the factors ``F`` of a reading (line 19 of Algorithm 1).

    Parameters
    ----------
    instance
        The problem.
    reading
        Its fields ``relation`` (not ``exact``), ``rank``, ``factorised`` and ``diagonal`` say what is computed.
    seed
        The seed of ``relation=nmf``.

    Returns
    -------
    array
        ``F``, one row per client. The score of two clients is the inner product of their rows.

    Raises
    ------
    InputError
        If ``rank=full`` is asked for an instance that is too large for it.
    """
    if reading.relation == "nmf":
        return nmf_factors(instance, reading.rank, seed, reading.factorised)
    if not reading.diagonal:
        return off_diagonal_factors(instance, reading.rank)
    return svd_factors(instance, reading.rank, reading.factorised)


def svd_factors(instance: Instance, rank: Rank, factorised: Factorised = "Z") -> FloatArray:
    """Return the best factorisation of a given rank (line 19 of Algorithm 1).

    With ``G ≈ U·Σ·Vᵀ``, the truncated singular value decomposition:

    - ``Z``: ``F = U·Σ = G·V``, so that ``F·Fᵀ`` is the best approximation of ``Z = G·Gᵀ`` of this rank.
    - ``incidence``: ``F = U·√Σ``, the clients' half of ``G ≈ (U·√Σ)·(V·√Σ)ᵀ``. Then ``F·Fᵀ`` is the square root of the
      matrix above.

    Parameters
    ----------
    instance
        The problem.
    rank
        The number of columns of ``F``; at most ``N - 1`` are used. ``full``: ``N`` columns.
    factorised
        What is factorised.

    Returns
    -------
    array
        ``F``, one row per client.

    Raises
    ------
    InputError
        If the rank is ``full`` and there are more than 1,500 topics.
    """
    from scipy.sparse.linalg import eigsh

    incidence = _incidence(instance)
    dense = instance.n_topics <= DENSE_TOPICS
    columns = _columns(rank, instance.n_topics - 1, instance.n_topics, dense)
    gram = incidence.T @ incidence
    # With one thread and a fixed initial vector the factors do not depend on the number of cores.
    with one_thread():
        if dense:
            vectors = np.linalg.eigh(gram.toarray())[1][:, ::-1][:, :columns]
        else:
            start = np.random.default_rng(0).random(instance.n_topics)
            vectors = eigsh(gram, k=columns, v0=start, tol=1e-8)[1][:, ::-1]
        factors = np.ascontiguousarray(incidence @ vectors)
    return factors if factorised == "Z" else factors / np.sqrt(_lengths(factors))


def off_diagonal_factors(instance: Instance, rank: Rank) -> FloatArray:
    """Return the best factorisation ``F·Fᵀ`` of ``Z`` without its diagonal (line 19, another reading).

    ``Z`` without its diagonal has negative eigenvalues. ``F·Fᵀ`` has none, so that the best one is made of the largest
    positive eigenvalues and their eigenvectors.

    Parameters
    ----------
    instance
        The problem.
    rank
        The largest number of columns of ``F``; at most ``M - 1`` are used. ``full``: all positive eigenvalues.

    Returns
    -------
    array
        ``F``, one row per client.

    Raises
    ------
    InputError
        If the rank is ``full`` and there are more than 1,500 clients.
    """
    from scipy.sparse.linalg import LinearOperator, eigsh

    incidence = _incidence(instance)
    clients, degree = instance.n_clients, instance.topics.sizes.astype(np.float64)
    dense = clients <= DENSE_CLIENTS
    columns = _columns(rank, clients - 1, clients, dense)
    with one_thread():
        if dense:
            values, vectors = np.linalg.eigh((incidence @ incidence.T).toarray() - np.diag(degree))
        else:
            # Z is never formed: the product with a vector is computed from G.
            def product(vector: FloatArray) -> FloatArray:
                column = np.asarray(vector).ravel()
                return np.asarray(incidence @ (incidence.T @ column) - degree * column, np.float64)

            operator = LinearOperator((clients, clients), matvec=product, dtype=np.float64)
            start = np.random.default_rng(0).random(clients)
            values, vectors = eigsh(operator, k=columns, which="LA", v0=start, tol=1e-8)
    order = np.argsort(-values)[:columns]
    return np.ascontiguousarray(vectors[:, order] * np.sqrt(np.maximum(values[order], 0.0)))


def nmf_factors(instance: Instance, rank: Rank, seed: int, factorised: Factorised = "Z") -> FloatArray:
    """Return factors from a non-negative factorisation ``G ≈ W·H`` (line 19 of Algorithm 1, another reading).

    - ``Z``: ``F = W·R``, where ``H·Hᵀ = R·Rᵀ``, so that ``F·Fᵀ ≈ Z``.
    - ``incidence``: ``F = W``, where each column of ``W`` is as long as the row of ``H`` that belongs to it.

    Parameters
    ----------
    instance
        The problem.
    rank
        The number of columns of ``F``; at most ``N - 1`` and at most ``M`` are used. ``full``: the smaller of ``N`` and
        ``M``.
    seed
        The seed of the factorisation.
    factorised
        What is factorised.

    Returns
    -------
    array
        ``F``, one row per client.

    Raises
    ------
    InputError
        If the rank is ``full`` and there are more than 1,500 topics.
    """
    from sklearn.decomposition import NMF
    from sklearn.exceptions import ConvergenceWarning

    most = min(instance.n_topics, instance.n_clients)
    columns = _columns(rank, min(instance.n_topics - 1, most), most, instance.n_topics <= DENSE_TOPICS)
    with one_thread(), warnings.catch_warnings():
        # RELOC only needs approximate scores, so a factorisation that has not fully converged is good enough.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = NMF(columns, init="nndsvda", random_state=seed % LARGEST_SEED, max_iter=500, tol=1e-3)
        weights = model.fit_transform(_incidence(instance))
        topics = model.components_
        if factorised == "incidence":
            return np.ascontiguousarray(weights * np.sqrt(_lengths(topics.T) / _lengths(weights)))
        # R comes from eigenvectors, because a Cholesky factorisation would fail on a singular matrix H·Hᵀ.
        values, vectors = np.linalg.eigh(topics @ topics.T)
        return np.ascontiguousarray(weights @ (vectors * np.sqrt(np.maximum(values, 0.0))))


def _columns(rank: Rank, most: int, full: int, dense: bool) -> int:
    """Return the number of columns of a factorisation."""
    if rank != "full":
        return max(1, min(rank, most))
    if not dense:
        problem = f"full is possible up to {DENSE_TOPICS} topics and clients: give a number, or relation=exact"
        raise InputError("method reloc: rank", problem)
    return full


def _lengths(factors: FloatArray) -> FloatArray:
    """Return the length of each column; 1 for a column of zeros, which may be divided by it."""
    length = np.sqrt((factors * factors).sum(axis=0))
    return np.where(length > 0.0, length, 1.0)


def _incidence(instance: Instance) -> Any:
    """Return ``G`` as a sparse matrix (line 18 of Algorithm 1)."""
    from scipy.sparse import csr_array

    ones = np.ones(len(instance.topics.item))
    return csr_array((ones, instance.topics.item, instance.topics.start), shape=(instance.n_clients, instance.n_topics))


def most_related_by_factors(factors: FloatArray, most: int, ties: TieBreak) -> RelatedClients:
    """Return the most strongly related clients of each client, by a factorisation (line 22 of Algorithm 1).

    Parameters
    ----------
    factors
        The rows of ``F`` of the clients of one cluster. Line 25 of Algorithm 1 skips the clients of other clusters.
    most
        ``M′``, the largest number of related clients to return for each client.
    ties
        The order of clients with equal scores.

    Returns
    -------
    RelatedClients
        For each row the other rows with a positive score, strongest first.
    """
    return RelatedClients(*_top_scores(factors, min(most, max(len(factors) - 1, 0)), ties))


def most_related_exactly(
    topic_start: OffsetArray, topic: npt.NDArray[np.integer[Any]], most: int, ties: TieBreak
) -> RelatedClients:
    """Return the most strongly related clients of each client, by the number of shared topics (line 22, ``Z`` itself).

    Parameters
    ----------
    topic_start, topic
        The topics of each client of one cluster, as a ragged array.
    most
        ``M′``, the largest number of related clients to return for each client.
    ties
        The order of clients with equal scores.

    Returns
    -------
    RelatedClients
        As :func:`most_related_by_factors` returns them.
    """
    _, number = np.unique(topic, return_inverse=True)
    topics = int(number.max(initial=-1)) + 1
    found = _top_counts(topic_start, number.astype(np.int64), topics, min(most, len(topic_start) - 1), ties)
    return RelatedClients(*found)


@compiled
def _tie_key(ties: TieBreak, m: int, r: int, word: npt.NDArray[np.uint64]) -> float:
    """Return the key of client ``r`` among the clients that are equally related to ``m``; the least comes first."""
    if ties.key == BY_DISTANCE:
        dx = ties.x[m] - ties.x[r]
        dy = ties.y[m] - ties.y[r]
        return float(dx * dx + dy * dy)
    word[0] = ties.own[m] ^ ties.other[r]
    return uniform(word)


@compiled
def _top_scores(factors: FloatArray, most: int, ties: TieBreak) -> tuple[OffsetArray, IntArray, IntArray]:
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
    level = np.empty(rows * most if ties.levels else 0, np.int32)
    tile = np.empty(TILE)
    # A heap of the strongest relations so far, with the weakest of them on top, and a place for the next candidate.
    score = np.empty(most + 1, np.int64)
    other = np.empty(most + 1, np.int32)
    # No keys are stored for ties by index, because they would slow the heap down.
    key = np.empty(most + 1 if ties.key != BY_INDEX else 0)
    word = np.empty(1, np.uint64)
    sorted_score = np.empty(most, np.int64)
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
                if len(key) > 0:
                    key[count] = _tie_key(ties, m, order[low + i], word)
                if count < most:
                    count += 1
                    _rise(score, other, key, count - 1)
                elif _weaker(score, other, key, 0, most):
                    _swap(score, other, key, 0, most)
                    _sink(score, other, key, count)
        start[m + 1] = start[m] + count
        # Removing the weakest relation repeatedly fills the list from its end.
        for i in range(count - 1, -1, -1):
            item[start[m] + i] = other[0]
            sorted_score[i] = score[0]
            score[0] = score[i]
            other[0] = other[i]
            if len(key) > 0:
                key[0] = key[i]
            _sink(score, other, key, i)
        if ties.levels:
            current = 0
            for i in range(count):
                if i > 0 and sorted_score[i] < sorted_score[i - 1]:
                    current += 1
                level[start[m] + i] = current
    return start, item[: start[rows]], level[: start[rows]]


@compiled
def _weaker(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, a: int, b: int) -> bool:
    """Return whether relation ``a`` comes after relation ``b``: by score, then by key, then by the higher index."""
    if score[a] != score[b]:
        return bool(score[a] < score[b])
    if len(key) > 0 and key[a] != key[b]:
        return bool(key[a] > key[b])
    return bool(other[a] > other[b])


@compiled
def _swap(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, a: int, b: int) -> None:
    score[a], score[b] = score[b], score[a]
    other[a], other[b] = other[b], other[a]
    if len(key) > 0:
        key[a], key[b] = key[b], key[a]


@compiled
def _rise(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, i: int) -> None:
    """Restore the heap after a new element at place ``i``."""
    while i > 0 and _weaker(score, other, key, i, (i - 1) // 2):
        _swap(score, other, key, i, (i - 1) // 2)
        i = (i - 1) // 2


@compiled
def _sink(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, count: int) -> None:
    """Restore the heap of ``count`` elements after a change at its top."""
    i = 0
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _weaker(score, other, key, child + 1, child):
            child += 1
        if not _weaker(score, other, key, child, i):
            return
        _swap(score, other, key, i, child)
        i = child


@compiled
def _top_counts(
    topic_start: OffsetArray, topic: npt.NDArray[np.int64], topics: int, most: int, ties: TieBreak
) -> tuple[OffsetArray, IntArray, IntArray]:
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
    level = np.empty(16, np.int32)
    key = np.empty(rows if ties.key != BY_INDEX else 0)
    word = np.empty(1, np.uint64)
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
            if ties.levels:
                longer = np.empty(2 * start[m + 1], np.int32)
                longer[: start[m]] = level[: start[m]]
                level = longer
        ordered = np.sort(found[:count])
        if len(key) > 0:
            for i in range(count):
                key[i] = _tie_key(ties, m, ordered[i], word)
            # The sort is stable, so that equal keys go to the lowest index.
            ordered = ordered[np.argsort(key[:count], kind="mergesort")]
        end = start[m]
        for topics_shared in range(largest, 0, -1):
            for r in ordered:
                if shared[r] == topics_shared and end < start[m + 1]:
                    item[end] = r
                    if ties.levels:
                        level[end] = largest - topics_shared
                    end += 1
        for i in range(count):
            shared[found[i]] = 0
    return start, item[: start[rows]], level[: start[rows] if ties.levels else 0]
