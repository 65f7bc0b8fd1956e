"""The JSON format of instances: one instance per file, ``.json`` or ``.json.gz``."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.json_fields import Fields, read_object, whole_numbers
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged

FORMAT = "relocbench-instance/1"
KNOWN = (
    "format",
    "name",
    "cloud_delay",
    "delay_per_km",
    "servers",
    "clients",
    "topics",
    "client_server_delay",
    "server_server_delay",
    "parameters",
)


def write_json(instance: Instance, path: Path) -> None:
    """Write one instance as JSON.

    Parameters
    ----------
    instance
        The instance.
    path
        A file whose name ends in ``.json`` or ``.json.gz``.

    Raises
    ------
    InputError
        If the name has another ending or the file cannot be written.
    """
    check_json_path(path)
    content = to_json(instance).encode()
    with written_whole(path) as temporary:
        # The gzip header contains neither name nor time, so that equal instances give equal bytes.
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def to_json(instance: Instance) -> str:
    """Return the JSON text of an instance.

    Floats have the shortest form that is read as the same number. Each topic is on a line of its own.

    Parameters
    ----------
    instance
        The instance.

    Returns
    -------
    str
        The text.
    """

    def line(name: str, value: Any) -> str:
        return f"{json.dumps(name)}: {json.dumps(value)}"

    topics = ",\n".join(
        "  " + json.dumps({"spool": float(u), "publishers": p.tolist(), "subscribers": s.tolist()})
        for u, p, s in zip(instance.spool, instance.publishers, instance.subscribers, strict=True)
    )
    servers = {
        "x": instance.server_x.tolist(),
        "y": instance.server_y.tolist(),
        "storage": instance.storage_capacity.tolist(),
        "compute": instance.compute_capacity.tolist(),
    }
    parts = [
        line("format", FORMAT),
        line("name", instance.name),
        line("cloud_delay", instance.cloud_delay),
        line("delay_per_km", instance.delay_per_km),
        line("servers", servers),
        line("clients", {"x": instance.client_x.tolist(), "y": instance.client_y.tolist()}),
        f'"topics": [\n{topics}]',
    ]
    if instance.client_server_delay is not None:
        parts.append(line("client_server_delay", instance.client_server_delay.tolist()))
    if instance.server_server_delay is not None:
        parts.append(line("server_server_delay", instance.server_server_delay.tolist()))
    if instance.parameters:
        parts.append(line("parameters", dict(instance.parameters)))
    return "{" + ",\n ".join(parts) + "}\n"


def read_json(path: Path) -> Instance:
    """Read one instance from JSON.

    Parameters
    ----------
    path
        A file whose name ends in ``.json`` or ``.json.gz``.

    Returns
    -------
    Instance
        The instance.

    Raises
    ------
    InputError
        If the file cannot be read or is not a valid instance.
    """
    check_json_path(path)
    try:
        return _instance(path)
    except InputError as error:
        raise error.inside(str(path)) from error


def _instance(path: Path) -> Instance:
    fields = read_object(path, FORMAT, KNOWN)
    servers = Fields(fields.value("servers"), "servers", ("x", "y", "storage", "compute"))
    clients = Fields(fields.value("clients"), "clients", ("x", "y"))
    topics = [
        Fields(topic, f"topics[{n}]", ("spool", "publishers", "subscribers"))
        for n, topic in enumerate(fields.entries("topics"))
    ]
    return Instance(
        name=fields.text("name") if "name" in fields else "",
        cloud_delay=fields.number("cloud_delay"),
        delay_per_km=fields.number("delay_per_km"),
        server_x=servers.numbers("x"),
        server_y=servers.numbers("y"),
        storage_capacity=servers.numbers("storage"),
        compute_capacity=servers.numbers("compute"),
        client_x=clients.numbers("x"),
        client_y=clients.numbers("y"),
        spool=np.array([topic.number("spool") for topic in topics], np.float64),
        publishers=_members(topics, "publishers"),
        subscribers=_members(topics, "subscribers"),
        client_server_delay=fields.matrix("client_server_delay") if "client_server_delay" in fields else None,
        server_server_delay=fields.matrix("server_server_delay") if "server_server_delay" in fields else None,
        parameters=fields.value("parameters") if "parameters" in fields else {},
    )


def _members(topics: list[Fields], kind: str) -> Ragged:
    lists = [topic.entries(kind) for topic in topics]
    for topic, members in zip(topics, lists, strict=True):
        whole = whole_numbers(members, f"{topic.label(kind)}[{{}}]")
        # The Instance compares the ids with the number of clients. This check ensures that they fit 32 bits.
        if len(whole) and (whole.min() < 0 or whole.max() >= 2**31):
            where = int(((whole < 0) | (whole >= 2**31)).argmax())
            raise InputError(f"{topic.label(kind)}[{where}]", f"expected the index of a client, got {whole[where]}")
    return Ragged.of(lists)


def check_json_path(path: Path) -> None:
    """Check that the ending of a path names the JSON format.

    Parameters
    ----------
    path
        The path.

    Raises
    ------
    InputError
        If the name does not end in ``.json`` or ``.json.gz``.
    """
    if not path.name.endswith((".json", ".json.gz")):
        raise InputError(str(path), "expected a name ending in .json, .json.gz or .parquet")
