"""Parsing of edge lists.

A line of an edge list has two ids, separated by tabs, spaces or a comma. A line that starts with ``#`` or ``%`` is a
comment.
"""

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

from relocbench.instances.errors import shown
from relocbench.instances.kernels.id_hash import IdArray

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ID = re.compile(r"-?[0-9]+")  # int() would also accept 1_000 and the digits of other scripts
_EDGE_BEGINS = re.compile(rb"\s*-?\d")


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
    """

    follower: IdArray
    followee: IdArray
    bad: int = 0
    example: str = ""


def parse_edges(text: bytes, *, beginning: bool) -> EdgeText:
    """Parse complete lines.

    Parameters
    ----------
    text
        The lines.
    beginning
        Whether this is the beginning of the file. There, a first line without numbers is a header.

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
        edges = parse_regular(io.BytesIO(memoryview(text)[lead:]), separator_of(first.decode(errors="replace")))
        if edges is not None:
            return EdgeText(*edges)
    return _parse_by_line(text.decode(errors="replace"), beginning)


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
    try:
        table = pa_csv.read_csv(
            source,
            read_options=pa_csv.ReadOptions(
                column_names=["follower", "followee"], skip_rows=skip, use_threads=isinstance(source, Path)
            ),
            parse_options=pa_csv.ParseOptions(delimiter=separator),
            convert_options=pa_csv.ConvertOptions(
                column_types={"follower": pa.int64(), "followee": pa.int64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        return None
    return table["follower"].to_numpy(), table["followee"].to_numpy()


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


def _parse_by_line(text: str, beginning: bool) -> EdgeText:
    ids: list[tuple[int, int]] = []
    bad, example = 0, ""
    for line in text.split("\n"):
        if is_comment(line):
            continue
        edge = edge_of(line)
        if edge is not None:
            ids.append(edge)
        elif not (beginning and may_be_header(line)):
            example = example if bad else shown(line.strip())
            bad += 1
        beginning = False
    edges = np.array(ids, np.int64).reshape(-1, 2)
    return EdgeText(edges[:, 0].copy(), edges[:, 1].copy(), bad, example)
