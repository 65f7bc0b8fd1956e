"""Instances by where they are: in a JSON or Parquet file, or in the library."""

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.instance_json import read_json, write_json
from relocbench.instances.instance import Instance
from relocbench.instances.library.library import read_named


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
        yield from read_named(str(path))
        return
    path = Path(path)
    if path.suffix != ".parquet":
        yield read_json(path)
        return
    from relocbench.instances.files.instance_parquet import read_rows

    try:
        yield from read_rows(path, name)
    except InputError as error:
        raise error.inside(str(path)) from error


def read_all(paths: Iterable[str | Path]) -> list[Instance]:
    """Read the instances of all files and folders, each once."""
    found: list[Instance] = []
    for path in paths:
        for file in instance_files(path):
            found += [read_instance(file)] if ".parquet#" in str(file) else read_instances(file)
    return unique(found)


def unique(instances: Iterable[Instance]) -> list[Instance]:
    """Return the instances without repetitions: the same one from a file and from a family is one."""
    return list({instance.hash: instance for instance in instances}.values())


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
        from relocbench.instances.files.instance_parquet import write_rows

        write_rows([instance], path)
        return
    write_json(instance, path)


def check_not_the_instance(out: Path, instance: Path) -> None:
    """Refuse to write a result over the instance that it is of."""
    if out.exists() and instance.exists() and out.samefile(instance):
        raise InputError(str(out), "expected another file than the instance's")
