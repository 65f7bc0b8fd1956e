"""The problem as data: clients, servers, topics and delays. An instance is immutable and always valid."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.checks import (
    LARGEST_CAPACITY,
    LARGEST_COORDINATE,
    LARGEST_SERVER_COUNT,
    LARGEST_SPOOL,
    check_members,
    column,
    entity_ids,
    matrix,
    plain_parameters,
    scalar,
    text,
)
from relocbench.instances.errors import InputError, plural, shown
from relocbench.instances.kernels.ragged import FloatArray, IntArray, OffsetArray, Ragged, frozen, offsets
from relocbench.instances.notebook_card import card

Index = int | npt.NDArray[np.integer[Any]]

PUBLISHES = 1
SUBSCRIBES = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Instance:
    """One topic-allocation problem, in the symbols of docs/model.md.

    Arrays are copied on construction and read-only afterwards. Wrong values raise :class:`InputError`, which names the
    field as the file format does.

    Attributes
    ----------
    name
        Name of the instance; not part of the content hash.
    cloud_delay
        ``dC``, the delay of one way to the cloud, in ms.
    delay_per_km
        ``γ``, in ms per km.
    server_x, server_y, client_x, client_y
        Positions in km.
    storage_capacity, compute_capacity
        ``A`` and ``B``, per server.
    spool
        ``u``, per topic.
    publishers, subscribers
        ``P`` and ``S``: for each topic its clients, in the order in which sequential heuristics process them.
    client_server_delay, server_server_delay
        ``dH`` (``M×L``) and ``dS`` (``L×L``, possibly asymmetric) as explicit matrices; None for ``γ`` times the
        distance.
    parameters
        The parameters that produced the instance, as arbitrary JSON; not part of the content hash.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> instance
    <Instance tiny-scarce-plain-0: 4 clients, 4 servers, 2 topics>
    >>> instance.publishers[0]
    array([0, 3], dtype=int32)
    >>> instance.n_publications
    4
    """

    name: str = ""
    cloud_delay: float
    delay_per_km: float
    server_x: FloatArray
    server_y: FloatArray
    storage_capacity: FloatArray
    compute_capacity: FloatArray
    client_x: FloatArray
    client_y: FloatArray
    spool: FloatArray
    publishers: Ragged
    subscribers: Ragged
    client_server_delay: FloatArray | None = None
    server_server_delay: FloatArray | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *,
        servers: Any,
        clients: Any,
        topics: Any,
        cloud_delay: float = 5.0,
        delay_per_km: float = 0.1,
        storage: float | None = None,
        compute: float | None = None,
        spool_per_member: float = 2.0,
        client_server_delay: npt.ArrayLike | None = None,
        server_server_delay: npt.ArrayLike | None = None,
        name: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> "Instance":
        """Build an instance from your own data.

        A table is a list of dicts, a list of tuples, a dict of columns, a NumPy array, a DataFrame or an Arrow table.

        Parameters
        ----------
        servers
            A table with the columns ``x``, ``y``, ``storage`` and ``compute`` (in tuples in this order). Instead of
            ``x`` and ``y`` in km there may be ``latitude`` and ``longitude`` in degrees, which are projected.
        clients
            A table with the columns ``x`` and ``y``, or ``latitude`` and ``longitude`` like the servers. A column
            ``id``, or ``name`` if all are different, or the index of a DataFrame holds ids, for servers too. They are
            kept as :attr:`client_ids` and :attr:`server_ids`.
        topics
            A list of topics, a dict of topics by name, or a table with one row for each membership. A topic is a dict
            with ``publishers`` and ``subscribers``, or with ``members`` that do both, and optionally ``spool``; or just
            the list of its members. The table has the columns ``topic``, ``client`` and optionally ``role`` (publish,
            subscribe or both; by default both) and ``spool``. Clients are given by id if they have ids, otherwise by
            index.
        cloud_delay, delay_per_km
            ``dC`` in ms and ``γ`` in ms per km; by default the paper's.
        storage, compute
            Capacity of every server, if the servers have no such column.
        spool_per_member
            ``p``: a topic without ``spool`` has the spool ``p·|C|``, as in the paper.
        client_server_delay, server_server_delay
            Delays in ms as matrices that replace ``γ`` times the distance.
        name
            Name of the instance.
        parameters
            Anything else to remember, as JSON values.

        Returns
        -------
        Instance
            The instance.

        Raises
        ------
        InputError
            If a table has the wrong form or a value is wrong; the message names the row and the column.

        Examples
        --------
        >>> import relocbench
        >>> relocbench.Instance.of(
        ...     servers=[(0, 0), (10, 0)],
        ...     clients=[{"id": "ann", "x": 1, "y": 0}, {"id": "bob", "x": 9, "y": 1}],
        ...     topics={"news": ["ann", "bob"]},
        ...     storage=10,
        ...     compute=20,
        ...     name="pair",
        ... )
        <Instance pair: 2 clients, 2 servers, 1 topic>
        """
        # Only here, because projecting latitudes is compiled code, which the verifier must not import.
        from relocbench.instances.instance_tables import instance_fields

        fields_of_tables = instance_fields(servers, clients, topics, storage, compute, spool_per_member, parameters)
        return cls(
            name=name,
            cloud_delay=cloud_delay,
            delay_per_km=delay_per_km,
            client_server_delay=client_server_delay,  # type: ignore[arg-type]
            server_server_delay=server_server_delay,  # type: ignore[arg-type]
            **fields_of_tables,
        )

    def __post_init__(self) -> None:
        put: Callable[[str, object], None] = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731
        text("name", self.name)
        put("cloud_delay", scalar("cloud_delay", self.cloud_delay))
        put("delay_per_km", scalar("delay_per_km", self.delay_per_km))

        for name, label in (("server_x", "servers.x"), ("client_x", "clients.x")):
            put(name, column(label, getattr(self, name), None, -LARGEST_COORDINATE, LARGEST_COORDINATE))
            if not len(getattr(self, name)):
                raise InputError(label, "expected at least one entry, got none")
        servers, clients = len(self.server_x), len(self.client_x)
        if servers > LARGEST_SERVER_COUNT:
            raise InputError("servers.x", f"expected at most {LARGEST_SERVER_COUNT} entries, got {servers}")
        put("server_y", column("servers.y", self.server_y, servers, -LARGEST_COORDINATE, LARGEST_COORDINATE))
        put("client_y", column("clients.y", self.client_y, clients, -LARGEST_COORDINATE, LARGEST_COORDINATE))
        put("storage_capacity", column("servers.storage", self.storage_capacity, servers, 0, LARGEST_CAPACITY))
        put("compute_capacity", column("servers.compute", self.compute_capacity, servers, 0, LARGEST_CAPACITY))

        if not len(self.publishers):
            raise InputError("topics", "expected at least one topic, got none")
        if len(self.publishers) != len(self.subscribers):
            lists = f"{len(self.publishers)} and {len(self.subscribers)}"
            raise InputError("topics", f"expected publishers and subscribers for every topic, got {lists} lists")
        put("spool", column("topics", self.spool, len(self.publishers), 0, LARGEST_SPOOL, entry="topics[{}].spool"))
        check_members("publishers", self.publishers, clients)
        check_members("subscribers", self.subscribers, clients)
        empty = (self.publishers.sizes == 0) & (self.subscribers.sizes == 0)
        if empty.any():
            raise InputError(f"topics[{int(empty.argmax())}]", "expected a publisher or a subscriber, got neither")

        if self.client_server_delay is not None:
            put("client_server_delay", matrix("client_server_delay", self.client_server_delay, clients, servers))
        if self.server_server_delay is not None:
            delay = matrix("server_server_delay", self.server_server_delay, servers, servers)
            if delay.diagonal().any():
                worst = int(np.flatnonzero(delay.diagonal())[0])
                raise InputError(
                    f"server_server_delay[{worst}][{worst}]",
                    f"expected 0 from a server to itself, got {shown(float(delay[worst, worst]))}",
                )
            put("server_server_delay", delay)
        put("parameters", MappingProxyType(plain_parameters(self.parameters)))

    def __reduce__(self) -> tuple[Callable[..., "Instance"], tuple[dict[str, Any]]]:
        # Unpickled arrays would be writable, and a mapping proxy cannot be pickled, so the constructor is called again.
        content = {spec.name: getattr(self, spec.name) for spec in fields(self)}
        return _rebuild, (content | {"parameters": dict(self.parameters)},)

    def __repr__(self) -> str:
        sizes = ((self.n_clients, "client"), (self.n_servers, "server"), (self.n_topics, "topic"))
        return f"<Instance {self.name or self.hash[:12]}: {', '.join(plural(*size) for size in sizes)}>"

    def _repr_html_(self) -> str:
        explicit = self.client_server_delay is not None or self.server_server_delay is not None
        capacity = float(self.compute_capacity.sum())
        values: dict[str, object] = {
            "clients": self.n_clients,
            "servers": self.n_servers,
            "topics": self.n_topics,
            "publications": self.n_publications,
            "delays": ("explicit matrices" if explicit else f"{self.delay_per_km:g} ms per km")
            + f", {self.cloud_delay:g} ms to the cloud",
            "compute load": f"{self.total_compute:.6g} of a total capacity of {capacity:.6g}",
            "hash": f"{self.hash[:16]}…",
        }
        if self.parameters:
            values["parameters"] = ", ".join(f"{name}={shown(value)}" for name, value in self.parameters.items())
        return card(f"Instance {self.name or self.hash[:12]}", values)

    @property
    def n_clients(self) -> int:
        """``M``, the number of clients."""
        return len(self.client_x)

    @property
    def n_servers(self) -> int:
        """``L``, the number of servers."""
        return len(self.server_x)

    @property
    def n_topics(self) -> int:
        """``N``, the number of topics."""
        return len(self.spool)

    @property
    def client_ids(self) -> list[str | int]:
        """The ids of the clients, from ``parameters["client_ids"]``; without them the indices from 0."""
        return entity_ids(self.parameters, "client_ids", self.n_clients)

    @property
    def server_ids(self) -> list[str | int]:
        """The ids of the servers, from ``parameters["server_ids"]``; without them the indices from 0."""
        return entity_ids(self.parameters, "server_ids", self.n_servers)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of all data that affect a cost or the course of a heuristic, with the order of topics and members."""
        digest = hashlib.sha256(b"relocbench-instance/1")
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name in ("name", "parameters"):
                continue
            arrays = (value.start, value.item) if isinstance(value, Ragged) else () if value is None else (value,)
            # The hash uses the names of the file format, in which the two capacities are storage and compute.
            digest.update(f"|{spec.name.removesuffix('_capacity')}:{len(arrays)}".encode())
            for array in arrays:
                wide = np.asarray(array).astype("<i8" if np.asarray(array).dtype.kind == "i" else "<f8")
                # Adding 0 turns -0.0 into 0.0, so that equal numbers have equal bytes.
                digest.update(f"|{wide.shape}|".encode() + (wide + 0).tobytes())
        return digest.hexdigest()

    @cached_property
    def _memberships(self) -> tuple[Ragged, npt.NDArray[np.int8]]:
        publisher_topic, subscriber_topic = self.publishers.owner(), self.subscribers.owner()
        publisher_key = publisher_topic.astype(np.int64) * self.n_clients + self.publishers.item
        subscriber_key = subscriber_topic.astype(np.int64) * self.n_clients + self.subscribers.item
        both = np.isin(publisher_key, subscriber_key, assume_unique=True)
        only_subscribes = ~np.isin(subscriber_key, publisher_key, assume_unique=True)

        topic = np.concatenate([publisher_topic, subscriber_topic[only_subscribes]])
        client = np.concatenate([self.publishers.item, self.subscribers.item[only_subscribes]])
        role = np.full(len(topic), SUBSCRIBES, np.int8)
        role[: len(both)] = np.where(both, PUBLISHES | SUBSCRIBES, PUBLISHES)
        # The sort is stable, so within a topic the publishers stay first and each list keeps its order.
        order = np.argsort(topic, kind="stable")
        start = offsets(np.bincount(topic, minlength=self.n_topics))
        return Ragged(start, client[order]), frozen(role[order], np.int8)

    @property
    def members(self) -> Ragged:
        """``C``: for each topic its publishers, then the clients that only subscribe, both in their given order."""
        return self._memberships[0]

    @property
    def member_role(self) -> npt.NDArray[np.int8]:
        """For each entry of ``members``: PUBLISHES, SUBSCRIBES or both (``|``)."""
        return self._memberships[1]

    @cached_property
    def _client_side(self) -> tuple[Ragged, npt.NDArray[np.int8]]:
        order = np.argsort(self.members.item, kind="stable")
        start = offsets(np.bincount(self.members.item, minlength=self.n_clients))
        return Ragged(start, self.members.owner()[order]), frozen(self.member_role[order], np.int8)

    @property
    def topics(self) -> Ragged:
        """For each client its topics in ascending order."""
        return self._client_side[0]

    @property
    def topic_role(self) -> npt.NDArray[np.int8]:
        """For each entry of ``topics``: PUBLISHES, SUBSCRIBES or both (``|``)."""
        return self._client_side[1]

    @cached_property
    def receivers(self) -> IntArray:
        """For each entry of ``topics`` that publishes: ``|R|``, the subscribers without the client. Otherwise 0."""
        subscribers = self.subscribers.sizes[self.topics.item] - (self.topic_role == (PUBLISHES | SUBSCRIBES))
        return frozen(np.where(self.topic_role & PUBLISHES, subscribers, 0), np.int32)

    @cached_property
    def client_publications(self) -> OffsetArray:
        """``f``: for each client the number of its publications, that is, of its published topics with a receiver."""
        counts = np.bincount(self.topics.owner()[self.receivers > 0], minlength=self.n_clients)
        return frozen(counts, np.int64)

    @property
    def n_publications(self) -> int:
        """``I``: the number of publications with at least one receiver."""
        return int(np.count_nonzero(self.receivers))

    @cached_property
    def client_weight(self) -> FloatArray:
        """``w``: for each client the weight of its delay ``dH`` in the objective."""
        owner, topic = self.topics.owner(), self.topics.item
        share = np.zeros(len(topic))
        np.divide(1.0, self.receivers, out=share, where=self.receivers > 0)
        received = np.bincount(topic, share, self.n_topics)[topic] - share  # Σ 1/|R| over the other publishers
        subscribes = (self.topic_role & SUBSCRIBES) > 0
        weight = self.client_publications + np.bincount(owner, np.where(subscribes, received, 0.0), self.n_clients)
        return frozen(weight, np.float64)

    @cached_property
    def client_demand(self) -> FloatArray:
        """``U``: for each client the sum of the spools of the topics it publishes to."""
        publishes = (self.topic_role & PUBLISHES) > 0
        spools = np.where(publishes, self.spool[self.topics.item], 0.0)
        return frozen(np.bincount(self.topics.owner(), spools, self.n_clients), np.float64)

    @property
    def total_spool(self) -> float:
        """Storage load of a server on which every topic is open, summed in the order of the evaluator."""
        published = self.publishers.sizes > 0
        return float(np.cumsum(np.where(published, self.spool, 0.0))[-1])

    @property
    def total_compute(self) -> float:
        """Sum of the compute loads of all servers, which is the same for every assignment."""
        return float(np.cumsum(self.publishers.sizes * self.spool)[-1])

    @cached_property
    def server_delay(self) -> FloatArray:
        """``dS``: the explicit matrix, or ``γ`` times the distance."""
        if self.server_server_delay is not None:
            return self.server_server_delay
        every = np.arange(self.n_servers)
        delay = _euclid(self, self.server_x, self.server_y, every[:, None], every[None, :])
        return frozen(delay, np.float64)

    @cached_property
    def explicit_client_delay(self) -> FloatArray:
        """The explicit matrix ``dH`` for compiled code; empty if ``dH`` is ``γ`` times the distance."""
        return frozen(np.empty((0, 0)), np.float64) if self.client_server_delay is None else self.client_server_delay

    def client_delay(self, client: Index, server: Index) -> FloatArray:
        """Return ``dH`` for given clients and servers.

        Parameters
        ----------
        client, server
            Indices or arrays of indices, which are broadcast against each other.

        Returns
        -------
        array
            The delays in ms.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> float(instance.client_delay(0, 1))
        0.990661451094838
        >>> instance.client_delay(0, [0, 1]).shape
        (2,)
        """
        if self.client_server_delay is not None:
            return np.asarray(self.client_server_delay[client, server], np.float64)
        return _euclid(self, self.client_x, self.client_y, client, server)

    @cached_property
    def cloud_is_far(self) -> bool:
        """Whether ``2·dC ≥ max dS``. Then a larger ``θ`` never raises the cost (docs/model.md, fact 1)."""
        return bool(2 * self.cloud_delay >= self.server_delay.max())


def require_instance(value: object) -> None:
    """Check that a value is an instance, and not the path of one.

    Parameters
    ----------
    value
        What a user gave as the instance.

    Raises
    ------
    InputError
        If it is something else.
    """
    if not isinstance(value, Instance):
        raise InputError("instance", f"expected an Instance, got {shown(value)}; relocbench.read reads one from a file")


def _rebuild(content: dict[str, Any]) -> Instance:
    return Instance(**content)


def _euclid(instance: Instance, x: FloatArray, y: FloatArray, point: Index, server: Index) -> FloatArray:
    """Return ``γ·√(dx² + dy²)``, each operation rounded as IEEE 754 prescribes; this float64 defines the delay."""
    dx = x[point] - instance.server_x[server]
    dy = y[point] - instance.server_y[server]
    return np.asarray(instance.delay_per_km * np.sqrt(dx * dx + dy * dy), np.float64)
