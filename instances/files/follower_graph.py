"""Follower graphs: read from an edge list, or synthetic."""

import array
import io
import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.edge_list import (
    edge_of,
    is_comment,
    may_be_header,
    parse_regular,
    separator_of,
)
from relocbench.instances.files.limited_file import limited_lines, open_limited
from relocbench.instances.kernels.id_hash import IdArray

# The largest edge list in bytes, decompressed: about 2·10⁹ edges, which need 32 GiB of memory. Spark reads larger ones.
LARGEST_EDGE_LIST = 32 << 30


@dataclass(frozen=True, eq=False)
class FollowerGraph:
    """A directed graph of users, whose ids are arbitrary 64-bit integers.

    Attributes
    ----------
    follower, followee
        Edge ``i`` means that user ``follower[i]`` follows user ``followee[i]``.
    """

    follower: IdArray
    followee: IdArray

    @cached_property
    def rows(self) -> tuple[IdArray, IdArray, IdArray]:
        """One row per follower in compressed form.

        The three arrays are the ids of the followers in ascending order, the start of each row, and the members of all
        rows. The members of a row are the follower and then its distinct followees.
        """
        follower, followee = distinct_pairs(self.follower, self.followee)
        proper = follower != followee
        follower, followee = follower[proper], followee[proper]
        row_id, first = np.unique(follower, return_index=True)
        member = np.insert(followee, first, row_id)
        start = np.append(first + np.arange(len(first)), len(member)).astype(np.int64)
        return row_id, start, member


def distinct_pairs(first: IdArray, second: IdArray) -> tuple[IdArray, IdArray]:
    """Return the distinct pairs, sorted by the first id, then by the second.

    Parameters
    ----------
    first, second
        The ids of each pair.

    Returns
    -------
    tuple of two arrays
        The ids of the distinct pairs.
    """
    if len(first) and min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) < 2**31:
        # Sorting one packed number per pair is several times faster.
        packed = np.sort(first << 32 | second)
        packed = packed[np.diff(packed, prepend=-1) != 0]
        return packed >> 32, packed & (2**32 - 1)
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    distinct = np.ones(len(first), np.bool_)
    distinct[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[distinct], second[distinct]


def read_follower_graph(path: str | Path) -> FollowerGraph:
    """Read an edge list.

    A line has two ids, separated by tabs, spaces or a comma. A line that starts with ``#`` or ``%`` is a comment. A
    first line without numbers is a header.

    Parameters
    ----------
    path
        The file, compressed if its name ends in ``.gz``.

    Returns
    -------
    FollowerGraph
        The graph.

    Raises
    ------
    InputError
        If the file cannot be read, has no edge, or has another line that is not an edge; the message has its number.
    """
    path = Path(path)
    try:
        lead, separator = _first_edge(path)
        if separator is None:
            raise InputError("", "expected lines `follower<TAB>followee`, found no edge")
        return _read_fast(path, lead, separator) or _read_by_line(path)
    except InputError as error:
        raise error.inside(str(path)) from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error


def _lines(path: Path) -> Iterator[str]:
    """Read the lines of a file; refuse one that is too long."""
    with _open(path) as file, io.TextIOWrapper(file, encoding="utf-8-sig") as text:
        yield from limited_lines(text)


def _open(path: Path) -> io.BufferedReader:
    return open_limited(path, LARGEST_EDGE_LIST)


def _first_edge(path: Path) -> tuple[int, str | None]:
    """Return the number of lines before the first edge, and the separator of its ids."""
    for number, line in enumerate(_lines(path)):
        if re.match(r"\s*-?\d", line):
            return number, separator_of(line)
    return 0, None


def _read_fast(path: Path, skip: int, separator: str) -> FollowerGraph | None:
    """Read a regular file at full speed; None if the file must be read line by line."""
    if path.suffix == ".gz":
        with _open(path) as file:
            edges = parse_regular(file, separator, skip)
    else:
        edges = parse_regular(path, separator, skip)
    # The skipped lines may contain a wrong line besides a header, so only comments may be skipped without a check.
    if edges is None or (skip and not _only_comments(path, skip)):
        return None
    return FollowerGraph(*edges)


def _only_comments(path: Path, count: int) -> bool:
    return all(is_comment(line) for line in itertools.islice(_lines(path), count))


def _read_by_line(path: Path) -> FollowerGraph:
    ids = array.array("q")  # a list of pairs would need ten times as much memory
    header_possible = True
    for number, line in enumerate(_lines(path), start=1):
        if is_comment(line):
            continue
        edge = edge_of(line)
        if edge is not None:
            ids.extend(edge)
        elif not (header_possible and may_be_header(line)):
            raise InputError(f"line {number}", f"expected two ids, got {shown(line.strip())}")
        header_possible = False
    edges = np.array(ids, np.int64).reshape(-1, 2)
    return FollowerGraph(edges[:, 0].copy(), edges[:, 1].copy())


# Number of users per membership. With the popularity below (the square of a uniform number) this gives about 0.64
# clients per membership, each in one to four topics; for the paper's 64 topics about 390 clients.
USERS_PER_MEMBERSHIP = 1.1


def synthetic_follower_graph(
    rng: np.random.Generator, *, topics: int, min_size: int, max_size: int, max_topics_per_client: int
) -> FollowerGraph:
    """Draw the default follower graph: one follower per topic, and popular users are followed more often.

    The topic sizes (the follower and its followees) are a stratified sample of a distribution that decreases with the
    square root of the size, so that with the paper's 64 topics every graph has topics of 2 to 21 members. No user is
    followed twice by the same follower.

    Parameters
    ----------
    rng
        Random stream.
    topics
        Number of followers.
    min_size, max_size
        Least and largest number of members of a topic.
    max_topics_per_client
        Largest number of topics of a user.

    Returns
    -------
    FollowerGraph
        The graph.
    """
    sizes = np.arange(min_size, max_size + 1)
    cumulative = np.cumsum(sizes**-0.5)
    height = (np.arange(topics) + rng.random(topics)) / topics * cumulative[-1]
    size = rng.permutation(sizes[np.minimum(np.searchsorted(cumulative, height, side="right"), len(sizes) - 1)])

    # There are enough users to satisfy the limits in the loop below, even if a user may be in one topic only.
    users = int(max(USERS_PER_MEMBERSHIP, 2.0 / max_topics_per_client) * size.sum()) + max_size + 1
    follower = rng.permutation(users)[:topics].astype(np.int64)
    owner = np.concatenate([np.arange(topics), np.repeat(np.arange(topics), size - 1)])
    member = np.concatenate([follower, np.zeros(len(owner) - topics, np.int64)])
    open_slots = np.arange(topics, len(owner))
    while len(open_slots):
        draw = rng.random(len(open_slots))
        # When few slots remain, popular users have reached their limit. Uniform draws then make the loop terminate.
        popular = len(open_slots) * 20 >= len(owner)
        member[open_slots] = (users * (draw * draw if popular else draw)).astype(np.int64)
        open_slots = np.flatnonzero(_exceeds(owner * users + member, 1) | _exceeds(member, max_topics_per_client))
    return FollowerGraph(follower[owner[topics:]], member[topics:])


def _exceeds(key: IdArray, limit: int) -> npt.NDArray[np.bool_]:
    """Return for each entry whether at least ``limit`` equal entries precede it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.searchsorted(ordered, ordered, side="left")
    exceeding = np.zeros(len(key), np.bool_)
    exceeding[order] = np.arange(len(key)) - first >= limit
    return exceeding
