"""The fields of an instance from tables of servers, clients and topics. ``Instance.of`` calls it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, shown
from relocbench.instances.kernels.ragged import FloatArray, Ragged
from relocbench.instances.tables import Id, Table, as_id, as_table, is_missing, is_table, list_of, number

SERVER_COLUMNS = ("x", "y", "storage", "compute")
SERVER_IDS = ("id", "server_id", "server", "site_id", "name")
CLIENT_IDS = ("id", "client_id", "client", "user_id", "user", "name")
# The column of a table of memberships that holds the client.
MEMBER_COLUMNS = ("client", "client_id", "user", "user_id", "member")
# The names of the roles of a client in a topic, each with whether it publishes and whether it subscribes.
ROLES = {
    **dict.fromkeys(("publish", "publisher", "publishes", "pub"), (True, False)),
    **dict.fromkeys(("subscribe", "subscriber", "subscribes", "sub"), (False, True)),
    "both": (True, True),
}
TOPIC_FIELDS = ("publishers", "subscribers", "members", "spool")


def instance_fields(
    servers: Any,
    clients: Any,
    topics: Any,
    storage: float | None = None,
    compute: float | None = None,
    spool_per_member: float = 2.0,
    parameters: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the fields of an instance that come from tables.

    Parameters
    ----------
    servers, clients, topics, storage, compute, spool_per_member, parameters
        As for :meth:`relocbench.instances.instance.Instance.of`.

    Returns
    -------
    dict
        Arguments of the constructor of an instance.

    Raises
    ------
    InputError
        If a table has the wrong form or a value is wrong; the message names the row and the column.
    """
    server_table, client_table = as_table(servers, "servers", SERVER_COLUMNS), as_table(clients, "clients", ("x", "y"))
    server_at, client_at = _positions(server_table, client_table)
    client_ids = client_table.ids(*CLIENT_IDS)
    topic_ids, topic_list = topic_lists(topics, client_table.count, client_ids)
    ids = {"server_ids": server_table.ids(*SERVER_IDS), "client_ids": client_ids, "topic_ids": topic_ids}
    publishers = [topic["publishers"] for topic in topic_list]
    subscribers = [topic["subscribers"] for topic in topic_list]
    size = [len({*one, *other}) for one, other in zip(publishers, subscribers, strict=True)]
    per_member = _given(number, "spool_per_member", spool_per_member)
    spool = [
        per_member * count if topic["spool"] is None else topic["spool"]
        for topic, count in zip(topic_list, size, strict=True)
    ]
    return {
        "server_x": server_at[:, 0],
        "server_y": server_at[:, 1],
        "storage_capacity": capacity_of(server_table, "storage", storage),
        "compute_capacity": capacity_of(server_table, "compute", compute),
        "client_x": client_at[:, 0],
        "client_y": client_at[:, 1],
        "spool": np.array(spool, np.float64),
        "publishers": Ragged.of(publishers),
        "subscribers": Ragged.of(subscribers),
        "parameters": {**(parameters or {}), **{name: values for name, values in ids.items() if values is not None}},
    }


def _positions(servers: Table, clients: Table) -> tuple[FloatArray, FloatArray]:
    """Return the positions in km, projected if the tables have degrees."""
    from relocbench.instances.files.places import map_centre, project

    server_points, client_points = points_of(servers), points_of(clients)
    if not server_points.in_degrees and not client_points.in_degrees:
        return server_points.at, client_points.at
    for points in (server_points, client_points):
        if not points.in_degrees:
            raise InputError(points.label, "expected latitude and longitude as in the other table, got x and y")
    centre = map_centre(server_points.at)
    return project(server_points.at, centre), project(client_points.at, centre)


@dataclass(frozen=True, eq=False)
class Points:
    """The positions of a table.

    Attributes
    ----------
    label
        Name of the table in error messages.
    in_degrees
        Whether they are latitude and longitude, and not x and y in km.
    at
        The positions (``n×2``).
    """

    label: str
    in_degrees: bool
    at: FloatArray


def points_of(table: Table) -> Points:
    """Return the positions of a table.

    Parameters
    ----------
    table
        A table with the columns ``x`` and ``y``, or ``latitude`` and ``longitude``.

    Returns
    -------
    Points
        The positions.

    Raises
    ------
    InputError
        If the table has no rows or no such columns, or a value is no number or out of range.
    """
    from relocbench.instances.files.places import LATITUDE_NAMES, LONGITUDE_NAMES

    if not table.count:
        raise InputError(table.label, "expected at least one row, got none")
    latitude, longitude = table.find(*LATITUDE_NAMES), table.find(*LONGITUDE_NAMES)
    if "x" in table.columns and "y" in table.columns:
        return Points(table.label, False, np.column_stack([table.numbers("x"), table.numbers("y")]))
    if latitude is None or longitude is None:
        found = shown(list(table.columns), 80)
        raise InputError(table.label, f"expected columns x and y, or latitude and longitude, got {found}")
    degrees = np.column_stack([table.numbers(latitude), table.numbers(longitude)])
    for position, (name, limit) in enumerate(((latitude, 90), (longitude, 180))):
        outside = np.abs(degrees[:, position]) > limit
        if outside.any():
            row = int(outside.argmax())
            problem = f"expected degrees from -{limit} to {limit}, got {degrees[row, position]:g}"
            raise InputError(table.place(row, name), problem)
    return Points(table.label, True, degrees)


def capacity_of(servers: Table, name: str, for_all: float | None) -> FloatArray:
    """Return the capacities of the servers.

    Parameters
    ----------
    servers
        The table of servers.
    name
        ``storage`` or ``compute``.
    for_all
        The capacity of every server, if the table has no such column; otherwise None.

    Returns
    -------
    array
        One capacity for each server.

    Raises
    ------
    InputError
        If there is neither a column nor a value, or both.
    """
    column = servers.find(name, f"{name}_capacity")
    if column is None:
        if for_all is None:
            problem = f"expected a column {name}, or one value for all servers ({name}= or --{name})"
            raise InputError(servers.label, problem)
        return np.full(servers.count, _given(number, name, for_all))
    if for_all is not None:
        raise InputError(name, f"is given twice: by this argument and by the column {column} of the servers")
    return servers.numbers(column)


def _given(convert: Any, name: str, value: object) -> Any:
    try:
        return convert(value)
    except ValueError as error:
        raise InputError(name, f"expected {error}, got {shown(value)}") from None


class _Clients:
    """The clients that topics refer to: by their ids if they have some, otherwise by index."""

    def __init__(self, count: int, ids: Sequence[Id] | None, source: str) -> None:
        self._has_ids, self._source = ids is not None, source
        self._position = {str(one): position for position, one in enumerate(range(count) if ids is None else ids)}

    def index(self, place: str, value: object) -> int:
        """Return the index of a client."""
        try:
            text = str(as_id(value))
            # Without ids, the text "3.0" of a CSV file is an index, like the float 3.0.
            found = self._position.get(text if self._has_ids else text.removesuffix(".0"))
        except ValueError:
            found = None
        if found is not None:
            return found
        first = next(iter(self._position))
        expected, fix = f"a client from 0 to {len(self._position) - 1}", ""
        if self._has_ids:
            expected = f"the id of a client such as {shown(first)}"
            fix = f"; add it to {self._source}, or remove it here"
        raise InputError(place, f"expected {expected}, got {shown(value)}{fix}")


def topic_lists(
    topics: Any, n_clients: int, client_ids: Sequence[Id] | None, source: str = "the clients"
) -> tuple[list[Id] | None, list[dict[str, Any]]]:
    """Return the topics of a table or a list.

    Parameters
    ----------
    topics
        As for :meth:`relocbench.instances.instance.Instance.of`.
    n_clients, client_ids
        The number of clients, and their ids if they have some.
    source
        Where the clients come from, for error messages.

    Returns
    -------
    ids
        The ids of the topics; None if they have none.
    lists
        For each topic its ``publishers`` and ``subscribers`` by index, and its ``spool`` or None.

    Raises
    ------
    InputError
        If a client does not exist, or the table has the wrong form.
    """
    clients = _Clients(n_clients, client_ids, source)
    if isinstance(topics, Mapping) and not ("topic" in topics and any(name in topics for name in MEMBER_COLUMNS)):
        lists = [_topic(f"topics[{shown(name)}]", topic, clients) for name, topic in topics.items()]
        return [_given(as_id, "topics", name) for name in topics], lists
    if not is_table(topics):
        rows = list_of(topics, "topics")
        if not (rows and isinstance(rows[0], Mapping) and "topic" in rows[0]):
            return None, [_topic(f"topics[{position}]", topic, clients) for position, topic in enumerate(rows)]
    return _from_memberships(as_table(topics, "topics", ()), clients)


def _topic(label: str, topic: Any, clients: _Clients) -> dict[str, Any]:
    if not isinstance(topic, Mapping):
        topic = {"members": topic}
    for field in topic:
        if field not in TOPIC_FIELDS:
            raise InputError(f"{label}.{field}", f"unknown field; expected one of {', '.join(TOPIC_FIELDS)}")
    if "members" in topic:
        if "publishers" in topic or "subscribers" in topic:
            raise InputError(label, "expected either members, who publish and subscribe, or publishers and subscribers")
        topic = {**topic, "publishers": topic["members"], "subscribers": topic["members"]}
    found: dict[str, Any] = {"spool": None}
    for field in ("publishers", "subscribers"):
        if field not in topic:
            raise InputError(f"{label}.{field}", "is missing; use members for clients that publish and subscribe")
        entries = list_of(topic[field], f"{label}.{field}")
        found[field] = [clients.index(f"{label}.{field}[{position}]", one) for position, one in enumerate(entries)]
    if not is_missing(topic.get("spool")):
        found["spool"] = _given(number, f"{label}.spool", topic["spool"])
    return found


def _from_memberships(table: Table, clients: _Clients) -> tuple[list[Id], list[dict[str, Any]]]:
    """Return the topics of a long table with one row per membership."""
    client = table.find(*MEMBER_COLUMNS)
    if client is None or "topic" not in table.columns:
        found = shown(list(table.columns), 80)
        raise InputError(table.label, f"expected columns topic and client, and optionally role and spool, got {found}")
    names = table.converted("topic", as_id)
    spools = table.converted("spool", _number_or_none) if "spool" in table.columns else None
    topics: dict[str, dict[str, Any]] = {}
    ids: dict[str, Id] = {}
    seen: set[tuple[str, str, int]] = set()
    for row in range(table.count):
        name = str(names[row])
        ids.setdefault(name, names[row])
        topic = topics.setdefault(name, {"publishers": [], "subscribers": [], "spool": None})
        one = clients.index(table.place(row, client), table.columns[client][row])
        for field, takes_part in zip(("publishers", "subscribers"), _role(table, row), strict=True):
            if not takes_part:
                continue
            if (name, field, one) in seen:
                value = table.columns[client][row]
                raise InputError(table.place(row, client), f"{shown(value)} is listed twice in topic {shown(name)}")
            seen.add((name, field, one))
            topic[field].append(one)
        if spools is not None and (spool := spools[row]) is not None:
            if topic["spool"] not in (None, spool):
                problem = f"expected {topic['spool']:g} as in an earlier row of the topic, got {spool:g}"
                raise InputError(table.place(row, "spool"), problem)
            topic["spool"] = spool
    return list(ids.values()), list(topics.values())


def _number_or_none(value: object) -> float | None:
    return None if is_missing(value) else number(value)


def _role(table: Table, row: int) -> tuple[bool, bool]:
    if "role" not in table.columns:
        return True, True
    value = table.columns["role"][row]
    role = ROLES.get(value.lower()) if isinstance(value, str) else None
    if role is None:
        raise InputError(table.place(row, "role"), f"expected publish, subscribe or both, got {shown(value)}")
    return role
