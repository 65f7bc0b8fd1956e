"""Parallel generation of a family of instances: a folder with one Parquet file for each instance."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.instances.errors import InputError
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import Plan
from relocbench.spark.parallel_map import parallel_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def missing(plan: Plan, out: Path) -> list[int]:
    """List the planned instances that a folder does not hold.

    Parameters
    ----------
    plan
        The planned instances.
    out
        The folder. It need not exist.

    Returns
    -------
    list of int
        The numbers of these instances in the plan.

    Raises
    ------
    InputError
        If ``out`` is a file.
    """
    if out.exists() and not out.is_dir():
        raise InputError(str(out), "expected a folder for instances, got a file")
    return [number for number in range(len(plan)) if not _file(out, plan, number).exists()]


def generate(spark: "SparkSession", plan: Plan, numbers: Sequence[int], out: Path) -> None:
    """Build some of the planned instances. Each file has the same bytes as one that is generated locally.

    Parameters
    ----------
    spark
        The session.
    plan
        The planned instances.
    numbers
        Which of them to build.
    out
        The folder to write to. All executors must see it under the same path.

    Raises
    ------
    InputError
        If an instance cannot be built. All other instances are written.
    """
    out = out.resolve()  # the working directory of an executor is another one
    # A broadcast is sent once to each executor. The plan may hold a whole follower graph.
    shared_plan = spark.sparkContext.broadcast(plan)

    def build(number: int) -> InputError | None:
        try:
            write_rows([shared_plan.value.build(number)], _file(out, shared_plan.value, number))
        except InputError as error:
            return error
        return None

    errors = [error for error in parallel_map(spark, numbers, build, "generating") if error is not None]
    shared_plan.unpersist()
    if errors:
        raise min(errors, key=str)


def _file(out: Path, plan: Plan, number: int) -> Path:
    return out / safe_file_name(plan.name(number), ".parquet")
