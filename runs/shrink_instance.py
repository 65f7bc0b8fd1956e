"""Make an instance that shows a fault as small and plain as possible, so that a person can look at it."""

import dataclasses
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray, Ragged

Fault = Callable[[Instance], bool]
FaultBeside = Callable[[Instance, IntArray], bool]
NUMBERS = (
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
    """Drop clients, topics, servers and members, then make the numbers plain, while the fault stays.

    Parameters
    ----------
    instance
        An instance that shows the fault.
    shows_fault
        Tells whether a smaller one still does.
    seconds
        After which the smallest found so far has to do.
    """
    # No client is homed anywhere that could go.
    nowhere = np.full(instance.n_clients, -1, np.int32)
    return shrink_beside(instance, nowhere, lambda found, home: shows_fault(found), seconds=seconds)[0]


def shrink_beside(
    instance: Instance, home: IntArray, shows_fault: FaultBeside, *, seconds: float = 60.0
) -> tuple[Instance, IntArray]:
    """Shrink an instance with an assignment that the fault is measured by.

    Clients that go take their homes along; a server that is somebody's home stays.

    Parameters
    ----------
    instance, shows_fault, seconds
        As in :func:`shrink`; the fault is told of the instance and of the homes that are left.
    home
        One server per client.
    """
    search = _Search(instance, home, shows_fault, time.perf_counter() + seconds)
    while search.goes_on():
        before = search.best
        # Large pieces first; what cannot go now may go when something else is gone, hence the loop around.
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
    """The smallest instance so far, and the next attempts."""

    def __init__(self, instance: Instance, home: IntArray, shows_fault: FaultBeside, deadline: float) -> None:
        self.best = instance
        self.home = home
        self._shows_fault = shows_fault
        self._deadline = deadline
        self._tried = {instance.hash}

    def goes_on(self) -> bool:
        return time.perf_counter() < self._deadline

    def drop(self, count: Callable[[Instance], int], without: Callable[[Instance, range], Instance]) -> None:
        """Try to go without pieces: halves of what there is, then smaller and smaller ones, down to single entries."""
        size = max(1, count(self.best) // 2)
        while size >= 1:
            at = 0
            while at < count(self.best) and self.goes_on():
                if not self._attempt(without, range(at, min(at + size, count(self.best)))):
                    at += size
            size //= 2

    def simplify(self) -> None:
        """Try plainer numbers: for a whole column, then one by one."""
        for name in NUMBERS:
            if name in ("server_server_delay", "client_server_delay"):
                self._attempt(_without_matrix, name)
            for digits in (None, 0, 1, 2):
                self._attempt_values(name, _rounded, digits)
            for place in range(np.size(_values(self.best, name))):
                for plain in (0.0, 1.0, 0, 1, 2):
                    self._attempt_values(name, _one, place, plain)

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
        if not self.goes_on():
            return False
        try:
            candidate = change(self.best, *arguments)
        except InputError:  # nothing would be left
            return False
        if candidate.hash in self._tried:
            return False
        self._tried.add(candidate.hash)
        home = self.home
        if change is _without_clients:
            home = home[_others(self.best.n_clients, *arguments)]
        elif change is _without_servers:
            keep = _others(self.best.n_servers, *arguments)
            if np.setdiff1d(home[home >= 0], keep).size:
                return False
            home = np.where(home >= 0, np.searchsorted(keep, home), home).astype(np.int32)
        if self._shows_fault(candidate, home):
            self.best, self.home = candidate, home
            return True
        return False


def _values(instance: Instance, name: str) -> Any:
    """Return a field's numbers as an array; an empty one for what is not there."""
    value = getattr(instance, name)
    return np.empty(0) if value is None else np.atleast_1d(np.asarray(value, np.float64))


def _without_matrix(instance: Instance, name: str) -> Instance:
    changes: dict[str, Any] = {name: None}
    return dataclasses.replace(instance, **changes)


def _rounded(values: Any, digits: int | None) -> Any:
    return np.zeros_like(values) if digits is None else np.round(values, digits)


def _one(values: Any, place: int, plain: float) -> Any:
    """Return the values with one of them replaced by a plain number, or rounded where ``plain`` counts digits."""
    changed = values.copy()
    old = changed.flat[place]
    changed.flat[place] = plain if isinstance(plain, float) else round(float(old), plain)
    return changed


def _length(values: Any) -> int:
    """Return how much there is to read."""
    return sum(0 if value == 0 else len(f"{value:.17g}") for value in map(float, np.ravel(values)))


def _without_clients(instance: Instance, gone: range) -> Instance:
    keep = _others(instance.n_clients, gone)
    number = np.full(instance.n_clients, -1)
    number[keep] = np.arange(len(keep))

    def left(groups: Ragged) -> list[list[int]]:
        return [[int(number[m]) for m in topic if number[m] >= 0] for topic in groups]

    delay = instance.client_server_delay
    return _with_members(
        instance,
        left(instance.publishers),
        left(instance.subscribers),
        client_x=instance.client_x[keep],
        client_y=instance.client_y[keep],
        client_server_delay=None if delay is None else delay[keep],
    )


def _without_topics(instance: Instance, gone: range) -> Instance:
    publishers, subscribers = _lists(instance)
    for topic in gone:
        publishers[topic] = subscribers[topic] = []
    return _with_members(instance, publishers, subscribers)


def _without_servers(instance: Instance, gone: range) -> Instance:
    keep = _others(instance.n_servers, gone)
    near, between = instance.client_server_delay, instance.server_server_delay
    changes: dict[str, Any] = {
        name: getattr(instance, name)[keep] for name in ("server_x", "server_y", "storage_capacity", "compute_capacity")
    }
    return dataclasses.replace(
        instance,
        **changes,
        client_server_delay=None if near is None else near[:, keep],
        server_server_delay=None if between is None else between[np.ix_(keep, keep)],
    )


def _without_members(instance: Instance, gone: range) -> Instance:
    """Go without entries of the lists of publishers and, counted on, of subscribers."""
    publishers, subscribers = _lists(instance)
    dropped = set(gone)
    number: Iterator[int] = iter(range(len(instance.publishers.item) + len(instance.subscribers.item)))
    left = [[m for m in topic if next(number) not in dropped] for topic in publishers]
    return _with_members(instance, left, [[m for m in topic if next(number) not in dropped] for topic in subscribers])


def _with_members(
    instance: Instance, publishers: list[list[int]], subscribers: list[list[int]], **changes: Any
) -> Instance:
    """Replace who is in which topic; topics without anybody go."""
    keep = [n for n, (p, s) in enumerate(zip(publishers, subscribers, strict=True)) if p or s]
    return dataclasses.replace(
        instance,
        spool=instance.spool[keep],
        publishers=Ragged.of([publishers[n] for n in keep]),
        subscribers=Ragged.of([subscribers[n] for n in keep]),
        **changes,
    )


def _lists(instance: Instance) -> tuple[list[list[int]], list[list[int]]]:
    return [topic.tolist() for topic in instance.publishers], [topic.tolist() for topic in instance.subscribers]


def _others(size: int, gone: range) -> Any:
    return np.setdiff1d(np.arange(size), np.array(gone))
