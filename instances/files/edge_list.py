"""The text of an edge list: two ids a line between tabs, spaces or a comma; ``#`` or ``%`` starts a comment."""

import io
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv

from relocbench.instances.errors import shown

IdArray = npt.NDArray[np.int64]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_ID = re.compile(r"-?[0-9]+")  # int() would also take 1_000 and the digits of every script
_EDGE_BEGINS = re.compile(rb"\s*-?\d")


@dataclass(frozen=True, eq=False)
class EdgeText:
    """What a piece of text holds: edges, and how many lines are neither edges nor comments, with the first of them."""

    follower: IdArray
    followee: IdArray
    bad: int = 0
    example: str = ""


def parse_edges(text: bytes, *, beginning: bool) -> EdgeText:
    """Read whole lines; at the beginning of a file a line without numbers is taken for a header."""
    lead = 0
    if beginning:
        text = text.removeprefix(BYTE_ORDER_MARK)
        lead = _lead(text)
    first = text[lead : text.find(b"\n", lead) + 1 or len(text)]
    if _EDGE_BEGINS.match(first):
        edges = parse_regular(io.BytesIO(memoryview(text)[lead:]), separator_of(first.decode(errors="replace")))
        if edges is not None:
            return EdgeText(*edges)
    return _parse_carefully(text.decode(errors="replace"), beginning)


def only_comments(text: bytes) -> bool:
    """Tell whether whole lines hold nothing to read."""
    text = text.removeprefix(BYTE_ORDER_MARK)
    return _lead(text) == len(text)


def parse_regular(source: Path | io.BytesIO, separator: str, skip: int = 0) -> tuple[IdArray, IdArray] | None:
    """Read the common case, nothing but edges after ``skip`` lines, at full speed; None if a line is otherwise."""
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
    """Return what separates the ids of an edge."""
    return "," if "," in line else "\t" if "\t" in line else " "


def is_comment(line: str) -> bool:
    """Tell whether a line holds nothing to read."""
    return not line.strip() or line.lstrip()[0] in "#%"


def edge_of(line: str) -> tuple[int, int] | None:
    """Return the two ids of a line; None if it is no edge."""
    parts = line.replace(",", " ").split()
    if len(parts) != 2 or not all(map(_ID.fullmatch, parts)) or max(map(len, parts)) > 20:
        return None
    follower, followee = map(int, parts)
    inside = -(2**63) <= follower < 2**63 and -(2**63) <= followee < 2**63
    return (follower, followee) if inside else None


def may_be_header(line: str) -> bool:
    """Tell whether no word of a line begins with a digit."""
    return not any(word[:1].isdigit() for word in line.replace(",", " ").split())


def _lead(text: bytes) -> int:
    """Return where the comments that a file begins with end."""
    at = 0
    while at < len(text):
        end = text.find(b"\n", at) + 1 or len(text)
        if not is_comment(text[at:end].decode(errors="replace")):
            break
        at = end
    return at


def _parse_carefully(text: str, beginning: bool) -> EdgeText:
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
