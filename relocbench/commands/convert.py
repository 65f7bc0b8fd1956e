"""``relocbench convert``: make an instance from tables in CSV files."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Load
from relocbench.terminal import print_json


def run(
    servers: Annotated[
        Path, typer.Option(help="CSV with x and y in km, or latitude and longitude; optionally id, storage, compute.")
    ],
    clients: Annotated[Path, typer.Option(help="CSV with x and y in km, or latitude and longitude; optionally id.")],
    members: Annotated[
        Path,
        typer.Option(
            help="CSV with topic and client, one row for each membership; optionally role (publish, subscribe, both) "
            "and spool. Clients are given by id, or by index from 0 if they have no ids."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Instance file to write (.json, .json.gz, .parquet).")],
    storage: Annotated[float | None, typer.Option(help="Storage capacity of every server.")] = None,
    compute: Annotated[float | None, typer.Option(help="Compute capacity of every server.")] = None,
    load: Load = None,
    spool_per_member: Annotated[
        float, typer.Option("--spool-per-member", "-p", help="Spool size per member p, for topics without a spool.")
    ] = 2.0,
    cloud_delay: Annotated[float, typer.Option(help="Delay of one way to the cloud in ms.")] = 5.0,
    delay_per_km: Annotated[float, typer.Option(help="Delay per km in ms.")] = 0.1,
    name: Annotated[str, typer.Option(help="Name of the instance. Default: that of the file.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make an instance from your own tables: servers, clients, and who is a member of which topic.

    Capacities come from the columns storage and compute, or from the options of the same name. With --load they are
    scaled; then they may be missing, and all servers are equal with the paper's proportion of storage to compute.

    Example: relocbench convert --servers sites.csv --clients users.csv --members members.csv --load 1.1 --out inst.json
    """
    from relocbench.instances.generators.paper_generator import PaperParameters
    from relocbench.instances.instance import Instance
    from relocbench.instances.instance_source import write_instance
    from relocbench.instances.load import with_load
    from relocbench.instances.tables import read_table

    sites = read_table(servers)
    if load is not None:
        # The scale of missing capacities does not matter, only the proportion of storage to compute.
        if storage is None and sites.find("storage", "storage_capacity") is None:
            storage = PaperParameters.storage
        if compute is None and sites.find("compute", "compute_capacity") is None:
            compute = PaperParameters.compute
    instance = Instance.of(
        servers=sites,
        clients=read_table(clients),
        topics=read_table(members),
        cloud_delay=cloud_delay,
        delay_per_km=delay_per_km,
        storage=storage,
        compute=compute,
        spool_per_member=spool_per_member,
        name=name or out.name.removesuffix(".gz").rpartition(".")[0],
        parameters={"servers": servers.name, "clients": clients.name, "members": members.name},
    )
    instance = instance if load is None else with_load(instance, load)
    write_instance(instance, out)
    if as_json:
        print_json(
            {
                "file": str(out),
                "hash": instance.hash,
                "clients": instance.n_clients,
                "servers": instance.n_servers,
                "topics": instance.n_topics,
            }
        )
    else:
        print(f"{repr(instance).strip('<>')} in {out}")
