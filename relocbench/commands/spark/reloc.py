"""``relocbench spark reloc``."""

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, People, Sites, started
from relocbench.field_options import (
    Capacities,
    CloudDelay,
    Compute,
    DelayPerKm,
    FieldKm,
    Load,
    Servers,
    Sigma,
    SpoolPerMember,
    Storage,
    Topics,
    field_options,
)
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
    topics: Topics,
    servers: Servers,
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
    sigma: Sigma = 5.0,
    spool_per_member: SpoolPerMember = 2.0,
    capacities: Capacities = "topics",
    storage: Storage = None,
    compute: Compute = None,
    load: Load = None,
    sites: Sites = None,
    people: People = None,
    cloud_delay: CloudDelay = 5.0,
    delay_per_km: DelayPerKm = 0.1,
    field_km: FieldKm = 25.0,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run RELOC, or another method of the paper, on one full-scale instance.

    Example: relocbench spark reloc topics --servers 1024 --k 64 --out huge
    """
    from relocbench.spark.assign import RelocOptions
    from relocbench.spark.checkpoints import INPUTS_KEY, unwrap_input_errors
    from relocbench.spark.locations import location, require_writable
    from relocbench.spark.pipeline import finished_run, solve_field
    from relocbench.spark.placement import topics_folder
    from relocbench.spark.progress import run_with_progress

    field = field_options(
        servers=servers,
        sigma=sigma,
        spool_per_member=spool_per_member,
        capacities=capacities,
        storage=storage,
        compute=compute,
        load=load,
        sites=sites,
        people=people,
        cloud_delay=cloud_delay,
        delay_per_km=delay_per_km,
        field_km=field_km,
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
    # A finished run is reported without a session, which takes seconds to start.
    earlier = finished_run(
        source,
        folder,
        method.value,
        field.parameters,
        options,
        proportional=field.proportional,
        choices=field.choices,
    )
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
                    field.parameters,
                    options,
                    proportional=field.proportional,
                    choices=field.choices,
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
