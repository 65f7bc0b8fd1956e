import gzip
import json
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relocbench.instances.errors import InputError, shown
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files import instance_parquet, json_fields
from relocbench.instances.files.follower_graph import read_follower_graph
from relocbench.instances.files.instance_parquet import to_row, write_rows
from relocbench.instances.files.places import read_places
from relocbench.instances.files.solution_file import read_solution
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance, read_instances
from tests.instances.files.bad_files import (
    EUCLIDEAN,
    INSTANCE,
    changed,
    mutated_bytes,
    mutated_json,
    odd_json,
    run_command,
    spelt,
)

DIGITS = "9" * 10_000
FIELDS = (
    "format, name, cloud_delay, delay_per_km, servers, clients, topics, "
    "client_server_delay, server_server_delay, parameters"
)


def complaint(read: Any, *arguments: Any) -> str:
    """What the reader says, which must be one line."""
    with pytest.raises(InputError) as caught:
        read(*arguments)
    text = str(caught.value)
    assert len(text.splitlines()) == 1
    return text


@pytest.fixture
def sample(tmp_path: Path) -> Instance:
    (tmp_path / "sample.json").write_text(spelt(INSTANCE))
    return read_instance(tmp_path / "sample.json")


@pytest.mark.parametrize(
    ("field", "token", "problem"),
    [
        # No number, or none that can be used.
        ("cloud_delay", "true", "expected a number, got True"),
        ("cloud_delay", '"5"', "expected a number, got '5'"),
        ("cloud_delay", "null", "expected a number, got None"),
        ("cloud_delay", "[5]", "expected a number, got [5]"),
        ("cloud_delay", "NaN", "expected a finite number, got nan"),
        ("cloud_delay", "-Infinity", "expected a finite number, got -inf"),
        ("cloud_delay", "1e999", "expected a finite number, got inf"),
        ("cloud_delay", DIGITS, "expected a finite number, got inf"),
        ("cloud_delay", DIGITS[:400], f"expected a finite number, got {DIGITS[:39]}…"),
        ("cloud_delay", "-1", "expected a number from 0 to 1e+12, got -1.0"),
        ("cloud_delay", "1e13", "expected a number from 0 to 1e+12, got 10000000000000.0"),
        ("delay_per_km", "-0.5", "expected a number from 0 to 1e+12, got -0.5"),
        ("servers.x[1]", '"10"', "expected a number, got '10'"),
        ("servers.x[1]", "[10]", "expected a number, got [10]"),
        ("servers.x[1]", "NaN", "expected a finite number, got nan"),
        ("servers.x[1]", f"-{DIGITS}", "expected a finite number, got -inf"),
        ("servers.x[1]", DIGITS[:400], f"expected a finite number, got {DIGITS[:39]}…"),
        ("servers.x[1]", "1e10", "expected a number from -1e+09 to 1e+09, got 10000000000.0"),
        ("clients.y[2]", "false", "expected a number, got False"),
        ("clients.y[2]", "-1e10", "expected a number from -1e+09 to 1e+09, got -10000000000.0"),
        ("servers.storage[1]", "-1", "expected a number from 0 to 1e+15, got -1.0"),
        ("servers.compute[0]", "-0.001", "expected a number from 0 to 1e+15, got -0.001"),
        ("topics[1].spool", "-1", "expected a number from 0 to 1e+12, got -1.0"),
        ("topics[1].spool", '"8"', "expected a number, got '8'"),
        ("client_server_delay[2][1]", "-1", "expected a number from 0 to 1e+12, got -1.0"),
        ("client_server_delay[2][1]", "Infinity", "expected a finite number, got inf"),
        ("client_server_delay[2][1]", DIGITS[:400], f"expected a finite number, got {DIGITS[:39]}…"),
        ("client_server_delay[2][1]", "null", "expected a number, got None"),
        ("server_server_delay[0][1]", "-3", "expected a number from 0 to 1e+12, got -3.0"),
        ("server_server_delay[1][1]", "0.5", "expected 0 from a server to itself, got 0.5"),
        # No list or object, or of the wrong length.
        ("servers", "[]", "expected an object, got []"),
        ("clients", "null", "expected an object, got None"),
        ("topics", "{}", "expected a list, got {}"),
        ("topics[1]", "[8, [0], [1]]", "expected an object, got [8, [0], [1]]"),
        ("topics[1].publishers", "2", "expected a list, got 2"),
        ("servers.x", "3", "expected a list, got 3"),
        ("servers.x", "[]", "expected at least one entry, got none"),
        ("clients.x", "[]", "expected at least one entry, got none"),
        ("topics", "[]", "expected at least one topic, got none"),
        ("servers.y", "[1, 2, 3]", "expected a list of 2 numbers, got 3"),
        ("servers.storage", "[1, 2, 3]", "expected a list of 2 numbers, got 3"),
        ("servers.compute", "[20]", "expected a list of 2 numbers, got 1"),
        ("clients.y", "[]", "expected a list of 4 numbers, got 0"),
        ("client_server_delay", "5", "expected a list, got 5"),
        ("client_server_delay", "[]", "expected 4 rows of 2 numbers, got shape (0, 0)"),
        ("client_server_delay", "[[], [], [], []]", "expected 4 rows of 2 numbers, got shape (4, 0)"),
        ("client_server_delay", "[[1, 2], [3, 4], [5, 6]]", "expected 4 rows of 2 numbers, got shape (3, 2)"),
        ("client_server_delay[2]", "[1]", "expected 2 numbers, got 1"),
        ("client_server_delay[2]", "1", "expected a list, got 1"),
        ("server_server_delay", "[[0, 1, 2], [1, 0, 2]]", "expected 2 rows of 2 numbers, got shape (2, 3)"),
        # Members that are none.
        ("topics[1].publishers[0]", "4", "expected a client from 0 to 3, got 4"),
        ("topics[1].subscribers[1]", "4", "expected a client from 0 to 3, got 4"),
        ("topics[1].publishers[0]", "-1", "expected the index of a client, got -1"),
        ("topics[1].publishers[0]", "2147483648", "expected the index of a client, got 2147483648"),
        ("topics[1].publishers[0]", "1e0", "expected a whole number, got 1.0"),
        ("topics[1].publishers[0]", "true", "expected a whole number, got True"),
        ("topics[1].publishers[0]", '"2"', "expected a whole number, got '2'"),
        ("topics[1].publishers[0]", DIGITS, "expected a whole number, got inf"),
        ("topics[1].publishers[0]", DIGITS[:20], f"expected a whole number that fits 64 bits, got {DIGITS[:20]}"),
        ("topics[0].publishers[2]", "0", "client 0 is listed twice"),
        ("topics[1].subscribers[1]", "3", "client 3 is listed twice"),
        (
            "topics[1]",
            '{"spool": 1, "publishers": [], "subscribers": []}',
            "expected a publisher or a subscriber, got neither",
        ),
        # Other fields than those of the format.
        ("format", '"relocbench-instance/2"', "expected \"relocbench-instance/1\", got 'relocbench-instance/2'"),
        ("format", "1", 'expected "relocbench-instance/1", got 1'),
        ("format", None, 'expected "relocbench-instance/1", it is missing'),
        ("cloud_delay", None, "is missing"),
        ("servers", None, "is missing"),
        ("servers.storage", None, "is missing"),
        ("topics", None, "is missing"),
        ("topics[1].spool", None, "is missing"),
        ("topics[1].subscribers", None, "is missing"),
        ("cloud-delay", "5", f"unknown field; expected one of {FIELDS}"),
        ("servers.storge", "[1, 2]", "unknown field; expected one of x, y, storage, compute"),
        ("clients.z", "[]", "unknown field; expected one of x, y"),
        ("topics[1].members", "[1]", "unknown field; expected one of spool, publishers, subscribers"),
        ("name", '"a", "name": "b"', "is given twice"),
        ("servers.x", '[1, 2], "x": [1, 2]', "is given twice"),
        ("topics[1].spool", '1, "spool": 1', "is given twice"),
        ("parameters.made", '[{"made": 1, "made": 1}], "made": 2', "is given twice"),
        # Text and parameters.
        ("name", "5", "expected text, got 5"),
        ("name", r'"a\ud800"', r"expected Unicode text, got the surrogate '\ud800'"),
        ("parameters", "[1]", "expected an object, got [1]"),
    ],
)
def test_a_bad_value_in_an_instance_is_refused_by_the_name_of_its_field(
    tmp_path: Path, field: str, token: str | None, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed(INSTANCE, field, token))
    assert complaint(read_instance, path) == f"{path}: {field}: {problem}"


@pytest.mark.parametrize("token", ["NaN", "[1e999]", DIGITS, f'{{"deep": [-{DIGITS}]}}'])
def test_parameters_hold_only_numbers_that_json_has(tmp_path: Path, token: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed(INSTANCE, "parameters.made", token))
    assert complaint(read_instance, path).startswith(f"{path}: parameters: expected plain JSON values (Out of range")


def test_a_name_given_twice_is_found_however_deep_it_is(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed(INSTANCE, "parameters.made", '[0, {"a": [[{"b": 1, "c": 2, "b": 3}]]}]'))
    assert complaint(read_instance, path) == f"{path}: parameters.made[1].a[0][0].b: is given twice"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected JSON, the file is empty"),
        (b"\n", "not JSON at line 2, column 1: Expecting value (is the file whole?)"),
        (b"\0" * 100, "not JSON at line 1, column 1: Expecting value (is the file whole?)"),
        (spelt(INSTANCE).encode()[:99], "not JSON at line 1, column 96: Unterminated string starting at (is the file"),
        (spelt(INSTANCE).encode() * 2, "not JSON at line 1, column 562: Extra data (is the file whole?)"),
        (bytes(range(256)), "expected UTF-8 text, got byte 0x80 at 128"),
        (spelt(INSTANCE).encode("utf-16"), "expected UTF-8 text, got byte 0xff at 0"),
        (gzip.compress(spelt(INSTANCE).encode(), mtime=0), "expected UTF-8 text, got byte 0x8b at 1"),
        (b"[1, 2]", 'expected an object with "format": "relocbench-instance/1", got [1, 2]'),
        (b"[" * 100_000, "expected an object, got lists or objects nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "expected an object, got lists or objects nested too deeply"),
        (b'{"a":' * 100_000, "expected an object, got lists or objects nested too deeply"),
        (DIGITS.encode(), 'expected an object with "format": "relocbench-instance/1", got inf'),
    ],
    ids=lambda value: None if isinstance(value, str) else f"{value[:12]!r} of {len(value)} bytes",
)
def test_a_file_that_is_no_json_object_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert complaint(read_instance, path).startswith(f"{path}: {problem}")


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "marked.json"
    path.write_text(spelt(INSTANCE), encoding="utf-8-sig")
    assert read_instance(path).hash == sample.hash


COMPRESSED = gzip.compress(spelt(INSTANCE).encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected JSON, the file is empty"),
        (spelt(INSTANCE).encode(), "cannot be read (Not a gzipped file (b'{\"'))"),
        (COMPRESSED[:-20], "cannot be read (Compressed file ended before the end-of-stream marker was reached)"),
        (COMPRESSED[:5], "cannot be read (Compressed file ended before the end-of-stream marker was reached)"),
        (COMPRESSED[:-8] + bytes(8), "cannot be read (CRC check failed 0x0 != "),
        (COMPRESSED[:40] + b"\xff" * 40 + COMPRESSED[80:], "cannot be read (Error -3 while decompressing data: "),
    ],
    ids=["empty", "plain", "cut", "cut in its header", "wrong checksum", "overwritten"],
)
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.json.gz"
    path.write_bytes(content)
    assert complaint(read_instance, path).startswith(f"{path}: {problem}")


@pytest.mark.parametrize("name", ["huge.json", "bomb.json.gz"])
def test_a_file_beyond_the_limit_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(json_fields, "LARGEST_JSON", 3 << 20)
    path = tmp_path / name
    content = b" " * (30 << 20)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    tracemalloc.start()
    said = complaint(read_instance, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert said == f"{path}: expected at most 3 MiB of JSON, got more; use Parquet"
    assert peak < 10 << 20


def test_a_small_file_takes_little_memory(tmp_path: Path, sample: Instance) -> None:
    tracemalloc.start()
    read_instance(tmp_path / "sample.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


def test_a_file_too_large_for_the_machine_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(json, "loads", fail)
    path = tmp_path / "large.json"
    path.write_text(spelt(INSTANCE))
    assert complaint(read_instance, path) == f"{path}: too large for the memory of this machine"


def test_many_names_are_searched_quickly_for_the_one_given_twice(tmp_path: Path) -> None:
    # Looking at all pairs of names would take minutes.
    path = tmp_path / "bad.json"
    path.write_text("{" + ", ".join(f'"n{i}": 0' for i in range(200_000)) + ', "n199999": 0}')
    assert complaint(read_instance, path) == f"{path}: n199999: is given twice"


def test_more_servers_than_pairs_fit_into_memory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    many = [0.0] * 100_000
    path.write_text(json.dumps(EUCLIDEAN | {"servers": dict.fromkeys(("x", "y", "storage", "compute"), many)}))
    assert complaint(read_instance, path) == f"{path}: servers.x: expected at most 5000 entries, got 100000"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("none.json", "cannot be read (No such file or directory)"),
        ("none.json.gz", "cannot be read (No such file or directory)"),
        ("none.parquet", "cannot be read as Parquet (No such file or directory)"),
        ("folder.json", "cannot be read (Is a directory)"),
        ("folder.parquet", "cannot be read as Parquet (Cannot open for reading: path "),
        ("sample.json/inside.json", "cannot be read (Not a directory)"),
        ("a" * 300 + ".json", "cannot be read (File name too long)"),
        ("a" * 300 + ".parquet", "cannot be read as Parquet ("),
        ("sample.txt", "expected a name ending in .json, .json.gz or .parquet"),
        ("sample", "expected a name ending in .json, .json.gz or .parquet"),
        ("sample.gz", "expected a name ending in .json, .json.gz or .parquet"),
    ],
)
def test_a_path_that_leads_to_no_file_is_refused(tmp_path: Path, sample: Instance, name: str, problem: str) -> None:
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "folder.parquet").mkdir()
    path = tmp_path / name
    assert complaint(read_instance, path).startswith(f"{path}: {problem}")


def test_line_breaks_in_names_do_not_break_the_line(tmp_path: Path, sample: Instance) -> None:
    broken = tmp_path / "a\nb.json"
    assert complaint(read_instance, broken) == f"{tmp_path / 'a b.json'}: cannot be read (No such file or directory)"
    path = tmp_path / "two.parquet"
    (tmp_path / "named.json").write_text(changed(INSTANCE, "name", r'"a\r\nb\u2028c"'))
    write_rows([read_instance(tmp_path / "named.json"), sample], path)
    assert complaint(read_instance, path) == f"{path}: expected one instance, found several; name one: {path}#a b c"


def test_a_value_is_shown_in_one_short_line_whatever_it_is() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    values = [nested, 10**5_000, [10**5_000], "x" * 10**6, "a\nb\u2028", [0] * 10**6, {str(i): i for i in range(10**5)}]
    for value in values:
        assert len(shown(value)) <= 40
        assert len(shown(value).splitlines()) == 1
    while nested:  # taken apart by hand: Python would free it by recursion
        nested = nested[0]


def solution_of(instance: Instance) -> dict[str, Any]:
    home = [0, 0, 1, 1]
    return {
        "format": "relocbench-solution/1",
        "instance": instance.hash,
        "method": "by hand",
        "seed": 0,
        "status": "feasible",
        "home": home,
        "objective": evaluate(instance, home).objective,
        "bound": None,
    }


@pytest.mark.parametrize(
    ("field", "token", "problem"),
    [
        ("home", "[0, 0, 1]", "expected 4 servers, one per client, got 3"),
        ("home", "[]", "expected 4 servers, one per client, got 0"),
        ("home", "null", "expected a list, got None"),
        ("home[3]", "2", "expected a server from 0 to 1, got 2"),
        ("home[3]", "-1", "expected a server from 0 to 1, got -1"),
        ("home[3]", "1.0", "expected a whole number, got 1.0"),
        ("home[3]", "true", "expected a whole number, got True"),
        ("home[3]", "NaN", "expected a whole number, got nan"),
        ("home[3]", DIGITS[:20], f"expected a whole number that fits 64 bits, got {DIGITS[:20]}"),
        ("home[3]", "[1]", "expected a whole number, got [1]"),
        ("seed", "0.5", "expected a whole number, got 0.5"),
        ("seed", "true", "expected a whole number, got True"),
        ("seed", DIGITS, "expected a whole number, got inf"),
        ("seed", DIGITS[:20], f"expected a whole number that fits 64 bits, got {DIGITS[:20]}"),
        ("seed", None, "is missing"),
        ("seed", '1, "seed": 2', "is given twice"),
        ("status", '"great"', "expected one of optimal, feasible, time_limit, memory_limit, error, got 'great'"),
        ("status", "5", "expected text, got 5"),
        ("method", "null", "expected text, got None"),
        ("method", r'"\udfff"', r"expected Unicode text, got the surrogate '\udfff'"),
        ("objective", "NaN", "expected a finite number, got nan"),
        ("objective", '"51"', "expected a number, got '51'"),
        ("objective", None, "is missing"),
        ("bound", "true", "expected a number, got True"),
        ("bound", "-1e999", "expected a finite number, got -inf"),
        ("format", '"relocbench-instance/1"', "expected \"relocbench-solution/1\", got 'relocbench-instance/1'"),
        ("format", '"relocbench-solution/2"', "expected \"relocbench-solution/1\", got 'relocbench-solution/2'"),
        (
            "homes",
            "[]",
            "unknown field; expected one of format, instance, method, seed, status, home, objective, bound",
        ),
    ],
)
def test_a_bad_value_in_a_solution_is_refused_by_the_name_of_its_field(
    tmp_path: Path, sample: Instance, field: str, token: str | None, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed(solution_of(sample), field, token))
    assert complaint(read_solution, path, sample) == f"{path}: {field}: {problem}"


def test_a_solution_of_another_instance_is_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.json"
    path.write_text(changed(solution_of(sample), "instance", '"0000000000000000000000"'))
    expected = f"expected the hash {sample.hash[:16]}… of the instance given, got '0000000000000000…"
    assert complaint(read_solution, path, sample) == f"{path}: instance: {expected}"


def test_a_solution_that_is_no_file_is_refused(tmp_path: Path, sample: Instance) -> None:
    assert complaint(read_solution, tmp_path, sample) == f"{tmp_path}: cannot be read (Is a directory)"
    missing = tmp_path / "none.json"
    assert complaint(read_solution, missing, sample) == f"{missing}: cannot be read (No such file or directory)"


def row_with(instance: Instance, column: str, value: Any, kind: pa.DataType | None = None) -> pa.Table:
    table = to_row(instance)
    index = table.schema.get_field_index(column)
    return table.set_column(index, column, pa.array([value], kind or table.schema.field(column).type))


MEMBERS_64 = pa.list_(pa.list_(pa.int64()))


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
def test_a_bad_cell_of_a_family_is_refused_by_row_and_column(
    tmp_path: Path, sample: Instance, column: str, value: Any, kind: pa.DataType | None, problem: str
) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(row_with(sample, column, value, kind), path)
    assert complaint(read_instance, path).startswith(f"{path}: {problem}")


def test_a_changed_value_is_noticed_by_the_hash(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(row_with(sample, "spool", [8.0, 7.0]), path)
    assert complaint(read_instance, path).startswith(f"{path}: row 0: hash: expected ")
    pq.write_table(row_with(sample, "hash", "0" * 64), path)
    expected = f"expected {sample.hash[:16]}…, which the content has, got '0000000000000000…"
    assert complaint(read_instance, path) == f"{path}: row 0: hash: {expected}"


def test_the_row_that_is_wrong_is_named(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    rows = [to_row(sample), to_row(sample), row_with(sample, "cloud_delay", -1.0)]
    table = pa.concat_tables(row.cast(to_row(sample).schema) for row in rows)
    for rows_per_group in (1, 3):
        pq.write_table(table, path, row_group_size=rows_per_group)
        problem = "row 2: cloud_delay: expected a number from 0 to 1e+12, got -1.0"
        assert complaint(lambda file: list(read_instances(file)), path) == f"{path}: {problem}"


def test_columns_of_a_family_are_there_once(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    table = to_row(sample)
    pq.write_table(table.drop_columns(["spool"]), path)
    expected = "expected one of type list<item: double>"
    assert complaint(read_instance, path) == f"{path}: spool: the column is missing; {expected}"
    pq.write_table(table.append_column("spool", table["spool"]), path)
    assert complaint(read_instance, path) == f"{path}: spool: the column is there twice; {expected}"


def test_a_family_without_rows_is_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    pq.write_table(to_row(sample).slice(0, 0), path)
    assert complaint(read_instance, path) == f"{path}: expected at least one instance, the file has no rows"


def test_text_that_is_not_utf_8_is_refused_in_a_family_too(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.parquet"
    bytes_as_text = pa.StringArray.from_buffers(1, pa.array([0, 2], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe"))
    table = to_row(sample)
    pq.write_table(table.set_column(table.schema.get_field_index("name"), "name", bytes_as_text), path)
    assert complaint(read_instance, path).startswith(f"{path}: row group 0: cannot be read as Parquet (")


def test_a_row_group_beyond_the_limit_is_refused_before_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sample: Instance
) -> None:
    path = tmp_path / "bomb.parquet"
    monkeypatch.setattr(instance_parquet, "LARGEST_ROW_GROUP", 1 << 20)
    pq.write_table(row_with(sample, "parameters", json.dumps({"a": " " * (2 << 20)})), path, compression="zstd")
    assert path.stat().st_size < 1 << 16
    assert complaint(read_instance, path) == f"{path}: row group 0: expected at most 1 MiB of data, got more"


@pytest.mark.parametrize("keep", [0, 3, 200, -10, -1])
def test_a_truncated_family_is_refused(tmp_path: Path, sample: Instance, keep: int) -> None:
    path = tmp_path / "bad.parquet"
    write_rows([sample], path)
    path.write_bytes(path.read_bytes()[:keep])
    assert complaint(read_instance, path).startswith(f"{path}: cannot be read as Parquet (Parquet ")


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
def test_a_bad_line_of_an_edge_list_is_refused_by_number(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_bytes(content)
    assert complaint(read_follower_graph, path).startswith(f"{path}: {problem}")


EDGES = gzip.compress(b"".join(b"%d\t%d\n" % (i, 7 * i) for i in range(5_000)), mtime=0)


@pytest.mark.parametrize(
    "content",
    [b"1 2\n", EDGES[:-20], EDGES[:-8] + bytes(8), EDGES[:300] + b"\xff" * 5 + EDGES[305:]],
    ids=["plain", "cut", "wrong checksum", "overwritten"],
)
def test_a_damaged_compressed_edge_list_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "edges.txt.gz"
    path.write_bytes(content)
    assert complaint(read_follower_graph, path).startswith(f"{path}: cannot be read (")


@pytest.mark.parametrize("line", ["1\t2\n", "1 2\n# so that each line is looked at\n"])
def test_an_edge_list_may_begin_with_a_byte_order_mark(tmp_path: Path, line: str) -> None:
    path = tmp_path / "edges.txt"
    path.write_text(line, encoding="utf-8-sig")
    assert read_follower_graph(path).follower.tolist() == [1]


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
def test_bad_places_are_refused_by_line_and_column(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "sites.csv"
    path.write_bytes(content)
    assert complaint(read_places, path).startswith(f"{path}: {problem}")


@pytest.mark.parametrize("read", [read_follower_graph, read_places])
def test_people_and_places_come_from_files(tmp_path: Path, read: Any) -> None:
    assert complaint(read, tmp_path) == f"{tmp_path}: cannot be read (Is a directory)"
    missing = tmp_path / "none"
    assert complaint(read, missing) == f"{missing}: cannot be read (No such file or directory)"


FAR, NEAR = 1e9 / 3, 1e8
LARGE: dict[str, Any] = EUCLIDEAN | {"cloud_delay": 1e12, "delay_per_km": 1e12}
ODD = {
    "nothing is stored": EUCLIDEAN | {"topics": [{"spool": 0, "publishers": [0, 1], "subscribers": [1]}]},
    "nothing is published": EUCLIDEAN | {"topics": [{"spool": 5, "publishers": [], "subscribers": [1]}]},
    "nobody listens": EUCLIDEAN | {"topics": [{"spool": 5, "publishers": [1], "subscribers": [1]}]},
    "no capacity": EUCLIDEAN | {"servers": INSTANCE["servers"] | {"storage": [0, 0], "compute": [0, 0]}},
    "tiny numbers": EUCLIDEAN
    | {"cloud_delay": 5e-324, "topics": [{"spool": 5e-324, "publishers": [0, 1], "subscribers": [1, 2]}]},
    "largest numbers": LARGE
    | {
        "servers": {"x": [1e9, -1e9], "y": [-1e9, 1e9], "storage": [0, 1e15], "compute": [1e15, 0]},
        "topics": [{"spool": 1e12, "publishers": [0, 1, 2, 3], "subscribers": [0, 1, 2, 3]}],
    },
    # Between servers at one place a move costs nothing; rounding must not look like a gain again and again.
    "two servers at one place": LARGE
    | {
        "servers": {"x": [FAR, FAR, 0, 0], "y": [NEAR] * 4, "storage": [19, 12, 7, 14], "compute": [18, 10, 22, 29]},
        "clients": {"x": [FAR, 0, 0, 0, FAR, FAR], "y": [NEAR, NEAR, NEAR, 0, 0, NEAR]},
        "topics": [
            {"spool": spool, "publishers": members, "subscribers": members}
            for spool, members in ((2, [1, 5, 4]), (2, [0, 1, 4, 3]), (4, [0, 5, 4]))
        ],
    },
}


@pytest.mark.parametrize("name", ODD)
def test_odd_but_legal_instances_are_no_problem(tmp_path: Path, name: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps(ODD[name]))
    for word, *options in (("describe",), ("solve", "--method", "nearest")):
        code, out, err = run_command(word, path, "--json", *options)
        assert (code, err) == (0, "")
        json.loads(out)


# What follows holds for thousands of files each: the command works, or says in one line what is wrong with which file.
EVALUATING: list[tuple[str, ...]] = [("evaluate", "SAMPLE", "FILE", "--json")]
READING: list[tuple[str, ...]] = [
    ("describe", "FILE"),
    ("describe", "FILE", "--json"),
    ("solve", "FILE", "--method", "nearest", "--json"),
]


def check_command(command: tuple[str, ...], path: Path, failing: int) -> int:
    """Run the command: it must succeed (or exit with ``failing``), or refuse the file in one line with exit 2."""
    files = {"FILE": path, "SAMPLE": path.with_name("sample.json")}
    code, out, err = run_command(*(files.get(word, word) for word in command))
    if code == 2:
        assert err.startswith("relocbench: ")
        assert str(path) in err
        assert len(err.splitlines()) == 1
        assert out == ""
    else:
        assert code in (0, failing)
        assert (err == "") == (code == 0)
        if "--json" in command:
            json.loads(out, parse_constant=pytest.fail)
    return code


def check_mutations(
    files: st.SearchStrategy[bytes], path: Path, different: int, commands: list[tuple[str, ...]], failing: int = 0
) -> Counter[int]:
    """Check the command on at least so many different files at ``path``; return how often it ended how."""
    ended: dict[bytes, int] = {}

    # Twice as many as asked for: Hypothesis comes back to what it had.
    @settings(max_examples=2 * different)
    @given(files, st.sampled_from(commands))
    def check(content: bytes, command: tuple[str, ...]) -> None:
        if content not in ended:
            path.write_bytes(content)
            ended[content] = check_command(command, path, failing)

    check()
    assert len(ended) >= different
    return Counter(ended.values())


@pytest.mark.parametrize("content", [INSTANCE, EUCLIDEAN], ids=["explicit", "euclidean"])
def test_no_change_to_the_tree_of_an_instance_ends_in_a_traceback(tmp_path: Path, content: dict[str, Any]) -> None:
    check_mutations(mutated_json(content), tmp_path / "mutated.json", 800, READING)


@pytest.mark.parametrize("content", [INSTANCE, EUCLIDEAN], ids=["explicit", "euclidean"])
def test_no_odd_number_in_an_instance_ends_in_a_traceback(tmp_path: Path, content: dict[str, Any]) -> None:
    ended = check_mutations(odd_json(content), tmp_path / "mutated.json", 400, READING)
    assert ended[0] > ended[2]  # most of these must be worked with, not just be refused


def test_no_change_to_the_bytes_of_an_instance_ends_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(mutated_bytes(spelt(INSTANCE).encode()), tmp_path / "mutated.json", 900, READING)


def test_no_change_to_a_compressed_instance_ends_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(mutated_bytes(COMPRESSED), tmp_path / "mutated.json.gz", 450, READING)


@pytest.mark.parametrize("writer", ["ours", "plain"])
def test_no_change_to_a_family_ends_in_a_traceback(tmp_path: Path, sample: Instance, writer: str) -> None:
    path = tmp_path / "mutated.parquet"
    if writer == "ours":
        write_rows([sample], path)
    else:
        # As short as Parquet gets, so that most changes matter.
        pq.write_table(to_row(sample), path, compression="none", store_schema=False, write_statistics=False)
    check_mutations(mutated_bytes(path.read_bytes()), path, 500, READING)


def test_no_change_to_the_tree_of_a_solution_ends_in_a_traceback(tmp_path: Path, sample: Instance) -> None:
    # Exit 1 is for a file that claims another objective or bound than the evaluator finds.
    check_mutations(mutated_json(solution_of(sample)), tmp_path / "mutated.json", 350, EVALUATING, failing=1)


def test_no_change_to_the_bytes_of_a_solution_ends_in_a_traceback(tmp_path: Path, sample: Instance) -> None:
    content = spelt(solution_of(sample)).encode()
    check_mutations(mutated_bytes(content), tmp_path / "mutated.json", 300, EVALUATING, failing=1)


@pytest.mark.parametrize(
    ("read", "name", "content"),
    [
        (read_follower_graph, "edges.txt", b"# a\tb\n1\t2\n10\t20\n-3\t4\n"),
        (read_follower_graph, "edges.csv", b"from,to\n1,2\n10,20\n3,4\n"),
        (read_follower_graph, "edges.txt.gz", gzip.compress(b"1 2\n10 20\n3 4\n", mtime=0)),
        (read_places, "sites.csv", b'id,Latitude,name,Longitude\n1,-37.8,"a, b",144.9\n2,-37.9,c,145\n'),
    ],
    ids=["edges", "edges with header", "compressed edges", "places"],
)
def test_no_change_to_people_or_places_ends_in_a_traceback(
    tmp_path: Path, read: Any, name: str, content: bytes
) -> None:
    path = tmp_path / name

    @settings(max_examples=250)
    @given(mutated_bytes(content))
    def check(spoilt: bytes) -> None:
        path.write_bytes(spoilt)
        try:
            read(path)
        except InputError:
            assert complaint(read, path).startswith(f"{path}: ")

    check()


@pytest.mark.parametrize(
    ("name", "content", "command", "problem"),
    [
        (
            "bad.json",
            changed(INSTANCE, "servers.storage[1]", "-1").encode(),
            ("solve", "FILE", "--method", "nearest"),
            "servers.storage[1]: expected a number from 0 to 1e+15, got -1.0",
        ),
        (
            "bad.json",
            b"[" * 100_000,
            ("describe", "FILE"),
            "expected an object, got lists or objects nested too deeply",
        ),
        ("bad.parquet", b"PAR1", ("describe", "FILE"), "cannot be read as Parquet ("),
        ("bad.json", b"{}", ("evaluate", "sample.json", "FILE"), 'format: expected "relocbench-solution/1"'),
        (
            "edges.txt",
            b"1 2\n3\n",
            ("generate", "--family", "paper", "--out", "x.parquet", "--social", "FILE"),
            "line 2: expected two ids, got '3'",
        ),
    ],
    ids=["instance", "nesting", "family", "solution", "edges"],
)
def test_the_installed_command_exits_with_2_and_one_line(
    tmp_path: Path, sample: Instance, name: str, content: bytes, command: tuple[str, ...], problem: str
) -> None:
    (tmp_path / name).write_bytes(content)
    program = shutil.which("relocbench", path=str(Path(sys.executable).parent))
    assert program is not None
    arguments = [name if word == "FILE" else word for word in command]
    done = subprocess.run([program, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"relocbench: {name}: {problem}")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "x.parquet").exists()
