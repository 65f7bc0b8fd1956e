"""CSV files, read row by row with limits on their size."""

import csv
import io
import zlib
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.limited_file import LARGEST_TEXT, limited_lines, open_limited


def csv_rows(path: Path, largest: int = LARGEST_TEXT) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a CSV file; empty rows are skipped.

    Parameters
    ----------
    path
        The file, compressed if its name ends in ``.gz``.
    largest
        The largest size in bytes, decompressed.

    Yields
    ------
    tuple
        The number of the line and the cells, without blanks at their ends. The first row is the header, or an empty
        list if the file has no rows.

    Raises
    ------
    InputError
        If the file cannot be read, is too large, or is not CSV. The message does not contain the path.
    """
    try:
        with open_limited(path, largest) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(limited_lines(file))
            is_empty = True
            for row in reader:
                if any(row):
                    yield reader.line_num, [cell.strip() for cell in row]
                    is_empty = False
            if is_empty:
                yield 1, []
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError("", f"cannot be read ({reason(error)})") from error
