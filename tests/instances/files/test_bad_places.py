"""Places in CSV: what is wrong in a file is reported in one line that names the file, the line and the column."""

from pathlib import Path

import pytest

from relocbench.instances.files.places import read_places
from tests.instances.files.bad_files import check_reader, error_of


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected a column named latitude, got columns []"),
        (b"a,b\n1,2\n", "expected a column named latitude, got columns ['a', 'b']"),
        (b"lat\n1\n", "expected a column named longitude, got columns ['lat']"),
        (b"lat,lon\n", "expected at least one place, got none"),
        (b"lat,lon\n1,2\n91,0\n", "line 3: latitude: expected degrees from -90 to 90, got '91'"),
        (b"lat,lon\n0,-180.5\n", "line 2: longitude: expected degrees from -180 to 180, got '-180.5'"),
        (b"lat,lon\n0,nan\n", "line 2: longitude: expected degrees from -180 to 180, got 'nan'"),
        (b"lat,lon\n1e999,0\n", "line 2: latitude: expected degrees from -90 to 90, got '1e999'"),
        (b"lat,lon\nnorth,0\n", "line 2: latitude: expected degrees from -90 to 90, got 'north'"),
        (b"lat,lon\n0\n", "line 2: longitude: expected degrees from -180 to 180, got ''"),
        (b'lat,lon\n"1\n,2', r"line 3: latitude: expected degrees from -90 to 90, got '1\n,2'"),
        (b"lat,lon\n1," + b"9" * 200_000, "cannot be read (field larger than field limit (131072))"),
        (b"lat,lon\n0,\xff\n", "cannot be read ('utf-8' codec can't decode byte 0xff in position 10"),
    ],
)
def test_the_error_names_line_and_column(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "sites.csv"
    path.write_bytes(content)
    assert error_of(read_places, path).startswith(f"{path}: {problem}")


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    assert error_of(read_places, tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"
    missing = tmp_path / "none"
    assert error_of(read_places, missing) == f"{missing}: cannot be read (No such file or directory)"


def test_no_change_to_the_bytes_ends_in_a_traceback(tmp_path: Path) -> None:
    content = b'id,Latitude,name,Longitude\n1,-37.8,"a, b",144.9\n2,-37.9,c,145\n'
    check_reader(read_places, content, tmp_path / "sites.csv")
