"""Reading and writing instances by their source: a JSON file, a Parquet file, a folder, or the library."""

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

    Parameters
    ----------
    path
        A file, or ``library:NAME`` for an instance of the library. For a Parquet file with several instances the name
        of one follows after ``#``: ``family.parquet#paper-s10-3``.

    Returns
    -------
    Instance
        The instance.

    Raises
    ------
    InputError
        If the source cannot be read, or contains no instance or several.
    """
    text, marker, name = str(path).rpartition(".parquet#")
    if not marker or os.path.exists(path):  # unlike Path.exists, this accepts any text
        text, name = str(path), ""
    else:
        text += ".parquet"
    found = list(itertools.islice(read_instances(text, name or None), 2))
    if len(found) == 1:
        return found[0]
    if name:
        problem = "found none" if not found else "found several"
        raise InputError(text, f"expected one instance named {shown(name)}, {problem}")
    example = f"library:{found[0].name}" if _in_library(text) else f"{text}#{found[0].name}"
    raise InputError(text, f"expected one instance, found several; name one: {example}")


def read_instances(path: str | Path, name: str | None = None) -> Iterator[Instance]:
    """Read all instances of a source, one after the other.

    Parameters
    ----------
    path
        A file, or ``library:PATTERN`` such as ``library:small-*`` for instances of the library.
    name
        If given, only instances of this name are read from a Parquet file.

    Yields
    ------
    Instance
        The instances in the order of the source.

    Raises
    ------
    InputError
        If the source cannot be read.
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
    """Read the instances of several sources.

    Parameters
    ----------
    paths
        Files, folders and ``library:`` patterns.

    Returns
    -------
    list of Instance
        The instances, without repetitions.

    Raises
    ------
    InputError
        If a source cannot be read or a folder contains no instances.
    """
    found: list[Instance] = []
    for path in paths:
        for file in instance_files(path):
            found += [read_instance(file)] if ".parquet#" in str(file) else read_instances(file)
    return unique(found)


def unique(instances: Iterable[Instance]) -> list[Instance]:
    """Return instances without repetitions. Instances with the same content hash count as equal.

    Parameters
    ----------
    instances
        The instances.

    Returns
    -------
    list of Instance
        The different instances, in the order of their first occurrence.
    """
    return list({instance.hash: instance for instance in instances}.values())


def instance_files(path: str | Path) -> list[Path]:
    """Return the instance files of a folder.

    Parameters
    ----------
    path
        A folder, or any other source.

    Returns
    -------
    list of Path
        The files sorted by name; for a source that is not a folder, only the source itself.

    Raises
    ------
    InputError
        If the folder contains no instance files.
    """
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
    """Write one instance to a file.

    Parameters
    ----------
    instance
        The instance.
    path
        The file. Its ending (``.json``, ``.json.gz``, ``.parquet``) determines the format.

    Raises
    ------
    InputError
        If the ending names no format or the file cannot be written.
    """
    path = Path(path)
    if path.suffix == ".parquet":
        from relocbench.instances.files.instance_parquet import write_rows

        write_rows([instance], path)
        return
    write_json(instance, path)


def check_not_the_instance(out: Path, instance: Path) -> None:
    """Check that an output file is not the file of the instance, which it would overwrite.

    Parameters
    ----------
    out
        The output file.
    instance
        The file of the instance.

    Raises
    ------
    InputError
        If both are the same file.
    """
    if out.exists() and instance.exists() and out.samefile(instance):
        raise InputError(str(out), "expected another file than the instance's")
