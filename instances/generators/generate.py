"""Instances by family, cell and seed."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from relocbench.instances.errors import InputError
from relocbench.instances.files.follower_graph import FollowerGraph, read_follower_graph
from relocbench.instances.files.places import Places, read_places
from relocbench.instances.generators.families import Cell, Value, family
from relocbench.instances.instance import Instance


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


@dataclass(frozen=True, eq=False)
class Plan:
    """Instances that are yet to be built, each by itself: cells of a family times seeds.

    Attributes
    ----------
    cells, seeds
        Every cell with every seed, cell by cell.
    graph, places
        Real people and places, if any.
    real
        The names of the files these are from.
    """

    cells: Sequence[Cell]
    seeds: Sequence[int]
    graph: FollowerGraph | None = None
    places: Places | None = None
    real: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def name(self, number: int) -> str:
        """Return what an instance will be called."""
        cell, seed = self._which(number)
        # Not the family's own instance: its name and parameters must not say so.
        return "-".join([cell.name(seed), *(file.partition(".")[0] for file in self.real.values())])

    def build(self, number: int) -> Instance:
        """Build an instance."""
        cell, seed = self._which(number)
        instance = cell.build(seed, self.graph, self.places)
        if not self.real:
            return instance
        return dataclasses.replace(
            instance, name=self.name(number), parameters=dict(instance.parameters) | dict(self.real)
        )

    def _which(self, number: int) -> tuple[Cell, int]:
        cell, seed = divmod(number, len(self.seeds))
        return self.cells[cell], self.seeds[seed]


def plan(
    family_name: str,
    seeds: Sequence[int] | None,
    parameters: Mapping[str, Value],
    *,
    social: Path | None = None,
    sites: Path | None = None,
    people: Path | None = None,
) -> Plan:
    """Plan every chosen cell of a family with every seed.

    ``social`` is an edge list that topics are taken from, ``sites`` and ``people`` are CSV files with the places of
    servers and clients.
    """
    if people is not None and sites is None:
        raise InputError("--people", "needs --sites, the places of the servers")
    chosen = family(family_name)
    cells = chosen.cells(parameters)
    replicates = range(chosen.replicates) if seeds is None else seeds
    given = {"social": social, "sites": sites, "people": people}
    real = {what: file.name for what, file in given.items() if file is not None}
    graph = None if social is None else read_follower_graph(social)
    places = None if sites is None else read_places(sites, people)
    return Plan(cells, replicates, graph, places, real)


def generate_many(
    family_name: str, seeds: Sequence[int] | None, parameters: Mapping[str, Value], **real: Path | None
) -> tuple[int, Iterator[Instance]]:
    """Generate what :func:`plan` plans; return how many instances there are and an iterator over them."""
    planned = plan(family_name, seeds, parameters, **real)
    return len(planned), map(planned.build, range(len(planned)))
