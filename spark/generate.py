"""Parallel generation of a family of instances: a folder with one Parquet file for each instance."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyarrow.fs import FileSelector, LocalFileSystem, copy_files

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.file_name import safe_file_name
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import Plan
from relocbench.instances.instance import Instance
from relocbench.spark.locations import Location, arrow_file, require_writable
from relocbench.spark.parallel_map import parallel_map

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def missing(plan: Plan, out: Location) -> list[int]:
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
    system, folder = arrow_file(out)
    try:
        if system.get_file_info(folder).is_file:
            raise InputError(str(out), "expected a folder for instances, got a file")
        existing = {one.base_name for one in system.get_file_info(FileSelector(folder, allow_not_found=True))}
    except OSError as error:
        raise InputError(str(out), f"cannot be read ({reason(error)})") from error
    return [number for number in range(len(plan)) if _name(plan, number) not in existing]


def generate(spark: "SparkSession", plan: Plan, numbers: Sequence[int], out: Location) -> None:
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
    if isinstance(out, Path):
        out = out.resolve()  # the working directory of an executor is another one
        require_writable(out)
    # A broadcast is sent once to each executor. The plan may hold a whole follower graph.
    shared_plan = spark.sparkContext.broadcast(plan)

    def build(number: int) -> InputError | None:
        try:
            _write(shared_plan.value.build(number), out, _name(shared_plan.value, number))
        except InputError as error:
            return error
        return None

    errors = [error for error in parallel_map(spark, numbers, build, "generating") if error is not None]
    shared_plan.unpersist()
    if errors:
        raise min(errors, key=str)


def _name(plan: Plan, number: int) -> str:
    return safe_file_name(plan.name(number), ".parquet")


def _write(instance: Instance, out: Location, name: str) -> None:
    if isinstance(out, Path):
        write_rows([instance], out / name)
        return
    with tempfile.TemporaryDirectory() as folder:
        write_rows([instance], Path(folder) / name)
        system, target = arrow_file(out)
        try:
            copy_files(f"{folder}/{name}", f"{target}/{name}", LocalFileSystem(), system)
        except OSError as error:
            raise InputError(str(out / name), f"cannot be written ({reason(error)})") from error
