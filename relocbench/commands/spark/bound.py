"""``relocbench spark bound``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_json


def run(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="Folder that `spark reloc` wrote, by any method; also a URI."),
    ],
    homes: Annotated[
        str | None,
        typer.Option(
            metavar="PATH", help="Parquet dataset of good homes. Default: those of `spark anneal` in the folder."
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1)] = 8,
    labels: Annotated[int, typer.Option(help="Number of servers of each client that have messages.", min=1)] = 12,
    sweeps: Annotated[int, typer.Option(help="Sweeps of coordinate ascent in each round.", min=1)] = 4,
    region_clients: Annotated[int, typer.Option(help="Mean number of clients of a block.", min=1)] = 400_000,
    seed: Annotated[int, typer.Option(help="Seed of the blocks.", min=0)] = 0,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compute a lower bound on the cost of all assignments of a full-scale instance, and verify it in exact arithmetic.

    Where the homes use more than half of a capacity, capacities have multipliers; elsewhere they are ignored.

    Example: relocbench spark bound huge
    """
    from relocbench.instances.errors import InputError
    from relocbench.spark.bound import BoundOptions, bound_folder
    from relocbench.spark.checkpoints import INPUTS_KEY, unwrap_input_errors
    from relocbench.spark.locations import location
    from relocbench.spark.placement import read_field
    from relocbench.spark.progress import run_with_progress

    folder = location(instance)
    good = folder / "anneal" / "homes" if homes is None else location(homes)
    options = BoundOptions(rounds, labels, sweeps, region_clients, seed)
    if isinstance(folder, Path):  # report a missing folder before Java starts
        read_field(folder / "field")
    if isinstance(good, Path) and not good.exists():
        raise InputError(str(good), "does not exist: run `spark anneal` first, or give --homes")
    seen: list[float] = []
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        record, existed = run_with_progress(
            spark,
            lambda: bound_folder(spark, folder, good, options, on_round=lambda number, bound: seen.append(bound)),
            "bounding",
        )
    if as_json:
        print_json({**{name: value for name, value in record.items() if name != INPUTS_KEY}, "rounds": seen})
        return
    print(f"ΣD = {record['objective']:.12g}, bound {record['bound']:.12g} (verified), gap {100 * record['gap']:.4g} %")
    rounds_text = "computed earlier" if existed else "after each round: " + ", ".join(f"{bound:.8g}" for bound in seen)
    print(f"certificate in {folder / 'bound' / 'dual'} ({rounds_text})")
