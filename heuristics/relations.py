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
from relocbench.heuristics.relations_kernel import AT_RANDOM, BY_DISTANCE, BY_INDEX, TieBreak, top_counts, top_scores
from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.instances.kernels.one_thread import one_thread
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.kernels.random_streams import stream

# Up to this many topics the eigenvectors of ``Gᵀ·G`` are computed with a dense matrix, and up to this many clients
# those of ``Z`` without its diagonal.
DENSE_TOPICS = 1500
DENSE_CLIENTS = 1500


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
        # If the factorisation is exact, sklearn may take the root of a squared error that rounding made negative.
        with np.errstate(invalid="ignore"):
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
    return RelatedClients(*top_scores(factors, min(most, max(len(factors) - 1, 0)), ties))


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
    found = top_counts(topic_start, number.astype(np.int64), topics, min(most, len(topic_start) - 1), ties)
    return RelatedClients(*found)
