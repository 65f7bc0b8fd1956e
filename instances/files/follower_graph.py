"""Who follows whom: an edge list from a file, or a synthetic one."""

import gzip
import re
import zlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError, reason, shown
from relocbench.instances.files.edge_list import (
    IdArray,
    edge_of,
    is_comment,
    may_be_header,
    parse_regular,
    separator_of,
)


@dataclass(frozen=True, eq=False)
class FollowerGraph:
    """Edges: ``follower[i]`` follows ``followee[i]``; ids are any 64-bit integers."""

    follower: IdArray
    followee: IdArray

    @cached_property
    def rows(self) -> tuple[IdArray, IdArray, IdArray]:
        """The followers, ascending, where the members of each begin, and these: itself and its distinct followees."""
        follower, followee = distinct_pairs(self.follower, self.followee)
        proper = follower != followee
        follower, followee = follower[proper], followee[proper]
        row_id, first = np.unique(follower, return_index=True)
        member = np.insert(followee, first, row_id)
        start = np.append(first + np.arange(len(first)), len(member)).astype(np.int64)
        return row_id, start, member


def distinct_pairs(first: IdArray, second: IdArray) -> tuple[IdArray, IdArray]:
    """Return the distinct pairs, by the first id, then the second."""
    if len(first) and min(first.min(), second.min()) >= 0 and max(first.max(), second.max()) < 2**31:
        # Both in one number sort several times faster.
        packed = np.sort(first << 32 | second)
        packed = packed[np.diff(packed, prepend=-1) != 0]
        return packed >> 32, packed & (2**32 - 1)
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    fresh = np.ones(len(first), np.bool_)
    fresh[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    return first[fresh], second[fresh]


def read_follower_graph(path: str | Path) -> FollowerGraph:
    """Read an edge list: two ids a line between tabs, spaces or a comma; ``#`` or ``%`` starts a comment; ``.gz`` too.

    A first line that holds no numbers is taken for a header. Any other line that is not an edge is refused by number.
    """
    path = Path(path)
    try:
        lead, separator = _first_edge(path)
        if separator is None:
            raise InputError(str(path), "expected lines `follower<TAB>followee`, found no edge")
        return _read_fast(path, lead, separator) or _read_careful(path)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(str(path), f"cannot be read ({reason(error)})") from error


def _open(path: Path) -> IO[str]:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig")
    return path.open(encoding="utf-8-sig")


def _first_edge(path: Path) -> tuple[int, str | None]:
    """Return how many lines stand before the first edge, and what separates its ids."""
    with _open(path) as lines:
        for number, line in enumerate(lines):
            if re.match(r"\s*-?\d", line):
                return number, separator_of(line)
    return 0, None


def _read_fast(path: Path, skip: int, separator: str) -> FollowerGraph | None:
    """Read the common, regular case at full speed; None where a line needs a closer look."""
    edges = parse_regular(path, separator, skip)
    # A header skipped here would go unseen if it were not the first line: only comments may be skipped silently.
    if edges is None or (skip and not _only_comments(path, skip)):
        return None
    return FollowerGraph(*edges)


def _only_comments(path: Path, count: int) -> bool:
    with _open(path) as lines:
        return all(is_comment(line) for line, _ in zip(lines, range(count), strict=False))


def _read_careful(path: Path) -> FollowerGraph:
    ids: list[tuple[int, int]] = []
    header_possible = True
    with _open(path) as lines:
        for number, line in enumerate(lines, start=1):
            if is_comment(line):
                continue
            edge = edge_of(line)
            if edge is not None:
                ids.append(edge)
            elif not (header_possible and may_be_header(line)):
                raise InputError(f"{path}: line {number}", f"expected two ids, got {shown(line.strip())}")
            header_possible = False
    edges = np.array(ids, np.int64).reshape(-1, 2)
    return FollowerGraph(edges[:, 0].copy(), edges[:, 1].copy())


# With the popularity drawn below (the square of a uniform number) this gives about 0.64 clients a membership, every
# client in one to four topics: at the paper's 64 topics some 390 clients.
USERS_PER_MEMBERSHIP = 1.1


def synthetic_follower_graph(
    rng: np.random.Generator, *, topics: int, min_size: int, max_size: int, max_topics_per_client: int
) -> FollowerGraph:
    """Draw the embedded default: one follower a topic, popular users followed more often.

    Topic sizes (the follower and its followees) are spread evenly over a distribution that falls with the square root
    of the size, so that at the paper's 64 topics every graph has topics of 2 up to 21 members. A user follows nobody
    twice and is in at most ``max_topics_per_client`` topics.
    """
    sizes = np.arange(min_size, max_size + 1)
    ladder = np.cumsum(sizes**-0.5)
    height = (np.arange(topics) + rng.random(topics)) / topics * ladder[-1]
    size = rng.permutation(sizes[np.minimum(np.searchsorted(ladder, height, side="right"), len(sizes) - 1)])

    # Enough users that the draws below can always be met, however few topics a user may be in.
    users = int(max(USERS_PER_MEMBERSHIP, 2.0 / max_topics_per_client) * size.sum()) + max_size + 1
    follower = rng.permutation(users)[:topics].astype(np.int64)
    owner = np.concatenate([np.arange(topics), np.repeat(np.arange(topics), size - 1)])
    member = np.concatenate([follower, np.zeros(len(owner) - topics, np.int64)])
    open_slots = np.arange(topics, len(owner))
    while len(open_slots):
        draw = rng.random(len(open_slots))
        # When few slots are left the popular are taken; these go to anybody, so that this ends.
        popular = len(open_slots) * 20 >= len(owner)
        member[open_slots] = (users * (draw * draw if popular else draw)).astype(np.int64)
        open_slots = np.flatnonzero(_beyond(owner * users + member, 1) | _beyond(member, max_topics_per_client))
    return FollowerGraph(follower[owner[topics:]], member[topics:])


def _beyond(key: IdArray, limit: int) -> npt.NDArray[np.bool_]:
    """Mark each entry that has ``limit`` or more equal ones before it."""
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    first = np.searchsorted(ordered, ordered, side="left")
    late = np.zeros(len(key), np.bool_)
    late[order] = np.arange(len(key)) - first >= limit
    return late
