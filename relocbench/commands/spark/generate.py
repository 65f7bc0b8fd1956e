"""``relocbench spark generate``."""

from typing import Annotated

import typer

from relocbench.commands.options import (
    Clients,
    Conf,
    Family,
    Master,
    Memory,
    People,
    Regime,
    Set,
    Sigma,
    Sites,
    Social,
    read_parameters,
    read_seeds,
    started,
)
from relocbench.instances.errors import plural
from relocbench.terminal import print_json


def run(
    family: Family,
    out: Annotated[
        str,
        typer.Option(
            metavar="PATH", help="Folder for one Parquet file per instance, a path or s3a://…. Existing files are kept."
        ),
    ],
    seed: Annotated[
        str | None,
        typer.Option("--seed", "--seeds", help="Seeds of the replicates: 3, 0-9 or 1,4,7. Default: all of the family."),
    ] = None,
    sigma: Sigma = None,
    clients: Clients = None,
    regime: Regime = None,
    set_: Set = None,
    social: Social = None,
    sites: Sites = None,
    people: People = None,
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Generate instances in parallel. The files are equal, byte for byte, to those of `relocbench generate`.

    Example: relocbench spark generate --family small --out small
    """
    from relocbench.instances.generators.generate import plan
    from relocbench.spark.generate import generate, missing
    from relocbench.spark.locations import location

    parameters = read_parameters({"sigma": sigma, "clients": clients, "regime": regime}, set_ or [])
    planned = plan(family, read_seeds("--seed", seed), parameters, social=social, sites=sites, people=people)
    folder = location(out)
    numbers = missing(planned, folder)
    if numbers:
        with started(master, memory, conf=conf) as session:
            generate(session, planned, numbers, folder)
    existed = len(planned) - len(numbers)
    if as_json:
        print_json({"instances": len(planned), "found": existed, "out": str(out)})
    else:
        print(f"{plural(len(planned), 'instance')} in {out}" + (f", {existed} existed before" if existed else ""))
