"""Files with homes, with or without a claim about them: the one reader for all commands.

Accepted are JSON (a solution file, a certificate, an object with the field ``home``, or a plain list), CSV with a
column ``home`` and optionally ``client``, and NumPy's ``.npy``. docs/files.md describes them.
"""

import io
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from relocbench.instances.checks import first_repeated
from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.evaluation import checked_home
from relocbench.instances.files.csv_rows import csv_rows
from relocbench.instances.files.json_fields import Fields, read_value, whole_numbers
from relocbench.instances.files.limited_file import open_limited
from relocbench.instances.files.solution_file import FORMAT, KNOWN, STATUSES, StoredSolution
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import IntArray

CERTIFICATE_FORMATS = ("relocbench-certificate/1", "relocbench-certificate/2", "relocbench-certificate/3")
# The fields of a certificate. formulations/certificates defines them, which this room does not import.
CERTIFICATE_FIELDS = ("format", "instance", "home", "claim", "bits", "delay_cap", "cloud_cap", "made", "proof")
# The endings of files that can contain homes, in lower case.
HOMES_ENDINGS = (".json", ".json.gz", ".csv", ".csv.gz", ".npy", ".npy.gz")
# The largest size in bytes of a CSV or .npy file: at the start, and for each client.
LARGEST_START = 1 << 20
LARGEST_HOME = 1 << 10
# The endings of the names that may contain a client or a home: an id or an index, only an id, only an index.
_ENDINGS = ("", "_id", "_index")


def read_homes(path: str | Path, instance: Instance) -> IntArray:
    r"""Read the homes of the clients of an instance from a file.

    Parameters
    ----------
    path
        A solution file, a certificate, a JSON list, a CSV file or a ``.npy`` file.
    instance
        The instance that the homes must belong to.

    Returns
    -------
    array
        One server index per client.

    Raises
    ------
    InputError
        If the file cannot be read, does not contain homes for this instance, or states the hash of another instance.

    Examples
    --------
    >>> import relocbench
    >>> from pathlib import Path
    >>> instance = relocbench.generate("tiny", regime="scarce", shape="plain")
    >>> _ = Path("homes.csv").write_text("client,home\n0,1\n1,1\n2,0\n3,2\n")
    >>> relocbench.read_homes("homes.csv", instance).tolist()
    [1, 1, 0, 2]
    """
    return read_solution(path, instance).home


def read_solution(path: str | Path, instance: Instance) -> StoredSolution:
    """Read homes together with what their file states about them.

    Parameters
    ----------
    path
        As for :func:`read_homes`.
    instance
        The instance that the homes must belong to.

    Returns
    -------
    StoredSolution
        The homes, and the method, seed, status, objective and bound as far as the file states them. Nothing of it is
        verified.

    Raises
    ------
    InputError
        As for :func:`read_homes`.
    """
    path = Path(path)
    try:
        kind = path.name.lower().removesuffix(".gz")
        if kind.endswith(".csv"):
            return _of_homes(instance, _read_csv(path, instance))
        if kind.endswith(".npy"):
            return _of_homes(instance, _read_npy(path, instance))
        return _from_json(read_value(path), instance)
    except InputError as error:
        raise error.inside(str(path)) from error


def is_certificate(path: Path) -> bool:
    """Return whether a file with homes is a certificate.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    bool
        Whether it is a JSON object of this format.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".npy")):
        return False
    try:
        value = read_value(path)
    except InputError as error:
        raise error.inside(str(path)) from error
    return isinstance(value, dict) and value.get("format") in CERTIFICATE_FORMATS


def _of_homes(instance: Instance, home: IntArray) -> StoredSolution:
    return StoredSolution(instance.hash, "", 0, "feasible", home, None, None)


def _from_json(value: Any, instance: Instance) -> StoredSolution:
    if isinstance(value, list):
        return _of_homes(instance, _homes(value, instance))
    if not isinstance(value, dict):
        raise InputError("", f"expected a list of homes or an object with the field home, got {shown(value)}")
    is_proof = value.get("format") in CERTIFICATE_FORMATS
    fields = Fields(value, "", CERTIFICATE_FIELDS if is_proof else KNOWN)
    if "format" in fields and not is_proof and fields.value("format") != FORMAT:
        raise InputError("format", f'expected "{FORMAT}", got {shown(fields.value("format"))}')
    if "instance" in fields and fields.text("instance") != instance.hash:
        found = shown(fields.text("instance"), 18)
        raise InputError("instance", f"expected the hash {instance.hash[:16]}… of the instance given, got {found}")
    status = fields.text("status") if "status" in fields else "feasible"
    if status not in STATUSES:
        raise InputError("status", f"expected one of {', '.join(STATUSES)}, got {shown(status)}")
    return StoredSolution(
        instance=instance.hash,
        method=fields.text("method") if "method" in fields else "",
        seed=fields.integer("seed") if "seed" in fields else 0,
        status=status,
        home=_homes(fields.entries("home"), instance),
        objective=fields.number("objective") if "objective" in fields else None,
        bound=_claimed_bound(fields) if is_proof else fields.number("bound") if "bound" in fields else None,
    )


def _claimed_bound(fields: Fields) -> float:
    """Return the claim of a certificate, ``claim / 2^bits``."""
    claim = fields.value("claim")
    if type(claim) is not int:
        raise InputError("claim", f"expected a whole number, got {shown(claim)}")
    try:
        return math.ldexp(claim, -fields.integer("bits"))
    except OverflowError:
        raise InputError("claim", "expected a bound that fits a float") from None


def _homes(entries: list[Any], instance: Instance) -> IntArray:
    """Return the homes from a list of indices or of ids in text."""
    if entries and set(map(type, entries)) == {str}:
        found = _positions(instance.server_ids)
        unknown = next((i for i, entry in enumerate(entries) if entry not in found), None)
        if unknown is not None:
            raise InputError(f"home[{unknown}]", f"expected {_wanted(instance)}, got {shown(entries[unknown])}")
        return checked_home(instance, [found[entry] for entry in entries])
    whole = [int(entry) if type(entry) is float and entry.is_integer() else entry for entry in entries]
    return checked_home(instance, whole_numbers(whole, "home[{}]"))


def _read_npy(path: Path, instance: Instance) -> IntArray:
    try:
        with open_limited(path, LARGEST_START + LARGEST_HOME * instance.n_clients) as file:
            content = io.BytesIO(file.read())
        version = np.lib.format.read_magic(content)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read_header:
            raise InputError("", f"expected version 1.0 or 2.0 of the format .npy, got {version[0]}.{version[1]}")
        shape, _, dtype = read_header[version](content)
        if shape != (instance.n_clients,) or dtype.kind not in "iufU":
            expected = f"expected {instance.n_clients} whole numbers, one per client"
            raise InputError("", f"{expected}, got an array of {dtype} and shape {shape}")
        # Unlike read_array, this allocates nothing before it has seen that the file is long enough.
        return _homes(np.frombuffer(content.read(), dtype, instance.n_clients).tolist(), instance)
    except InputError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise InputError("", f"cannot be read ({reason(error)})") from error
    except (ValueError, TypeError, SyntaxError, TokenError) as error:  # all of them come from NumPy's reader of headers
        raise InputError("", f"expected an array in the format .npy ({reason(error)})") from error


def _read_csv(path: Path, instance: Instance) -> IntArray:
    rows = csv_rows(path, LARGEST_START + LARGEST_HOME * instance.n_clients)
    header = [name.lower() for name in next(rows)[1]]
    home_column, client_column = _column(header, "home"), _column(header, "client")
    if home_column is None:
        raise InputError("", f"expected a column named home, got columns {shown(header, 80)}")
    lines, homes, clients = [], [], []
    for line, row in rows:
        lines.append(line)
        homes.append(_cell(row, home_column, line, header))
        clients.append(_cell(row, client_column, line, header) if client_column is not None else "")
    server = _indices(homes, lines, header[home_column], instance.server_ids, "server_ids" in instance.parameters)
    if client_column is None:
        return checked_home(instance, server)
    client = _indices(clients, lines, header[client_column], instance.client_ids, "client_ids" in instance.parameters)
    if (twice := first_repeated(client)) is not None:
        raise InputError(f"line {lines[twice]}", f"client {shown(clients[twice])} is listed twice")
    home = np.full(instance.n_clients, -1)
    home[client] = server
    if (home < 0).any():
        missing = instance.client_ids[int((home < 0).argmax())]
        count = int((home < 0).sum())
        raise InputError("", f"client {shown(missing)} is missing{f', and {count - 1} more' if count > 1 else ''}")
    return checked_home(instance, home)


def _column(header: list[str], name: str) -> int | None:
    """Return the position of the column for a name with any of its endings."""
    found = [header.index(name + ending) for ending in _ENDINGS if name + ending in header]
    if len(found) > 1:
        raise InputError("", f"expected one column for the {name}, got {header[found[0]]} and {header[found[1]]}")
    return found[0] if found else None


def _cell(row: list[str], column: int, line: int, header: list[str]) -> str:
    if column >= len(row) or not row[column]:
        raise InputError(f"line {line}: {header[column]}", "is missing")
    return row[column]


def _indices(cells: list[str], lines: list[int], name: str, ids: Sequence[str | int], has_ids: bool) -> list[int]:
    """Return the clients or servers that the cells of a column name, by index or by id.

    All cells are read in the same way. Where ids are numbers, both ways may be possible and give different results;
    then the name of the column must say which is meant.
    """
    by_id = _positions(ids)
    as_ids = [by_id.get(cell) for cell in cells]
    as_indices = [_index(cell, len(ids)) for cell in cells]
    if name.endswith("_id"):
        chosen = as_ids
    elif name.endswith("_index") or not has_ids:
        chosen = as_indices
    else:
        if None not in as_ids + as_indices and as_ids != as_indices:
            raise InputError(name, f"the numbers may be ids or indices; name the column {name}_id or {name}_index")
        chosen = as_ids if as_ids.count(None) <= as_indices.count(None) else as_indices
    for line, cell, index in zip(lines, cells, chosen, strict=True):
        if index is None:
            kind = "client" if name.startswith("client") else "server"
            expected = f"the index of a {kind} from 0 to {len(ids) - 1}"
            if chosen is as_ids:
                expected = f"the id of a {kind} such as {shown(str(ids[0]))}"
            raise InputError(f"line {line}: {name}", f"expected {expected}, got {shown(cell)}")
    return [index for index in chosen if index is not None]


def _index(cell: str, count: int) -> int | None:
    """Return a cell as an index; a whole number such as 3.0 counts as one."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return int(number) if number.is_integer() and 0 <= number < count else None


def _positions(ids: Sequence[str | int]) -> dict[str, int]:
    return {str(one): position for position, one in enumerate(ids)}


def _wanted(instance: Instance) -> str:
    if "server_ids" not in instance.parameters:
        return f"a server from 0 to {instance.n_servers - 1}"
    return f"the id of a server such as {shown(str(instance.server_ids[0]))}"
