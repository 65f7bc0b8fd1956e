"""The cost of assignments in rational numbers, written from docs/model.md and independent of all evaluators.

It works on the content of an instance file, not on the class that reads it. So a wrong reader, a wrong evaluator and a
wrong solver all become visible.
"""

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

# The content of an instance file, as docs/files.md defines it.
Case = dict[str, Any]


def least_cost(case: Case) -> tuple[Fraction, tuple[int, ...]]:
    """Enumerate all assignments.

    Parameters
    ----------
    case
        The content of an instance file.

    Returns
    -------
    cost
        The cost of the best assignment.
    home
        The first assignment that has this cost.
    """
    delays = Delays(case)
    homes = itertools.product(range(len(case["servers"]["x"])), repeat=len(case["clients"]["x"]))
    return min((cost(case, home, delays), home) for home in homes)


class Delays:
    """All delays of an instance as rational numbers.

    Parameters
    ----------
    case
        The content of an instance file.

    Attributes
    ----------
    client, server
        ``dH`` and ``dS``.
    cloud
        ``dC``.
    """

    def __init__(self, case: Case) -> None:
        clients, servers = _points(case["clients"]), _points(case["servers"])
        per_km = float(case["delay_per_km"])

        def matrix(name: str, rows: list[tuple[float, float]]) -> list[list[Fraction]]:
            given = case.get(name)
            if given is None:
                given = [[per_km * _distance(one, other) for other in servers] for one in rows]
            return [[Fraction(float(value)) for value in row] for row in given]

        self.client = matrix("client_server_delay", clients)
        self.server = matrix("server_server_delay", servers)
        self.cloud = Fraction(float(case["cloud_delay"]))


def cost(case: Case, home: Sequence[int], delays: Delays | None = None) -> Fraction:
    """Compute the cost ``ΣD`` of an assignment.

    Parameters
    ----------
    case
        The content of an instance file.
    home
        The server of each client.
    delays
        Its delays, if they are known already.

    Returns
    -------
    Fraction
        The cost.
    """
    delays = delays or Delays(case)
    theta = [_theta(case, home, server) for server in range(len(case["servers"]["x"]))]
    total = Fraction(0)
    for topic in case["topics"]:
        for publisher in topic["publishers"]:
            receivers = [client for client in topic["subscribers"] if client != publisher]
            if not receivers:
                continue
            here = home[publisher]
            total += delays.client[publisher][here] + 2 * delays.cloud * (1 - theta[here])
            to_receivers = sum(
                theta[here] * delays.server[here][home[client]] + delays.client[client][home[client]]
                for client in receivers
            )
            total += Fraction(to_receivers) / len(receivers)
    return total


def _theta(case: Case, home: Sequence[int], server: int) -> Fraction:
    storage, compute = Fraction(0), Fraction(0)
    for topic in case["topics"]:
        publishers_here = sum(home[client] == server for client in topic["publishers"])
        if publishers_here:
            storage += Fraction(float(topic["spool"]))
            compute += publishers_here * Fraction(float(topic["spool"]))
    share = Fraction(1)
    for capacity, load in (("storage", storage), ("compute", compute)):
        if load:
            share = min(share, Fraction(float(case["servers"][capacity][server])) / load)
    return share


def _points(places: dict[str, list[float]]) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in zip(places["x"], places["y"], strict=True)]


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    # The delay is defined as a float64 number, with these operations in this order.
    dx, dy = one[0] - other[0], one[1] - other[1]
    return math.sqrt(dx * dx + dy * dy)
