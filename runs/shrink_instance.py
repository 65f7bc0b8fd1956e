"""Shrink an instance that shows a fault to a small instance with simple numbers that still shows it."""

import dataclasses
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, Ragged

Fault = Callable[[Instance], bool]
FaultWithHomes = Callable[[Instance, IntArray], bool]
# The numeric fields of an instance, in the order in which they are simplified.
NUMERIC_FIELDS = (
    "cloud_delay",
    "delay_per_km",
    "server_server_delay",
    "client_server_delay",
    "server_x",
    "server_y",
    "client_x",
    "client_y",
    "storage_capacity",
    "compute_capacity",
    "spool",
)


def shrink(instance: Instance, shows_fault: Fault, *, seconds: float = 60.0) -> Instance:
    """Remove clients, topics, servers and members, then simplify the numbers, as long as the fault remains.

    Parameters
    ----------
    instance
        An instance that shows the fault.
    shows_fault
        Returns whether an instance shows the fault.
    seconds
        Time limit of the search.

    Returns
    -------
    Instance
        The smallest instance found.
    """
    # Clients without a home, so that no server has to be kept.
    no_home = np.full(instance.n_clients, -1, np.int32)
    return shrink_with_homes(instance, no_home, lambda found, home: shows_fault(found), seconds=seconds)[0]


def shrink_with_homes(
    instance: Instance, home: IntArray, shows_fault: FaultWithHomes, *, seconds: float = 60.0
) -> tuple[Instance, IntArray]:
    """Shrink an instance together with an assignment on which the fault depends.

    The homes of removed clients are removed too. A server that is the home of a client is kept.

    Parameters
    ----------
    instance, seconds
        As in :func:`shrink`.
    home
        One server per client; -1 for a client without a home.
    shows_fault
        Returns whether an instance with the given homes shows the fault.

    Returns
    -------
    instance
        The smallest instance found.
    home
        The homes of its clients.
    """
    search = _Search(instance, home, shows_fault, time.perf_counter() + seconds)
    while search.has_time():
        before = search.best
        # Removing one piece may make it possible to remove another, so this is repeated until nothing changes.
        search.drop(lambda found: found.n_clients, _without_clients)
        search.drop(lambda found: found.n_topics, _without_topics)
        search.drop(lambda found: found.n_servers, _without_servers)
        search.drop(lambda found: len(found.publishers.item) + len(found.subscribers.item), _without_members)
        if search.best is before:
            search.simplify()
        if search.best is before:
            break
    parameters = {"shrunk_from": instance.name or instance.hash}
    name = f"{instance.name or 'instance'}-shrunk"
    return dataclasses.replace(search.best, name=name, parameters=parameters), search.home


class _Search:
    """The smallest instance found so far, and the attempts to make it smaller."""

    def __init__(self, instance: Instance, home: IntArray, shows_fault: FaultWithHomes, deadline: float) -> None:
        self.best = instance
        self.home = home
        self._shows_fault = shows_fault
        self._deadline = deadline
        self._tried = {instance.hash}

    def has_time(self) -> bool:
        return time.perf_counter() < self._deadline

    def drop(self, count: Callable[[Instance], int], without: Callable[[Instance, range], Instance]) -> None:
        """Try to remove ranges of entries: first halves, then smaller and smaller ranges, at last single entries."""
        size = max(1, count(self.best) // 2)
        while size >= 1:
            at = 0
            while at < count(self.best) and self.has_time():
                if not self._attempt(without, range(at, min(at + size, count(self.best)))):
                    at += size
            size //= 2

    def simplify(self) -> None:
        """Try simpler numbers: first for a whole field, then for each of its numbers."""
        for name in NUMERIC_FIELDS:
            if name in ("server_server_delay", "client_server_delay"):
                self._attempt(_without_matrix, name)
            for digits in (None, 0, 1, 2):
                self._attempt_values(name, _rounded, digits)
            for place in range(np.size(_values(self.best, name))):
                for simple in (0.0, 1.0, 0, 1, 2):
                    self._attempt_values(name, _one_simplified, place, simple)

    def _attempt_values(self, name: str, change: Callable[..., Any], *arguments: Any) -> bool:
        old = _values(self.best, name)
        if not np.size(old):
            return False
        new = change(old, *arguments)
        if _length(new) >= _length(old):
            return False
        shaped: Any = float(new[0]) if np.ndim(getattr(self.best, name)) == 0 else new
        return self._attempt(lambda found: dataclasses.replace(found, **{name: shaped}))

    def _attempt(self, change: Callable[..., Instance], *arguments: Any) -> bool:
        if not self.has_time():
            return False
        try:
            candidate = change(self.best, *arguments)
        except InputError:  # an instance must keep at least one client, server and topic
            return False
        if candidate.hash in self._tried:
            return False
        self._tried.add(candidate.hash)
        home = self.home
        if change is _without_clients:
            home = home[_kept(self.best.n_clients, *arguments)]
        elif change is _without_servers:
            keep = _kept(self.best.n_servers, *arguments)
            if np.setdiff1d(home[home >= 0], keep).size:
                return False
            home = np.where(home >= 0, np.searchsorted(keep, home), home).astype(np.int32)
        if self._shows_fault(candidate, home):
            self.best, self.home = candidate, home
            return True
        return False


def _values(instance: Instance, name: str) -> Any:
    """Return the numbers of a field as an array; an empty array for a field that the instance does not have."""
    value = getattr(instance, name)
    return np.empty(0) if value is None else np.atleast_1d(np.asarray(value, np.float64))


def _without_matrix(instance: Instance, name: str) -> Instance:
    changes: dict[str, Any] = {name: None}
    return dataclasses.replace(instance, **changes)


def _rounded(values: Any, digits: int | None) -> Any:
    return np.zeros_like(values) if digits is None else np.round(values, digits)


def _one_simplified(values: Any, place: int, simple: float) -> Any:
    """Return the values with one of them replaced by a float, or rounded to a number of digits given as an int."""
    changed = values.copy()
    old = changed.flat[place]
    changed.flat[place] = simple if isinstance(simple, float) else round(float(old), simple)
    return changed


def _length(values: Any) -> int:
    """Return how many characters the values have when printed; a zero counts as none."""
    return sum(0 if value == 0 else len(f"{value:.17g}") for value in map(float, np.ravel(values)))


def _without_clients(instance: Instance, removed: range) -> Instance:
    keep = _kept(instance.n_clients, removed)
    number = np.full(instance.n_clients, -1)
    number[keep] = np.arange(len(keep))

    def renumbered(members: Ragged) -> list[list[int]]:
        return [[int(number[m]) for m in topic if number[m] >= 0] for topic in members]

    delay = instance.client_server_delay
    return _with_members(
        instance,
        renumbered(instance.publishers),
        renumbered(instance.subscribers),
        client_x=instance.client_x[keep],
        client_y=instance.client_y[keep],
        client_server_delay=None if delay is None else delay[keep],
    )


def _without_topics(instance: Instance, removed: range) -> Instance:
    publishers, subscribers = _member_lists(instance)
    for topic in removed:
        publishers[topic] = subscribers[topic] = []
    return _with_members(instance, publishers, subscribers)


def _without_servers(instance: Instance, removed: range) -> Instance:
    keep = _kept(instance.n_servers, removed)
    client_delay, server_delay = instance.client_server_delay, instance.server_server_delay
    changes: dict[str, Any] = {
        name: getattr(instance, name)[keep] for name in ("server_x", "server_y", "storage_capacity", "compute_capacity")
    }
    return dataclasses.replace(
        instance,
        **changes,
        client_server_delay=None if client_delay is None else client_delay[:, keep],
        server_server_delay=None if server_delay is None else server_delay[np.ix_(keep, keep)],
    )


def _without_members(instance: Instance, removed: range) -> Instance:
    """Remove memberships; they are numbered through the lists of all publishers and then of all subscribers."""
    publishers, subscribers = _member_lists(instance)
    number = itertools.count()
    publishers = [[m for m in topic if next(number) not in removed] for topic in publishers]
    subscribers = [[m for m in topic if next(number) not in removed] for topic in subscribers]
    return _with_members(instance, publishers, subscribers)


def _with_members(
    instance: Instance, publishers: list[list[int]], subscribers: list[list[int]], **changes: Any
) -> Instance:
    """Replace the members of all topics, and remove the topics without members."""
    keep = [n for n, (p, s) in enumerate(zip(publishers, subscribers, strict=True)) if p or s]
    return dataclasses.replace(
        instance,
        spool=instance.spool[keep],
        publishers=Ragged.of([publishers[n] for n in keep]),
        subscribers=Ragged.of([subscribers[n] for n in keep]),
        **changes,
    )


def _member_lists(instance: Instance) -> tuple[list[list[int]], list[list[int]]]:
    return [topic.tolist() for topic in instance.publishers], [topic.tolist() for topic in instance.subscribers]


def _kept(size: int, removed: range) -> Any:
    return np.setdiff1d(np.arange(size), np.array(removed))
