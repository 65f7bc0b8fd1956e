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
import pyarrow as pa
import pyarrow.csv as pa_csv

from instances.errors import InputError, reason, shown

IdArray = npt.NDArray[np.int64]

_ID = re.compile(r"-?[0-9]+")  # int() would also take 1_000 and the digits of every script


@dataclass(frozen=True, eq=False)
class FollowerGraph:
    """Edges: ``follower[i]`` follows ``followee[i]``; ids are any 64-bit integers."""

    follower: IdArray
    followee: IdArray

    @cached_property
    def rows(self) -> tuple[IdArray, IdArray, IdArray]:
        """The followers, ascending, where the members of each begin, and these: itself and its distinct followees."""
        proper = self.follower != self.followee
        follower, followee = self.follower[proper], self.followee[proper]
        order = np.lexsort((followee, follower))
        follower, followee = follower[order], followee[order]
        fresh = np.ones(len(follower), np.bool_)
        fresh[1:] = (np.diff(follower) != 0) | (np.diff(followee) != 0)
        follower, followee = follower[fresh], followee[fresh]

        row_id, first = np.unique(follower, return_index=True)
        member = np.insert(followee, first, row_id)
        start = np.append(first + np.arange(len(first)), len(member)).astype(np.int64)
        return row_id, start, member


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
                return number, "," if "," in line else "\t" if "\t" in line else " "
    return 0, None


def _read_fast(path: Path, skip: int, separator: str) -> FollowerGraph | None:
    """Read the common, regular case at full speed; None where a line needs a closer look."""
    try:
        table = pa_csv.read_csv(
            path,
            read_options=pa_csv.ReadOptions(column_names=["follower", "followee"], skip_rows=skip),
            parse_options=pa_csv.ParseOptions(delimiter=separator),
            convert_options=pa_csv.ConvertOptions(
                column_types={"follower": pa.int64(), "followee": pa.int64()}, null_values=[]
            ),
        )
    except pa.ArrowInvalid:
        return None
    # A header skipped here would go unseen if it were not the first line: only comments may be skipped silently.
    if skip and not _only_comments(path, skip):
        return None
    return FollowerGraph(table["follower"].to_numpy(), table["followee"].to_numpy())


def _only_comments(path: Path, count: int) -> bool:
    with _open(path) as lines:
        return all(_is_comment(line) for line, _ in zip(lines, range(count), strict=False))


def _is_comment(line: str) -> bool:
    return not line.strip() or line.lstrip()[0] in "#%"


def _read_careful(path: Path) -> FollowerGraph:
    ids: list[tuple[int, int]] = []
    header_possible = True
    with _open(path) as lines:
        for number, line in enumerate(lines, start=1):
            if _is_comment(line):
                continue
            parts = line.replace(",", " ").split()
            try:
                if not all(map(_ID.fullmatch, parts)):
                    raise ValueError
                follower, followee = map(int, parts)
                if not (-(2**63) <= follower < 2**63 and -(2**63) <= followee < 2**63):
                    raise ValueError
                ids.append((follower, followee))
            except ValueError:
                if header_possible and not any(character.isdigit() for part in parts for character in part[:1]):
                    header_possible = False
                    continue
                raise InputError(f"{path}: line {number}", f"expected two ids, got {shown(line.strip())}") from None
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
