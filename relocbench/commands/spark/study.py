"""``relocbench spark study``."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, People, Sites, read_seeds, started
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
from relocbench.print_output import Print, print_files
from relocbench.terminal import command_line, print_json, resumable

LOCAL = "On this machine"


def run(
    topics: Topics,
    servers: Servers,
    out: Annotated[str, typer.Option(metavar="PATH", help="Local folder for the results, the tables and the page.")],
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "--method",
            help="Selectors, separated by commas; repeatable: reloc, nearest, random, otos, anneal, spark-anneal, "
            "spark-bound. Default: nearest, otos and reloc.",
        ),
    ] = None,
    k: Annotated[
        str, typer.Option("--k", help="Numbers of clusters of RELOC, for each reloc that does not set its own.")
    ] = "auto",
    relation: Annotated[
        str,
        typer.Option(
            "--relations",
            "--relation",
            help="Relations of RELOC, exact or svd, for each reloc that does not set its own. Default: as the reading "
            "has it.",
        ),
    ] = "",
    rounds: Annotated[int, typer.Option(help="Largest number of rounds of the factorisation.", min=1)] = 50,
    seed: Annotated[str, typer.Option("--seeds", "--seed", help="Seeds of the methods: 3, 0-9 or 1,4,7.")] = "0",
    field_seed: Annotated[int, typer.Option(help="Seed of the positions.", min=0)] = 0,
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
    time_limit: Annotated[
        float, typer.Option(help="Seconds for each run of annealing.", min=0, rich_help_panel=LOCAL)
    ] = 60.0,
    bound_time: Annotated[
        float, typer.Option(help="Seconds for a certified lower bound; 0: none.", min=0, rich_help_panel=LOCAL)
    ] = 0.0,
    most_local_clients: Annotated[
        int,
        typer.Option(
            help="With more clients, annealing and the bound run on Spark, in regions and without a time limit.",
            min=0,
            rich_help_panel=LOCAL,
        ),
    ] = 200_000,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    print_: Print = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Study methods on one full-scale instance, with a page: numbers of clusters, relations and seeds of RELOC.

    What is already in the folder is not repeated, and new methods can be added to it. Annealing (anneal) and the bound
    (--bound-time) run on this machine alone, on the whole instance, if it has at most --most-local-clients clients;
    spark-anneal and spark-bound run on Spark.

    Example: relocbench spark study topics --servers 64 --k 8,auto --relations exact,svd --bound-time 300 --out study
    """
    from relocbench.reports.pages import requirements

    requirements.require()
    from relocbench.reports.full_scale.page import write_page
    from relocbench.reports.full_scale.tables import read_study, write_tables
    from relocbench.spark.checkpoints import unwrap_input_errors
    from relocbench.spark.locations import local, location, require_writable
    from relocbench.spark.placement import topics_folder
    from relocbench.spark.progress import run_with_progress
    from relocbench.spark.study import BOUND_KEY, LocalLimits, finished_study, run_study
    from relocbench.spark.study_jobs import plan_jobs

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
    jobs = plan_jobs(
        method or ["nearest,otos,reloc"],
        _parts(k),
        _parts(relation),
        read_seeds("--seeds", seed) or [0],
        servers=servers,
        rounds=rounds,
    )
    source, folder = location(topics), local(location(out), "spark study writes its page to")
    if isinstance(source, Path):  # report a missing folder before Java starts
        topics_folder(source)
    require_writable(folder)

    def announce(label: str, record: dict[str, object], existed: bool) -> None:
        known = " (computed earlier)" if existed else ""
        if not as_json and "theta" in record:
            print(f"{label}: Y = {record['Y']:.6g}{known}", file=sys.stderr)
        if not as_json and BOUND_KEY in record:
            print(f"{label}: ΣD is at least {record[BOUND_KEY]:.12g}{known}", file=sys.stderr)

    arguments: dict[str, Any] = {
        "field_seed": field_seed,
        "proportional": field.proportional,
        "choices": field.choices,
        "limits": LocalLimits(time_limit=time_limit, bound_time=bound_time, most_clients=most_local_clients),
        "on_result": announce,
    }
    notes = finished_study(source, folder, jobs, field.parameters, **arguments)
    if notes is None:
        with resumable(folder), started(master, memory, partitions, conf) as spark, unwrap_input_errors():
            notes = run_with_progress(
                spark, lambda: run_study(spark, source, folder, jobs, field.parameters, **arguments), "study"
            )
    study = read_study(folder)
    tables = write_tables(study, folder)
    page = write_page(study, command_line(), folder / "index.html")
    print_files(page, print_, as_json)
    for line in notes:
        print(f"relocbench: {line}", file=sys.stderr)
    if as_json:
        results = [
            {name: getattr(one, name) for name in ("label", "seed", "k", "y", "gap", "excess")} for one in study.results
        ]
        print_json({"results": results, "bound": study.bound, "on_spark": notes, "tables": tables, "page": str(page)})
    else:
        print(f"page: {page}")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
