"""Files that are read with a limit, so that a small compressed file cannot fill the memory."""

import gzip
import io
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError

# A compressed file may expand to this number of bytes, or to this multiple of its size if that is more. The files of
# this project expand to 2 to 10 times their size.
LARGEST_SMALL = 16 << 20
LARGEST_RATIO = 100
# The largest text of a file, in bytes.
LARGEST_TEXT = 1 << 30
# The longest line of a text, in characters.
LONGEST_LINE = 1 << 20


def open_limited(path: Path, largest: int = LARGEST_TEXT) -> io.BufferedReader:
    """Open a file for reading, decompressed if its name ends in ``.gz``.

    Parameters
    ----------
    path
        The file.
    largest
        The largest number of bytes, decompressed.

    Returns
    -------
    io.BufferedReader
        The content. Reading beyond the limit raises an InputError without the path.

    Raises
    ------
    OSError
        If the file cannot be opened.
    """
    raw = path.open("rb")
    try:
        return io.BufferedReader(_Limited(raw, path, largest), 1 << 16)
    except BaseException:
        raw.close()
        raise


def limited_lines(text: io.TextIOWrapper) -> Iterator[str]:
    """Read the lines of a text.

    Parameters
    ----------
    text
        The text.

    Yields
    ------
    str
        A line with its line break.

    Raises
    ------
    InputError
        If a line is too long; the message names its number.
    """
    for number, line in enumerate(iter(lambda: text.readline(LONGEST_LINE), ""), start=1):
        if len(line) == LONGEST_LINE:
            raise InputError(f"line {number}", f"expected at most {LONGEST_LINE} characters, got more")
        yield line


class _Limited(io.RawIOBase):
    """The bytes of a file, counted."""

    def __init__(self, raw: io.BufferedReader, path: Path, largest: int) -> None:
        self._raw = raw
        self._source: io.BufferedReader | gzip.GzipFile = raw
        self._largest, self._hint = largest, ""
        if path.suffix == ".gz":
            self._source = gzip.GzipFile(fileobj=raw)
            expected = max(LARGEST_SMALL, LARGEST_RATIO * raw.seek(0, io.SEEK_END))
            raw.seek(0)
            if expected < largest:
                self._largest, self._hint = expected, " from a compressed file of this size; decompress it first"
        self._count = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        piece = self._source.read(len(buffer))
        self._count += len(piece)
        if self._count > self._largest:
            raise InputError("", f"expected at most {_mebibytes(self._largest)}{self._hint}, got more")
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
            self._raw.close()
        super().close()


def _mebibytes(count: int) -> str:
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count:,} bytes"
