"""The paper's generator: clients scattered around the centres of their topics, servers on a grid."""

import math
from dataclasses import asdict, dataclass, fields

import numpy as np

from relocbench.instances.checks import LARGEST_SERVER_COUNT
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.follower_graph import FollowerGraph, synthetic_follower_graph
from relocbench.instances.files.places import Places, snap
from relocbench.instances.generators.topics_from_graph import arrange
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import FloatArray, Ragged

# How much wider than the field its Gaussians may be.
LARGEST_SPREAD = 20

# What changes no position: instances that differ in these alone have the same map.
PLACELESS = ("spool_per_member", "storage", "compute", "cloud_delay", "delay_per_km")


@dataclass(frozen=True, kw_only=True)
class PaperParameters:
    """What the paper's generator is told; defaults are the paper's performance evaluation.

    Attributes
    ----------
    topics, servers
        ``N`` and ``L``.
    servers_at
        ``grid``, ``random``, or ``auto``: a grid when ``servers`` is a square, else random.
    sigma
        Standard deviation of a topic's members around its centre, km.
    spool_per_member
        ``p``: a topic's spool is ``p·|C_n|``.
    storage, compute
        ``A`` and ``B`` of every server.
    cloud_delay, delay_per_km
        ``dC`` in ms, ``γ`` in ms per km.
    field_km
        Side of the square field.
    min_topic_size, max_topic_size
        Which rows of the follower graph become topics, by number of members.
    max_topics_per_client
        1 makes the topics disjoint.
    """

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


def generate_paper(
    parameters: PaperParameters,
    *,
    members: np.random.Generator,
    field: np.random.Generator,
    name: str = "",
    graph: FollowerGraph | None = None,
    places: Places | None = None,
) -> Instance:
    """Generate one instance as the paper does.

    Parameters
    ----------
    parameters
        Sizes, capacities, delays.
    members
        Random stream for who is in which topic.
    field
        Random stream for positions.
    name
        Of the instance.
    graph
        A follower graph to take the topics from; by default a synthetic one.
    places
        Real sites for servers and perhaps clients; by default the square field.
    """
    sizes = {
        "topics": parameters.topics,
        "min_size": parameters.min_topic_size,
        "max_size": parameters.max_topic_size,
        "max_topics_per_client": parameters.max_topics_per_client,
    }
    topics = arrange(graph or synthetic_follower_graph(members, **sizes), members, **sizes)
    if places is None:
        low, high = np.zeros(2), np.full(2, parameters.field_km)
        server_at = place_servers(parameters, field)
    else:
        low, high = places.bounds()
        server_at = places.choose_servers(parameters.servers, field)
    client_at = scatter(topics, parameters.sigma, low, high, field)
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
    """Return a position for each client: Gaussian around the centre of its first topic, redrawn until in the field."""
    shorter = float((high - low).min())
    if sigma > LARGEST_SPREAD * shorter:
        # Beyond, next to no draw falls inside, and those that do are as good as uniform.
        raise InputError("sigma", f"expected at most {LARGEST_SPREAD} times the field's {shorter:g} km, got {sigma:g}")
    centre = low + (high - low) * rng.random((len(topics), 2))
    # Written backwards, so that the first topic of a client is what stays.
    first_topic = np.empty(topics.item.max() + 1, np.int64)
    first_topic[topics.item[::-1]] = topics.owner()[::-1]
    around = centre[first_topic]
    at = np.empty_like(around)
    missing = np.arange(len(at))
    while len(missing):
        at[missing] = around[missing] + sigma * rng.standard_normal((len(missing), 2))
        outside = ((at[missing] < low) | (at[missing] > high)).any(axis=1)
        missing = missing[outside]
    return to_millimetres(at)


def to_millimetres(at: FloatArray) -> FloatArray:
    """Return positions rounded to 10⁻⁶ km, so that a last bit that differs between machines' log() is not kept."""
    return np.round(at, 6)


def place_servers(parameters: PaperParameters, rng: np.random.Generator) -> FloatArray:
    """Return the positions of the servers: in the middle of the squares of a grid, or anywhere."""
    if parameters.on_grid:
        side = math.isqrt(parameters.servers)
        step = (np.arange(side) + 0.5) * (parameters.field_km / side)
        return np.stack([np.tile(step, side), np.repeat(step, side)], axis=1)
    return to_millimetres(parameters.field_km * rng.random((parameters.servers, 2)))
