"""Options that every command on Spark has."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PANEL = "Spark"
Master = Annotated[
    str | None,
    typer.Option(help="local[*], local[2] or spark://host:port. Default: local[*].", rich_help_panel=PANEL),
]
Memory = Annotated[
    float | None,
    typer.Option(
        help="GiB for Java, on a cluster for each executor's. Default: a quarter of this machine, at most 8.",
        min=0.5,
        rich_help_panel=PANEL,
    ),
]
Partitions = Annotated[
    int | None, typer.Option(help="Parts of a shuffle. Default: four a core.", min=1, rich_help_panel=PANEL)
]
Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A setting of Spark's; repeatable.", rich_help_panel=PANEL),
]


def started(
    master: str | None, memory: float | None = None, partitions: int | None = None, conf: list[str] | None = None
) -> "AbstractContextManager[SparkSession]":
    """Return the session that the options ask for."""
    from relocbench.spark.session import session

    return session(master, memory=memory, partitions=partitions, settings=read_conf(conf or []))


def read_conf(settings: list[str]) -> Mapping[str, str]:
    """Read ``NAME=VALUE`` as Spark's own commands do."""
    from relocbench.instances.errors import InputError, shown

    read = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise InputError("--conf", f"expected spark.NAME=VALUE, got {shown(setting)}")
        read[name.strip()] = value.strip()
    return read
