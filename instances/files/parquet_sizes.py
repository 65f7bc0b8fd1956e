"""How much a Parquet file expands to, read from the headers of its pages before anything is decompressed.

A page can state in a few bytes that it repeats one number a billion times, and neither the size of the file nor the
sizes in its metadata show that. Arrow cannot be asked for the headers: it terminates the process if the metadata of a
column are damaged. Metadata and headers are encoded by Thrift's compact protocol
(https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md); the numbers of the fields are those
of https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift.
"""

import os
from collections.abc import Iterator
from typing import IO, Any

from relocbench.instances.errors import InputError
from relocbench.instances.files.limited_file import LARGEST_RATIO, LARGEST_SMALL

# A row group may have this number of values, which need about 4 GiB when Arrow reads them, and in a small file at most
# this number plus this number for each byte of the file.
MOST_VALUES = 1 << 27
MOST_VALUES_START = 1 << 20
MOST_VALUES_RATIO = 100
# The largest size of the pages of a row group in bytes, decompressed.
LARGEST_PAGES = 4 << 30
# The largest footer that is read, in bytes: about 10,000 instances.
LARGEST_FOOTER = 64 << 20
# The number of bytes that are read for the header of a page, and the further bytes if the header is longer.
SHORT_HEADER = 256
LONGEST_HEADER = 64 << 10
DEEPEST = 16
# The exceptions that damaged bytes cause below.
_DAMAGED = (IndexError, KeyError, TypeError, AttributeError)

# The fields that are needed, by the name of the structure.
_ROW_GROUPS = 4  # FileMetaData
_COLUMNS = 1  # RowGroup
_CHUNK = 3  # ColumnChunk
_PATH, _VALUES, _COMPRESSED, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 5, 7, 9, 11  # ColumnMetaData
_PAGE_EXPANDED, _PAGE_COMPRESSED = 2, 3  # PageHeader
_PAGE_KINDS = (5, 7, 8)  # PageHeader: headers of data pages, dictionary pages and data pages of version 2
_PAGE_VALUES = 1  # each of these headers

Struct = dict[int, Any]


class PageSizes:
    """The sizes that the headers of a Parquet file state.

    Parameters
    ----------
    file
        The file.

    Raises
    ------
    InputError
        If the metadata are damaged or too large.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._size = size = _length(file)
        file.seek(max(size - 8, 0))
        length = int.from_bytes(file.read(4), "little")
        if file.read(4) != b"PAR1" or length > size - 12:
            raise InputError("", "cannot be read as Parquet (the end of the file is damaged)")
        if length > LARGEST_FOOTER:
            raise InputError("", f"expected at most {LARGEST_FOOTER >> 20} MiB of metadata, got {length >> 20}")
        file.seek(size - 8 - length)
        try:
            metadata = _Reader(file.read(length)).struct()
            groups = metadata[_ROW_GROUPS]
            self._chunks: list[list[Struct]] = [[chunk[_CHUNK] for chunk in group[_COLUMNS]] for group in groups]
        except _DAMAGED as error:
            raise InputError("", "cannot be read as Parquet (its metadata are damaged)") from error

    @property
    def groups(self) -> int:
        """Number of row groups."""
        return len(self._chunks)

    def check(self, group: int, column: str | None = None) -> None:
        """Check that a row group does not expand to more than the memory of a machine can hold.

        Parameters
        ----------
        group
            The number of the row group.
        column
            The only column that is read; None for all columns.

        Raises
        ------
        InputError
            If it expands to too much, or if a header is damaged.
        """
        values = expanded = 0
        try:
            for chunk in self._chunks[group]:
                if column is not None and chunk[_PATH][0] != column.encode():
                    continue
                for header in self._headers(chunk):
                    expanded += header[_PAGE_EXPANDED]
                    values += max(header.get(kind, {}).get(_PAGE_VALUES, 0) for kind in _PAGE_KINDS)
        except _DAMAGED as error:
            raise InputError("", "cannot be read as Parquet (the header of a page is damaged)") from error
        most = min(MOST_VALUES, MOST_VALUES_START + MOST_VALUES_RATIO * self._size)
        if values > most:
            raise InputError("", f"expected at most {most:,} values in a file of this size, got {values:,}")
        largest = min(LARGEST_PAGES, LARGEST_SMALL + LARGEST_RATIO * self._size)
        if expanded > largest:
            problem = f"expected at most {largest >> 20} MiB of data in a file of this size, got {expanded >> 20}"
            raise InputError("", problem)

    def _headers(self, chunk: Struct) -> Iterator[Struct]:
        """Read the headers of the pages of a column."""
        if chunk[_VALUES] == 0:  # Arrow reads no page then
            return
        place = min(chunk[_DATA_OFFSET], chunk.get(_DICTIONARY_OFFSET) or chunk[_DATA_OFFSET])
        end = place + chunk[_COMPRESSED]
        if not 0 <= place <= end <= self._size:
            raise IndexError
        while place < end:
            header, length = self._header(place)
            if min(header[_PAGE_COMPRESSED], header[_PAGE_EXPANDED]) < 0:
                raise IndexError
            place += length + header[_PAGE_COMPRESSED]
            yield header

    def _header(self, place: int) -> tuple[Struct, int]:
        self._file.seek(place)
        start = self._file.read(SHORT_HEADER)
        try:
            reader = _Reader(start)
            return reader.struct(), reader.place
        except IndexError:  # the header is longer, or damaged
            reader = _Reader(start + self._file.read(LONGEST_HEADER))
            return reader.struct(), reader.place


def check_page_sizes(file: IO[bytes]) -> None:
    """Check all row groups of a Parquet file.

    Parameters
    ----------
    file
        The file.

    Raises
    ------
    InputError
        If the file expands to too much, or if its metadata are damaged.
    """
    sizes = PageSizes(file)
    for group in range(sizes.groups):
        sizes.check(group)


def _length(file: IO[bytes]) -> int:
    file.seek(0, os.SEEK_END)
    return file.tell()


class _Reader:
    """Reads the compact protocol. Damaged bytes raise an IndexError."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def struct(self, depth: int = 0) -> Struct:
        """Return the fields of a structure by their numbers."""
        if depth > DEEPEST:
            raise IndexError
        fields: Struct = {}
        number = 0
        data = self.data
        while head := data[self.place]:
            self.place += 1
            kind = head & 15
            number = number + (head >> 4) if head > 15 else self._signed()
            if number in fields:  # Arrow might use another one of them
                raise IndexError
            # In a structure, the type of a boolean is its value. Integers are read here, because most fields are such.
            fields[number] = self._signed() if 4 <= kind <= 6 else None if kind <= 2 else self._value(kind, depth)
        self.place += 1
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if 4 <= kind <= 6:  # integers
            return self._signed()
        if kind == 8:
            return self._bytes(self._unsigned())
        if kind in (9, 10):  # list, set
            return self._list(depth)
        if kind == 12:
            return self.struct(depth + 1)
        if kind in (1, 2, 3):  # one byte, also for a boolean in a list
            return self._bytes(1)
        if kind == 7:  # a float of 64 bits
            return self._bytes(8)
        raise IndexError  # maps and others do not occur

    def _list(self, depth: int) -> list[Any]:
        head = self.data[self.place]
        self.place += 1
        count = head >> 4
        if count == 15:
            count = self._unsigned()
        if count > len(self.data) - self.place:  # each entry needs a byte
            raise IndexError
        kind = head & 15
        return [self._value(kind, depth + 1) for _ in range(count)]

    def _bytes(self, count: int) -> bytes:
        begin = self.place
        self.place += count
        if self.place > len(self.data):
            raise IndexError
        return self.data[begin : self.place]

    def _unsigned(self) -> int:
        data, place = self.data, self.place
        byte = data[place]
        value = byte & 127
        shift = 7
        while byte >= 128:
            place += 1
            byte = data[place]
            value |= (byte & 127) << shift
            shift += 7
            if shift > 70:
                raise IndexError
        self.place = place + 1
        return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
