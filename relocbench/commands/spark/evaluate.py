"""``relocbench spark evaluate``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_cost, print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Folder that `spark reloc` wrote.")],
    homes: Annotated[Path, typer.Argument(help="Parquet dataset with columns client and home.")],
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute what an assignment of a huge instance costs.

    Example: relocbench spark evaluate huge huge/reloc/homes
    """
    from relocbench.spark.checkpoints import input_errors
    from relocbench.spark.pipeline import evaluate_folder
    from relocbench.spark.placement import read_field
    from relocbench.spark.progress import watched

    read_field(instance / "field")  # before Java starts
    with started(master, memory, partitions, conf) as spark, input_errors():
        cost = watched(spark, lambda: evaluate_folder(spark, instance, homes), "evaluating").values()
    if as_json:
        print_json(cost)
    else:
        print_cost(cost)
