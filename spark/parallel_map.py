"""Many independent pieces of work, spread over the cores of a session so that all end at about the same time."""

import gc
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from relocbench.spark.progress import watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Answer = TypeVar("Answer")
# A task of Spark's costs about 10 ms, so one for each piece is dear; but with few of them cores wait for the last.
PARTS_PER_CORE = 12
_settled = False


def spread(
    spark: "SparkSession", items: Sequence[Item], do: Callable[[Item], Answer], what: str, parts: int | None = None
) -> list[Answer]:
    """Return what ``do`` gives for each item, in no particular order.

    Parameters
    ----------
    spark
        The session.
    items, do
        The work. An exception ends all of it, so ``do`` had better return what is to be survived.
    what
        What a progress bar says.
    parts
        About how many parts; by default 12 a core and some small ones at the end.
    """
    if not items:
        return []
    context = spark.sparkContext
    cores = max(1, context.defaultParallelism)
    portions = list(cut(shuffled(items), cores, parts or PARTS_PER_CORE * cores))

    def work(part: Iterable[Sequence[Item]]) -> Iterable[Answer]:
        settle()
        return [do(item) for portion in part for item in portion]

    job = context.parallelize(portions, len(portions)).mapPartitions(work)
    return watched(spark, job.collect, what)


def shuffled(items: Sequence[Item]) -> list[Item]:
    """Return the items so mixed that slow ones, which come in rows, are spread; the same every time."""
    mixed = list(items)
    random.Random(0).shuffle(mixed)
    return mixed


def cut(items: Sequence[Item], cores: int, parts: int) -> Iterator[Sequence[Item]]:
    """Cut into equal portions, and the rest into ever smaller ones: what is done last decides who waits how long."""
    largest = max(1, len(items) // parts)
    begin = 0
    while begin < len(items):
        size = max(1, min(largest, (len(items) - begin) // (2 * cores)))
        yield items[begin : begin + size]
        begin += size


def settle() -> None:
    """Make the tasks of this process cheap: Spark collects garbage after each, and this much stays anyway."""
    global _settled
    if not _settled:
        gc.collect()
        gc.freeze()
        _settled = True
