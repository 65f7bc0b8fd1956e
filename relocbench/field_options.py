"""Options of the field of a full-scale instance, which several commands share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

if TYPE_CHECKING:
    from relocbench.instances.generators.paper_generator import PaperParameters
    from relocbench.spark.field_choices import FieldChoices

FIELD = "Field"

Topics = Annotated[str, typer.Argument(metavar="TOPICS", help="Folder that `spark arrange` wrote: a path or a URI.")]
Servers = Annotated[
    int,
    typer.Option(help="L, the number of servers. A square number gives a grid, unless --sites is given.", min=1),
]
Sigma = Annotated[float, typer.Option(help="σ in km.", rich_help_panel=FIELD)]
SpoolPerMember = Annotated[
    float, typer.Option("--spool-per-member", "-p", help="p in u = p·|C|.", rich_help_panel=FIELD)
]
Capacities = Annotated[
    str,
    typer.Option(
        help="The paper's capacities in proportion to the topics or to the demand (the members of topics) per server: "
        "topics or demand. Or a CSV file with columns storage and compute, one row per server.",
        rich_help_panel=FIELD,
    ),
]
Storage = Annotated[
    float | None, typer.Option(help="A of every server, instead of --capacities.", rich_help_panel=FIELD)
]
Compute = Annotated[
    float | None, typer.Option(help="B of every server, instead of --capacities.", rich_help_panel=FIELD)
]
Load = Annotated[
    float | None,
    typer.Option(
        help="Scale all capacities so that homes at the nearest servers need this multiple of the storage or compute "
        "of all servers together, whichever is scarcer.",
        rich_help_panel=FIELD,
    ),
]
CloudDelay = Annotated[float, typer.Option(help="dC in ms.", rich_help_panel=FIELD)]
DelayPerKm = Annotated[float, typer.Option(help="γ in ms per km.", rich_help_panel=FIELD)]
FieldKm = Annotated[float, typer.Option(help="Side of the field in km, without --sites.", rich_help_panel=FIELD)]


@dataclass(frozen=True)
class FieldOptions:
    """What the options say about the field.

    Attributes
    ----------
    parameters
        Sizes, delays and the capacities of one server.
    proportional
        Whether these capacities are multiplied according to the choices.
    choices
        The rule of the capacities, and real places.
    """

    parameters: "PaperParameters"
    proportional: bool
    choices: "FieldChoices"


def field_options(
    *,
    servers: int,
    sigma: float,
    spool_per_member: float,
    capacities: str,
    storage: float | None,
    compute: float | None,
    load: float | None,
    sites: Path | None,
    people: Path | None,
    cloud_delay: float,
    delay_per_km: float,
    field_km: float,
) -> FieldOptions:
    """Read the options of a field.

    Parameters
    ----------
    servers, sigma, spool_per_member, capacities, storage, compute, load, sites, people, cloud_delay, delay_per_km,
    field_km
        The values of the options.

    Returns
    -------
    FieldOptions
        What they say.

    Raises
    ------
    InputError
        If two options contradict each other, or a value is out of range.
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.generators.paper_generator import PaperParameters
    from relocbench.spark.field_choices import CapacityRule, FieldChoices
    from relocbench.spark.placement import PAPER

    if (storage is None) != (compute is None):
        raise InputError("--storage", "expected --storage and --compute together, or neither")
    if storage is not None and capacities != "topics":
        raise InputError("--storage", "expected --storage and --compute, or --capacities, not both")
    rule = next((name for name in get_args(CapacityRule) if name == capacities), None)
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
    choices = FieldChoices(
        rule=rule or "topics",
        capacity_file=None if rule else Path(capacities),
        load=load,
        sites=sites,
        people=people,
    )
    return FieldOptions(parameters, storage is None, choices)
