"""Generation of instances by family, cell and seed."""

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
        Name of the family, such as ``paper``; ``relocbench families`` lists all.
    seed
        Seed of the instance.
    **parameters
        Values of the parameters that vary in the family, or replacements for its defaults (``sigma=10``,
        ``servers=25``). They must select exactly one cell.

    Returns
    -------
    Instance
        The instance.

    Raises
    ------
    InputError
        If the family or a parameter does not exist, a value is out of range, or several cells remain.

    Examples
    --------
    >>> import relocbench
    >>> relocbench.generate("paper", seed=3, sigma=10)
    <Instance paper-s10-3: 380 clients, 16 servers, 64 topics>
    >>> relocbench.generate("paper", seed=3, sigma=10, servers=25).n_servers
    25
    """
    cells = family(family_name).cells(parameters)
    if len(cells) > 1:
        axes = ", ".join(cells[0].varied)
        raise InputError(family_name, f"expected parameters that choose one cell, {len(cells)} are left; give {axes}")
    return cells[0].build(seed)


@dataclass(frozen=True, eq=False)
class Plan:
    """A list of instances to build: the cells of a family times seeds. Each can be built independently.

    Attributes
    ----------
    cells, seeds
        The plan contains every cell with every seed, cell by cell.
    graph, places
        Follower graph and places from files, if given.
    real
        The names of these files by option (``social``, ``sites``, ``people``).
    """

    cells: Sequence[Cell]
    seeds: Sequence[int]
    graph: FollowerGraph | None = None
    places: Places | None = None
    real: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def name(self, number: int) -> str:
        """Return the name of an instance of the plan.

        Parameters
        ----------
        number
            Position of the instance in the plan, from 0.

        Returns
        -------
        str
            The name.
        """
        cell, seed = self._cell_and_seed(number)
        # An instance with data from files differs from the family's own instance, so it needs another name.
        return "-".join([cell.name(seed), *(file.partition(".")[0] for file in self.real.values())])

    def build(self, number: int) -> Instance:
        """Build an instance of the plan.

        Parameters
        ----------
        number
            Position of the instance in the plan, from 0.

        Returns
        -------
        Instance
            The instance.
        """
        cell, seed = self._cell_and_seed(number)
        instance = cell.build(seed, self.graph, self.places)
        if not self.real:
            return instance
        return dataclasses.replace(
            instance, name=self.name(number), parameters=dict(instance.parameters) | dict(self.real)
        )

    def _cell_and_seed(self, number: int) -> tuple[Cell, int]:
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
    """Plan the instances of all selected cells of a family with every seed.

    Parameters
    ----------
    family_name
        Name of the family.
    seeds
        The seeds; None for the family's default number of seeds.
    parameters
        Parameter values that select cells or replace defaults, as for :meth:`Family.cells`.
    social
        File with an edge list to take the topics from.
    sites, people
        CSV files with the places of servers and of clients.

    Returns
    -------
    Plan
        The plan. Files have been read, instances not yet built.

    Raises
    ------
    InputError
        If the family or a parameter does not exist, a file cannot be used, or ``people`` is given without ``sites``.
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
    """Generate the instances of :func:`plan`.

    Parameters
    ----------
    family_name, seeds, parameters
        As for :func:`plan`.
    **real
        The files ``social``, ``sites`` and ``people`` of :func:`plan`.

    Returns
    -------
    tuple of int and iterator
        The number of instances, and an iterator that builds them one by one.
    """
    planned = plan(family_name, seeds, parameters, **real)
    return len(planned), map(planned.build, range(len(planned)))
