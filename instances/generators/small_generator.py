"""The generator of small instances with a given number of clients, regime and shape."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.generators.generator import Generator, Streams
from relocbench.instances.generators.paper_generator import scatter, to_millimetres
from relocbench.instances.generators.regimes import classify
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged
from relocbench.instances.nearest_server import nearest_server

REGIMES = ("loose", "scarce", "overloaded")
SHAPES = ("plain", "roles", "single", "asymmetric", "near-cloud")
# An instance is drawn at most this many times before its regime is declared unreachable.
ATTEMPTS = 500


@dataclass(frozen=True, kw_only=True)
class SmallParameters(Generator):
    """Parameters of the generator of small instances.

    Attributes
    ----------
    clients, servers
        ``M`` and ``L``. With 0 the number is random: 4 to 7 clients, 2 to 4 servers.
    regime
        ``loose``, ``scarce`` or ``overloaded``, as defined in :mod:`instances.generators.regimes`.
    shape
        ``plain``: every member publishes and subscribes. ``roles``: publishers and subscribers differ. ``single``: some
        topics have one member. ``asymmetric``: explicit delays that form no metric. ``near-cloud``: ``2·dC < max dS``.
    sigma, spool_per_member, cloud_delay, delay_per_km, field_km
        As in :class:`instances.generators.paper_generator.PaperParameters`.
    equal_servers
        Whether all servers have the same capacities.
    """

    # Every cell draws all its numbers from a stream of its own.
    cells_share_draws: ClassVar[bool] = False

    clients: int = 0
    servers: int = 0
    regime: str = "loose"
    shape: str = "plain"
    sigma: float = 8.0
    spool_per_member: float = 2.0
    cloud_delay: float = 5.0
    delay_per_km: float = 0.1
    field_km: float = 25.0
    equal_servers: bool = True

    def __post_init__(self) -> None:
        if self.regime not in REGIMES:
            raise InputError("regime", f"expected one of {', '.join(REGIMES)}, got {self.regime}")
        if self.shape not in SHAPES:
            raise InputError("shape", f"expected one of {', '.join(SHAPES)}, got {self.shape}")
        for name, low, high in (("clients", 3, 1000), ("servers", 2, 1000)):
            value = getattr(self, name)
            if value and not low <= value <= high:
                raise InputError(name, f"expected {low} to {high}, or 0 for a random small number, got {value}")
        for name in ("sigma", "spool_per_member", "cloud_delay", "delay_per_km", "field_km"):
            if not 0 < getattr(self, name) <= 1e6:
                raise InputError(name, f"expected a number above 0 and up to 1e6, got {getattr(self, name)}")

    def build(self, streams: Streams, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build one instance; see :func:`generate_small`.

        Parameters
        ----------
        streams, graph, places
            As for every generator; graph and places are not used.

        Returns
        -------
        Instance
            The instance.
        """
        return generate_small(self, streams.of_cell("field"))


def generate_small(parameters: SmallParameters, rng: np.random.Generator, name: str = "") -> Instance:
    """Generate one small instance.

    Instances are drawn until :func:`instances.generators.regimes.classify` confirms the requested regime.

    Parameters
    ----------
    parameters
        Sizes, regime, shape and delays.
    rng
        Random stream.
    name
        Name of the instance.

    Returns
    -------
    Instance
        The instance. If it is scarce and the cloud is far, it has an assignment without overload that costs less than
        the nearest servers.

    Raises
    ------
    InputError
        If ``ATTEMPTS`` draws give no instance of the regime.
    """
    for _ in range(ATTEMPTS):
        instance = _with_capacities(_draw(parameters, rng, name), parameters, rng)
        if instance is not None and _in_regime(instance, parameters.regime):
            return instance
    wanted = f"{parameters.regime} with {parameters.clients} clients and {parameters.servers} servers"
    raise InputError("regime", f"expected one that can be met, got {wanted}: {ATTEMPTS} draws failed")


def _in_regime(instance: Instance, wanted: str) -> bool:
    regime = classify(instance)
    if regime.kind != wanted:
        return False
    if regime.kind == "scarce" and instance.cloud_is_far:
        # An assignment without overload must pay off. With a near cloud this is not required, because overload may be
        # the better choice there.
        assert regime.witness is not None
        return evaluate(instance, regime.witness).objective < evaluate(instance, nearest_server(instance)).objective
    return True


def _draw(parameters: SmallParameters, rng: np.random.Generator, name: str) -> Instance:
    """Draw everything except the capacities, which stay 0."""
    clients = parameters.clients or int(rng.integers(4, 8))
    servers = parameters.servers or int(rng.integers(2, 5))
    topics = _topics(clients, rng)
    low, high = np.zeros(2), np.full(2, parameters.field_km)
    client_at = scatter(Ragged.of(topics), parameters.sigma, low, high, rng)
    server_at = to_millimetres(parameters.field_km * rng.random((servers, 2)))
    if parameters.shape == "single":
        topics += [[int(m)] for m in rng.permutation(clients)[: max(1, clients // 4)]]
    publishers, subscribers = topics, topics
    if parameters.shape == "roles":
        publishers, subscribers = _roles(topics, rng)
    instance = Instance(
        name=name,
        cloud_delay=parameters.cloud_delay,
        delay_per_km=parameters.delay_per_km,
        server_x=server_at[:, 0],
        server_y=server_at[:, 1],
        storage_capacity=np.zeros(servers),
        compute_capacity=np.zeros(servers),
        client_x=client_at[:, 0],
        client_y=client_at[:, 1],
        spool=np.array([parameters.spool_per_member * len(topic) for topic in topics]),
        publishers=Ragged.of(publishers),
        subscribers=Ragged.of(subscribers),
        parameters=asdict(parameters),
    )
    if parameters.shape == "asymmetric":
        longest = parameters.delay_per_km * parameters.field_km
        between = np.round(longest * rng.random((servers, servers)), 6)
        np.fill_diagonal(between, 0.0)
        to_home = np.round(longest * rng.random((clients, servers)), 6)
        return dataclasses.replace(instance, client_server_delay=to_home, server_server_delay=between)
    if parameters.shape == "near-cloud":
        near = float(instance.server_delay.max()) * rng.uniform(0.1, 0.4)
        changed = dict(instance.parameters) | {"cloud_delay": near}
        return dataclasses.replace(instance, cloud_delay=near, parameters=changed)
    return instance


def _topics(clients: int, rng: np.random.Generator) -> list[list[int]]:
    """Assign every client to one topic, then some clients to further ones; a topic has about four members."""
    count = max(2, round(clients / 3))
    topics: list[list[int]] = [[] for _ in range(count)]
    for position, client in enumerate(rng.permutation(clients)):
        # The first clients give every topic a member; the topic of each later client is random.
        topics[position if position < count else int(rng.integers(count))].append(int(client))
    for client in rng.integers(clients, size=(clients + 1) // 2):
        chosen = int(rng.integers(count))
        if int(client) not in topics[chosen] and sum(int(client) in topic for topic in topics) < 4:
            topics[chosen].append(int(client))
    return topics


def _roles(topics: list[list[int]], rng: np.random.Generator) -> tuple[list[list[int]], list[list[int]]]:
    """Make each member a publisher, a subscriber or both; every topic has at least one of each kind."""
    publishers, subscribers = [], []
    for topic in topics:
        role = rng.integers(1, 4, size=len(topic))
        role[0] |= 1
        role[-1] |= 2
        publishers.append([m for m, r in zip(topic, role, strict=True) if r & 1])
        subscribers.append([m for m, r in zip(topic, role, strict=True) if r & 2])
    return publishers, subscribers


def _with_capacities(instance: Instance, parameters: SmallParameters, rng: np.random.Generator) -> Instance | None:
    """Return the instance with capacities for its regime; None if no capacities that were tried give the regime."""
    storage, compute = instance.total_spool, instance.total_compute
    spread = np.ones(instance.n_servers) if parameters.equal_servers else rng.uniform(0.6, 1.4, instance.n_servers)
    share = spread / spread.sum()

    def with_capacities(a: FloatArray, b: FloatArray, rounded: Callable[[float], int]) -> Instance:
        whole = [np.array([max(1, rounded(value)) for value in values], np.float64) for values in (a, b)]
        return dataclasses.replace(instance, storage_capacity=whole[0], compute_capacity=whole[1])

    if parameters.regime == "loose":
        return with_capacities(storage * spread / spread.min(), compute * spread / spread.min(), math.ceil)
    if parameters.regime == "overloaded":
        # Storage, compute or both are insufficient; a sufficient one is still tight. Loads are per unit of capacity.
        short = rng.integers(1, 4)
        load = [rng.uniform(1.1, 1.5) if short & bit else rng.uniform(0.5, 0.8) for bit in (1, 2)]
        return with_capacities(storage * share / load[0], compute * share / load[1], math.floor)
    for slack in (1.05, 1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0):
        candidate = with_capacities(slack * storage * share, slack * compute * share, math.ceil)
        kind = classify(candidate).kind
        if kind == "scarce":
            return candidate
        if kind in ("ample", "loose"):
            return None
    return None
