"""A timeline: the same servers over time, with clients and topics that come, move and go.

Time is divided into *epochs*. Each epoch is an ordinary instance, so every method and the evaluator work on it
unchanged. What the epochs add is identity: a client or a topic has one number in the whole timeline, and each epoch
lists the numbers of those that are present.
"""

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from relocbench.instances.checks import entity_ids, plain_parameters, text
from relocbench.instances.errors import InputError, plural, shown
from relocbench.instances.instance import Instance, require_instance
from relocbench.instances.kernels.ragged import IntArray
from relocbench.instances.notebook_card import card
from relocbench.instances.timeline.epoch import Epoch, check_known, check_order
from relocbench.instances.timeline.network import check_network, network_of
from relocbench.instances.timeline.prices import Prices

Id = str | int
# The parameters of a timeline and of an instance that hold ids.
ID_LISTS = ("client_ids", "topic_ids", "server_ids")


class Timeline:
    """Servers that stay, and epochs that follow one another.

    The epochs are produced one after the other whenever they are needed, so the memory does not grow with their number.

    Parameters
    ----------
    network
        An instance with the servers, capacities and delays of all epochs. Its clients and topics are not used.
    epochs
        A function that returns a new iterator over all epochs each time. They must have the servers of ``network``.
    n_epochs
        The number of epochs.
    name
        Name of the timeline; not part of the hash.
    prices
        What a change of the assignment costs.
    parameters
        How the timeline was made, as arbitrary JSON; not part of the hash. ``client_ids``, ``topic_ids`` and
        ``server_ids`` are the ids by number.
    epoch_hashes
        A function that returns the hashes of all epochs, if they are known without producing the epochs.
    place
        Name of an epoch for error messages, with ``{}`` for its number.

    Raises
    ------
    InputError
        If the name, the parameters or the number of epochs is wrong. A wrong epoch is found when it is produced.

    Examples
    --------
    >>> import relocbench
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> timeline = relocbench.Timeline.static(instance, n_epochs=3, length=60)
    >>> timeline
    <Timeline tiny-scarce-plain-0: 3 epochs, 4 servers>
    >>> timeline.instance(2).hash == instance.hash
    True
    """

    def __init__(
        self,
        network: Instance,
        epochs: Callable[[], Iterator[Epoch]],
        n_epochs: int,
        *,
        name: str = "",
        prices: Prices | None = None,
        parameters: Mapping[str, Any] | None = None,
        epoch_hashes: Callable[[], Iterable[str]] | None = None,
        place: str = "epochs[{}]",
    ) -> None:
        require_instance(network)
        if isinstance(n_epochs, bool) or not isinstance(n_epochs, int) or n_epochs < 1:
            raise InputError("epochs", f"expected at least one epoch, got {shown(n_epochs)}")
        self.network = network_of(network)
        self.n_epochs = n_epochs
        self.name = text("name", name)
        self.prices = Prices() if prices is None else prices
        self.parameters: Mapping[str, Any] = MappingProxyType(plain_parameters(parameters or {}))
        self._produce = epochs
        self._epoch_hashes = epoch_hashes
        self._place = place

    def __repr__(self) -> str:
        sizes = f"{plural(self.n_epochs, 'epoch')}, {plural(self.n_servers, 'server')}"
        return f"<Timeline {self.name or 'without a name'}: {sizes}>"

    def _repr_html_(self) -> str:
        first = self.epoch(0)
        values: dict[str, object] = {
            "epochs": self.n_epochs,
            "servers": self.n_servers,
            "first epoch": repr(first).strip("<>"),
            "handover price": f"{self.prices.handover:g} ms",
            "spool price": f"{self.prices.spool:g} ms per message",
            "publication period": f"{self.prices.publication_period:g} s",
        }
        return card(f"Timeline {self.name or 'without a name'}", values)

    @classmethod
    def of(
        cls,
        instances: Iterable[Instance],
        *,
        length: float | Sequence[float] = 60.0,
        start: Sequence[float] | None = None,
        prices: Prices | None = None,
        name: str = "",
        parameters: Mapping[str, Any] | None = None,
    ) -> "Timeline":
        """Build a timeline from one instance per epoch, all with the same servers.

        Clients and topics are the same in two epochs if their ids are the same: those that ``Instance.of`` keeps
        (``client_ids`` and ``topic_ids`` in the parameters of the instance), or otherwise their indices.

        Parameters
        ----------
        instances
            The epochs.
        length
            Seconds of every epoch, or of each.
        start
            Start of each epoch in seconds; by default each begins where the one before ends.
        prices, name, parameters
            As for the constructor.

        Returns
        -------
        Timeline
            The timeline. All its epochs are kept in memory.

        Raises
        ------
        InputError
            If there is no instance, the servers differ, or the times are not in order.

        Examples
        --------
        >>> import relocbench
        >>> near, far = ([{"id": "ann", "x": x, "y": 0}, {"id": "bob", "x": 9, "y": 0}] for x in (1, 8))
        >>> epochs = [
        ...     relocbench.Instance.of(
        ...         servers=[(0, 0), (10, 0)], clients=clients, topics={"news": ["ann", "bob"]}, storage=9, compute=9
        ...     )
        ...     for clients in (near, far)
        ... ]
        >>> relocbench.Timeline.of(epochs, length=60, name="pair")
        <Timeline pair: 2 epochs, 2 servers>
        """
        kept = list(instances)
        if not kept:
            raise InputError("epochs", "expected at least one epoch, got none")
        lengths = _per_epoch("length", length, len(kept))
        starts = [0.0, *itertools.accumulate(lengths)][:-1] if start is None else _per_epoch("start", start, len(kept))
        clients, topics = _Ids(), _Ids()
        epochs = []
        for number, instance in enumerate(kept):
            require_instance(instance)
            topic_ids = entity_ids(instance.parameters, "topic_ids", instance.n_topics)
            try:
                epoch = Epoch(
                    number,
                    starts[number],
                    lengths[number],
                    clients.numbers(instance.client_ids),
                    topics.numbers(topic_ids),
                    instance,
                )
            except InputError as error:
                raise error.inside(f"epochs[{number}]") from error
            epochs.append(epoch)
        ids = {"client_ids": clients.ids, "topic_ids": topics.ids}
        timeline = cls(
            kept[0],
            lambda: iter(epochs),
            len(epochs),
            name=name,
            prices=prices,
            parameters={**(parameters or {}), **ids},
        )
        for _ in timeline.epochs():  # an error must be found here, not when the timeline is used
            pass
        return timeline

    @classmethod
    def static(
        cls, instance: Instance, *, n_epochs: int, length: float = 60.0, prices: Prices | None = None
    ) -> "Timeline":
        """Return the timeline in which nothing ever changes.

        Parameters
        ----------
        instance
            The problem of every epoch.
        n_epochs
            The number of epochs.
        length
            Seconds of every epoch.
        prices
            As for the constructor.

        Returns
        -------
        Timeline
            The timeline.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> relocbench.Timeline.static(instance, n_epochs=3).n_epochs
        3
        """
        require_instance(instance)

        def epochs() -> Iterator[Epoch]:
            clients = np.arange(instance.n_clients, dtype=np.int32)
            topics = np.arange(instance.n_topics, dtype=np.int32)
            for number in range(n_epochs):
                yield Epoch(number, number * float(length), length, clients, topics, instance)

        kept = {name: instance.parameters[name] for name in ID_LISTS if name in instance.parameters}
        return cls(instance, epochs, n_epochs, name=instance.name, prices=prices, parameters=kept)

    @property
    def n_servers(self) -> int:
        """``L``, the number of servers."""
        return self.network.n_servers

    @property
    def client_ids(self) -> list[Id] | None:
        """The ids of the clients by their numbers; None if the numbers are the ids."""
        return self.parameters.get("client_ids")

    @property
    def topic_ids(self) -> list[Id] | None:
        """The ids of the topics by their numbers; None if the numbers are the ids."""
        return self.parameters.get("topic_ids")

    def epochs(self) -> Iterator[Epoch]:
        """Produce the epochs one after the other, and check them.

        Yields
        ------
        Epoch
            The epochs in the order of time. Only those that the caller keeps stay in memory.

        Raises
        ------
        InputError
            If an epoch has other servers, begins before the one before ends, or names a client or topic that the
            timeline does not have; or if there are fewer or more epochs than stated.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> list(relocbench.Timeline.static(instance, n_epochs=2, length=30).epochs())
        [<Epoch 0 at 0 s for 30 s: 4 clients, 2 topics>, <Epoch 1 at 30 s for 30 s: 4 clients, 2 topics>]
        """
        n_clients, n_topics = (None if ids is None else len(ids) for ids in (self.client_ids, self.topic_ids))
        before: Epoch | None = None
        count = 0
        for epoch in self._produce():
            place = self._place.format(count)
            if epoch.number != count:
                raise InputError(place, f"expected epoch {count}, got {epoch.number}; number the epochs from 0")
            try:
                check_order(epoch.start, None if before is None else (before.start, before.end))
                check_known("client", epoch.clients, n_clients)
                check_known("topic", epoch.topics, n_topics)
                check_network(epoch.instance, self.network)
            except InputError as error:
                raise error.inside(place) from error
            yield epoch
            before = epoch
            count += 1
        if count != self.n_epochs:
            raise InputError("epochs", f"expected {self.n_epochs}, got {count}")

    def epoch(self, number: int) -> Epoch:
        """Return one epoch. To use many epochs, iterate over :meth:`epochs`: this produces all earlier ones too.

        Parameters
        ----------
        number
            Position of the epoch, from 0.

        Returns
        -------
        Epoch
            The epoch.

        Raises
        ------
        InputError
            If there is no such epoch.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> relocbench.Timeline.static(instance, n_epochs=2, length=30).epoch(1).start
        30.0
        """
        if not 0 <= number < self.n_epochs:
            raise InputError("epoch", f"expected a number from 0 to {self.n_epochs - 1}, got {shown(number)}")
        return next(itertools.islice(self.epochs(), number, None))

    def instance(self, number: int) -> Instance:
        """Return the problem of one epoch.

        Parameters
        ----------
        number
            Position of the epoch, from 0.

        Returns
        -------
        Instance
            The instance of the epoch.

        Raises
        ------
        InputError
            If there is no such epoch.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> relocbench.Timeline.static(instance, n_epochs=2).instance(1)
        <Instance tiny-scarce-plain-0: 4 clients, 4 servers, 2 topics>
        """
        return self.epoch(number).instance

    def with_prices(self, **changes: float) -> "Timeline":
        """Return the same timeline with other prices.

        Parameters
        ----------
        **changes
            Fields of :class:`Prices` with their new values.

        Returns
        -------
        Timeline
            The timeline. It has another hash, because a schedule costs something else.

        Raises
        ------
        InputError
            If a price is out of range.

        Examples
        --------
        >>> import relocbench
        >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
        >>> relocbench.Timeline.static(instance, n_epochs=2).with_prices(handover=0).prices.handover
        0.0
        """
        return Timeline(
            self.network,
            self._produce,
            self.n_epochs,
            name=self.name,
            prices=dataclasses.replace(self.prices, **changes),
            parameters=self.parameters,
            epoch_hashes=self._epoch_hashes,
            place=self._place,
        )

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the prices and of the hashes of all epochs: of all data that affect the cost of a schedule."""
        known = self._epoch_hashes
        return timeline_hash(self.prices, (epoch.hash for epoch in self.epochs()) if known is None else known())


def timeline_hash(prices: Prices, epochs: Iterable[str]) -> str:
    """Return the hash of a timeline.

    Parameters
    ----------
    prices
        Its prices.
    epochs
        The hashes of its epochs.

    Returns
    -------
    str
        The hash.
    """
    digest = hashlib.sha256(b"relocbench-timeline/1")
    digest.update(np.array(dataclasses.astuple(prices), "<f8").tobytes())
    for one in epochs:
        digest.update(one.encode())
    return digest.hexdigest()


def _per_epoch(name: str, given: float | Sequence[float], count: int) -> list[float]:
    values = np.asarray(given)
    if values.dtype.kind not in "iuf" or values.shape not in ((), (count,)) or not np.isfinite(values).all():
        raise InputError(name, f"expected seconds, one number or {count} numbers, got {shown(given)}")
    return [float(value) for value in np.broadcast_to(values, (count,))]


class _Ids:
    """Numbers for ids, in the order of their first appearance."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self.ids: list[Id] = []

    def numbers(self, ids: Iterable[Id]) -> IntArray:
        found = []
        for one in ids:
            number = self._number.setdefault(str(one), len(self.ids))
            if number == len(self.ids):
                self.ids.append(one)
            found.append(number)
        return np.array(found, np.int32)
