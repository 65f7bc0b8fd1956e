"""Paths that name no instance, and names or values that would break the one line of an error message."""

from pathlib import Path
from typing import Any

import pytest

from relocbench.instances.errors import shown
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from tests.instances.files.bad_files import INSTANCE, error_of, with_field


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.json", "cannot be read (No such file or directory)"),
        ("none.json.gz", "cannot be read (No such file or directory)"),
        ("none.parquet", "cannot be read as Parquet (No such file or directory)"),
        ("folder.json", "cannot be read (Is a directory)"),
        ("folder.parquet", "cannot be read as Parquet ("),
        ("sample.json/inside.json", "cannot be read (Not a directory)"),
        ("a" * 300 + ".json", "cannot be read (File name too long)"),
        ("a" * 300 + ".parquet", "cannot be read as Parquet ("),
        ("sample.txt", "expected a name ending in .json, .json.gz or .parquet"),
        ("sample", "expected a name ending in .json, .json.gz or .parquet"),
        ("sample.gz", "expected a name ending in .json, .json.gz or .parquet"),
    ],
)
def test_a_path_without_an_instance_is_refused(tmp_path: Path, sample: Instance, name: str, problem: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    path = tmp_path / name
    assert error_of(read_instance, path).startswith(f"{path}: {problem}")


def test_line_breaks_in_names_do_not_reach_the_message(tmp_path: Path, sample: Instance) -> None:
    broken = tmp_path / "a\nb.json"
    assert error_of(read_instance, broken) == f"{tmp_path / 'a b.json'}: cannot be read (No such file or directory)"
    path = tmp_path / "two.parquet"
    (tmp_path / "named.json").write_text(with_field(INSTANCE, "name", r'"a\r\nb\u2028c"'))
    write_rows([read_instance(tmp_path / "named.json"), sample], path)
    assert error_of(read_instance, path) == f"{path}: expected one instance, found several; name one: {path}#a b c"


def test_every_value_is_shown_in_one_short_line() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    values = [nested, 10**5_000, [10**5_000], "x" * 10**6, "a\nb\u2028", [0] * 10**6, {str(i): i for i in range(10**5)}]
    for value in values:
        assert len(shown(value)) <= 40
        assert len(shown(value).splitlines()) == 1
    while nested:  # taken apart here, because Python would free it by recursion
        nested = nested[0]
