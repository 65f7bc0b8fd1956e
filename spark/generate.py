"""Families of instances, built in parallel: a folder with one Parquet file an instance."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import Plan
from relocbench.spark.parallel_map import spread

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def missing(plan: Plan, out: Path) -> list[int]:
    """Return the numbers of the planned instances that a folder has not got."""
    if out.exists() and not out.is_dir():
        raise InputError(str(out), "expected a folder for instances, got a file")
    return [number for number in range(len(plan)) if not _file(out, plan, number).exists()]


def generate(spark: "SparkSession", plan: Plan, numbers: Sequence[int], out: Path) -> None:
    """Build some of the planned instances; each file holds the very bytes that a local call would write.

    Raises
    ------
    InputError
        If an instance cannot be built; the others are.
    """
    out = out.resolve()  # executors work elsewhere
    # Sent once to each executor: it may hold a whole follower graph.
    shared = spark.sparkContext.broadcast(plan)

    def build(number: int) -> InputError | None:
        try:
            write_rows([shared.value.build(number)], _file(out, shared.value, number))
        except InputError as error:
            return error
        return None

    problems = [problem for problem in spread(spark, numbers, build, "generating") if problem is not None]
    shared.unpersist()
    if problems:
        raise min(problems, key=str)


def _file(out: Path, plan: Plan, number: int) -> Path:
    return out / f"{plan.name(number)}.parquet"
