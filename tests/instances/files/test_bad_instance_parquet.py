"""Families in Parquet: what is wrong in a file is reported in one line that names the file, the row and the column."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relocbench.instances.files import parquet_sizes
from relocbench.instances.files.instance_parquet import SCHEMA, to_row, write_rows
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance, read_instances
from tests.instances.files.bad_files import DIGITS, check_mutations, error_of, mutated_bytes

MEMBERS_64 = pa.list_(pa.list_(pa.int64()))


def row_with(instance: Instance, column: str, value: Any, kind: pa.DataType | None = None) -> pa.Table:
    """Return the one row of an instance with another value, of another type if one is given, in one column."""
    table = to_row(instance)
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, pa.array([value], kind or table.schema.field(column).type))


@pytest.mark.parametrize(
    ("column", "value", "kind", "problem"),
    [
        ("cloud_delay", 5, pa.int32(), "cloud_delay: expected type double, got int32"),
        ("name", 5, pa.int64(), "name: expected type string, got int64"),
        ("spool", ["8"], pa.list_(pa.string()), "spool: expected type list<item: double>, got list<element: string>"),
        (
            "publishers",
            [0, 1],
            pa.list_(pa.int32()),
            "publishers: expected type list<item: list<item: int32>>, got list<element: int32>",
        ),
        ("hash", None, None, "row 0: hash: is missing (null)"),
        ("server_x", None, None, "row 0: server_x: is missing (null)"),
        ("subscribers", None, None, "row 0: subscribers: is missing (null)"),
        ("spool", [8.0, None], None, "row 0: spool: expected numbers, got a null among them"),
        ("publishers", [[0, None], [1]], None, "row 0: publishers: expected lists of clients, got a null among them"),
        ("publishers", [None, [1]], None, "row 0: publishers: expected lists of clients, got a null among them"),
        ("publishers", [[0, 2**40], [1]], MEMBERS_64, "row 0: publishers: expected indices that fit 32 bits"),
        ("publishers", [[0, 4], [1]], None, "row 0: topics[0].publishers[1]: expected a client from 0 to 3, got 4"),
        ("publishers", [[-1], [1]], None, "row 0: topics[0].publishers[0]: expected a client from 0 to 3, got -1"),
        ("publishers", [[2, 2], [1]], None, "row 0: topics[0].publishers[1]: client 2 is listed twice"),
        (
            "publishers",
            [[0]],
            None,
            "row 0: topics: expected publishers and subscribers for every topic, got 1 and 2 lists",
        ),
        ("spool", [8.0], None, "row 0: topics: expected a list of 2 numbers, got 1"),
        ("server_x", [], None, "row 0: servers.x: expected at least one entry, got none"),
        ("storage", [1.0, -1.0], None, "row 0: servers.storage[1]: expected a number from 0 to 1e+15, got -1.0"),
        (
            "client_x",
            [1.0, float("nan"), 2.0, 3.0],
            None,
            "row 0: clients.x[1]: expected a number from -1e+09 to 1e+09, got nan",
        ),
        ("cloud_delay", float("inf"), None, "row 0: cloud_delay: expected a number from 0 to 1e+12, got inf"),
        (
            "client_server_delay",
            [1.0] * 7,
            None,
            "row 0: client_server_delay: expected rows of 2 numbers, got 7 numbers",
        ),
        (
            "client_server_delay",
            [1.0] * 6,
            None,
            "row 0: client_server_delay: expected 4 rows of 2 numbers, got shape (3, 2)",
        ),
        ("parameters", "{", None, "row 0: parameters: expected JSON (Expecting property name"),
        ("parameters", "[1]", None, "row 0: parameters: expected an object, got [1]"),
        ("parameters", "[" * 100_000, None, "row 0: parameters: expected JSON (maximum recursion depth exceeded"),
        ("parameters", DIGITS, None, "row 0: parameters: expected JSON (Exceeds the limit"),
        ("parameters", '{"a": NaN}', None, "row 0: parameters: expected plain JSON values (Out of range"),
        (
            "format",
            "relocbench-instance/2",
            None,
            "row 0: format: expected \"relocbench-instance/1\", got 'relocbench-instance/2'",
        ),
    ],
)
def test_the_error_names_row_and_column_of_the_bad_value(
    tmp_path: Path, sample: Instance, column: str, value: Any, kind: pa.DataType | None, problem: str
) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(row_with(sample, column, value, kind), path)
    assert error_of(read_instance, path).startswith(f"{path}: {problem}")


def test_a_changed_value_contradicts_the_hash(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(row_with(sample, "spool", [8.0, 7.0]), path)
    assert error_of(read_instance, path).startswith(f"{path}: row 0: hash: expected ")
    pq.write_table(row_with(sample, "hash", "0" * 64), path)
    expected = f"expected {sample.hash[:16]}…, which the content has, got '0000000000000000…"
    assert error_of(read_instance, path) == f"{path}: row 0: hash: {expected}"


def test_the_error_names_the_row_among_several(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    rows = [to_row(sample), to_row(sample), row_with(sample, "cloud_delay", -1.0)]
    table = pa.concat_tables(row.cast(to_row(sample).schema) for row in rows)
    for rows_per_group in (1, 3):
        pq.write_table(table, path, row_group_size=rows_per_group)
        problem = "row 2: cloud_delay: expected a number from 0 to 1e+12, got -1.0"
        assert error_of(lambda file: list(read_instances(file)), path) == f"{path}: {problem}"


def test_missing_and_repeated_columns_are_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    table = to_row(sample)
    pq.write_table(table.drop_columns(["spool"]), path)
    expected = "expected one of type list<item: double>"
    assert error_of(read_instance, path) == f"{path}: spool: the column is missing; {expected}"
    pq.write_table(table.append_column("spool", table["spool"]), path)
    assert error_of(read_instance, path) == f"{path}: spool: the column is there twice; {expected}"


def test_a_file_without_rows_is_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(to_row(sample).slice(0, 0), path)
    assert error_of(read_instance, path) == f"{path}: expected at least one instance, the file has no rows"


def test_text_that_is_not_utf_8_is_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    not_utf_8 = pa.StringArray.from_buffers(1, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe"))
    table = to_row(sample)
    pq.write_table(table.set_column(table.schema.get_field_index("name"), "name", not_utf_8), path)
    assert error_of(read_instance, path).startswith(f"{path}: row group 0: cannot be read as Parquet (")


def test_pages_above_the_size_limit_are_refused_before_they_are_decompressed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Instance
) -> None:
    path = tmp_path / "bomb.parquet"
    monkeypatch.setattr(parquet_sizes, "LARGEST_PAGES", 1 << 20)
    pq.write_table(row_with(sample, "parameters", json.dumps({"a": " " * (2 << 20)})), path, compression="zstd")
    assert path.stat().st_size < 1 << 16
    problem = "row group 0: expected at most 1 MiB of data in a file of this size, got 2"
    assert error_of(read_instance, path) == f"{path}: {problem}"


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_a_few_bytes_that_repeat_a_number_very_often_are_refused_before_they_are_read(
    tmp_path: Path, sample: Instance, version: str, dictionary: bool
) -> None:
    path = tmp_path / "bomb.parquet"
    count = 3_000_000
    zeros = pa.ListArray.from_arrays(pa.array([0, count], pa.int32()), pa.nulls(count, pa.float64()))
    table = to_row(sample).set_column(SCHEMA.get_field_index("client_x"), SCHEMA.field("client_x"), zeros)
    pq.write_table(table, path, compression="zstd", use_dictionary=dictionary, data_page_version=version)
    size = path.stat().st_size
    assert size < 1 << 14
    expected = f"expected at most {(1 << 20) + 100 * size:,} values in a file of this size, got 3,000,0"
    before = pa.total_allocated_bytes()
    assert error_of(read_instance, path).startswith(f"{path}: row group 0: {expected}")
    assert pa.total_allocated_bytes() - before < 1 << 20
    # The metadata of the column may state less than its pages.
    field = b"\x16" + varint(2 * count)
    content = path.read_bytes()
    assert field in content
    path.write_bytes(content.replace(field, b"\x16\x82\x80\x80\x00"))
    assert error_of(read_instance, path).startswith(f"{path}: row group 0: {expected}")


def varint(number: int) -> bytes:
    digits = []
    while number >= 128:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def test_a_text_that_a_dictionary_repeats_in_many_rows_is_read_row_by_row(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bomb.parquet"
    row = row_with(sample, "parameters", json.dumps({"a": " " * (4 << 20)}))
    pq.write_table(pa.concat_tables([row] * 100), path, compression="zstd", dictionary_pagesize_limit=8 << 20)
    before = pa.default_memory_pool().max_memory()
    assert len(list(read_instances(path))) == 100
    assert pa.default_memory_pool().max_memory() - before < 100 << 20


@pytest.mark.parametrize("keep", [0, 3, 200, -10, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, sample: Instance, keep: int) -> None:
    path = tmp_path / "bad.parquet"
    write_rows([sample], path)
    path.write_bytes(path.read_bytes()[:keep])
    assert error_of(read_instance, path).startswith(f"{path}: cannot be read as Parquet (Parquet ")


@pytest.mark.slow
@pytest.mark.parametrize("writer", ["ours", "plain"])
def test_no_change_to_the_bytes_ends_in_a_traceback(tmp_path: Path, sample: Instance, writer: str) -> None:
    path = tmp_path / "mutated.parquet"
    if writer == "ours":
        write_rows([sample], path)
    else:
        # As short as Parquet can be, so that most changes matter.
        pq.write_table(to_row(sample), path, compression="none", store_schema=False, write_statistics=False)
    commands = [("describe", "FILE"), ("solve", "FILE", "--method", "nearest", "--json")]
    check_mutations(mutated_bytes(path.read_bytes()), path, 250, commands)
