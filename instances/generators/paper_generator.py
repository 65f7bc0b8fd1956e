"""The paper's generator: clients lie around the centres of their topics in a square area, servers stand on a grid."""

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from typing import ClassVar

import numpy as np

from relocbench.instances.checks import LARGEST_SERVER_COUNT
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.follower_graph import FollowerGraph, synthetic_follower_graph
from relocbench.instances.files.places import Places, snap
from relocbench.instances.generators.generator import Generator, Streams
from relocbench.instances.generators.topics_from_graph import topics_from_graph
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged

# Largest standard deviation of the Gaussians, as a multiple of the shorter side of the area.
LARGEST_SPREAD = 20

# Parameters that affect no position. Instances that differ only in these have the same map.
PARAMETERS_WITHOUT_POSITION = ("spool_per_member", "storage", "compute", "cloud_delay", "delay_per_km")


@dataclass(frozen=True, kw_only=True)
class PaperParameters(Generator):
    """Parameters of the paper's generator. The defaults are those of the paper's performance evaluation.

    Attributes
    ----------
    topics, servers
        ``N`` and ``L``.
    servers_at
        ``grid``, ``random``, or ``auto``: a grid if ``servers`` is a square number, else random.
    sigma
        Standard deviation ``σ`` of a topic's members around its centre, in km.
    spool_per_member
        ``p``; the spool of topic ``n`` is ``u_n = p·|C_n|``.
    storage, compute
        ``A`` and ``B`` of every server.
    cloud_delay, delay_per_km
        ``dC`` in ms, ``γ`` in ms per km.
    field_km
        Side of the square area, in km.
    min_topic_size, max_topic_size
        Least and largest number of members of a topic. Other rows of the follower graph are not used.
    max_topics_per_client
        Largest number of topics of a client. With 1 the topics are disjoint.
    """

    accepts_graph: ClassVar[bool] = True
    accepts_places: ClassVar[bool] = True

    topics: int = 64
    servers: int = 16
    servers_at: str = "auto"
    sigma: float = 5.0
    spool_per_member: float = 2.0
    storage: float = 640.0
    compute: float = 3200.0
    cloud_delay: float = 5.0
    delay_per_km: float = 0.1
    field_km: float = 25.0
    min_topic_size: int = 2
    max_topic_size: int = 21
    max_topics_per_client: int = 4

    @property
    def on_grid(self) -> bool:
        """Whether the servers stand on a grid."""
        return self.servers_at != "random" and math.isqrt(self.servers) ** 2 == self.servers

    def __post_init__(self) -> None:
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.type is str:
                continue
            wanted = "a whole number from 1 to 10000000" if spec.type is int else "a number from 0 to 1e9"
            proper = isinstance(value, int) if spec.type is int else isinstance(value, int | float)
            low, high = (1, 10**7) if spec.type is int else (0.0, 1e9)
            if not proper or isinstance(value, bool) or not low <= value <= high:
                raise InputError(spec.name, f"expected {wanted}, got {shown(value)}")
        if self.servers_at not in ("auto", "grid", "random"):
            raise InputError("servers_at", f"expected auto, grid or random, got {shown(self.servers_at)}")
        if self.servers_at == "grid" and math.isqrt(self.servers) ** 2 != self.servers:
            raise InputError("servers", f"expected a square number for a grid, got {self.servers}")
        if not 2 <= self.min_topic_size <= self.max_topic_size:
            raise InputError("min_topic_size", f"expected 2 to {self.max_topic_size}, got {self.min_topic_size}")
        if self.servers > LARGEST_SERVER_COUNT:
            raise InputError("servers", f"expected at most {LARGEST_SERVER_COUNT}, got {self.servers}")
        if self.field_km <= 0:
            raise InputError("field_km", f"expected more than 0, got {self.field_km}")

    @property
    def without_effect_on_positions(self) -> Collection[str]:
        """Spool, capacities and delays; for servers on a grid also ``servers_at``, since auto and grid agree then."""
        return (*PARAMETERS_WITHOUT_POSITION, "servers_at") if self.on_grid else PARAMETERS_WITHOUT_POSITION

    def build(self, streams: Streams, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build one instance; see :func:`generate_paper`.

        Parameters
        ----------
        streams, graph, places
            As for every generator.

        Returns
        -------
        Instance
            The instance.
        """
        # The members of the topics are the same in every cell of a family, so that cells can be compared seed by seed.
        members, positions = streams.of_family("members"), streams.of_cell("field")
        return generate_paper(self, members=members, positions=positions, graph=graph, places=places)


def generate_paper(
    parameters: PaperParameters,
    *,
    members: np.random.Generator,
    positions: np.random.Generator,
    name: str = "",
    graph: FollowerGraph | None = None,
    places: Places | None = None,
) -> Instance:
    """Generate one instance as the paper does.

    Parameters
    ----------
    parameters
        Sizes, capacities and delays.
    members
        Random stream for the members of the topics.
    positions
        Random stream for the positions of servers and clients.
    name
        Name of the instance.
    graph
        Follower graph to take the topics from. The default is a synthetic graph.
    places
        Real sites of servers and, optionally, clients. The default is a square area.

    Returns
    -------
    Instance
        The instance, in which every member of a topic publishes and subscribes.

    Raises
    ------
    InputError
        If the graph has too few topics, the places too few sites, or ``sigma`` is too large for the area.
    """
    sizes = {
        "topics": parameters.topics,
        "min_size": parameters.min_topic_size,
        "max_size": parameters.max_topic_size,
        "max_topics_per_client": parameters.max_topics_per_client,
    }
    topics = topics_from_graph(graph or synthetic_follower_graph(members, **sizes), members, **sizes)
    if places is None:
        low, high = np.zeros(2), np.full(2, parameters.field_km)
        server_at = place_servers(parameters, positions)
    else:
        low, high = places.bounds()
        server_at = places.choose_servers(parameters.servers, positions)
    client_at = scatter(topics, parameters.sigma, low, high, positions)
    if places is not None and places.clients is not None:
        client_at = snap(client_at, places.clients)
    return Instance(
        name=name,
        cloud_delay=parameters.cloud_delay,
        delay_per_km=parameters.delay_per_km,
        server_x=server_at[:, 0],
        server_y=server_at[:, 1],
        storage_capacity=np.full(parameters.servers, parameters.storage),
        compute_capacity=np.full(parameters.servers, parameters.compute),
        client_x=client_at[:, 0],
        client_y=client_at[:, 1],
        spool=np.asarray(parameters.spool_per_member * topics.sizes, np.float64),
        publishers=topics,
        subscribers=topics,
        parameters={
            name: value
            for name, value in asdict(parameters).items()
            if places is None or name not in ("field_km", "servers_at")
        },
    )


def scatter(topics: Ragged, sigma: float, low: FloatArray, high: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw the position of each client from a Gaussian around the centre of its first topic.

    Centres are uniform in the area. A position outside the area is drawn again.

    Parameters
    ----------
    topics
        For each topic its clients.
    sigma
        Standard deviation of the Gaussian, in km.
    low, high
        Lower left and upper right corner of the area.
    rng
        Random stream.

    Returns
    -------
    array of shape (clients, 2)
        The positions in km, rounded to the millimetre.

    Raises
    ------
    InputError
        If ``sigma`` exceeds ``LARGEST_SPREAD`` times the shorter side of the area.
    """
    centre = topic_centres(topics, low, high, rng, sigma)
    return scatter_around(centre, sigma, low, high, rng)


def topic_centres(
    topics: Ragged, low: FloatArray, high: FloatArray, rng: np.random.Generator, sigma: float
) -> FloatArray:
    """Draw the centre of each topic, uniformly in the area.

    Parameters
    ----------
    topics, low, high, rng, sigma
        As for :func:`scatter`.

    Returns
    -------
    array of shape (clients, 2)
        For each client the centre of its first topic.

    Raises
    ------
    InputError
        If ``sigma`` exceeds ``LARGEST_SPREAD`` times the shorter side of the area.
    """
    shorter = float((high - low).min())
    if sigma > LARGEST_SPREAD * shorter:
        # With a larger sigma almost no draw falls inside the area, and those that do are practically uniform.
        raise InputError("sigma", f"expected at most {LARGEST_SPREAD} times the field's {shorter:g} km, got {sigma:g}")
    centre = low + (high - low) * rng.random((len(topics), 2))
    # Later assignments overwrite earlier ones, so the reversed order leaves the first topic of each client.
    first_topic = np.empty(topics.item.max() + 1, np.int64)
    first_topic[topics.item[::-1]] = topics.owner()[::-1]
    return centre[first_topic]


def scatter_around(
    around: FloatArray, sigma: float, low: FloatArray, high: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Draw positions from Gaussians. A position outside the area is drawn again.

    Parameters
    ----------
    around
        The centre for each position (``n×2``).
    sigma, low, high, rng
        As for :func:`scatter`.

    Returns
    -------
    array of shape (n, 2)
        The positions in km, rounded to the millimetre.
    """
    at = np.empty_like(around)
    missing = np.arange(len(at))
    while len(missing):
        at[missing] = around[missing] + sigma * rng.standard_normal((len(missing), 2))
        outside = ((at[missing] < low) | (at[missing] > high)).any(axis=1)
        missing = missing[outside]
    return to_millimetres(at)


def to_millimetres(at: FloatArray) -> FloatArray:
    """Round positions to 10⁻⁶ km.

    The last bits of log() differ between machines; rounding makes the positions equal everywhere.

    Parameters
    ----------
    at
        Positions in km.

    Returns
    -------
    array
        The rounded positions.
    """
    return np.round(at, 6)


def place_servers(parameters: PaperParameters, rng: np.random.Generator) -> FloatArray:
    """Return the positions of the servers: the centres of the squares of a grid, or uniform in the area.

    Parameters
    ----------
    parameters
        Number of servers, their arrangement and the side of the area.
    rng
        Random stream; not used for a grid.

    Returns
    -------
    array of shape (servers, 2)
        The positions in km.
    """
    if parameters.on_grid:
        side = math.isqrt(parameters.servers)
        step = (np.arange(side) + 0.5) * (parameters.field_km / side)
        return np.stack([np.tile(step, side), np.repeat(step, side)], axis=1)
    return to_millimetres(parameters.field_km * rng.random((parameters.servers, 2)))
