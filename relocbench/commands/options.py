"""Options that several commands share, and functions that parse their values."""

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

# Headings of the groups of options in the help texts.
FIELD = "Parameters of the family"
REAL = "Real data"
SPARK = "Spark"

# What the commands that take homes accept.
HOMES = "homes: a solution file, a certificate, a JSON list, a CSV file (client,home) or a .npy file"

Family = Annotated[str, typer.Option(help="Family of instances; `relocbench families` lists them.")]
Sigma = Annotated[
    float | None,
    typer.Option(help="Standard deviation σ of the places of a topic's members, in km.", rich_help_panel=FIELD),
]
Clients = Annotated[int | None, typer.Option(help="Number of clients M (family small).", rich_help_panel=FIELD)]
Regime = Annotated[
    str | None, typer.Option(help="loose, scarce or overloaded (families tiny and small).", rich_help_panel=FIELD)
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Any other parameter of the family; repeatable.", rich_help_panel=FIELD
    ),
]
Load = Annotated[
    float | None,
    typer.Option(
        help="Scale all capacities so that homes at the nearest servers need this multiple of the storage or compute "
        "of all servers together, whichever is scarcer.",
        rich_help_panel=FIELD,
    ),
]
Social = Annotated[
    Path | None,
    typer.Option(help="Edge list `follower<TAB>followee` from which topics are made.", rich_help_panel=REAL),
]
Sites = Annotated[
    Path | None, typer.Option(help="CSV with latitude and longitude of server sites.", rich_help_panel=REAL)
]
People = Annotated[
    Path | None, typer.Option(help="CSV with latitude and longitude of clients; needs --sites.", rich_help_panel=REAL)
]

Master = Annotated[
    str | None,
    typer.Option(
        help="Spark master: local[*], local[2] or spark://host:port. Default: local[*].", rich_help_panel=SPARK
    ),
]
Memory = Annotated[
    float | None,
    typer.Option(
        help="Memory of Java in GiB, on a cluster of each executor. Default: a quarter of this machine's, at most 8.",
        min=0.5,
        rich_help_panel=SPARK,
    ),
]
Partitions = Annotated[
    int | None, typer.Option(help="Partitions of a shuffle. Default: four per core.", min=1, rich_help_panel=SPARK)
]
Conf = Annotated[
    list[str] | None,
    typer.Option(
        "--conf", metavar="NAME=VALUE", help="A configuration property of Spark; repeatable.", rich_help_panel=SPARK
    ),
]


def started(
    master: str | None, memory: float | None = None, partitions: int | None = None, conf: list[str] | None = None
) -> "AbstractContextManager[SparkSession]":
    """Start Spark with the values of the options.

    Parameters
    ----------
    master, memory, partitions, conf
        The values of ``--master``, ``--memory``, ``--partitions`` and ``--conf``.

    Returns
    -------
    AbstractContextManager
        The session; it is stopped at the end of the context.
    """
    from relocbench.spark.session import session

    return session(master, memory=memory, partitions=partitions, settings=read_conf(conf or []))


def read_conf(settings: list[str]) -> Mapping[str, str]:
    """Parse the values of ``--conf`` like Spark's own commands.

    Parameters
    ----------
    settings
        Texts ``spark.NAME=VALUE``.

    Returns
    -------
    Mapping
        Names with their values.

    Raises
    ------
    InputError
        If a text has another form.
    """
    properties = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip().startswith("spark."):
            raise InputError("--conf", f"expected spark.NAME=VALUE, got {shown(setting)}")
        properties[name.strip()] = value.strip()
    return properties


def read_parameters(chosen: "Mapping[str, Value | None]", settings: Sequence[str]) -> "dict[str, Value]":
    """Return the parameters of a family that the options set.

    Parameters
    ----------
    chosen
        The parameters that have an option of their own; None for those not given.
    settings
        The values of ``--set``: texts ``NAME=VALUE``.

    Returns
    -------
    dict
        Names with their values.

    Raises
    ------
    InputError
        If a text has another form.
    """
    parameters = {name: value for name, value in chosen.items() if value is not None}
    for text in settings:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError("--set", f"expected NAME=VALUE, got {text!r}")
        parameters[name.strip().replace("-", "_")] = value.strip()
    return parameters


def read_seeds(option: str, text: str | None) -> list[int] | None:
    """Parse seeds such as ``3``, ``0-9`` or ``1,4,7``.

    Parameters
    ----------
    option
        The name of the option, for error messages.
    text
        Its value; None if it was not given.

    Returns
    -------
    list of int or None
        The seeds without repetitions; None if the option was not given.

    Raises
    ------
    InputError
        If the text has another form, or there are more than a million seeds.
    """
    if text is None:
        return None
    chosen: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*([0-9]{1,9})(?:-([0-9]{1,9}))?\s*", part)
        if match is None:
            raise InputError(option, f"expected 3, 0-9 or 1,4,7, got {shown(text)}")
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low or len(chosen) + high - low >= 10**6:
            raise InputError(option, f"expected ranges from low to high and at most a million seeds, got {shown(text)}")
        chosen += range(low, high + 1)
    return list(dict.fromkeys(chosen))


def read_numbers(option: str, text: str) -> tuple[float, ...]:
    """Parse numbers between commas.

    Parameters
    ----------
    option
        The name of the option, for error messages.
    text
        Its value.

    Returns
    -------
    tuple of float
        The numbers, each once.

    Raises
    ------
    InputError
        If a part is not a number from 0.
    """
    found = []
    for part in text.split(","):
        try:
            value = float(part)
        except ValueError:
            value = -1.0
        if not 0 <= value < 1e12:
            raise InputError(option, f"expected numbers from 0 between commas, got {shown(text)}")
        found.append(value)
    return tuple(dict.fromkeys(found))


def read_whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Parse whole numbers between commas.

    Parameters
    ----------
    option, text
        As for :func:`read_numbers`.

    Returns
    -------
    tuple of int
        The numbers, each once; none if the text is empty.

    Raises
    ------
    InputError
        If a part is not a whole number from 1.
    """
    found = read_numbers(option, text) if text.strip() else ()
    if any(value < 1 or value != int(value) for value in found):
        raise InputError(option, f"expected whole numbers from 1 between commas, got {shown(text)}")
    return tuple(map(int, found))
