"""``relocbench spark evaluate``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_cost, print_json


def run(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="Folder that `spark reloc` or `spark study` wrote: a path or a URI."),
    ],
    homes: Annotated[str, typer.Argument(metavar="HOMES", help="Parquet dataset with columns client and home.")],
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
    from relocbench.spark.locations import location
    from relocbench.spark.pipeline import evaluate_folder
    from relocbench.spark.placement import read_field
    from relocbench.spark.progress import run_with_progress

    folder, dataset = location(instance), location(homes)
    if isinstance(folder, Path):
        read_field(folder / "field")  # report a wrong folder before Java starts
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        evaluation = run_with_progress(spark, lambda: evaluate_folder(spark, folder, dataset), "evaluating")
    cost = evaluation.values()
    if as_json:
        print_json(cost)
    else:
        print_cost(cost)
