"""``relocbench spark reloc``."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_cost, print_json

FIELD = "Field"


class MethodName(StrEnum):
    """Methods that run at full scale."""

    RELOC = "reloc"
    NEAREST = "nearest"
    RANDOM = "random"
    OTOS = "otos"


class RelationName(StrEnum):
    """Scores of the relations between clients."""

    SVD = "svd"
    EXACT = "exact"


def run(
    topics: Annotated[Path, typer.Argument(help="Folder that `spark arrange` wrote.")],
    servers: Annotated[int, typer.Option(help="L, the number of servers. A square number gives a grid.", min=1)],
    out: Annotated[Path, typer.Option(help="Folder to write to.")],
    k: Annotated[int, typer.Option(help="K, the number of clusters.", min=1)] = 4,
    method: Annotated[MethodName, typer.Option(help="The method.")] = MethodName.RELOC,
    relation: Annotated[
        RelationName, typer.Option(help="Score relations by factors (svd) or by the number of shared topics (exact).")
    ] = RelationName.SVD,
    related: Annotated[int, typer.Option(help="M′, the number of related clients.", min=0)] = 100,
    rank: Annotated[int, typer.Option(help="Number of columns of the factorisation.", min=1)] = 16,
    rounds: Annotated[int, typer.Option(help="Number of rounds of the factorisation.", min=1)] = 4,
    seed: Annotated[int, typer.Option(help="Seed of positions, K-means and random homes.", min=0)] = 0,
    sigma: Annotated[float, typer.Option(help="σ in km.", rich_help_panel=FIELD)] = 5.0,
    spool_per_member: Annotated[
        float, typer.Option("--spool-per-member", "-p", help="p in u = p·|C|.", rich_help_panel=FIELD)
    ] = 2.0,
    storage: Annotated[
        float | None,
        typer.Option(help="A of every server. Default: as tight as in the paper.", rich_help_panel=FIELD),
    ] = None,
    compute: Annotated[
        float | None,
        typer.Option(help="B of every server. Default: as tight as in the paper.", rich_help_panel=FIELD),
    ] = None,
    cloud_delay: Annotated[float, typer.Option(help="dC in ms.", rich_help_panel=FIELD)] = 5.0,
    delay_per_km: Annotated[float, typer.Option(help="γ in ms per km.", rich_help_panel=FIELD)] = 0.1,
    field_km: Annotated[float, typer.Option(help="Side of the field in km.", rich_help_panel=FIELD)] = 25.0,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run RELOC, or another method of the paper, on one full-scale instance.

    Example: relocbench spark reloc topics --servers 1024 --k 64 --out huge
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.generators.paper_generator import PaperParameters
    from relocbench.spark.assign import RelocOptions
    from relocbench.spark.checkpoints import INPUTS_KEY, unwrap_input_errors
    from relocbench.spark.pipeline import solve_field
    from relocbench.spark.placement import PAPER, topics_folder
    from relocbench.spark.progress import run_with_progress

    if (storage is None) != (compute is None):
        raise InputError("--storage", "expected --storage and --compute together, or neither")
    parameters = PaperParameters(
        servers=servers,
        sigma=sigma,
        spool_per_member=spool_per_member,
        cloud_delay=cloud_delay,
        delay_per_km=delay_per_km,
        field_km=field_km,
        storage=PAPER.storage if storage is None else storage,
        compute=PAPER.compute if compute is None else compute,
    )
    options = RelocOptions(k=k, related=related, rank=rank, relation=relation.value, rounds=rounds, seed=seed)
    topics_folder(topics)  # report a missing folder before Java starts
    stages: dict[str, float] = {}
    with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
        record, existed = run_with_progress(
            spark,
            lambda: solve_field(
                spark,
                topics,
                out,
                method.value,
                parameters,
                options,
                proportional=storage is None,
                on_stage=stages.__setitem__,
            ),
            method.value,
        )
    if as_json:
        print_json({**{name: value for name, value in record.items() if name != INPUTS_KEY}, "seconds": stages})
        return
    print_cost(record)
    times = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in stages.items())
    print(f"homes in {out / method.value / 'homes'}{' (computed earlier)' if existed else f': {times}'}")
