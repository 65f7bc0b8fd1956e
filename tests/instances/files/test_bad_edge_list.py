"""Edge lists: what is wrong in a file is reported in one line that names the file and the line."""

import gzip
from pathlib import Path

import pytest

from relocbench.instances.files.follower_graph import read_follower_graph
from tests.instances.files.bad_files import DIGITS, check_reader, error_of, run_installed_command

EDGES = gzip.compress(b"".join(b"%d\t%d\n" % (i, 7 * i) for i in range(5_000)), mtime=0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"1 2\n1_0 2\n", "line 2: expected two ids, got '1_0 2'"),
        ("1 2\n١ ٢\n".encode(), "line 2: expected two ids, got '١ ٢'"),
        (b"1 2\n3 +4\n", "line 2: expected two ids, got '3 +4'"),
        (b"1 2\n3 nan\n", "line 2: expected two ids, got '3 nan'"),
        (b"1 2\n" + b"9" * 5_000 + b" 1\n", f"line 2: expected two ids, got '{DIGITS[:38]}…"),
        (b"1 2\n\0\0\0\n", r"line 2: expected two ids, got '\x00\x00\x00'"),
        (b"\xff\xfe1\x002\x00", "cannot be read ('utf-8' codec can't decode byte 0xff in position 0"),
        (b"1 2\n\xff\n", "cannot be read ('utf-8' codec can't decode byte 0xff in position 4"),
        (b"\0" * 100, "expected lines `follower<TAB>followee`, found no edge"),
    ],
)
def test_the_error_names_the_bad_line(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(content)
    assert error_of(read_follower_graph, path).startswith(f"{path}: {problem}")


@pytest.mark.parametrize(
    "content",
    [b"1 2\n", EDGES[:-20], EDGES[:-8] + bytes(8), EDGES[:300] + b"\xff" * 5 + EDGES[305:]],
    ids=["plain", "cut", "wrong checksum", "overwritten"],
)
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(content)
    assert error_of(read_follower_graph, path).startswith(f"{path}: cannot be read (")


@pytest.mark.parametrize("line", ["1\t2\n", "1 2\n# a comment, which makes the reader parse line by line\n"])
def test_a_byte_order_mark_is_accepted(tmp_path: Path, line: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(line, encoding="utf-8-sig")
    assert read_follower_graph(path).follower.tolist() == [1]


def test_a_path_without_a_file_is_refused(tmp_path: Path) -> None:
    assert error_of(read_follower_graph, tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"
    missing = tmp_path / "none"
    assert error_of(read_follower_graph, missing) == f"{missing}: cannot be read (No such file or directory)"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges.txt", b"# a\tb\n1\t2\n10\t20\n-3\t4\n"),
        ("edges.csv", b"from,to\n1,2\n10,20\n3,4\n"),
        ("edges.txt.gz", gzip.compress(b"1 2\n10 20\n3 4\n", mtime=0)),
    ],
    ids=["plain", "with header", "compressed"],
)
def test_no_change_to_the_bytes_ends_in_a_traceback(tmp_path: Path, name: str, content: bytes) -> None:
    check_reader(read_follower_graph, content, tmp_path / name)


def test_the_installed_command_prints_one_line_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_bytes(b"1 2\n3\n")
    arguments = ("generate", "--family", "paper", "--out", "x.parquet", "--social", "edges.txt")
    code, out, err = run_installed_command(tmp_path, *arguments)
    assert (code, out, err) == (2, "", "relocbench: edges.txt: line 2: expected two ids, got '3'\n")
    assert not (tmp_path / "x.parquet").exists()
