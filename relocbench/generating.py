"""Instances by family, cell and seed."""

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from instances.errors import InputError, shown
from instances.families import Value, family
from instances.instance import Instance
from instances.places import read_places
from instances.social import read_follower_graph


def generate(family_name: str, seed: int = 0, **parameters: Value) -> Instance:
    """Generate one instance.

    Parameters
    ----------
    family_name
        Such as ``paper``; ``relocbench families`` lists them.
    seed
        Which replicate.
    parameters
        Values on the family's axes, or replacements for its defaults (``sigma=10``, ``servers=25``); they must leave
        one cell.
    """
    cells = family(family_name).cells(parameters)
    if len(cells) > 1:
        axes = ", ".join(cells[0].varied)
        raise InputError(family_name, f"expected parameters that choose one cell, {len(cells)} are left; give {axes}")
    return cells[0].build(seed)


def generate_many(
    family_name: str,
    seeds: Sequence[int] | None,
    parameters: Mapping[str, Value],
    *,
    social: Path | None = None,
    sites: Path | None = None,
    people: Path | None = None,
) -> tuple[int, Iterator[Instance]]:
    """Generate every chosen cell of a family with every seed; return how many there are and an iterator over them.

    ``social`` is an edge list that topics are taken from, ``sites`` and ``people`` are CSV files with the places of
    servers and clients.
    """
    chosen = family(family_name)
    cells = chosen.cells(parameters)
    replicates = range(chosen.replicates) if seeds is None else seeds
    given = {"social": social, "sites": sites, "people": people}
    real = {what: file.name for what, file in given.items() if file is not None}
    graph = None if social is None else read_follower_graph(social)
    places = None if sites is None else read_places(sites, people)

    def build() -> Iterator[Instance]:
        for cell in cells:
            for seed in replicates:
                instance = cell.build(seed, graph, places)
                if real:
                    # Not the family's own instance: its name and parameters must not say so.
                    name = "-".join([instance.name, *(file.partition(".")[0] for file in real.values())])
                    instance = dataclasses.replace(instance, name=name, parameters=dict(instance.parameters) | real)
                yield instance

    return len(cells) * len(replicates), build()


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
