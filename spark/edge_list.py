"""An edge list read in pieces, each by whichever task has it."""

import glob
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.edge_list import EdgeText, only_comments, parse_edges

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Long enough that what a piece costs besides its lines does not count, short enough for many tasks at once.
PIECE_BYTES = 16 << 20
PIECE = "path string, begin bigint, end bigint"


@dataclass(frozen=True)
class EdgeList:
    """Files of edges: their names, and how long they are (a packed one about six times as long when unpacked)."""

    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def text_bytes(self) -> int:
        """About how long the text is."""
        return sum(size * (6 if _is_packed(path) else 1) for path, size in zip(self.paths, self.sizes, strict=True))

    def pieces(self) -> list[tuple[str, int, int]]:
        """Return which bytes of which file make a piece; a packed file can only be read from its beginning."""
        found = []
        for path, size in zip(self.paths, self.sizes, strict=True):
            step = max(size, 1) if _is_packed(path) else PIECE_BYTES
            found += [(path, begin, min(begin + step, size)) for begin in range(0, size, step)]
        return found

    def frame(self, spark: "SparkSession") -> "DataFrame":
        """Return the pieces as rows, each in a partition of its own."""
        pieces = self.pieces()
        rows = spark.sparkContext.parallelize(pieces, max(1, len(pieces)))
        return spark.createDataFrame(rows, PIECE)


def find_edges(pattern: str) -> EdgeList:
    """Return the edge list that a file, a folder or a pattern with ``*`` names."""
    place = Path(pattern)
    if place.is_dir():
        paths = sorted(str(path) for path in place.iterdir() if path.is_file() and path.name[0] not in "._")
    else:
        paths = [pattern] if place.is_file() else sorted(glob.glob(pattern))
    if not paths:
        raise InputError(pattern, "expected a file of edges, or a folder of them, found none")
    try:
        return EdgeList(
            tuple(str(Path(path).resolve()) for path in paths), tuple(Path(path).stat().st_size for path in paths)
        )
    except OSError as error:
        raise InputError(pattern, f"cannot be read ({reason(error)})") from error


def read_piece(path: str, begin: int, end: int) -> Iterator[EdgeText]:
    """Read the lines that begin in a piece of a file, some at a time."""
    try:
        texts = _unpacked(path) if _is_packed(path) else _lines_between(path, begin, end)
        beginning = _only_comments_before(path, begin)
        for text in texts:
            yield parse_edges(text, beginning=beginning)
            beginning = beginning and only_comments(text)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read ({reason(error)})") from error


def read_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[EdgeText]:
    """Read the pieces that the rows of :meth:`EdgeList.frame` name."""
    for batch in batches:
        for row in batch.to_pylist():
            yield from read_piece(row["path"], row["begin"], row["end"])


def _is_packed(path: str) -> bool:
    return path.endswith(".gz")


def _lines_between(path: str, begin: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        if begin > 0:
            # The line that stands across the border belongs to the piece that it begins in.
            file.seek(begin - 1)
            file.readline()
        length = end - file.tell()
        if length > 0:
            text = file.read(length)
            yield text if text.endswith(b"\n") else text + file.readline()


def _only_comments_before(path: str, end: int) -> bool:
    """Tell whether a header, which comments may stand before, may be still to come."""
    if end == 0:
        return True
    with open(path, "rb") as file:
        while file.tell() < end:
            if not only_comments(file.readline()):
                return False
    return True


def _unpacked(path: str) -> Iterator[bytes]:
    with gzip.open(path, "rb") as file:
        while text := file.read(PIECE_BYTES):
            yield text if text.endswith(b"\n") else text + file.readline()
