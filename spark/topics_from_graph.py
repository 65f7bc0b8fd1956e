"""Topics from a follower graph: one topic for each follower, whose members are the follower and its followees.

The rules are those of :mod:`instances.generators.topics_from_graph`, except where those depend on the order of drawing.
docs/scale.md describes the difference.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.kernels.id_hash import IdArray, hash_ids
from relocbench.spark.blocks import BLOCK_SCHEMA, pack, unpack
from relocbench.spark.checkpoints import run_once, write_dataset
from relocbench.spark.edge_list import EdgeList, find_edges, read_pieces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS_SCHEMA = "topic bigint, members array<bigint>"
# Bytes of text per block: about a million edges, which a task sorts in 100 MB.
BLOCK_BYTES = 16 << 20
MAX_BLOCKS = 4096
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
    spark: "SparkSession", source: str, out: Path, filters: Filters, max_bad: float = 0.01
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
    inputs = {"paths": edges.paths, "sizes": edges.sizes, "max_bad": max_bad, **asdict(filters)}
    if not filters.undirected:
        del inputs["undirected"]  # records of earlier versions do not have it
    return run_once(out, inputs, lambda: _write_topics(spark, edges, out, filters, max_bad))


def _write_topics(
    spark: "SparkSession", edges: EdgeList, out: Path, filters: Filters, max_bad: float
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
    write_dataset(filtered_topics(pairs, filters, block_count(edges)), all_topics)
    lines, bad, example = totals.get["lines"] or 0, totals.get["bad"] or 0, totals.get["example"]
    source = edges.paths[0] if len(edges.paths) == 1 else str(Path(edges.paths[0]).parent)
    if bad > max_bad * lines:
        shutil.rmtree(all_topics)
        problem = f"expected lines `follower<TAB>followee`, {bad:,} of {lines:,} are not, such as {example}"
        raise InputError(source, problem)
    if filters.topics:
        write_dataset(draw_topics(spark.read.parquet(str(all_topics.resolve())), filters), out / "topics")
        shutil.rmtree(all_topics)
    topics, members, largest = (
        spark.read.parquet(str((out / "topics").resolve()))
        .selectExpr("count(*)", "sum(size(members))", "max(size(members))")
        .collect()[0]
    )
    if not topics:
        shutil.rmtree(out / "topics")
        raise InputError(source, f"expected followers with {filters.min_size} to {filters.max_size} members, got none")
    return {
        "lines": lines,
        "bad_lines": bad,
        "bad_example": example,
        "topics": topics,
        "memberships": members,
        "largest": largest,
    }


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


def filtered_topics(pairs: "DataFrame", filters: Filters, n_blocks: int) -> "DataFrame":
    """Convert edges into topics and apply all filters except the draw.

    Parameters
    ----------
    pairs
        Edges in blocks by follower.
    filters
        Which topics are kept.
    n_blocks
        The number of blocks.

    Returns
    -------
    pyspark.sql.DataFrame
        Columns ``topic`` and ``members``.
    """
    if not filters.max_topics_per_client:
        return pairs.groupBy("block").applyInArrow(_topics_of_followers(filters), TOPICS_SCHEMA)
    by_client = pairs.groupBy("block").applyInArrow(_memberships_by_client(filters, n_blocks), BLOCK_SCHEMA)
    by_topic = by_client.groupBy("block").applyInArrow(_lowest_topics(filters, n_blocks), BLOCK_SCHEMA)
    return by_topic.groupBy("block").applyInArrow(_topics_of_memberships(filters), TOPICS_SCHEMA)


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


def _follower_topics(table: pa.Table, filters: Filters) -> tuple[IdArray, IdArray, npt.NDArray[np.bool_], IdArray]:
    """Return the followers of a block, their members, whether the size of each topic is permitted, and the sizes."""
    follower, start, member = FollowerGraph(*unpack(table["payload"])).rows
    size = np.diff(start)
    return follower, member, (size >= filters.min_size) & (size <= filters.max_size), size


def _topics_of_followers(filters: Filters) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that makes topics of the edges of a block."""

    def collect(table: pa.Table) -> pa.Table:
        follower, member, permitted, size = _follower_topics(table, filters)
        return _topic_table(follower[permitted], size[permitted], member[np.repeat(permitted, size)])

    return collect


def _memberships_by_client(filters: Filters, n_blocks: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that packs the memberships of a block's topics into blocks by client."""

    def regroup(table: pa.Table) -> pa.Table:
        follower, member, permitted, size = _follower_topics(table, filters)
        entry = np.repeat(permitted, size)
        return pa.Table.from_batches([pack(n_blocks, member[entry], np.repeat(follower, size)[entry])])

    return regroup


def _lowest_topics(filters: Filters, n_blocks: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that limits the topics of each client and packs the rest by topic."""

    def limit(table: pa.Table) -> pa.Table:
        client, topic = unpack(table["payload"])
        order = np.lexsort((topic, client))
        client, topic = client[order], topic[order]
        begins = np.flatnonzero(np.append(True, client[1:] != client[:-1])[: len(client)])
        rank = np.arange(len(client)) - np.repeat(begins, np.diff(begins, append=len(client)))
        kept = rank < filters.max_topics_per_client
        return pa.Table.from_batches([pack(n_blocks, topic[kept], client[kept])])

    return limit


def _topics_of_memberships(filters: Filters) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that makes topics of the memberships of a block."""

    def collect(table: pa.Table) -> pa.Table:
        topic, member = unpack(table["payload"])
        # The follower, whose id is the id of the topic, is the first member.
        order = np.lexsort((member, member != topic, topic))
        topic, member = topic[order], member[order]
        ids, size = np.unique(topic, return_counts=True)
        permitted = size >= filters.min_size
        return _topic_table(ids[permitted], size[permitted], member[np.repeat(permitted, size)])

    return collect


def _topic_table(topic: IdArray, size: IdArray, member: IdArray) -> pa.Table:
    start = np.append(0, np.cumsum(size)).astype(np.int32)
    members = pa.ListArray.from_arrays(pa.array(start), pa.array(member, pa.int64()))
    return pa.table({"topic": pa.array(topic, pa.int64()), "members": members})
