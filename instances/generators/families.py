"""Named families of instances: a grid of parameters times seeds, each instance the same wherever it is built."""

import dataclasses
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.generators.paper_generator import PLACELESS, PaperParameters, generate_paper
from relocbench.instances.generators.small_generator import REGIMES, SHAPES, SmallParameters, generate_small
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.settings import setting

Value = str | int | float
Parameters = Mapping[str, Value]

# Settings of a method rather than of an instance: they name a cell, but the instance does not depend on them.
METHOD_SETTINGS: dict[str, type] = {"clusters": int}


@dataclass(frozen=True)
class Family:
    """A grid of instances.

    Attributes
    ----------
    name, summary
        For people.
    maker
        Which parameters there are: the paper's field or a small instance.
    fixed
        Parameters all cells share, where they differ from the maker's defaults.
    grid
        The cells: for each the parameters that vary.
    label
        How a cell is called in an instance's name, such as ``s{sigma:g}``.
    replicates
        How many seeds a study takes; any other seed works as well.
    """

    name: str
    summary: str
    maker: type[PaperParameters] | type[SmallParameters]
    fixed: Parameters
    grid: Sequence[Parameters]
    label: str
    replicates: int

    def cells(self, overrides: Parameters | None = None) -> list["Cell"]:
        """Return the cells of the grid.

        An override fixes a parameter: on an axis of the grid it selects (or makes) the cells with that value, elsewhere
        it replaces the default.
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
        """Return an override in its parameter's own type."""
        if name not in METHOD_SETTINGS and name not in _types(self.maker):
            raise InputError(name, f"expected one of {', '.join([*_types(self.maker), *METHOD_SETTINGS])}")
        converted: Value = setting(name, METHOD_SETTINGS.get(name) or _types(self.maker)[name], value)
        return converted

    def _default(self, name: str) -> Value | None:
        defaults: dict[str, Any] = {spec.name: spec.default for spec in dataclasses.fields(self.maker)}
        found: Value | None = (defaults | dict(self.fixed)).get(name)
        return found


@dataclass(frozen=True)
class Cell:
    """One cell of a family: ``varied`` are the parameters that name it, ``extra`` what a user changed besides."""

    family: Family
    varied: dict[str, Value]
    extra: dict[str, Value]

    def name(self, seed: int) -> str:
        """Return what the instance with this seed is called."""
        label = self.family.label.format(**self.varied)
        extra = "".join(f"-{name.replace('_', '-')}-{value}" for name, value in sorted(self.extra.items()))
        return f"{self.family.name}-{label}{extra}-{seed}"

    def build(self, seed: int, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build the instance with this seed; it depends on nothing but the family, the cell and the seed."""
        seed = checked_seed(seed)
        settings = dict(self.family.fixed) | self.varied | self.extra
        made_with = {name: value for name, value in settings.items() if name not in METHOD_SETTINGS}
        parameters = self.family.maker(**made_with)  # type: ignore[arg-type]
        field = stream(self.family.name, "field", self._map_key(parameters), seed)
        if isinstance(parameters, PaperParameters):
            # Who is in which topic is the same in every cell, so that cells can be compared seed by seed.
            members = stream(self.family.name, "members", seed)
            instance = generate_paper(parameters, members=members, field=field, graph=graph, places=places)
        elif graph is None and places is None:
            instance = generate_small(parameters, field)
        else:
            raise InputError("family", f"{self.family.name} takes neither a follower graph nor places")
        made = {"family": self.family.name, "seed": seed, **instance.parameters}
        made |= {name: value for name, value in settings.items() if name in METHOD_SETTINGS}
        return dataclasses.replace(instance, name=self.name(seed), parameters=made)

    def _map_key(self, parameters: PaperParameters | SmallParameters) -> str:
        """Return what, with family and seed, decides the map: cells that differ in no position share it."""
        named = {name: value for name, value in (self.varied | self.extra).items() if name not in METHOD_SETTINGS}
        if isinstance(parameters, PaperParameters):
            named = {name: value for name, value in named.items() if name not in PLACELESS}
            if parameters.on_grid:
                named.pop("servers_at", None)  # by any name a grid is a grid
        return _canonical(named)


def checked_seed(seed: object) -> int:
    """Return a seed as a plain int, so that equal seeds of different types are one."""
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError("seed", f"expected a whole number from 0, got {shown(seed)}")
    return int(seed)


def family(name: str) -> Family:
    """Return a family by name."""
    if name not in FAMILIES:
        raise InputError("family", f"expected one of {', '.join(FAMILIES)}, got {shown(name)}")
    return FAMILIES[name]


def _types(maker: type[Any]) -> dict[str, type]:
    return {spec.name: spec.type for spec in dataclasses.fields(maker) if isinstance(spec.type, type)}


def _canonical(parameters: Parameters) -> str:
    return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"))


def _grid(**axes: Sequence[Value]) -> list[Parameters]:
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]


SIGMAS = (1.0, 5.0, 10.0, 15.0, 20.0)
SMALL_SIZES = ((10, 3), (15, 4), (20, 4), (26, 6), (30, 6), (39, 9))

FAMILIES = {
    made.name: made
    for made in (
        Family(
            "paper",
            "the paper's performance evaluation: delay against the spread σ of a topic's members",
            PaperParameters,
            {},
            _grid(sigma=SIGMAS),
            "s{sigma:g}",
            10,
        ),
        Family(
            "paper-spooler",
            "the paper's second study: delay against the spool p a member, σ = 5",
            PaperParameters,
            {"sigma": 5.0},
            _grid(spool_per_member=(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)),
            "p{spool_per_member:g}",
            10,
        ),
        Family(
            "paper-clusters",
            "the paper's third study: delay against the number of clusters K of RELOC, for each σ",
            PaperParameters,
            {},
            _grid(sigma=SIGMAS, clusters=(1, 2, 4, 8, 16)),
            "s{sigma:g}-k{clusters}",
            10,
        ),
        Family(
            # Seven members: the one size at which a server with A = 7 holds the topic, B = 20 serves two publishers,
            # and B = 50 serves all, as the paper's two figures need.
            "preliminary",
            "the paper's step-by-step example: one topic of seven members, 16 servers",
            PaperParameters,
            {"topics": 1, "sigma": 10.0, "spool_per_member": 1.0, "min_topic_size": 7, "max_topic_size": 7},
            [{"storage": 7.0, "compute": 20.0}, {"storage": 10.0, "compute": 50.0}],
            "a{storage:g}-b{compute:g}",
            10,
        ),
        Family(
            "tiny",
            "enumerable: 4-7 clients, 2-4 unequal servers, every regime in every shape",
            SmallParameters,
            {"equal_servers": False},
            _grid(regime=REGIMES, shape=SHAPES),
            "{regime}-{shape}",
            20,
        ),
        Family(
            "small",
            "for exact methods: 10-39 clients, 3-9 servers, three regimes",
            SmallParameters,
            {},
            [{"regime": regime, "clients": m, "servers": l} for regime in REGIMES for m, l in SMALL_SIZES],
            "{regime}-m{clients}-l{servers}",
            5,
        ),
    )
}
