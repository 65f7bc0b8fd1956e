"""Small instances of odd shape and of every magnitude, as the content of instance files.

The number of an instance determines its shape and its magnitude, and together with the seed all its values. The numbers
of shapes and of magnitudes have no common divisor, so that every pair occurs.
"""

import random
from collections.abc import Callable

from benchmarks.trials.rational_cost import Case, Delays

SHAPES = (
    "plain",
    "one client",
    "one server",
    "more servers than clients",
    "no publishers",
    "no subscribers",
    "no receivers",
    "roles differ",
    "idle clients",
    "same position",
    "zero spools",
    "zero capacities",
    "zero delays",
    "asymmetric",
    "near cloud",
    "ties",
)
# The largest values that an instance file may contain (docs/files.md).
LARGEST_DELAY = LARGEST_SPOOL = 1e12
LARGEST_CAPACITY = 1e15


def odd_case(seed: int, number: int, most_assignments: int = 500) -> tuple[str, str, Case]:
    """Return an instance.

    Parameters
    ----------
    seed, number
        The seed of the campaign and the number of the instance.
    most_assignments
        The largest number of assignments, all of which are enumerated.

    Returns
    -------
    shape, magnitude
        What is odd about it.
    case
        The content of the instance file.
    """
    shape = SHAPES[number % len(SHAPES)]
    magnitude = tuple(MAGNITUDES)[number % len(MAGNITUDES)]
    rng = random.Random(f"instance {seed} {number}")
    case = _shaped(rng, shape, most_assignments)
    MAGNITUDES[magnitude](case, rng)
    case["name"] = f"odd-{seed}-{number}"
    _limit(case)
    return shape, magnitude, case


def _shaped(rng: random.Random, shape: str, most_assignments: int) -> Case:
    clients, servers = _sizes(rng, shape, most_assignments)
    explicit = shape == "asymmetric" or (shape != "same position" and rng.random() < 0.3)
    digits = 0 if shape == "ties" else rng.choice([1, 6, 17])

    def number(low: float, high: float) -> float:
        return round(rng.uniform(low, high), digits)

    def places(count: int) -> dict[str, list[float]]:
        return {axis: [number(0, 25) for _ in range(count)] for axis in "xy"}

    topics = [_topic(rng, shape, clients) for _ in range(rng.randint(1, 5))]
    for topic in topics:
        topic["spool"] = number(0.5, 9) if shape != "zero spools" or rng.random() < 0.5 else 0.0
    load = sum(topic["spool"] * len(topic["publishers"]) for topic in topics) or 1.0
    level = rng.choice([(1.0, 3.0), (0.2, 1.0), (0.05, 0.4)])

    def capacity() -> float:
        if shape == "zero capacities" and rng.random() < 0.5:
            return 0.0
        return round(load * rng.uniform(*level), max(digits, 3))

    where = {"clients": places(clients), "servers": places(servers)}
    if shape == "same position":
        for group in where.values():
            for axis in "xy":
                group[axis] = [rng.choice(group[axis][:2]) for _ in group[axis]]
    case: Case = {
        "format": "relocbench-instance/1",
        "cloud_delay": number(0, 1) if shape == "near cloud" else 5.0,
        "delay_per_km": 0.1,
        "servers": where["servers"]
        | {"storage": [capacity() for _ in range(servers)], "compute": [capacity() for _ in range(servers)]},
        "clients": where["clients"],
        "topics": topics,
    }
    if explicit:
        case["client_server_delay"] = [[number(0, 3) for _ in range(servers)] for _ in range(clients)]
        case["server_server_delay"] = [
            [0.0 if one == other else number(0, 5) for other in range(servers)] for one in range(servers)
        ]
    if shape == "zero delays":
        for name in rng.sample(["cloud_delay", "delay_per_km"], rng.randint(1, 2)):
            case[name] = 0.0
    return case


def _sizes(rng: random.Random, shape: str, most_assignments: int) -> tuple[int, int]:
    if shape == "one client":
        return 1, rng.randint(1, 6)
    if shape == "one server":
        return rng.randint(1, 8), 1
    while True:
        clients, servers = rng.randint(2, 8), rng.randint(2, 5)
        if shape == "more servers than clients":
            clients, servers = rng.randint(2, 4), rng.randint(5, 7)
        if servers**clients <= most_assignments:
            return clients, servers


def _topic(rng: random.Random, shape: str, clients: int) -> Case:
    known = list(range(max(1, clients - 2))) if shape == "idle clients" else list(range(clients))
    members = rng.sample(known, rng.randint(1, len(known)))
    publishers, subscribers = list(members), list(members)
    odd = rng.random() < 0.5
    if shape == "no publishers" and odd:
        publishers = []
    elif shape == "no subscribers" and odd:
        subscribers = []
    elif shape == "no receivers" and odd:
        publishers = subscribers = members[:1]
    elif shape in ("roles differ", "asymmetric", "near cloud"):
        publishers = rng.sample(members, rng.randint(0, len(members)))
        subscribers = [client for client in members if client not in publishers or rng.random() < 0.5]
    return {"spool": 0.0, "publishers": publishers, "subscribers": subscribers}


def _power(rng: random.Random, low: int, high: int) -> float:
    return float(10.0 ** rng.randint(low, high))


def _scale_delays(case: Case, factor: float) -> None:
    for name in ("cloud_delay", "delay_per_km"):
        case[name] *= factor
    for name in ("client_server_delay", "server_server_delay"):
        if name in case:
            case[name] = [[factor * value for value in row] for row in case[name]]


def _scale_loads(case: Case, factor: float) -> None:
    for topic in case["topics"]:
        topic["spool"] *= factor
    for name in ("storage", "compute"):
        case["servers"][name] = [factor * value for value in case["servers"][name]]


def _everything(case: Case, rng: random.Random) -> None:
    _scale_delays(case, _power(rng, -9, 9))
    _scale_loads(case, _power(rng, -9, 9))


def _scale_some_delays(case: Case, rng: random.Random, factor: float) -> None:
    delays = Delays(case)
    for name, exact in (("client_server_delay", delays.client), ("server_server_delay", delays.server)):
        case[name] = [[float(value) * (factor if rng.random() < 0.2 else 1.0) for value in row] for row in exact]
    if rng.random() < 0.2:
        case["cloud_delay"] *= factor


def _scale_some_spools(case: Case, rng: random.Random, factor: float) -> None:
    for topic in rng.sample(case["topics"], rng.randint(1, len(case["topics"]))):
        topic["spool"] *= factor


def _scale_some_capacities(case: Case, rng: random.Random, factor: float) -> None:
    servers = case["servers"]
    names = rng.sample(["storage", "compute"], rng.randint(1, 2))
    for server in rng.sample(range(len(servers["x"])), rng.randint(1, len(servers["x"]))):
        for name in names:
            servers[name][server] *= factor


def _dead_server(case: Case, rng: random.Random) -> None:
    servers = case["servers"]
    server = rng.randrange(len(servers["x"]))
    for name in ("storage", "compute"):
        servers[name][server] = rng.uniform(1, 9) * _power(rng, -9, -4)


def _mixed_units(case: Case, rng: random.Random) -> None:
    """Give some values in bytes and others in megabytes."""
    factor = rng.choice([1e3, 1e6, 1024.0, 1048576.0])
    _scale_some_capacities(case, rng, factor)
    if rng.random() < 0.5:
        _scale_some_spools(case, rng, factor)


def _wide(case: Case, rng: random.Random) -> None:
    """Multiply every spool, capacity and delay by a power of ten of its own."""
    _scale_some_delays(case, rng, 1.0)
    for topic in case["topics"]:
        topic["spool"] *= _power(rng, -3, 3)
    for name in ("storage", "compute"):
        case["servers"][name] = [value * _power(rng, -3, 3) for value in case["servers"][name]]
    for name in ("client_server_delay", "server_server_delay"):
        case[name] = [[value * _power(rng, -3, 3) for value in row] for row in case[name]]


MAGNITUDES: dict[str, Callable[[Case, random.Random], None]] = {
    "ordinary": lambda case, rng: None,
    "all delays large": lambda case, rng: _scale_delays(case, _power(rng, 1, 9)),
    "all delays small": lambda case, rng: _scale_delays(case, _power(rng, -9, -1)),
    "all loads large": lambda case, rng: _scale_loads(case, _power(rng, 1, 9)),
    "all loads small": lambda case, rng: _scale_loads(case, _power(rng, -9, -1)),
    "everything scaled": _everything,
    "some delays large": lambda case, rng: _scale_some_delays(case, rng, _power(rng, 1, 12)),
    "some delays small": lambda case, rng: _scale_some_delays(case, rng, _power(rng, -12, -1)),
    "some spools large": lambda case, rng: _scale_some_spools(case, rng, _power(rng, 1, 12)),
    "some spools small": lambda case, rng: _scale_some_spools(case, rng, _power(rng, -12, -1)),
    "some capacities large": lambda case, rng: _scale_some_capacities(case, rng, _power(rng, 1, 12)),
    "some capacities small": lambda case, rng: _scale_some_capacities(case, rng, _power(rng, -12, -1)),
    "dead server": _dead_server,
    "mixed units": _mixed_units,
    "wide": _wide,
}


def _limit(case: Case) -> None:
    """Reduce values to what an instance file may contain."""
    case["cloud_delay"] = min(case["cloud_delay"], LARGEST_DELAY)
    for topic in case["topics"]:
        topic["spool"] = min(topic["spool"], LARGEST_SPOOL)
    for name in ("storage", "compute"):
        case["servers"][name] = [min(value, LARGEST_CAPACITY) for value in case["servers"][name]]
    for name in ("client_server_delay", "server_server_delay"):
        if name in case:
            case[name] = [[min(value, LARGEST_DELAY) for value in row] for row in case[name]]
