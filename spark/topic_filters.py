"""The filters of topics, and the tasks that apply them to blocks of edges and memberships."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.dropped import LEFT_TOO_SMALL, OVER_LIMIT, REPEATED, TOO_LARGE, TOO_SMALL, Drop, DropCounts
from relocbench.spark.membership_roles import distinct_memberships, member_order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPICS_SCHEMA = "topic bigint, members array<bigint>"
ROLES_SCHEMA = f"{TOPICS_SCHEMA}, roles array<tinyint>"
# A function for :class:`DropCounts`.
Counted = Callable[[pa.Table], tuple[pa.Table, list[Drop]]]
# Salt of the hash that decides which topics are drawn. Independent draws need different salts.
DRAW_SALT = 1


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Filters of topics, applied in this order. The defaults are those of the family ``paper``.

    Attributes
    ----------
    min_size, max_size
        The number of members that a topic must have.
    max_topics_per_client
        A client stays in this many topics, those with the lowest ids, and is removed from the others. A topic that has
        fewer than ``min_size`` members afterwards is dropped. 0: no limit.
    topics
        The number of topics to draw from the remaining ones. 0: keep all.
    seed
        The seed of the draw.
    undirected
        Whether each line of the edge list means that both users follow each other.
    roles
        Whether the third column of the edge list is a role. Otherwise every member publishes and subscribes.
    """

    min_size: int = 2
    max_size: int = 21
    max_topics_per_client: int = 4
    topics: int = 0
    seed: int = 0
    undirected: bool = False
    roles: bool = False

    def __post_init__(self) -> None:
        if self.undirected and self.roles:
            raise InputError("--roles", "cannot be combined with --undirected: a line has the role of one user only")
        if not 1 <= self.min_size <= self.max_size:
            raise InputError("--min-size", f"expected 1 to {self.max_size}, got {self.min_size}")

    @property
    def schema(self) -> str:
        """The schema of the dataset of topics."""
        return ROLES_SCHEMA if self.roles else TOPICS_SCHEMA

    @property
    def columns(self) -> int:
        """The number of columns of a block of edges or memberships: two ids, and the role if there are roles."""
        return 3 if self.roles else 2


def filtered_topics(
    pairs: "DataFrame", filters: Filters, n_blocks: int, counts: DropCounts | None = None
) -> "DataFrame":
    """Convert edges into topics and apply all filters except the draw.

    Parameters
    ----------
    pairs
        Edges in blocks by follower.
    filters
        Which topics are kept.
    n_blocks
        The number of blocks.
    counts
        Gets the numbers of topics and memberships that each filter drops.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``topic`` and ``members``, and with roles ``roles``: that of each member.
    """
    counts = counts or DropCounts()
    of_sizes = (REPEATED, TOO_SMALL, TOO_LARGE)
    if not filters.max_topics_per_client:
        return counts.group(pairs, filters.schema, of_sizes, _topics_of_followers(filters))
    by_client = counts.group(pairs, BLOCK_SCHEMA, of_sizes, _memberships_by_client(filters, n_blocks))
    by_topic = counts.group(by_client, BLOCK_SCHEMA, (OVER_LIMIT,), _lowest_topics(filters, n_blocks))
    return counts.group(by_topic, filters.schema, (LEFT_TOO_SMALL,), _topics_of_memberships(filters))


def draw_topics(topics: "DataFrame", filters: Filters) -> "DataFrame":
    """Draw topics: those with the lowest 64-bit hashes of their ids, salted with the seed.

    The largest hash that is taken is found by counting. First the topics are counted by the leading 16 bits of their
    hashes. Then only the hashes with the leading bits of the last drawn topic are sorted.

    Parameters
    ----------
    topics
        The columns of :func:`filtered_topics`.
    filters
        How many topics to draw, and the seed.

    Returns
    -------
    pyspark.sql.DataFrame
        The drawn topics.

    Raises
    ------
    InputError
        If there are fewer topics.
    """
    from pyspark.sql import functions as sql

    hashed = topics.mapInArrow(_with_hash(filters.seed), f"{filters.schema}, hash bigint")
    hashes = hashed.select("hash")
    leading = sql.shiftright("hash", 48)
    counts = dict(sorted((row[0], row[1]) for row in hashes.groupBy(leading).count().collect()))
    total = sum(counts.values())
    if total < filters.topics:
        raise InputError("--topics", f"expected at most {total}, the topics that are left, got {filters.topics}")
    cumulative = np.cumsum(list(counts.values()))
    index = int(np.searchsorted(cumulative, filters.topics))
    last = list(counts)[index]
    remaining = filters.topics - int(cumulative[index]) + counts[last]
    candidates = sorted(row[0] for row in hashes.where(leading == sql.lit(last)).collect())
    return hashed.where(sql.col("hash") <= candidates[remaining - 1]).drop("hash")


def _with_hash(seed: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topic = batch.column(0).to_numpy(zero_copy_only=False)
            hashes = hash_ids(topic, 2 * seed + DRAW_SALT).view(np.int64)
            yield pa.record_batch([*batch.columns, pa.array(hashes)], names=[*batch.schema.names, "hash"])

    return add


@dataclass(frozen=True, eq=False)
class _Rows:
    """The topics of the followers of a block: members and their roles, one topic after the other."""

    follower: IdArray
    size: IdArray
    permitted: npt.NDArray[np.bool_]
    member: IdArray
    role: list[IdArray]  # one array, or none where there are no roles
    drops: list[Drop]


def _follower_topics(table: pa.Table, filters: Filters) -> _Rows:
    """Return the topics of a block, whether each topic's size is permitted, and what is dropped.

    The count of topics of the rule ``REPEATED`` is the number of followers, whose topics the other rules may drop.
    """
    edges = unpack(table["payload"], filters.columns)
    role: list[IdArray] = []
    if filters.roles:
        topic, member, roles = distinct_memberships(*edges)
        follower, size = np.unique(topic, return_counts=True)
        role = [roles]
    else:
        follower, start, member = FollowerGraph(*edges).rows
        size = np.diff(start)
    small, large = size < filters.min_size, size > filters.max_size
    drops = [
        (REPEATED, len(follower), edges.shape[1] - int(size.sum()) + len(follower)),
        (TOO_SMALL, int(small.sum()), int(size[small].sum())),
        (TOO_LARGE, int(large.sum()), int(size[large].sum())),
    ]
    return _Rows(follower, size, ~(small | large), member, role, drops)


def _topics_of_followers(filters: Filters) -> Counted:
    """Return a function for :class:`DropCounts` that makes topics of the edges of a block."""

    def collect(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        rows = _follower_topics(table, filters)
        return _topic_table(rows.follower, rows.size, rows.permitted, rows.member, *rows.role), rows.drops

    return collect


def _memberships_by_client(filters: Filters, n_blocks: int) -> Counted:
    """Return a function for :class:`DropCounts` that packs the memberships of topics into blocks by client."""

    def regroup(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        rows = _follower_topics(table, filters)
        entry = np.repeat(rows.permitted, rows.size)
        columns = (np.repeat(rows.follower, rows.size), *rows.role)
        packed = pack(n_blocks, rows.member[entry], *(column[entry] for column in columns))
        return pa.Table.from_batches([packed]), rows.drops

    return regroup


def _lowest_topics(filters: Filters, n_blocks: int) -> Counted:
    """Return a function for :class:`DropCounts` that limits the topics of each client and packs the rest by topic."""

    def limit(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        client, topic, *role = unpack(table["payload"], filters.columns)
        order = np.lexsort((topic, client))
        client, topic, *role = (column[order] for column in (client, topic, *role))
        begins = np.flatnonzero(np.append(True, client[1:] != client[:-1])[: len(client)])
        rank = np.arange(len(client)) - np.repeat(begins, np.diff(begins, append=len(client)))
        kept = rank < filters.max_topics_per_client
        drops = [(OVER_LIMIT, 0, int((~kept).sum()))]
        packed = pack(n_blocks, topic[kept], client[kept], *(column[kept] for column in role))
        return pa.Table.from_batches([packed]), drops

    return limit


def _topics_of_memberships(filters: Filters) -> Counted:
    """Return a function for :class:`DropCounts` that makes topics of the memberships of a block."""

    def collect(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        topic, member, *role = unpack(table["payload"], filters.columns)
        order = member_order(topic, member, *role)
        topic, member, *role = (column[order] for column in (topic, member, *role))
        ids, size = np.unique(topic, return_counts=True)
        permitted = size >= filters.min_size
        drops = [(LEFT_TOO_SMALL, int((~permitted).sum()), int(size[~permitted].sum()))]
        return _topic_table(ids, size, permitted, member, *role), drops

    return collect


def _topic_table(
    topic: IdArray, size: IdArray, permitted: npt.NDArray[np.bool_], member: IdArray, *role: IdArray
) -> pa.Table:
    """Return the permitted ones of the given topics."""
    entry, size = np.repeat(permitted, size), size[permitted]
    start = pa.array(np.append(0, np.cumsum(size)).astype(np.int32))
    columns = {"topic": pa.array(topic[permitted], pa.int64())}
    columns["members"] = pa.ListArray.from_arrays(start, pa.array(member[entry], pa.int64()))
    for one in role:
        columns["roles"] = pa.ListArray.from_arrays(start, pa.array(one[entry].astype(np.int8)))
    return pa.table(columns)
