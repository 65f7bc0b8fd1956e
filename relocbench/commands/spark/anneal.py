"""``relocbench spark anneal``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_cost, print_json


def run(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="Folder that `spark reloc` wrote, by any method; also a URI."),
    ],
    start: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Parquet dataset of homes to start from. Default: the nearest servers."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Number of rounds.", min=1)] = 16,
    proposals: Annotated[
        int, typer.Option(help="Number of proposals for each client, in all rounds together.", min=1)
    ] = 1000,
    region_clients: Annotated[int, typer.Option(help="Mean number of clients of a region.", min=1)] = 12_000,
    heat: Annotated[float, typer.Option(help="Initial temperature, as a share of the typical change.")] = 0.2,
    seed: Annotated[int, typer.Option(help="Seed of regions and proposals.", min=0)] = 0,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Improve the homes of a full-scale instance by simulated annealing, in regions of servers.

    Example: relocbench spark anneal huge --rounds 16
    """
    from relocbench.spark.anneal import AnnealOptions, anneal_folder
    from relocbench.spark.checkpoints import INPUTS_KEY, unwrap_input_errors
    from relocbench.spark.locations import location
    from relocbench.spark.placement import read_field
    from relocbench.spark.progress import run_with_progress

    options = AnnealOptions(rounds, proposals, region_clients, heat, seed)
    folder, first = location(instance), None if start is None else location(start)
    if isinstance(folder, Path):  # report a missing folder before Java starts
        read_field(folder / "field")
    seen: list[float] = []
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        record, existed = run_with_progress(
            spark,
            lambda: anneal_folder(spark, folder, options, first, on_round=lambda number, mean: seen.append(mean)),
            "annealing",
        )
    if as_json:
        print_json({**{name: value for name, value in record.items() if name != INPUTS_KEY}, "rounds": seen})
        return
    print_cost(record)
    rounds_text = "computed earlier" if existed else "Y after each round: " + ", ".join(f"{mean:.5f}" for mean in seen)
    print(f"homes in {folder / 'anneal' / 'homes'} ({rounds_text})")
