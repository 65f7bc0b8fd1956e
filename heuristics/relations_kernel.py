"""The search for the most strongly related clients of each client of a cluster (line 22 of Algorithm 1). Compiled."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from relocbench.instances.kernels.compiled import compiled
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray
from relocbench.instances.kernels.random_numbers import uniform

# Scores are compared to nine decimals, so that scores which are equal in exact arithmetic are ties despite rounding.
SCORE_STEPS = 1e9
# Rows that are scored together: enough for vector instructions, few enough to stop early.
TILE = 128
# Scores of a tile that are compared with the limit together.
SCREEN = 32


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
def top_scores(factors: FloatArray, most: int, ties: TieBreak) -> tuple[OffsetArray, IntArray, IntArray]:
    """Compare each row with the others from the longest to the shortest, and stop when no larger score is possible.

    The inner product of two rows is at most the product of their lengths. With few columns for many topics most rows
    are short, so that each search ends early. Without this rule the work would grow with the square of the rows.

    Parameters
    ----------
    factors
        The rows of ``F`` of the clients of one cluster.
    most
        The largest number of related clients of each client, less than the number of rows.
    ties
        The order of clients with equal scores.

    Returns
    -------
    start, item, level
        The fields of :class:`heuristics.relations.RelatedClients`.
    """
    rows = len(factors)
    length = np.sqrt((factors * factors).sum(axis=1))
    order = np.argsort(-length)
    by_column = _tiles(factors, order)
    start = np.zeros(rows + 1, np.int64)
    item = np.empty(rows * most, np.int32)
    level = np.empty(rows * most if ties.levels else 0, np.int32)
    tile = np.empty(TILE)
    # The strongest relations so far, and a place for the next candidate. Once there are ``most`` they are a heap with
    # the weakest on top.
    score = np.empty(most + 1, np.int64)
    other = np.empty(most + 1, np.int32)
    # No keys are stored for ties by index, because they would slow the heap down.
    key = np.empty(most + 1 if ties.key != BY_INDEX else 0)
    word = np.empty(1, np.uint64)
    sorted_score = np.empty(most, np.int64)
    for m in range(rows):
        count = 0
        # Only a score that is not below the limit can be among the strongest. Scores are positive.
        limit = 1.0
        for t in range(len(by_column) if most > 0 else 0):
            # An upper bound on all further scores, slightly enlarged to cover rounding.
            possible = (length[m] * length[order[t * TILE]] * (1.0 + 1e-12) + 1e-15) * SCORE_STEPS + 0.5
            if possible < limit:
                break
            _score_tile(factors[m], by_column[t], tile)
            for low in range(0, TILE, SCREEN):
                # Most scores are too small. They are passed over with vector instructions.
                candidates = 0
                for i in range(low, low + SCREEN):
                    candidates += tile[i] * SCORE_STEPS + 0.5 >= limit
                for i in range(low, low + SCREEN if candidates > 0 else low):
                    step = np.floor(tile[i] * SCORE_STEPS + 0.5)
                    if step < limit or order[t * TILE + i] == m:
                        continue
                    score[count] = np.int64(step)
                    other[count] = order[t * TILE + i]
                    if len(key) > 0:
                        key[count] = _tie_key(ties, m, order[t * TILE + i], word)
                    if count < most:
                        count += 1
                        if count == most:
                            _make_heap(score, other, key, count)
                            limit = float(score[0])
                    elif _weaker(score, other, key, 0, most):
                        _swap(score, other, key, 0, most)
                        _sink(score, other, key, count)
                        limit = float(score[0])
        if count < most:
            _make_heap(score, other, key, count)
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
def _tiles(factors: FloatArray, order: npt.NDArray[np.int64]) -> FloatArray:
    """Return the rows in the given order, in tiles of ``TILE`` rows that are stored by column.

    Rows of zeros fill the last tile. Their scores are 0, and so they are related to nobody.
    """
    rows, columns = factors.shape
    tiles = np.zeros(((rows + TILE - 1) // TILE, columns, TILE))
    for i in range(rows):
        for c in range(columns):
            tiles[i // TILE, c, i % TILE] = factors[order[i], c]
    return tiles


@compiled
def _score_tile(row: FloatArray, by_column: FloatArray, score: FloatArray) -> None:
    """Compute the inner products of a row with the rows of a tile.

    The inner loops run over the rows of the tile, because the compiler can then use vector instructions. Each sum is
    computed in the order of the columns, so that four columns at a time change no bit of it.
    """
    columns = len(row)
    score[:] = 0.0
    whole = columns - columns % 4
    for c in range(0, whole, 4):
        a, b, d, e = row[c], row[c + 1], row[c + 2], row[c + 3]
        for i in range(TILE):
            score[i] = (
                score[i]
                + a * by_column[c, i]
                + b * by_column[c + 1, i]
                + d * by_column[c + 2, i]
                + e * by_column[c + 3, i]
            )
    for c in range(whole, columns):
        a = row[c]
        for i in range(TILE):
            score[i] += a * by_column[c, i]


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
def _make_heap(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, count: int) -> None:
    """Arrange the first elements as a heap with the weakest relation on top."""
    for top in range(count // 2 - 1, -1, -1):
        _sink(score, other, key, count, top)


@compiled
def _sink(score: npt.NDArray[np.int64], other: IntArray, key: FloatArray, count: int, i: int = 0) -> None:
    """Restore the heap of ``count`` elements after a change at its place ``i``."""
    while 2 * i + 1 < count:
        child = 2 * i + 1
        if child + 1 < count and _weaker(score, other, key, child + 1, child):
            child += 1
        if not _weaker(score, other, key, child, i):
            return
        _swap(score, other, key, i, child)
        i = child


@compiled
def top_counts(
    topic_start: OffsetArray, topic: npt.NDArray[np.int64], topics: int, most: int, ties: TieBreak
) -> tuple[OffsetArray, IntArray, IntArray]:
    """Count the shared topics of each client with the others, and return the others with the largest counts.

    Parameters
    ----------
    topic_start, topic
        The topics of each client, numbered from 0, as a ragged array.
    topics
        The number of topics.
    most
        The largest number of related clients of each client.
    ties
        The order of clients with equal counts.

    Returns
    -------
    start, item, level
        The fields of :class:`heuristics.relations.RelatedClients`.
    """
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
