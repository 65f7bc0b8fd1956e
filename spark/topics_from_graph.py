"""A follower graph arranged as topics: one row for each follower, with itself and its followees.

The rules are those of :mod:`instances.generators.topics_from_graph` where these do not depend on an order of drawing:
docs/scale.md.
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
from relocbench.instances.files.edge_list import IdArray
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.spark.blocks import SCHEMA, mixed, packed, unpacked
from relocbench.spark.checkpoints import once, write_step
from relocbench.spark.edge_list import EdgeList, find_edges, read_pieces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TOPICS = "topic bigint, members array<bigint>"
# As many bytes of text make a block: some million edges, which a task sorts in 100 MB.
BLOCK_BYTES = 16 << 20
LARGEST_BLOCKS = 4096
# Different ones for what is drawn independently.
DRAW = 1


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Which topics are kept, in this order; the defaults are those of the paper's family.

    Attributes
    ----------
    min_size, max_size
        How many members a follower's row must have.
    max_topics_per_client
        A client stays in so many topics, those with the lowest ids, and is left out of the others; a topic that this
        leaves with fewer than ``min_size`` members is dropped. 0: no limit.
    topics
        So many of what remains, drawn by the seed; 0: all.
    seed
        Decides which topics are drawn.
    """

    min_size: int = 2
    max_size: int = 21
    max_topics_per_client: int = 4
    topics: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.min_size <= self.max_size:
            raise InputError("--min-size", f"expected 1 to {self.max_size}, got {self.min_size}")


def arrange(
    spark: "SparkSession", source: str, out: Path, filters: Filters, max_bad: float = 0.01
) -> tuple[dict[str, Any], bool]:
    """Arrange an edge list and write ``out/topics``; return what was found, and whether it was there already.

    Parameters
    ----------
    spark
        The session.
    source
        A file of edges, a folder of such files, or a pattern.
    out
        Folder to write to.
    filters
        Which topics are kept.
    max_bad
        How large a share of the lines may be neither edges nor comments.
    """
    edges = find_edges(source)
    asked = {"paths": edges.paths, "sizes": edges.sizes, "max_bad": max_bad, **asdict(filters)}
    return once(out, asked, lambda: _make(spark, edges, out, filters, max_bad))


def _make(spark: "SparkSession", edges: EdgeList, out: Path, filters: Filters, max_bad: float) -> dict[str, Any]:
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    seen = Observation()
    pairs = read_edges(spark, edges).observe(
        seen, sql.sum("lines").alias("lines"), sql.sum("bad").alias("bad"), sql.min("example").alias("example")
    )
    pairs = pairs.where("block is not null").select("block", "payload")
    everything = out / ("candidates" if filters.topics else "topics")
    write_step(arranged(pairs, filters, blocks_for(edges)), everything)
    lines, bad = seen.get["lines"] or 0, seen.get["bad"] or 0
    source = edges.paths[0] if len(edges.paths) == 1 else str(Path(edges.paths[0]).parent)
    if bad > max_bad * lines:
        shutil.rmtree(everything)
        problem = f"expected lines `follower<TAB>followee`, {bad:,} of {lines:,} are not, such as {seen.get['example']}"
        raise InputError(source, problem)
    if filters.topics:
        write_step(drawn(spark.read.parquet(str(everything.resolve())), filters), out / "topics")
        shutil.rmtree(everything)
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
        "bad_example": seen.get["example"],
        "topics": topics,
        "memberships": members,
        "largest": largest,
    }


def blocks_for(edges: EdgeList) -> int:
    """Return how many blocks the edges are dealt into: it depends on the files alone."""
    return min(LARGEST_BLOCKS, max(8, -(-edges.text_bytes // BLOCK_BYTES)))


def read_edges(spark: "SparkSession", edges: EdgeList) -> "DataFrame":
    """Return the edges in blocks by follower, with how many lines were read and how many of them are bad."""
    blocks = blocks_for(edges)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for text in read_pieces(batches):
            made = packed(blocks, text.follower, text.followee)
            # The counts stand in a record of their own, which has no block.
            count = len(text.follower) + text.bad
            note = pa.record_batch(
                [
                    pa.array([None], pa.int32()),
                    pa.array([None], pa.binary()),
                    pa.array([count], pa.int64()),
                    pa.array([text.bad], pa.int64()),
                    pa.array([text.example or None], pa.string()),
                ],
                names=["block", "payload", "lines", "bad", "example"],
            )
            yield note
            yield pa.record_batch(
                [*made.columns, *(pa.nulls(len(made), kind) for kind in (pa.int64(), pa.int64(), pa.string()))],
                names=note.schema.names,
            )

    return edges.frame(spark).mapInArrow(read, f"{SCHEMA}, lines bigint, bad bigint, example string")


def arranged(pairs: "DataFrame", filters: Filters, blocks: int) -> "DataFrame":
    """Return the topics that the edges make, all filters but the last applied.

    Parameters
    ----------
    pairs
        Edges in blocks by follower.
    filters
        Which topics are kept.
    blocks
        How many blocks there are.
    """
    if not filters.max_topics_per_client:
        return pairs.groupBy("block").applyInArrow(_rows_of(filters), TOPICS)
    by_client = pairs.groupBy("block").applyInArrow(_memberships_of(filters, blocks), SCHEMA)
    by_topic = by_client.groupBy("block").applyInArrow(_first_topics(filters, blocks), SCHEMA)
    return by_topic.groupBy("block").applyInArrow(_topics_again(filters), TOPICS)


def drawn(topics: "DataFrame", filters: Filters) -> "DataFrame":
    """Return as many topics as the filters ask for: those with the lowest of 64 bits that the seed gives each.

    Which bits are the last to be taken is found by counting: first how many topics begin with which 16 bits, then
    exactly among those that begin like the last.
    """
    from pyspark.sql import functions as sql

    numbered = topics.mapInArrow(_with_lot(filters.seed), f"{TOPICS}, lot bigint")
    lots = numbered.select("lot")
    leading = sql.shiftright("lot", 48)
    counts = dict(sorted((row[0], row[1]) for row in lots.groupBy(leading).count().collect()))
    total = sum(counts.values())
    if total < filters.topics:
        raise InputError("--topics", f"expected at most {total}, the topics that are left, got {filters.topics}")
    reached = np.cumsum(list(counts.values()))
    at = int(np.searchsorted(reached, filters.topics))
    last = list(counts)[at]
    missing = filters.topics - int(reached[at]) + counts[last]
    among = sorted(row[0] for row in lots.where(leading == sql.lit(last)).collect())
    return numbered.where(sql.col("lot") <= among[missing - 1]).drop("lot")


def _with_lot(seed: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def add(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            topic = batch.column(0).to_numpy(zero_copy_only=False)
            lot = mixed(topic, 2 * seed + DRAW).view(np.int64)
            yield pa.record_batch([*batch.columns, pa.array(lot)], names=[*batch.schema.names, "lot"])

    return add


def _graph_rows(table: pa.Table, filters: Filters) -> tuple[IdArray, IdArray, npt.NDArray[np.bool_], IdArray]:
    """Return the rows of a block's followers, and which of them have a proper size."""
    follower, start, member = FollowerGraph(*unpacked(table["payload"])).rows
    size = np.diff(start)
    return follower, member, (size >= filters.min_size) & (size <= filters.max_size), size


def _rows_of(filters: Filters) -> Callable[[pa.Table], pa.Table]:
    def rows(table: pa.Table) -> pa.Table:
        follower, member, proper, size = _graph_rows(table, filters)
        return _topic_table(follower[proper], size[proper], member[np.repeat(proper, size)])

    return rows


def _memberships_of(filters: Filters, blocks: int) -> Callable[[pa.Table], pa.Table]:
    def memberships(table: pa.Table) -> pa.Table:
        follower, member, proper, size = _graph_rows(table, filters)
        entry = np.repeat(proper, size)
        return pa.Table.from_batches([packed(blocks, member[entry], np.repeat(follower, size)[entry])])

    return memberships


def _first_topics(filters: Filters, blocks: int) -> Callable[[pa.Table], pa.Table]:
    def first(table: pa.Table) -> pa.Table:
        client, topic = unpacked(table["payload"])
        order = np.lexsort((topic, client))
        client, topic = client[order], topic[order]
        begins = np.flatnonzero(np.append(True, client[1:] != client[:-1])[: len(client)])
        before = np.arange(len(client)) - np.repeat(begins, np.diff(begins, append=len(client)))
        kept = before < filters.max_topics_per_client
        return pa.Table.from_batches([packed(blocks, topic[kept], client[kept])])

    return first


def _topics_again(filters: Filters) -> Callable[[pa.Table], pa.Table]:
    def again(table: pa.Table) -> pa.Table:
        topic, member = unpacked(table["payload"])
        order = np.lexsort((member, member != topic, topic))
        topic, member = topic[order], member[order]
        found, size = np.unique(topic, return_counts=True)
        proper = size >= filters.min_size
        return _topic_table(found[proper], size[proper], member[np.repeat(proper, size)])

    return again


def _topic_table(topic: IdArray, size: IdArray, member: IdArray) -> pa.Table:
    start = np.append(0, np.cumsum(size)).astype(np.int32)
    members = pa.ListArray.from_arrays(pa.array(start), pa.array(member, pa.int64()))
    return pa.table({"topic": pa.array(topic, pa.int64()), "members": members})
