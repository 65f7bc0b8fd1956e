"""Named families of instances.

A family is a grid of parameter values, whose points are called cells. An instance is determined by its family, its cell
and its seed. It is the same on every machine and in any order of construction.
"""

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_type_hints

from relocbench.instances.checks import checked_seed
from relocbench.instances.errors import InputError, did_you_mean, one_of
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.generators.generator import Generator, Streams
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.generators.small_generator import REGIMES, SHAPES, SmallParameters
from relocbench.instances.instance import Instance
from relocbench.instances.load import with_load
from relocbench.instances.settings import setting

Value = str | int | float
Parameters = Mapping[str, Value]

# Settings of a method. They are part of the name of a cell, but the instance does not depend on them.
METHOD_SETTINGS: dict[str, type] = {"clusters": int}
# Settings of every family, which are applied to the instance that its generator has built.
COMMON_SETTINGS: dict[str, type] = {"load": float}


@dataclass(frozen=True)
class Family:
    """A grid of instances.

    Attributes
    ----------
    name
        Name of the family, the first part of the name of each of its instances.
    summary
        One line for ``relocbench families``.
    parameters_class
        The generator: a dataclass of parameters that can build an instance.
    fixed
        Parameters that all cells share, where they differ from the defaults of ``parameters_class``.
    grid
        For each cell the values of the parameters that vary.
    label
        Format of a cell's part of an instance's name, such as ``s{sigma:g}``.
    replicates
        Number of seeds that a study uses, from 0 on. Any other seed is valid too.
    """

    name: str
    summary: str
    parameters_class: type[Generator]
    fixed: Parameters
    grid: Sequence[Parameters]
    label: str
    replicates: int

    def cells(self, overrides: Parameters | None = None) -> list["Cell"]:
        """Return the cells of the grid.

        Parameters
        ----------
        overrides
            Values of single parameters. For a parameter that varies on the grid the cells with this value are
            selected; if there are none, new cells with this value are made. For any other parameter the value replaces
            the default.

        Returns
        -------
        list of Cell
            The selected cells in the order of the grid, each once.

        Raises
        ------
        InputError
            If the family has no such parameter or the value has the wrong type.
        """
        chosen = {name: self._value(name, value) for name, value in (overrides or {}).items()}
        axes = set().union(*(cell.keys() for cell in self.grid))
        rows: list[Parameters] = [
            cell for cell in self.grid if all(cell[name] == chosen[name] for name in axes & chosen.keys())
        ]
        if not rows:
            rows = [dict(cell) | {name: chosen[name] for name in axes & chosen.keys()} for cell in self.grid]
        extra = {name: value for name, value in chosen.items() if name not in axes and value != self._default(name)}
        unique = {_canonical(row): row for row in rows}
        return [Cell(self, dict(row), extra) for row in unique.values()]

    def _value(self, name: str, value: Value) -> Value:
        """Return an override in the type of its parameter."""
        types = _parameter_types(self.parameters_class) | METHOD_SETTINGS | COMMON_SETTINGS
        if name not in types:
            raise InputError(name, f"expected one of {', '.join(types)}{did_you_mean(types, name)}")
        converted: Value = setting(name, types[name], value)
        return converted

    def _default(self, name: str) -> Value | None:
        specs = dataclasses.fields(self.parameters_class)  # type: ignore[arg-type]
        defaults: dict[str, Any] = {spec.name: spec.default for spec in specs}
        found: Value | None = (defaults | dict(self.fixed)).get(name)
        return found


@dataclass(frozen=True)
class Cell:
    """One cell of a family.

    Attributes
    ----------
    family
        The family.
    varied
        The values of the parameters that vary on the family's grid.
    extra
        Other parameters that the user changed from their defaults.
    """

    family: Family
    varied: dict[str, Value]
    extra: dict[str, Value]

    def name(self, seed: int) -> str:
        """Return the name of the instance with a given seed.

        Parameters
        ----------
        seed
            Seed of the instance.

        Returns
        -------
        str
            Family, cell, changed parameters and seed, joined by hyphens.
        """
        label = self.family.label.format(**self.varied)
        extra = "".join(f"-{name.replace('_', '-')}-{value}" for name, value in sorted(self.extra.items()))
        return f"{self.family.name}-{label}{extra}-{seed}"

    def build(self, seed: int, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build the instance with a given seed.

        Without a graph and places it depends only on the family, the cell and the seed.

        Parameters
        ----------
        seed
            Seed of the instance, a whole number from 0.
        graph
            Follower graph to take the topics from, for a family that accepts one.
        places
            Places of servers and clients, for a family that accepts them.

        Returns
        -------
        Instance
            The instance with its name and all parameters that produced it.

        Raises
        ------
        InputError
            If the seed or a parameter is out of range, or the family does not accept the graph or the places.
        """
        seed = checked_seed(seed)
        settings = self._settings
        generator = self.generator()
        self._check_accepted(graph, places)
        instance = generator.build(self.streams(seed), graph, places)
        made_with = instance.parameters or dataclasses.asdict(generator)  # type: ignore[call-overload]
        parameters = {"family": self.family.name, "seed": seed, **made_with}
        parameters |= {name: value for name, value in settings.items() if name in METHOD_SETTINGS}
        named = dataclasses.replace(instance, name=self.name(seed), parameters=parameters)
        return with_load(named, settings["load"]) if "load" in settings else named  # type: ignore[arg-type]

    @property
    def _settings(self) -> dict[str, Value]:
        return dict(self.family.fixed) | self.varied | self.extra

    def generator(self) -> Generator:
        """Return the generator with the parameters of the cell.

        Returns
        -------
        Generator
            The generator.

        Raises
        ------
        InputError
            If a parameter is out of range.
        """
        ignored = METHOD_SETTINGS | COMMON_SETTINGS
        return self.family.parameters_class(**{name: it for name, it in self._settings.items() if name not in ignored})

    def streams(self, seed: int) -> Streams:
        """Return the random streams of the instance with a given seed.

        Parameters
        ----------
        seed
            Seed of the instance.

        Returns
        -------
        Streams
            The streams.
        """
        return Streams(self.family.name, self._position_key(self.generator()), seed)

    def _check_accepted(self, graph: FollowerGraph | None, places: Places | None) -> None:
        accepts_graph, accepts_places = (
            self.family.parameters_class.accepts_graph,
            self.family.parameters_class.accepts_places,
        )
        if (graph is None or accepts_graph) and (places is None or accepts_places):
            return
        if not accepts_graph and not accepts_places:
            raise InputError("family", f"{self.family.name} takes neither a follower graph nor places")
        raise InputError("family", f"{self.family.name} takes no {'places' if accepts_graph else 'follower graph'}")

    def _position_key(self, generator: Generator) -> str:
        """Return the parameters that, with family and seed, determine the positions, as canonical JSON."""
        ignored = {*METHOD_SETTINGS, *COMMON_SETTINGS, *generator.without_effect_on_positions}
        return _canonical({name: value for name, value in (self.varied | self.extra).items() if name not in ignored})


def family(name: str) -> Family:
    """Return a family by name.

    Parameters
    ----------
    name
        Such as ``paper``.

    Returns
    -------
    Family
        The family.

    Raises
    ------
    InputError
        If there is no family of that name.
    """
    if name not in FAMILIES:
        raise InputError("family", one_of(FAMILIES, name))
    return FAMILIES[name]


def _parameter_types(parameters_class: type[Any]) -> dict[str, Any]:
    # Resolves annotations that are strings, as in a module with postponed evaluation of annotations.
    hints = get_type_hints(parameters_class)
    return {spec.name: hints[spec.name] for spec in dataclasses.fields(parameters_class)}


def _canonical(parameters: Parameters) -> str:
    return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"))


def _grid(**axes: Sequence[Value]) -> list[Parameters]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


SIGMAS = (1.0, 5.0, 10.0, 15.0, 20.0)
SMALL_SIZES = ((10, 3), (15, 4), (20, 4), (26, 6), (30, 6), (39, 9))

FAMILIES = {
    listed.name: listed
    for listed in (
        Family(
            name="paper",
            summary="the paper's performance evaluation: delay against the spread σ of a topic's members",
            parameters_class=PaperParameters,
            fixed={},
            grid=_grid(sigma=SIGMAS),
            label="s{sigma:g}",
            replicates=10,
        ),
        Family(
            name="paper-spooler",
            summary="the paper's second study: delay against the spool p per member, σ = 5",
            parameters_class=PaperParameters,
            fixed={"sigma": 5.0},
            grid=_grid(spool_per_member=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
            label="p{spool_per_member:g}",
            replicates=10,
        ),
        Family(
            name="paper-clusters",
            summary="the paper's third study: delay against the number of clusters K of RELOC, for each σ",
            parameters_class=PaperParameters,
            fixed={},
            grid=_grid(sigma=SIGMAS, clusters=(1, 2, 4, 8, 16)),
            label="s{sigma:g}-k{clusters}",
            replicates=10,
        ),
        Family(
            # The paper states the largest size of a topic, but not how large topics are on average. The least size
            # decides this, and with it how much of the storage is needed.
            name="paper-tightness",
            summary="the paper's numbers with larger and larger topics: delay against the least topic size, for each σ",
            parameters_class=PaperParameters,
            fixed={},
            grid=_grid(min_topic_size=(2, 4, 6, 8, 10, 12), sigma=(1.0, 5.0, 10.0, 20.0)),
            label="m{min_topic_size}-s{sigma:g}",
            replicates=10,
        ),
        Family(
            # The paper's two figures require seven members: only then a server with A = 7 can store the topic, B = 20
            # serves two publishers, and B = 50 serves all of them.
            name="preliminary",
            summary="the paper's step-by-step example: one topic of seven members, 16 servers",
            parameters_class=PaperParameters,
            fixed={"topics": 1, "sigma": 10.0, "spool_per_member": 1.0, "min_topic_size": 7, "max_topic_size": 7},
            grid=[{"storage": 7.0, "compute": 20.0}, {"storage": 10.0, "compute": 50.0}],
            label="a{storage:g}-b{compute:g}",
            replicates=10,
        ),
        Family(
            name="tiny",
            summary="enumerable: 4-7 clients, 2-4 unequal servers, every regime in every shape",
            parameters_class=SmallParameters,
            fixed={"equal_servers": False},
            grid=_grid(regime=REGIMES, shape=SHAPES),
            label="{regime}-{shape}",
            replicates=20,
        ),
        Family(
            name="small",
            summary="for exact methods: 10-39 clients, 3-9 servers, three regimes",
            parameters_class=SmallParameters,
            fixed={},
            grid=[{"regime": regime, "clients": m, "servers": l} for regime in REGIMES for m, l in SMALL_SIZES],
            label="{regime}-m{clients}-l{servers}",
            replicates=5,
        ),
    )
}
