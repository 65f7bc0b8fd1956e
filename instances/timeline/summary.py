"""How much changes in a timeline: arrivals, departures, new topics, speed and load."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from relocbench.instances.load import load_of
from relocbench.instances.timeline.epoch import Epoch


def summarise(epochs: Iterable[Epoch]) -> dict[str, Any]:
    """Summarise the epochs of a timeline. Only two of them are kept at a time.

    Parameters
    ----------
    epochs
        The epochs, at least one.

    Returns
    -------
    dict
        ``start`` and ``end``; ``seconds``, without gaps; ``clients`` and ``topics`` as least and largest numbers;
        ``client_hours``; ``arrivals``, ``departures`` and ``new_topics`` from one epoch to the next;
        ``mean_speed_km_per_hour`` of clients that stay; ``load`` as the least and the largest (None if infinite).
    """
    before: Epoch | None = None
    clients, topics, loads = _Range(), _Range(), _Range()
    start = end = seconds = client_seconds = kilometres = travelled_seconds = 0.0
    arrivals = departures = new_topics = 0
    for epoch in epochs:
        instance = epoch.instance
        clients.add(instance.n_clients)
        topics.add(instance.n_topics)
        loads.add(load_of(instance).largest)
        seconds += epoch.length
        client_seconds += instance.n_clients * epoch.length
        end = epoch.end
        if before is None:
            start = epoch.start
        else:
            _, earlier, later = np.intersect1d(before.clients, epoch.clients, assume_unique=True, return_indices=True)
            arrivals += len(epoch.clients) - len(later)
            departures += len(before.clients) - len(earlier)
            new_topics += len(np.setdiff1d(epoch.topics, before.topics, assume_unique=True))
            dx = instance.client_x[later] - before.instance.client_x[earlier]
            dy = instance.client_y[later] - before.instance.client_y[earlier]
            kilometres += float(np.hypot(dx, dy).sum())
            travelled_seconds += len(later) * (epoch.start - before.start)
        before = epoch
    speed = 3600 * kilometres / travelled_seconds if travelled_seconds else 0.0
    return {
        "start": start,
        "end": end,
        "seconds": seconds,
        "clients": [int(value) for value in clients.ends],
        "topics": [int(value) for value in topics.ends],
        "client_hours": round(client_seconds / 3600, 3),
        "arrivals": arrivals,
        "departures": departures,
        "new_topics": new_topics,
        "mean_speed_km_per_hour": round(speed, 3),
        "load": [round(value, 6) if math.isfinite(value) else None for value in loads.ends],
    }


class _Range:
    """The least and the largest of some numbers."""

    def __init__(self) -> None:
        self.ends = [math.inf, -math.inf]

    def add(self, value: float) -> None:
        self.ends = [min(self.ends[0], value), max(self.ends[1], value)]
