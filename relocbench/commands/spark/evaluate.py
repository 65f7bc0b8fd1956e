"""``relocbench spark evaluate``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_cost, print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Folder that `spark reloc` or `spark study` wrote.")],
    homes: Annotated[Path, typer.Argument(help="Parquet dataset with columns client and home.")],
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Evaluate an assignment of a full-scale instance.

    Example: relocbench spark evaluate huge huge/reloc/homes
    """
    from relocbench.spark.checkpoints import unwrap_input_errors
    from relocbench.spark.pipeline import evaluate_folder
    from relocbench.spark.placement import read_field
    from relocbench.spark.progress import run_with_progress

    read_field(instance / "field")  # report a missing folder before Java starts
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        evaluation = run_with_progress(spark, lambda: evaluate_folder(spark, instance, homes), "evaluating")
    cost = evaluation.values()
    if as_json:
        print_json(cost)
    else:
        print_cost(cost)
