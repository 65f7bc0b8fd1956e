"""``relocbench spark reloc``."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.heuristics.readings import (
    DEFAULT_READING,
    Cooperation,
    Factorised,
    Initial,
    Order,
    ReadingName,
    Ties,
    named_reading,
)
from relocbench.terminal import print_cost, print_json

FIELD = "Field"
READING = "Reading of Algorithm 1 (default: as --reading has it)"
# Relations that can be computed at full scale.
Relation = Literal["svd", "exact"]


class MethodName(StrEnum):
    """Methods that run at full scale."""

    RELOC = "reloc"
    NEAREST = "nearest"
    RANDOM = "random"
    OTOS = "otos"


def run(
    topics: Annotated[
        str, typer.Argument(metavar="TOPICS", help="Folder that `spark arrange` wrote: a path or a URI.")
    ],
    servers: Annotated[int, typer.Option(help="L, the number of servers. A square number gives a grid.", min=1)],
    out: Annotated[str, typer.Option(metavar="PATH", help="Folder to write to: a path or a URI.")],
    k: Annotated[int, typer.Option(help="K, the number of clusters.", min=1)] = 4,
    method: Annotated[MethodName, typer.Option(help="The method.")] = MethodName.RELOC,
    related: Annotated[int, typer.Option(help="M′, the number of related clients.", min=0)] = 100,
    rounds: Annotated[int, typer.Option(help="Largest number of rounds of the factorisation.", min=1)] = 50,
    seed: Annotated[int, typer.Option(help="Seed of positions, K-means and random choices.", min=0)] = 0,
    reading: Annotated[
        ReadingName, typer.Option(help="Named reading of Algorithm 1.", rich_help_panel=READING)
    ] = DEFAULT_READING,
    relation: Annotated[
        Relation | None,
        typer.Option(
            help="Score relations by factors (svd) or by the number of shared topics (exact).", rich_help_panel=READING
        ),
    ] = None,
    rank: Annotated[
        int | None, typer.Option(help="Number of columns of the factorisation.", min=1, rich_help_panel=READING)
    ] = None,
    factorised: Annotated[Factorised | None, typer.Option(help="What is factorised.", rich_help_panel=READING)] = None,
    ties: Annotated[
        Ties | None, typer.Option(help="Who comes first among equally related clients.", rich_help_panel=READING)
    ] = None,
    initial: Annotated[Initial | None, typer.Option(help="The initial server.", rich_help_panel=READING)] = None,
    cooperation: Annotated[
        Cooperation | None, typer.Option(help="What leaves an overloaded server.", rich_help_panel=READING)
    ] = None,
    revisit: Annotated[
        bool | None,
        typer.Option(
            "--revisit/--no-revisit",
            help="Whether a client gets a new home in each of its topics.",
            rich_help_panel=READING,
        ),
    ] = None,
    topic_order: Annotated[Order | None, typer.Option(help="Order of the topics.", rich_help_panel=READING)] = None,
    client_order: Annotated[
        Order | None, typer.Option(help="Order of the clients of a topic.", rich_help_panel=READING)
    ] = None,
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
    from relocbench.spark.locations import location, require_writable
    from relocbench.spark.pipeline import finished_run, solve_field
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
    chosen = named_reading(
        reading,
        relation=relation,
        rank=rank,
        factorised=factorised,
        ties=ties,
        initial=initial,
        cooperation=cooperation,
        revisit=revisit,
        topic_order=topic_order,
        client_order=client_order,
    )
    options = RelocOptions(k=k, related=related, rounds=rounds, seed=seed, **asdict(chosen))
    options.require_fewer_clusters_than(servers if method is MethodName.RELOC else None)
    source, folder = location(topics), location(out)
    if isinstance(source, Path):  # report a wrong folder before Java starts
        topics_folder(source)
    if isinstance(folder, Path):
        require_writable(folder)
    stages: dict[str, float] = {}
    proportional = storage is None
    # A finished run is reported without a session, which takes seconds to start.
    earlier = finished_run(source, folder, method.value, parameters, options, proportional=proportional)
    if earlier is not None:
        record, existed = earlier, True
    else:
        with started(master, memory, partitions, conf) as spark, unwrap_input_errors():
            record, existed = run_with_progress(
                spark,
                lambda: solve_field(
                    spark,
                    source,
                    folder,
                    method.value,
                    parameters,
                    options,
                    proportional=proportional,
                    on_stage=stages.__setitem__,
                ),
                method.value,
            )
    if as_json:
        print_json({**{name: value for name, value in record.items() if name != INPUTS_KEY}, "seconds": stages})
        return
    print_cost(record)
    times = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in stages.items())
    print(f"homes in {folder / method.value / 'homes'}{' (computed earlier)' if existed else f': {times}'}")
