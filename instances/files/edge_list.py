"""Parsing of edge lists.

A line of an edge list has two ids, separated by tabs, spaces or a comma. In an edge list with roles it may have a role
in a third column. A line that starts with ``#`` or ``%`` is a comment.
"""

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from relocbench.instances.errors import shown
from relocbench.instances.instance import PUBLISHES, SUBSCRIBES
from relocbench.instances.instance_tables import ROLES
from relocbench.instances.kernels.id_hash import IdArray

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ID = re.compile(r"-?[0-9]+")  # int() would also accept 1_000 and the digits of other scripts
_EDGE_BEGINS = re.compile(rb"\s*-?\d")
BOTH = PUBLISHES | SUBSCRIBES
# The names of the roles, which are those of `relocbench convert`.
_ROLE_OF = {name: PUBLISHES * publishes | SUBSCRIBES * subscribes for name, (publishes, subscribes) in ROLES.items()}
RoleArray = npt.NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class EdgeText:
    """The content of a piece of text.

    Attributes
    ----------
    follower, followee
        The two ids of each edge.
    bad
        Number of lines that are neither edges nor comments.
    example
        The first of these lines, in the form for error messages; empty if there is none.
    role
        For each edge the role in the third column: PUBLISHES, SUBSCRIBES or both (``|``), which is also the role of a
        line with two columns. None if no line has a role.
    """

    follower: IdArray
    followee: IdArray
    bad: int = 0
    example: str = ""
    role: RoleArray | None = None


def parse_edges(text: bytes, *, beginning: bool, roles: bool = False) -> EdgeText:
    """Parse complete lines.

    Parameters
    ----------
    text
        The lines.
    beginning
        Whether this is the beginning of the file. There, a first line without numbers is a header.
    roles
        Whether lines may have a role in a third column. Otherwise such lines cannot be parsed.

    Returns
    -------
    EdgeText
        The edges, and the number of lines that cannot be parsed.
    """
    lead = 0
    if beginning:
        text = text.removeprefix(BYTE_ORDER_MARK)
        lead = _end_of_comments(text)
    first = text[lead : text.find(b"\n", lead) + 1 or len(text)]
    if _EDGE_BEGINS.match(first):
        content, separator = memoryview(text)[lead:], separator_of(first.decode(errors="replace"))
        if roles and (memberships := _parse_regular_roles(io.BytesIO(content), separator)) is not None:
            return memberships
        edges = parse_regular(io.BytesIO(content), separator)
        if edges is not None:
            return EdgeText(*edges)
    return _parse_by_line(text.decode(errors="replace"), beginning, roles)


def only_comments(text: bytes) -> bool:
    """Return whether all lines of a text are comments or empty.

    Parameters
    ----------
    text
        Complete lines.

    Returns
    -------
    bool
        Whether no line has content.
    """
    text = text.removeprefix(BYTE_ORDER_MARK)
    return _end_of_comments(text) == len(text)


def parse_regular(source: Path | io.BufferedIOBase, separator: str, skip: int = 0) -> tuple[IdArray, IdArray] | None:
    """Read a regular edge list, which has only edges with one separator, at full speed.

    Parameters
    ----------
    source
        A file or its content.
    separator
        The character between the ids.
    skip
        Number of lines at the beginning to skip.

    Returns
    -------
    tuple of two arrays, or None
        Followers and followees; None if the list is not regular.
    """
    table = _read_regular(source, separator, {"follower": pa.int64(), "followee": pa.int64()}, skip)
    return None if table is None else (table["follower"].to_numpy(), table["followee"].to_numpy())


def _parse_regular_roles(source: io.BufferedIOBase, separator: str) -> EdgeText | None:
    """Read a regular edge list with a role in every line; None if the list is not regular."""
    columns = {"follower": pa.int64(), "followee": pa.int64(), "role": pa.dictionary(pa.int32(), pa.string())}
    table = _read_regular(source, separator, columns)
    if table is None:
        return None
    coded = table["role"].unify_dictionaries().combine_chunks()
    found = [_ROLE_OF.get(name.strip().lower()) for name in coded.dictionary.to_pylist()]
    if None in found:
        return None
    role = np.array(found, np.int8)[coded.indices.to_numpy(zero_copy_only=False)]
    return EdgeText(table["follower"].to_numpy(), table["followee"].to_numpy(), role=role)


def _read_regular(
    source: Path | io.BufferedIOBase, separator: str, columns: dict[str, pa.DataType], skip: int = 0
) -> pa.Table | None:
    try:
        return pa_csv.read_csv(
            source,
            read_options=pa_csv.ReadOptions(
                column_names=list(columns), skip_rows=skip, use_threads=isinstance(source, Path)
            ),
            parse_options=pa_csv.ParseOptions(delimiter=separator),
            convert_options=pa_csv.ConvertOptions(column_types=columns, null_values=[]),
        )
    except pa.ArrowInvalid:
        return None


def separator_of(line: str) -> str:
    """Return the separator of the ids in a line.

    Parameters
    ----------
    line
        A line with an edge.

    Returns
    -------
    str
        A comma, a tab or a space.
    """
    return "," if "," in line else "\t" if "\t" in line else " "


def is_comment(line: str) -> bool:
    """Return whether a line is a comment or empty.

    Parameters
    ----------
    line
        The line.

    Returns
    -------
    bool
        Whether it has no content.
    """
    return not line.strip() or line.lstrip()[0] in "#%"


def edge_of(line: str) -> tuple[int, int] | None:
    """Parse one line.

    Parameters
    ----------
    line
        The line.

    Returns
    -------
    tuple of int, or None
        Follower and followee; None if the line does not consist of two integers that fit 64 bits.
    """
    parts = line.replace(",", " ").split()
    if len(parts) != 2 or not all(map(_ID.fullmatch, parts)) or max(map(len, parts)) > 20:
        return None
    follower, followee = map(int, parts)
    inside = -(2**63) <= follower < 2**63 and -(2**63) <= followee < 2**63
    return (follower, followee) if inside else None


def membership_of(line: str) -> tuple[int, int, int] | None:
    """Parse one line that may have a role.

    Parameters
    ----------
    line
        The line.

    Returns
    -------
    tuple of int, or None
        Follower, followee and role; None if the line does not consist of an edge, or of an edge and a role.
    """
    parts = line.replace(",", " ").split()
    edge = edge_of(" ".join(parts[:2]))
    role = BOTH if len(parts) == 2 else _ROLE_OF.get(parts[2].lower()) if len(parts) == 3 else None
    return None if edge is None or role is None else (*edge, role)


def may_be_header(line: str) -> bool:
    """Return whether a line can be a header, which means that no word of it begins with a digit.

    Parameters
    ----------
    line
        The line.

    Returns
    -------
    bool
        Whether it can be a header.
    """
    return not any(word[:1].isdigit() for word in line.replace(",", " ").split())


def _end_of_comments(text: bytes) -> int:
    """Return the position after the comments at the beginning of a file."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at) + 1 or len(text)
        if not is_comment(text[at:end].decode(errors="replace")):
            break
        at = end
    return at


def _parse_by_line(text: str, beginning: bool, roles: bool) -> EdgeText:
    found: list[tuple[int, ...]] = []
    bad, example = 0, ""
    for line in text.split("\n"):
        if is_comment(line):
            continue
        edge = membership_of(line) if roles else edge_of(line)
        if edge is not None:
            found.append(edge)
        elif not (beginning and may_be_header(line)):
            example = example if bad else shown(line.strip())
            bad += 1
        beginning = False
    columns = np.array(found, np.int64).reshape(-1, 3 if roles else 2).T.copy()
    return EdgeText(columns[0], columns[1], bad, example, columns[2].astype(np.int8) if roles else None)
