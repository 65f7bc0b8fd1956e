"""The instances of a check, with the lower bounds that their costs are judged by: entries of the library, or files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.formulations.certificates.certificate import read_certificate
from relocbench.formulations.certificates.verification import rounded_down, verify
from relocbench.instances.errors import InputError, shown
from relocbench.instances.files.homes_file import is_certificate
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import instance_files, read_instances
from relocbench.instances.library.library import Library

# The name of the parameter with which an instance file may state a lower bound on ``ΣD``.
BOUND = "bound"


@dataclass(frozen=True, eq=False)
class JudgedInstance:
    """An instance, and what is known about the cost of its assignments.

    Attributes
    ----------
    instance
        The instance.
    bound
        A lower bound on ``ΣD``; None if there is none.
    optimal
        Whether an assignment with this cost is known.
    file
        The file, relative to the folder of the baseline's instances; empty for an entry of the library.
    """

    instance: Instance
    bound: float | None = None
    optimal: bool = False
    file: str = ""


def library_instances(library: Library, names: Iterable[str]) -> dict[str, JudgedInstance]:
    """Return entries of a library.

    Parameters
    ----------
    library
        The library.
    names
        The names of the entries.

    Returns
    -------
    dict
        The instances by name.
    """
    found = {}
    for name in names:
        entry = library.entry(name)
        found[name] = JudgedInstance(library.read(name), entry.bound, entry.status == "optimal")
    return found


def folder_instances(folder: Path) -> dict[str, JudgedInstance]:
    """Read the instances of a folder, and verify the certificates that stand beside them.

    Parameters
    ----------
    folder
        The folder with instance files and, optionally, certificates of any of them under any name.

    Returns
    -------
    dict
        The instances by name: the name of the file without its ending, and in a Parquet file that of the row.

    Raises
    ------
    InputError
        If a file is neither an instance nor a certificate of one, if a certificate proves nothing, or if two instances
        have the same name or content.
    """
    found: dict[str, JudgedInstance] = {}
    origin: dict[str, str] = {}
    certificates = []
    for path in instance_files(folder):
        if path.suffix != ".parquet" and is_certificate(path):
            certificates.append(path)
            continue
        for name, file, instance in _read(path):
            if name in found:
                problem = f"expected another name than {name!r}, which {found[name].file} has, too"
                raise InputError(str(path), problem)
            if instance.hash in origin:
                raise InputError(str(path), f"has the same instance as {found[origin[instance.hash]].file}; remove one")
            found[name] = JudgedInstance(instance, _stated_bound(instance, path), False, file)
            origin[instance.hash] = name
    if not found:
        raise InputError(str(folder), "expected instances in the folder, found certificates only")
    for path in certificates:
        _judge(found, origin, path)
    return found


def _read(path: Path) -> Iterator[tuple[str, str, Instance]]:
    """Yield the name, the file and the content of each instance of a file."""
    for instance in read_instances(path):
        if path.suffix == ".parquet":
            if not instance.name:
                raise InputError(str(path), "expected a name for every instance, found one without")
            yield instance.name, f"{path.name}#{instance.name}", instance
        else:
            yield re.sub(r"\.json(\.gz)?$", "", path.name), path.name, instance


def _stated_bound(instance: Instance, path: Path) -> float | None:
    value: Any = instance.parameters.get(BOUND)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise InputError(f"{path}: parameters.{BOUND}", f"expected a number of at least 0, got {shown(value)}")
    return float(value)


def _judge(found: dict[str, JudgedInstance], origin: Mapping[str, str], path: Path) -> None:
    """Add the bound of a certificate to its instance if it is the highest."""
    certificate = read_certificate(path)
    name = origin.get(certificate.instance)
    if name is None:
        problem = f"is a certificate of no instance in the folder (hash {certificate.instance[:12]}…); remove it"
        raise InputError(str(path), problem)
    known = found[name]
    verdict = verify(known.instance, certificate)
    if verdict.bound is None:
        raise InputError(str(path), f"does not prove its bound of {known.file}: {verdict.reason}")
    bound = rounded_down(verdict.bound)
    if known.bound is None or bound >= known.bound:
        found[name] = JudgedInstance(known.instance, bound, verdict.status == "optimal", known.file)
