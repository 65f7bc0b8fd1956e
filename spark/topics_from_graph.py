"""Topics from a follower graph: one topic for each follower, whose members are the follower and its followees.

The rules are those of :mod:`instances.generators.topics_from_graph`, except where those depend on the order of drawing.
docs/scale.md describes the difference.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.files.edge_list import edge_of
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.checkpoints import read_dataset, run_once, write_dataset
from relocbench.spark.dropped import (
    LEFT_TOO_SMALL,
    NOT_DRAWN,
    OVER_LIMIT,
    REPEATED,
    TOO_LARGE,
    TOO_SMALL,
    Drop,
    DropCounts,
)
from relocbench.spark.edge_list import EdgeList, find_edges, read_pieces
from relocbench.spark.locations import Location, relative_to, remove

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS_SCHEMA = "topic bigint, members array<bigint>"
# Bytes of text per block: about a million edges, which a task sorts in 100 MB.
BLOCK_BYTES = 16 << 20
MAX_BLOCKS = 4096
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
    """

    min_size: int = 2
    max_size: int = 21
    max_topics_per_client: int = 4
    topics: int = 0
    seed: int = 0
    undirected: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size:
            raise InputError("--min-size", f"expected 1 to {self.max_size}, got {self.min_size}")


def arrange(
    spark: "SparkSession", source: str | Location, out: Location, filters: Filters, max_bad: float = 0.01
) -> tuple[dict[str, Any], bool]:
    """Convert an edge list into the dataset ``out/topics``.

    Parameters
    ----------
    spark
        The session.
    source
        A file of edges, a folder of such files, or a pattern.
    out
        The folder to write to.
    filters
        Which topics are kept.
    max_bad
        The largest permitted share of lines that are neither edges nor comments.

    Returns
    -------
    record
        The inputs, and the numbers of lines, bad lines, topics and memberships.
    existed
        Whether the dataset had been written by an earlier call.

    Raises
    ------
    InputError
        If there are too many bad lines, no topic remains, or ``out`` was written with other inputs.
    """
    edges = find_edges(source)
    edges.require_text()
    options = {"max_bad": max_bad, **asdict(filters)}
    if not filters.undirected:
        del options["undirected"]  # records of earlier versions do not have it
    return run_once(
        out,
        {**edges.identity, **options},
        lambda: _write_topics(spark, edges, out, filters, max_bad),
        earlier_form={"paths": edges.paths, "sizes": edges.sizes, **options},
    )


def _third_column(example: str) -> str:
    """Return what to do about a bad line that has further columns, such as a role or a weight."""
    words = example.replace("\\t", " ").replace(",", " ").strip("'\"").split()
    if len(words) < 3 or edge_of(" ".join(words[:2])) is None:
        return ""
    problem = "further columns, such as roles or weights, are not supported (every member publishes and subscribes)"
    return f"; {problem}: remove them"


def _write_topics(
    spark: "SparkSession", edges: EdgeList, out: Location, filters: Filters, max_bad: float
) -> dict[str, Any]:
    """Write the dataset of topics and return the entries of the record."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    # An observation sums the counts while the edges are read, without a second pass over the files.
    totals = Observation()
    pairs = read_edges(spark, edges, filters.undirected).observe(
        totals, sql.sum("lines").alias("lines"), sql.sum("bad").alias("bad"), sql.min("example").alias("example")
    )
    pairs = pairs.where("block is not null").select("block", "payload")
    all_topics = out / ("candidates" if filters.topics else "topics")
    counts = DropCounts()
    write_dataset(filtered_topics(pairs, filters, block_count(edges), counts), all_topics)
    lines, bad, example = totals.get["lines"] or 0, totals.get["bad"] or 0, totals.get["example"]
    if bad > max_bad * lines:
        remove(all_topics)
        problem = f"expected lines `follower<TAB>followee`, {bad:,} of {lines:,} are not, such as {example}"
        raise InputError(str(edges.source), problem + _third_column(example))
    before = _sizes(spark, all_topics)
    dropped = counts.totals()
    followers = dropped[REPEATED].pop("topics")
    if filters.max_topics_per_client:
        # A topic that loses all its members leaves no row that a task could count.
        permitted = followers - dropped[TOO_SMALL]["topics"] - dropped[TOO_LARGE]["topics"]
        dropped[LEFT_TOO_SMALL]["topics"] = permitted - before[0]
        del dropped[OVER_LIMIT]["topics"]
    if filters.topics:
        write_dataset(draw_topics(read_dataset(spark, all_topics), filters), out / "topics")
        remove(all_topics)
    topics, members, largest = _sizes(spark, out / "topics")
    if not topics:
        remove(out / "topics")
        problem = f"expected followers with {filters.min_size} to {filters.max_size} members, got none"
        raise InputError(str(edges.source), problem)
    dropped[NOT_DRAWN] = {"topics": before[0] - topics, "memberships": before[1] - members}
    return {
        "source": relative_to(edges.source, out),
        "lines": lines,
        "bad_lines": bad,
        "bad_example": example,
        "topics": topics,
        "memberships": members,
        "largest": largest,
        "followers": followers,
        "dropped": dropped,
    }


def _sizes(spark: "SparkSession", folder: Location) -> tuple[int, int, int]:
    """Return the number of topics in a dataset, the number of memberships, and the largest number of members."""
    columns = ("count(*)", "sum(size(members))", "max(size(members))")
    topics, members, largest = read_dataset(spark, folder).selectExpr(*columns).collect()[0]
    return topics, members or 0, largest or 0


def block_count(edges: EdgeList) -> int:
    """Choose the number of blocks of edges. It depends on the files only.

    Parameters
    ----------
    edges
        The files.

    Returns
    -------
    int
        The number of blocks.
    """
    return min(MAX_BLOCKS, max(8, -(-edges.text_bytes // BLOCK_BYTES)))


def read_edges(spark: "SparkSession", edges: EdgeList, undirected: bool = False) -> "DataFrame":
    """Read the edges and pack them into blocks by follower.

    Parameters
    ----------
    spark
        The session.
    edges
        The files.
    undirected
        As for :class:`Filters`.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows with ``block`` and ``payload``, or else with ``lines``, ``bad`` and ``example``: the number of lines
        of a text, the number of bad lines, and one of the bad lines.
    """
    n_blocks = block_count(edges)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for text in read_pieces(batches):
            follower, followee = text.follower, text.followee
            if undirected:
                follower, followee = np.concatenate([follower, followee]), np.concatenate([followee, follower])
            packed = pack(n_blocks, follower, followee)
            counts = pa.record_batch(
                [
                    pa.array([None], pa.int32()),
                    pa.array([None], pa.binary()),
                    pa.array([len(text.follower) + text.bad], pa.int64()),
                    pa.array([text.bad], pa.int64()),
                    pa.array([text.example or None], pa.string()),
                ],
                names=["block", "payload", "lines", "bad", "example"],
            )
            yield counts
            yield pa.record_batch(
                [*packed.columns, *(pa.nulls(len(packed), kind) for kind in (pa.int64(), pa.int64(), pa.string()))],
                names=counts.schema.names,
            )

    return edges.frame(spark).mapInArrow(read, f"{BLOCK_SCHEMA}, lines bigint, bad bigint, example string")


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
        Columns ``topic`` and ``members``.
    """
    counts = counts or DropCounts()
    of_sizes = (REPEATED, TOO_SMALL, TOO_LARGE)
    if not filters.max_topics_per_client:
        return counts.group(pairs, TOPICS_SCHEMA, of_sizes, _topics_of_followers(filters))
    by_client = counts.group(pairs, BLOCK_SCHEMA, of_sizes, _memberships_by_client(filters, n_blocks))
    by_topic = counts.group(by_client, BLOCK_SCHEMA, (OVER_LIMIT,), _lowest_topics(filters, n_blocks))
    return counts.group(by_topic, TOPICS_SCHEMA, (LEFT_TOO_SMALL,), _topics_of_memberships(filters))


def draw_topics(topics: "DataFrame", filters: Filters) -> "DataFrame":
    """Draw topics: those with the lowest 64-bit hashes of their ids, salted with the seed.

    The largest hash that is taken is found by counting. First the topics are counted by the leading 16 bits of their
    hashes. Then only the hashes with the leading bits of the last drawn topic are sorted.

    Parameters
    ----------
    topics
        Columns ``topic`` and ``members``.
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

    hashed = topics.mapInArrow(_with_hash(filters.seed), f"{TOPICS_SCHEMA}, hash bigint")
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


def _follower_topics(
    table: pa.Table, filters: Filters
) -> tuple[IdArray, IdArray, npt.NDArray[np.bool_], IdArray, list[Drop]]:
    """Return followers and members of a block, whether each topic's size is permitted, the sizes, and what is dropped.

    The count of topics of the rule ``REPEATED`` is the number of followers, whose topics the other rules may drop.
    """
    pairs = unpack(table["payload"])
    follower, start, member = FollowerGraph(*pairs).rows
    size = np.diff(start)
    small, large = size < filters.min_size, size > filters.max_size
    drops = [
        (REPEATED, len(follower), pairs.shape[1] - int(size.sum()) + len(follower)),
        (TOO_SMALL, int(small.sum()), int(size[small].sum())),
        (TOO_LARGE, int(large.sum()), int(size[large].sum())),
    ]
    return follower, member, ~(small | large), size, drops


def _topics_of_followers(filters: Filters) -> Counted:
    """Return a function for :class:`DropCounts` that makes topics of the edges of a block."""

    def collect(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        follower, member, permitted, size, drops = _follower_topics(table, filters)
        return _topic_table(follower[permitted], size[permitted], member[np.repeat(permitted, size)]), drops

    return collect


def _memberships_by_client(filters: Filters, n_blocks: int) -> Counted:
    """Return a function for :class:`DropCounts` that packs the memberships of topics into blocks by client."""

    def regroup(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        follower, member, permitted, size, drops = _follower_topics(table, filters)
        entry = np.repeat(permitted, size)
        return pa.Table.from_batches([pack(n_blocks, member[entry], np.repeat(follower, size)[entry])]), drops

    return regroup


def _lowest_topics(filters: Filters, n_blocks: int) -> Counted:
    """Return a function for :class:`DropCounts` that limits the topics of each client and packs the rest by topic."""

    def limit(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        client, topic = unpack(table["payload"])
        order = np.lexsort((topic, client))
        client, topic = client[order], topic[order]
        begins = np.flatnonzero(np.append(True, client[1:] != client[:-1])[: len(client)])
        rank = np.arange(len(client)) - np.repeat(begins, np.diff(begins, append=len(client)))
        kept = rank < filters.max_topics_per_client
        drops = [(OVER_LIMIT, 0, int((~kept).sum()))]
        return pa.Table.from_batches([pack(n_blocks, topic[kept], client[kept])]), drops

    return limit


def _topics_of_memberships(filters: Filters) -> Counted:
    """Return a function for :class:`DropCounts` that makes topics of the memberships of a block."""

    def collect(table: pa.Table) -> tuple[pa.Table, list[Drop]]:
        topic, member = unpack(table["payload"])
        # The follower, whose id is the id of the topic, is the first member.
        order = np.lexsort((member, member != topic, topic))
        topic, member = topic[order], member[order]
        ids, size = np.unique(topic, return_counts=True)
        permitted = size >= filters.min_size
        drops = [(LEFT_TOO_SMALL, int((~permitted).sum()), int(size[~permitted].sum()))]
        return _topic_table(ids[permitted], size[permitted], member[np.repeat(permitted, size)]), drops

    return collect


def _topic_table(topic: IdArray, size: IdArray, member: IdArray) -> pa.Table:
    start = np.append(0, np.cumsum(size)).astype(np.int32)
    members = pa.ListArray.from_arrays(pa.array(start), pa.array(member, pa.int64()))
    return pa.table({"topic": pa.array(topic, pa.int64()), "members": members})
