"""Parallel reading of an edge list.

Local files are cut into pieces, and each piece is read by one task. Files of other file systems are read by Spark.
"""

import datetime
import glob
import gzip
import itertools
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.edge_list import EdgeText, only_comments, parse_edges
from relocbench.instances.files.limited_file import LONGEST_LINE
from relocbench.spark.locations import Location, for_reading, location
from relocbench.spark.remote_path import FileStatus, RemotePath

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
    source
        The file, the folder or the pattern.
    paths
        The absolute path, or the URI, of each file.
    sizes
        The length of each file in bytes.
    modified
        When each file was written, in milliseconds since 1970.
    """

    source: Location
    paths: tuple[str, ...]
    sizes: tuple[int, ...]
    modified: tuple[int, ...]

    @property
    def identity(self) -> dict[str, list[int] | list[str]]:
        """What identifies the content of the files, wherever they are: their lengths and times of modification."""
        files = sorted(zip(self.sizes, self.modified, strict=True))
        times = [datetime.datetime.fromtimestamp(time / 1000, datetime.UTC) for _, time in files]
        return {
            "sizes": [size for size, _ in files],
            "modified": [time.isoformat(timespec="milliseconds") for time in times],
        }

    @property
    def text_bytes(self) -> int:
        """The approximate length of the uncompressed text."""
        files = zip(self.paths, self.sizes, strict=True)
        return sum(size * (GZIP_RATIO if _is_compressed(path) else 1) for path, size in files)

    def require_text(self) -> None:
        """Refuse an edge list whose files are all empty.

        Raises
        ------
        InputError
            If they are.
        """
        if not any(self.sizes):
            raise InputError(str(self.source), "expected lines `follower<TAB>followee`, got an empty file")

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
        """Create a data frame of the pieces, with one partition for each piece, or of the lines of remote files.

        Parameters
        ----------
        spark
            The session.

        Returns
        -------
        pyspark.sql.DataFrame
            Columns ``path``, ``begin`` and ``end``, or ``path``, ``begin`` and ``line``: the path and first byte of
            the part of the file that Spark reads in one go, and a line of it.
        """
        if isinstance(self.source, RemotePath):
            lines = spark.read.text([for_reading(path) for path in self.paths])
            return lines.selectExpr(
                "_metadata.file_path path", "_metadata.file_block_start begin", "CAST(value AS binary) line"
            )
        pieces = self.pieces()
        rows = spark.sparkContext.parallelize(pieces, max(1, len(pieces)))
        return spark.createDataFrame(rows, PIECE_SCHEMA)


def find_edges(source: str | Location) -> EdgeList:
    """Find the files of an edge list.

    Parameters
    ----------
    source
        A file, a folder of files, or a pattern with ``*``. A remote one needs a running session.

    Returns
    -------
    EdgeList
        The files. Files of a folder whose names begin with ``.`` or ``_`` are left out.

    Raises
    ------
    InputError
        If there is no such file, or a file cannot be accessed.
    """
    source = location(source)
    if isinstance(source, RemotePath):
        files = source.matches()
        if [file.path for file in files] != [str(source)]:
            files = [file for file in files if not _is_hidden(file.path)]
    else:
        files = _local_files(source)
    if not files:
        raise InputError(str(source), "expected a file of edges, or a folder of them, found none")
    return EdgeList(
        source,
        tuple(file.path for file in files),
        tuple(file.size for file in files),
        tuple(file.modified for file in files),
    )


def _local_files(source: Path) -> list[FileStatus]:
    try:
        if source.is_dir():
            paths = sorted(path for path in source.iterdir() if path.is_file() and not _is_hidden(path.name))
        else:
            paths = [source] if source.is_file() else [Path(path) for path in sorted(glob.glob(str(source)))]
        found = [(path, path.stat()) for path in paths]
        return [FileStatus(str(path.resolve()), stat.st_size, stat.st_mtime_ns // 10**6) for path, stat in found]
    except OSError as error:
        raise InputError(str(source), f"cannot be read ({reason(error)})") from error


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2][:1] in (".", "_")


def read_piece(path: str, begin: int, end: int, roles: bool = False) -> Iterator[EdgeText]:
    """Read the lines that begin within a piece of a file.

    Parameters
    ----------
    path, begin, end
        The piece, as :meth:`EdgeList.pieces` gives it.
    roles
        Whether lines may have a role in a third column.

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
            yield parse_edges(text, beginning=beginning, roles=roles)
            beginning = beginning and only_comments(text)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(path, f"cannot be read ({reason(error)})") from error


def read_pieces(batches: Iterator[pa.RecordBatch], roles: bool = False) -> Iterator[EdgeText]:
    """Read all pieces of a partition.

    Parameters
    ----------
    batches
        Rows of the data frame that :meth:`EdgeList.frame` creates.
    roles
        As for :func:`read_piece`.

    Yields
    ------
    EdgeText
        As :func:`read_piece` does.
    """
    part, beginning = None, False
    for batch in batches:
        if "line" not in batch.schema.names:
            for row in batch.to_pylist():
                yield from read_piece(row["path"], row["begin"], row["end"], roles)
            continue
        paths, begins, lines = (batch.column(name).to_pylist() for name in ("path", "begin", "line"))
        for number, rows in itertools.groupby(range(len(lines)), key=lambda row: (paths[row], begins[row])):
            if number != part:
                part, beginning = number, number[1] == 0
            text = b"".join(lines[row] + b"\n" for row in rows)
            yield parse_edges(text, beginning=beginning, roles=roles)
            beginning = beginning and only_comments(text)


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
