"""Options that more than one command has, and how their values are read."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relocbench.instances.errors import InputError, shown

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from relocbench.instances.generators.families import Value

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

SPARK = "Spark"
Master = Annotated[
    str | None,
    typer.Option(help="local[*], local[2] or spark://host:port. Default: local[*].", rich_help_panel=SPARK),
]
Memory = Annotated[
    float | None,
    typer.Option(
        help="GiB for Java, on a cluster for each executor's. Default: a quarter of this machine, at most 8.",
        min=0.5,
        rich_help_panel=SPARK,
    ),
]
Partitions = Annotated[
    int | None, typer.Option(help="Parts of a shuffle. Default: four a core.", min=1, rich_help_panel=SPARK)
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's; repeatable.", rich_help_panel=SPARK),
]


def started(
    master: str | None, memory: float | None = None, partitions: int | None = None, conf: list[str] | None = None
) -> "AbstractContextManager[SparkSession]":
    """Return the session that the options ask for."""
    from relocbench.spark.session import session

    return session(master, memory=memory, partitions=partitions, settings=read_conf(conf or []))


def read_conf(settings: list[str]) -> Mapping[str, str]:
    """Read ``NAME=VALUE`` as Spark's own commands do."""
    read = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise InputError("--conf", f"expected spark.NAME=VALUE, got {shown(setting)}")
        read[name.strip()] = value.strip()
    return read


def read_parameters(chosen: "Mapping[str, Value | None]", settings: Sequence[str]) -> "dict[str, Value]":
    """Return a family's parameters: those given as options of their own, and ``NAME=VALUE`` given to ``--set``."""
    parameters = {name: value for name, value in chosen.items() if value is not None}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError("--set", f"expected NAME=VALUE, got {text!r}")
        parameters[name.strip().replace("-", "_")] = value.strip()
    return parameters


def read_seeds(option: str, text: str | None) -> list[int] | None:
    """Read ``3``, ``0-9`` or ``1,4,7``, given as an option of the command."""
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", part)
        if match is None:
            raise InputError(option, f"expected 3, 0-9 or 1,4,7, got {shown(text)}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or len(chosen) + high - low >= 10**6:
            raise InputError(option, f"expected from low to high and up to a million seeds, got {shown(text)}")
        chosen += range(low, high + 1)
    return list(dict.fromkeys(chosen))
