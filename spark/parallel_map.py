"""Parallel execution of many independent items, such that all cores finish at about the same time."""

import gc
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from relocbench.spark.progress import run_with_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Item = TypeVar("Item")
Result = TypeVar("Result")
# A Spark task costs about 10 ms, so that one task per item is too many. With few tasks, cores wait for the last one.
CHUNKS_PER_CORE = 12
_garbage_frozen = False


def parallel_map(
    spark: "SparkSession",
    items: Sequence[Item],
    function: Callable[[Item], Result],
    description: str,
    chunks: int | None = None,
) -> list[Result]:
    """Apply a function to each item on the executors.

    Parameters
    ----------
    spark
        The session.
    items
        The items, each independent of the others.
    function
        The function to apply. An exception ends the whole call, so the function should return the errors that must
        not affect other items.
    description
        The text of the progress bar.
    chunks
        The approximate number of chunks. Default: 12 per core, and some small ones at the end.

    Returns
    -------
    list
        The results, in no particular order.
    """
    if not items:
        return []
    context = spark.sparkContext
    cores = max(1, context.defaultParallelism)
    portions = list(tapered_chunks(shuffled(items), cores, chunks or CHUNKS_PER_CORE * cores))

    def work(partition: Iterable[Sequence[Item]]) -> Iterable[Result]:
        _freeze_garbage()
        return [function(item) for portion in partition for item in portion]

    job = context.parallelize(portions, len(portions)).mapPartitions(work)
    return run_with_progress(spark, job.collect, description)


def shuffled(items: Sequence[Item]) -> list[Item]:
    """Shuffle items, because slow ones usually stand together. The order is the same in every call.

    Parameters
    ----------
    items
        The items.

    Returns
    -------
    list
        The items in another order.
    """
    result = list(items)
    random.Random(0).shuffle(result)
    return result


def tapered_chunks(items: Sequence[Item], cores: int, chunks: int) -> Iterator[Sequence[Item]]:
    """Split items into chunks of equal size and, at the end, ever smaller ones.

    The chunks that begin last determine how long the other cores are idle.

    Parameters
    ----------
    items
        The items.
    cores
        The number of cores.
    chunks
        The approximate number of chunks.

    Yields
    ------
    Sequence
        The items of one chunk.
    """
    largest = max(1, len(items) // chunks)
    begin = 0
    while begin < len(items):
        size = max(1, min(largest, (len(items) - begin) // (2 * cores)))
        yield items[begin : begin + size]
        begin += size


def _freeze_garbage() -> None:
    """Exclude the objects of the loaded modules from garbage collection, which Spark starts after each task."""
    global _garbage_frozen
    if not _garbage_frozen:
        gc.collect()
        gc.freeze()
        _garbage_frozen = True
