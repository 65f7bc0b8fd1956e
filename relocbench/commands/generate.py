"""``relocbench generate``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from relocbench.commands.options import (
    FIELD,
    Clients,
    Family,
    People,
    Regime,
    Set,
    Sigma,
    Sites,
    Social,
    read_parameters,
    read_seeds,
)
from relocbench.runs.progress import progress
from relocbench.terminal import print_json


def run(
    family: Family,
    out: Annotated[
        Path, typer.Option(help="NAME.json, NAME.json.gz, NAME.parquet, or a folder for one JSON file each.")
    ],
    seed: Annotated[
        str | None, typer.Option(help="Which replicates: 3, 0-9 or 1,4,7. Default: all of the family's.")
    ] = None,
    sigma: Sigma = None,
    topics: Annotated[int | None, typer.Option(help="N.", rich_help_panel=FIELD)] = None,
    servers: Annotated[int | None, typer.Option(help="L.", rich_help_panel=FIELD)] = None,
    servers_at: Annotated[
        str | None, typer.Option(help="grid, random or auto (a grid if L is a square).", rich_help_panel=FIELD)
    ] = None,
    spool_per_member: Annotated[
        float | None, typer.Option("--spool-per-member", "-p", help="p, so that u = p·|C|.", rich_help_panel=FIELD)
    ] = None,
    storage: Annotated[float | None, typer.Option(help="A of every server.", rich_help_panel=FIELD)] = None,
    compute: Annotated[float | None, typer.Option(help="B of every server.", rich_help_panel=FIELD)] = None,
    clients: Clients = None,
    regime: Regime = None,
    set_: Set = None,
    social: Social = None,
    sites: Sites = None,
    people: People = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Generate instances.

    Without --sigma, --regime and the like, every cell of the family is generated; without --seed, every replicate.

    Example: relocbench generate --family paper --sigma 10 --seed 3 --out inst.json

    Example: relocbench generate --family small --regime scarce --out small.parquet
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.files.instance_parquet import write_rows
    from relocbench.instances.generators.generate import generate_many
    from relocbench.instances.instance_source import write_instance

    given: dict[str, Any] = {
        "sigma": sigma,
        "topics": topics,
        "servers": servers,
        "servers_at": servers_at,
        "spool_per_member": spool_per_member,
        "storage": storage,
        "compute": compute,
        "clients": clients,
        "regime": regime,
    }
    parameters = read_parameters(given, set_ or [])
    total, instances = generate_many(
        family, read_seeds("--seed", seed), parameters, social=social, sites=sites, people=people
    )
    stream = progress(instances, total, "generating")
    if out.suffix == ".parquet":
        written = [str(out)]
        write_rows(stream, out)
    elif out.name.endswith((".json", ".json.gz")):
        if total != 1:
            problem = (
                f"expected one instance for a JSON file, got {total}: choose a cell and a seed, or a .parquet file"
            )
            raise InputError(str(out), problem)
        written = [str(out)]
        write_instance(next(iter(stream)), out)
    elif out.suffix and not out.is_dir():
        raise InputError(str(out), "expected .json, .json.gz, .parquet or a folder (one with a dot must exist)")
    else:
        written = []
        for instance in stream:
            written.append(str(out / f"{instance.name}.json"))
            write_instance(instance, written[-1])
    if as_json:
        print_json({"instances": total, "files": written})
    else:
        print(f"{total} instance{'s' if total > 1 else ''} in {out}")
