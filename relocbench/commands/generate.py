"""``relocbench generate``: generate instances."""

from pathlib import Path
from typing import Annotated, Any

import typer

from relocbench.commands.options import (
    FIELD,
    Clients,
    Family,
    Load,
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
        Path,
        typer.Option(help="File to write (.json, .json.gz, .parquet), or a folder for one JSON file per instance."),
    ],
    seed: Annotated[
        str | None, typer.Option(help="Seeds of the instances: 3, 0-9 or 1,4,7. Default: all seeds of the family.")
    ] = None,
    sigma: Sigma = None,
    topics: Annotated[int | None, typer.Option(help="Number of topics N.", rich_help_panel=FIELD)] = None,
    servers: Annotated[int | None, typer.Option(help="Number of servers L.", rich_help_panel=FIELD)] = None,
    servers_at: Annotated[
        str | None,
        typer.Option(
            help="Places of the servers: grid, random or auto (a grid if L is a square).", rich_help_panel=FIELD
        ),
    ] = None,
    spool_per_member: Annotated[
        float | None,
        typer.Option(
            "--spool-per-member", "-p", help="Spool size per member p, with u = p·|C|.", rich_help_panel=FIELD
        ),
    ] = None,
    storage: Annotated[
        float | None, typer.Option(help="Storage capacity A of every server.", rich_help_panel=FIELD)
    ] = None,
    compute: Annotated[
        float | None, typer.Option(help="Compute capacity B of every server.", rich_help_panel=FIELD)
    ] = None,
    load: Load = None,
    clients: Clients = None,
    regime: Regime = None,
    set_: Set = None,
    social: Social = None,
    sites: Sites = None,
    people: People = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the names of the files as JSON.")] = False,
) -> None:
    """Generate instances of a family.

    A family is a grid of parameters (cells) with several seeds each. Options such as --sigma and --regime choose cells;
    without them, all cells are generated. Without --seed, all seeds of the family are generated.

    Example: relocbench generate --family paper --sigma 10 --seed 3 --out inst.json

    Example: relocbench generate --family small --regime scarce --out small.parquet
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.files.file_name import safe_file_name
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
        "load": load,
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
            problem = f"expected one instance for a JSON file, got {total}: choose a cell and a seed, or use .parquet"
            raise InputError(str(out), problem)
        written = [str(out)]
        write_instance(next(iter(stream)), out)
    elif out.suffix and not out.is_dir():
        raise InputError(
            str(out), "expected .json, .json.gz, .parquet or a folder (a folder with a dot in its name must exist)"
        )
    else:
        written = []
        for instance in stream:
            written.append(str(out / safe_file_name(instance.name, ".json")))
            write_instance(instance, written[-1])
    if as_json:
        print_json({"instances": total, "files": written})
    else:
        print(f"{total} instance{'s' if total > 1 else ''} in {out}")
