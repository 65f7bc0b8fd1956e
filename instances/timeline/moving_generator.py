"""Generated timelines: instances of the family ``paper`` whose clients move and whose topics change."""

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields

import numpy as np

from relocbench.instances.checks import checked_seed
from relocbench.instances.errors import InputError, one_of, shown
from relocbench.instances.generators.families import Cell, Value, family
from relocbench.instances.generators.paper_generator import PaperParameters, place_servers, topic_centres
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, IntArray, Ragged
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.timeline.epoch import Epoch
from relocbench.instances.timeline.membership import Membership
from relocbench.instances.timeline.movement import (
    MOVEMENTS,
    Commuters,
    GaussMarkov,
    Movement,
    MovementName,
    Static,
    StreamOf,
    Waypoint,
)
from relocbench.instances.timeline.prices import Prices
from relocbench.instances.timeline.timeline import Timeline

MOST_EPOCHS = 10**7


@dataclass(frozen=True, kw_only=True)
class MovingParameters:
    """How clients move and topics change. The defaults are one hour in a city, by the minute.

    Attributes
    ----------
    movement
        ``static``, ``waypoint``, ``gauss-markov`` or ``commuters`` (:mod:`instances.timeline.movement`).
    speed
        Mean speed of a client in km/h. With 0 nobody moves.
    n_epochs, epoch_length
        Number of epochs, and seconds of each. Positions are those at the start of an epoch.
    pause
        Mean seconds of a pause (``waypoint``).
    memory
        Seconds over which a client keeps its velocity (``gauss-markov``).
    topic_churn
        How often a topic is replaced by a new one, per hour.
    """

    movement: MovementName = "waypoint"
    speed: float = 30.0
    n_epochs: int = 60
    epoch_length: float = 60.0
    pause: float = 60.0
    memory: float = 300.0
    topic_churn: float = 0.0

    def __post_init__(self) -> None:
        if self.movement not in MOVEMENTS:
            raise InputError("movement", one_of(MOVEMENTS, self.movement))
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name == "movement":
                continue
            is_count = spec.name == "n_epochs"
            proper = isinstance(value, int) if is_count else isinstance(value, int | float) and math.isfinite(value)
            above_zero = spec.name in ("n_epochs", "epoch_length", "memory")
            most = MOST_EPOCHS if is_count else 1e9
            if not proper or isinstance(value, bool) or not 0 <= value <= most or (above_zero and value == 0):
                wanted = f"{'a whole number' if is_count else 'a number'} {'above' if above_zero else 'from'} 0"
                raise InputError(spec.name, f"expected {wanted} to {most:g}, got {shown(value)}")


def generate_timeline(seed: int = 0, **parameters: Value) -> Timeline:
    """Generate a timeline.

    Parameters
    ----------
    seed
        The same seed and parameters give the same timeline on every machine.
    **parameters
        Fields of :class:`MovingParameters` (``movement``, ``speed``, ``n_epochs``, …); the prices ``handover_price``,
        ``spool_price`` and ``publication_period``; and parameters of the family ``paper`` (``sigma``, ``topics``,
        ``servers``, ``load``, …).

    Returns
    -------
    Timeline
        The timeline. Its epochs are computed whenever they are needed. Unless the clients are commuters, the first
        epoch is the instance of the family ``paper`` with the same parameters and seed.

    Raises
    ------
    InputError
        If a parameter does not exist or is out of range.

    Examples
    --------
    >>> import relocbench
    >>> timeline = relocbench.generate_timeline(seed=3, speed=50, n_epochs=5, sigma=10)
    >>> timeline
    <Timeline moving-waypoint-v50-s10-3: 5 epochs, 16 servers>
    >>> timeline.instance(0).hash == relocbench.generate("paper", seed=3, sigma=10).hash
    True
    """
    seed = checked_seed(seed)
    moving = {spec.name: parameters.pop(spec.name) for spec in fields(MovingParameters) if spec.name in parameters}
    priced = {field: parameters.pop(name) for name, field in PRICE_NAMES.items() if name in parameters}
    chosen = MovingParameters(**moving)  # type: ignore[arg-type]
    prices = Prices(**priced)  # type: ignore[arg-type]
    overrides = {"sigma": PaperParameters.sigma, **parameters}
    [cell] = family("paper").cells(overrides)
    base = cell.build(seed)
    extra = "".join(f"-{name.replace('_', '-')}-{value}" for name, value in sorted(cell.extra.items()))
    name = f"moving-{chosen.movement}-v{chosen.speed:g}-s{cell.varied['sigma']:g}{extra}-{seed}"
    made = {"family": "moving", "seed": seed, **dataclasses.asdict(chosen), **_paper_parameters(base)}
    source = _Source(cell, base, chosen, seed)
    return Timeline(base, source.epochs, chosen.n_epochs, name=name, prices=prices, parameters=made)


# The prices of a timeline by the names of the options that set them.
PRICE_NAMES = {"handover_price": "handover", "spool_price": "spool", "publication_period": "publication_period"}


def _paper_parameters(base: Instance) -> dict[str, object]:
    return {name: value for name, value in base.parameters.items() if name not in ("family", "seed")}


class _Source:
    """Produces the epochs of a generated timeline."""

    def __init__(self, cell: Cell, base: Instance, chosen: MovingParameters, seed: int) -> None:
        self._cell, self._base, self._chosen, self._seed = cell, base, chosen, seed
        generator = cell.generator()
        assert isinstance(generator, PaperParameters)
        self._paper = generator

    def _stream(self, purpose: str) -> np.random.Generator:
        key = self._cell.streams(self._seed).cell
        return stream("moving", self._chosen.movement, purpose, key, self._seed)

    def _movement(self) -> Movement:
        chosen, side, sigma = self._chosen, self._paper.field_km, self._paper.sigma
        start = np.column_stack([self._base.client_x, self._base.client_y])
        streams: StreamOf = self._stream
        if chosen.movement == "static" or chosen.speed == 0:
            return Static(start)
        if chosen.movement == "gauss-markov":
            return GaussMarkov(start, side=side, speed=chosen.speed, memory=chosen.memory, streams=streams)
        if chosen.movement == "commuters":
            seconds = chosen.n_epochs * chosen.epoch_length
            return Commuters(
                self._base.publishers, sigma=sigma, side=side, speed=chosen.speed, seconds=seconds, streams=streams
            )
        # The same draws as those of the family, which give the centres of the topics.
        rng = self._cell.streams(self._seed).of_cell("field")
        place_servers(self._paper, rng)
        centre = topic_centres(self._base.publishers, np.zeros(2), np.full(2, side), rng, sigma)
        return Waypoint(start, centre, sigma=sigma, side=side, speed=chosen.speed, pause=chosen.pause, streams=streams)

    def epochs(self) -> Iterator[Epoch]:
        """Produce the epochs."""
        movement, length = self._movement(), self._chosen.epoch_length
        topics = _Topics(self._base.publishers, self._paper, self._stream("churn"))
        everybody = np.arange(self._base.n_clients, dtype=np.int32)
        every_topic = np.arange(self._base.n_topics, dtype=np.int32)
        for number in range(self._chosen.n_epochs):
            at = movement.at(number * length)
            if number:
                topics.replace_some(self._chosen.topic_churn * length / 3600.0, at)
            times = (number * length, length)
            if not topics.changed:
                instance = dataclasses.replace(self._base, name="", client_x=at[:, 0], client_y=at[:, 1], parameters={})
                yield Epoch(number, *times, everybody, every_topic, instance)
                continue
            clients = topics.clients()
            epoch = topics.membership.epoch(self._base, number, times, clients, at[clients])
            assert epoch is not None, "there is always a topic"
            yield epoch


class _Topics:
    """The topics of the present epoch. A topic that ends is replaced by a new one of the same size."""

    def __init__(self, topics: Ragged, paper: PaperParameters, rng: np.random.Generator) -> None:
        self._members: list[IntArray] = list(topics)
        self._number = np.arange(len(topics), dtype=np.int32)
        self._paper, self._rng = paper, rng
        self._n_clients = int(topics.item.max()) + 1
        self.changed = False

    def replace_some(self, rate: float, at: FloatArray) -> None:
        """Replace each topic with the probability that belongs to a rate."""
        if rate == 0:
            return
        ends = np.flatnonzero(self._rng.random(len(self._members)) < -math.expm1(-rate))
        for topic in ends:
            self._members[topic] = self._new_members(len(self._members[topic]), at)
            self._number[topic] = self._number.max() + 1
            self.changed = True

    def _new_members(self, size: int, at: FloatArray) -> IntArray:
        """Return a random client, and those nearest to points that are Gaussian around it, each client once."""
        found = [int(self._rng.integers(self._n_clients))]
        free = np.ones(self._n_clients, np.bool_)
        free[found] = False
        for point in at[found[0]] + self._paper.sigma * self._rng.standard_normal((size - 1, 2)):
            away = np.hypot(*(at - point).T)
            nearest = int(np.where(free, away, np.inf).argmin())
            free[nearest] = False
            found.append(nearest)
        return np.array(found, np.int32)

    def clients(self) -> IntArray:
        """Return the clients that are in a topic."""
        return np.unique(np.concatenate(self._members))

    @property
    def membership(self) -> Membership:
        """The members of the present topics."""
        members = Ragged.of(self._members)  # type: ignore[arg-type]
        unknown = np.full(len(members), np.nan)
        return Membership(self._n_clients, members, members, unknown, self._paper.spool_per_member, self._number.copy())


@dataclass(frozen=True)
class MovingCell:
    """One cell of the family ``moving``.

    Attributes
    ----------
    speed
        Mean speed in km/h.
    price
        Factor of the default prices of handovers and spools.
    period
        After how many epochs homes are computed again. It is a setting of the policy ``every[k=…]``: the timeline does
        not depend on it.
    """

    speed: float
    price: float
    period: int

    def name(self, seed: int) -> str:
        """Return the name of the timeline with a given seed.

        Parameters
        ----------
        seed
            Seed of the timeline.

        Returns
        -------
        str
            The name.
        """
        return f"moving-v{self.speed:g}-x{self.price:g}-{seed}"

    def build(self, seed: int, **parameters: Value) -> Timeline:
        """Build the timeline with a given seed.

        Parameters
        ----------
        seed
            Seed of the timeline.
        **parameters
            As for :func:`generate_timeline`, except speed and prices.

        Returns
        -------
        Timeline
            The timeline.

        Raises
        ------
        InputError
            If a parameter does not exist or is out of range.
        """
        prices = {"handover_price": self.price * Prices.handover, "spool_price": self.price * Prices.spool}
        settings: Mapping[str, Value] = {"speed": self.speed, **prices, **parameters}
        timeline = generate_timeline(seed, **settings)
        timeline.name = self.name(seed)
        return timeline


SPEEDS = (0.0, 5.0, 30.0, 100.0)
PRICE_FACTORS = (0.0, 1.0, 4.0)
PERIODS = (1, 2, 5, 10, 30, 60)
SEEDS = 5
# The cells of the family ``moving``, each with ``SEEDS`` seeds.
MOVING = [MovingCell(speed, price, period) for speed in SPEEDS for price in PRICE_FACTORS for period in PERIODS]
