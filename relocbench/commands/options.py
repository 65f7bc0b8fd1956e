"""Options that say which instances a family gives; more than one command has them."""

from pathlib import Path
from typing import Annotated

import typer

FIELD = "The family's parameters"
REAL = "Real people and places"

Family = Annotated[str, typer.Option(help="Which family; `relocbench families` lists them.")]
Sigma = Annotated[float | None, typer.Option(help="Spread of a topic's members, km.", rich_help_panel=FIELD)]
Clients = Annotated[int | None, typer.Option(help="M (family small).", rich_help_panel=FIELD)]
Regime = Annotated[
    str | None, typer.Option(help="loose, scarce or overloaded (families tiny, small).", rich_help_panel=FIELD)
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; repeatable.", rich_help_panel=FIELD),
]
Social = Annotated[
    Path | None, typer.Option(help="Edge list `follower<TAB>followee` to take topics from.", rich_help_panel=REAL)
]
Sites = Annotated[Path | None, typer.Option(help="CSV with latitude, longitude of server sites.", rich_help_panel=REAL)]
People = Annotated[
    Path | None, typer.Option(help="CSV with latitude, longitude of clients; needs --sites.", rich_help_panel=REAL)
]
