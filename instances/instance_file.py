"""Instances in files: JSON (``.json``, ``.json.gz``) and Parquet (one instance a row)."""

import gzip
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from relocbench.instances.errors import InputError, shown
from relocbench.instances.groups import Groups
from relocbench.instances.instance import Instance
from relocbench.instances.json_fields import Fields, read_object, whole_numbers
from relocbench.instances.writing import written_whole

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


def read_instance(path: str | Path) -> Instance:
    """Read one instance.

    A Parquet file with several instances takes the name of one behind a ``#``: ``family.parquet#paper-s10-3``.
    ``library:paper-s10-3`` is an instance of the library.
    """
    text, marker, name = str(path).rpartition(".parquet#")
    if not marker or os.path.exists(path):  # which, unlike Path.exists, takes any name
        text, name = str(path), ""
    else:
        text += ".parquet"
    found = list(itertools.islice(read_instances(text, name or None), 2))
    if len(found) == 1:
        return found[0]
    if name:
        problem = "found none" if not found else "found several"
        raise InputError(text, f"expected one instance named {shown(name)}, {problem}")
    one = f"library:{found[0].name}" if _in_library(text) else f"{text}#{found[0].name}"
    raise InputError(text, f"expected one instance, found several; name one: {one}")


def read_instances(path: str | Path, name: str | None = None) -> Iterator[Instance]:
    """Read every instance of a file, one after the other, or those of one name.

    ``library:small-*`` are the instances of the library that match.
    """
    if _in_library(path):
        from relocbench.instances.library.shelf import read_named

        yield from read_named(str(path))
        return
    path = Path(path)
    if path.suffix != ".parquet":
        check_json_path(path)
    try:
        if path.suffix == ".parquet":
            from relocbench.instances.parquet_file import read_rows

            yield from read_rows(path, name)
        else:
            yield _from_json(path)
    except InputError as error:
        raise error.inside(str(path)) from error


def instance_files(path: str | Path) -> list[Path]:
    """Return the files of instances in a folder, by name; anything else is returned as it is."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = sorted(file for end in ("*.parquet", "*.json", "*.json.gz") for file in path.glob(end))
    if not files:
        raise InputError(str(path), "expected instances in the folder (.parquet, .json, .json.gz), found none")
    return files


def _in_library(path: str | Path) -> bool:
    return str(path).startswith("library:") and not os.path.exists(path)


def write_instance(instance: Instance, path: str | Path) -> None:
    """Write one instance; the ending of the path (``.json``, ``.json.gz``, ``.parquet``) decides the format."""
    path = Path(path)
    if path.suffix == ".parquet":
        from relocbench.instances.parquet_file import write_rows

        write_rows([instance], path)
        return
    check_json_path(path)
    content = to_json(instance).encode()
    with written_whole(path) as temporary:
        # Neither name nor time goes into the gzip header: the same instance is the same bytes.
        temporary.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def check_json_path(path: Path) -> None:
    """Refuse a path whose ending names no format."""
    if not path.name.endswith((".json", ".json.gz")):
        raise InputError(str(path), "expected a name ending in .json, .json.gz or .parquet")


def check_not_the_instance(out: Path, instance: Path) -> None:
    """Refuse to write a result over the instance that it is of."""
    if out.exists() and instance.exists() and out.samefile(instance):
        raise InputError(str(out), "expected another file than the instance's")


def to_json(instance: Instance) -> str:
    """Return the instance as JSON: floats in the shortest form that reads back the same, one topic a line."""

    def line(name: str, value: Any) -> str:
        return f"{json.dumps(name)}: {json.dumps(value)}"

    topics = ",\n".join(
        "  " + json.dumps({"spool": float(u), "publishers": p.tolist(), "subscribers": s.tolist()})
        for u, p, s in zip(instance.spool, instance.publishers, instance.subscribers, strict=True)
    )
    servers = {
        "x": instance.server_x.tolist(),
        "y": instance.server_y.tolist(),
        "storage": instance.storage.tolist(),
        "compute": instance.compute.tolist(),
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


def _from_json(path: Path) -> Instance:
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
        storage=servers.numbers("storage"),
        compute=servers.numbers("compute"),
        client_x=clients.numbers("x"),
        client_y=clients.numbers("y"),
        spool=np.array([topic.number("spool") for topic in topics], np.float64),
        publishers=_members(topics, "publishers"),
        subscribers=_members(topics, "subscribers"),
        client_server_delay=fields.matrix("client_server_delay") if "client_server_delay" in fields else None,
        server_server_delay=fields.matrix("server_server_delay") if "server_server_delay" in fields else None,
        parameters=fields.value("parameters") if "parameters" in fields else {},
    )


def _members(topics: list[Fields], kind: str) -> Groups:
    lists = [topic.entries(kind) for topic in topics]
    for topic, members in zip(topics, lists, strict=True):
        whole = whole_numbers(members, f"{topic.label(kind)}[{{}}]")
        # The rest of the check needs the number of clients; this much keeps the ids within 32 bits.
        if len(whole) and (whole.min() < 0 or whole.max() >= 2**31):
            where = int(((whole < 0) | (whole >= 2**31)).argmax())
            raise InputError(f"{topic.label(kind)}[{where}]", f"expected the index of a client, got {whole[where]}")
    return Groups.of(lists)
