"""Parallel reading of an edge list: files are cut into pieces, and each piece is read by one task."""

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
from relocbench.instances.files.limited_file import LONGEST_LINE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Length of a piece: long enough that its fixed cost is negligible, short enough that many tasks run in parallel.
PIECE_BYTES = 16 << 20
PIECE_SCHEMA = "path string, begin bigint, end bigint"
# Typical length of the text of a compressed file, as a multiple of the file's length.
GZIP_RATIO = 6


@dataclass(frozen=True)
class EdgeList:
    """The files of an edge list.

    Attributes
    ----------
    paths
        The absolute path of each file.
    sizes
        The length of each file in bytes.
    """

    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def text_bytes(self) -> int:
        """The approximate length of the uncompressed text."""
        files = zip(self.paths, self.sizes, strict=True)
        return sum(size * (GZIP_RATIO if _is_compressed(path) else 1) for path, size in files)

    def pieces(self) -> list[tuple[str, int, int]]:
        """Cut the files into pieces. A compressed file is one piece, because it can only be read from its beginning.

        Returns
        -------
        list
            Path, first byte and end of each piece.
        """
        pieces = []
        for path, size in zip(self.paths, self.sizes, strict=True):
            step = max(size, 1) if _is_compressed(path) else PIECE_BYTES
            pieces += [(path, begin, min(begin + step, size)) for begin in range(0, size, step)]
        return pieces

    def frame(self, spark: "SparkSession") -> "DataFrame":
        """Create a data frame of the pieces, with one partition for each piece.

        Parameters
        ----------
        spark
            The session.

        Returns
        -------
        pyspark.sql.DataFrame
            Columns ``path``, ``begin`` and ``end``.
        """
        pieces = self.pieces()
        rows = spark.sparkContext.parallelize(pieces, max(1, len(pieces)))
        return spark.createDataFrame(rows, PIECE_SCHEMA)


def find_edges(pattern: str) -> EdgeList:
    """Find the files of an edge list.

    Parameters
    ----------
    pattern
        A file, a folder of files, or a pattern with ``*``.

    Returns
    -------
    EdgeList
        The files. Files of a folder whose names begin with ``.`` or ``_`` are left out.

    Raises
    ------
    InputError
        If there is no such file, or a file cannot be accessed.
    """
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
    """Read the lines that begin within a piece of a file.

    Parameters
    ----------
    path, begin, end
        The piece, as :meth:`EdgeList.pieces` gives it.

    Yields
    ------
    EdgeText
        The edges of some lines, and the number of bad lines among them.

    Raises
    ------
    InputError
        If the file cannot be read.
    """
    try:
        texts = _decompress(path) if _is_compressed(path) else _lines_between(path, begin, end)
        beginning = _only_comments_before(path, begin)
        for text in texts:
            yield parse_edges(text, beginning=beginning)
            beginning = beginning and only_comments(text)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read ({reason(error)})") from error


def read_pieces(batches: Iterator[pa.RecordBatch]) -> Iterator[EdgeText]:
    """Read all pieces of a partition.

    Parameters
    ----------
    batches
        Rows of the data frame that :meth:`EdgeList.frame` creates.

    Yields
    ------
    EdgeText
        As :func:`read_piece` does.
    """
    for batch in batches:
        for row in batch.to_pylist():
            yield from read_piece(row["path"], row["begin"], row["end"])


def _is_compressed(path: str) -> bool:
    return path.endswith(".gz")


def _lines_between(path: str, begin: int, end: int) -> Iterator[bytes]:
    with open(path, "rb") as file:
        if begin > 0:
            # A line that crosses the border belongs to the piece in which it begins.
            file.seek(begin - 1)
            file.readline()
        length = end - file.tell()
        if length > 0:
            text = file.read(length)
            yield text if text.endswith(b"\n") else text + file.readline()


def _only_comments_before(path: str, end: int) -> bool:
    """Return whether a header may follow, that is, whether only comments stand before a position of the file."""
    if end == 0:
        return True
    with open(path, "rb") as file:
        while file.tell() < end:
            if not only_comments(file.readline()):
                return False
    return True


def _decompress(path: str) -> Iterator[bytes]:
    with gzip.open(path, "rb") as file:
        while text := file.read(PIECE_BYTES):
            # A file without line breaks must not be decompressed to one line.
            yield text if text.endswith(b"\n") else text + file.readline(LONGEST_LINE)
