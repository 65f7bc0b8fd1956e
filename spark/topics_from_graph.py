"""Topics from a follower graph: one topic for each follower, whose members are the follower and its followees.

With roles, the third column of the edge list is the role of the followee in the topic of the follower. The role of the
follower itself is that of a line from it to itself, or else both.

The rules are those of :mod:`instances.generators.topics_from_graph`, except where those depend on the order of drawing.
docs/scale.md describes the difference.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relocbench.instances.errors import InputError
from relocbench.instances.files.edge_list import BOTH, edge_of
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.spark.blocks import BLOCK_SCHEMA, pack
from relocbench.spark.checkpoints import read_dataset, run_once, write_dataset
from relocbench.spark.dropped import LEFT_TOO_SMALL, NOT_DRAWN, OVER_LIMIT, REPEATED, TOO_LARGE, TOO_SMALL, DropCounts
from relocbench.spark.edge_list import EdgeList, find_edges, read_pieces
from relocbench.spark.locations import Location, relative_to, remove
from relocbench.spark.topic_filters import Filters, draw_topics, filtered_topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Bytes of text per block: about a million edges, which a task sorts in 100 MB.
BLOCK_BYTES = 16 << 20
MAX_BLOCKS = 4096
ROLE_NAMES = {PUBLISHES: "publish", SUBSCRIBES: "subscribe", BOTH: "both"}


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
    for name in ("undirected", "roles"):
        if not options[name]:
            del options[name]  # records of earlier versions do not have it
    return run_once(
        out,
        {**edges.identity, **options},
        lambda: _write_topics(spark, edges, out, filters, max_bad),
        earlier_form={"paths": edges.paths, "sizes": edges.sizes, **options},
    )


def _expected(filters: Filters, example: str) -> tuple[str, str]:
    """Return what lines are expected, and what to do about a bad line that has further columns."""
    if filters.roles:
        return "`follower<TAB>followee<TAB>role` with the role publish, subscribe or both", ""
    words = example.replace("\\t", " ").replace(",", " ").strip("'\"").split()
    advice = ""
    if len(words) > 2 and edge_of(" ".join(words[:2])) is not None:
        advice = "; with --roles a third column is a role (publish, subscribe or both); remove all other columns"
    return "`follower<TAB>followee`", advice


def _write_topics(
    spark: "SparkSession", edges: EdgeList, out: Location, filters: Filters, max_bad: float
) -> dict[str, Any]:
    """Write the dataset of topics and return the entries of the record."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    # An observation sums the counts while the edges are read, without a second pass over the files.
    totals = Observation()
    pairs = read_edges(spark, edges, filters.undirected, filters.roles).observe(
        totals, sql.sum("lines").alias("lines"), sql.sum("bad").alias("bad"), sql.min("example").alias("example")
    )
    pairs = pairs.where("block is not null").select("block", "payload")
    all_topics = out / ("candidates" if filters.topics else "topics")
    counts = DropCounts()
    write_dataset(filtered_topics(pairs, filters, block_count(edges), counts), all_topics)
    lines, bad, example = totals.get["lines"] or 0, totals.get["bad"] or 0, totals.get["example"]
    if bad > max_bad * lines:
        remove(all_topics)
        expected, advice = _expected(filters, example)
        problem = f"expected lines {expected}, {bad:,} of {lines:,} are not, such as {example}{advice}"
        raise InputError(str(edges.source), problem)
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
    by_role = {"memberships_by_role": _count_roles(spark, out / "topics")} if filters.roles else {}
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
        **by_role,
    }


def _sizes(spark: "SparkSession", folder: Location) -> tuple[int, int, int]:
    """Return the number of topics in a dataset, the number of memberships, and the largest number of members."""
    columns = ("count(*)", "sum(size(members))", "max(size(members))")
    topics, members, largest = read_dataset(spark, folder).selectExpr(*columns).collect()[0]
    return topics, members or 0, largest or 0


def _count_roles(spark: "SparkSession", folder: Location) -> dict[str, int]:
    """Return the number of memberships with each role."""
    columns = (f"sum(size(filter(roles, role -> role = {role}))) AS {name}" for role, name in ROLE_NAMES.items())
    counts = read_dataset(spark, folder).selectExpr(*columns).collect()[0]
    return {name: int(counts[name]) for name in ROLE_NAMES.values()}


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


def read_edges(spark: "SparkSession", edges: EdgeList, undirected: bool = False, roles: bool = False) -> "DataFrame":
    """Read the edges and pack them into blocks by follower.

    Parameters
    ----------
    spark
        The session.
    edges
        The files.
    undirected, roles
        As for :class:`Filters`.

    Returns
    -------
    pyspark.sql.DataFrame
        Rows with ``block`` and ``payload``, or else with ``lines``, ``bad`` and ``example``: the number of lines
        of a text, the number of bad lines, and one of the bad lines.
    """
    n_blocks = block_count(edges)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for text in read_pieces(batches, roles):
            follower, followee = text.follower, text.followee
            if undirected:
                follower, followee = np.concatenate([follower, followee]), np.concatenate([followee, follower])
            role = []
            if roles:
                role = [np.full(len(follower), BOTH) if text.role is None else text.role.astype(np.int64)]
            packed = pack(n_blocks, follower, followee, *role)
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
