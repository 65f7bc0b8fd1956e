"""Instances in JSON: what is wrong in a file is reported in one line that names the file and the field."""

import gzip
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from relocbench.instances.files import limited_file
from relocbench.instances.files.json_fields import read_object
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from tests.instances.files.bad_files import (
    DIGITS,
    EUCLIDEAN,
    INSTANCE,
    check_mutations,
    error_of,
    json_text,
    mutated_bytes,
    mutated_json,
    run_command,
    run_installed_command,
    unusual_json,
    with_field,
)

FIELDS = (
    "format, name, cloud_delay, delay_per_km, servers, clients, topics, "
    "client_server_delay, server_server_delay, parameters"
)


@pytest.mark.parametrize(
    ("field", "token", "problem"),
    [
        # Not a number, or a number out of range.
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
        # Not a list or an object, or of the wrong length.
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
        # Wrong members of topics.
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
        # Fields that are missing, unknown or repeated.
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
def test_the_error_names_the_field_with_the_bad_value(
    tmp_path: Path, field: str, token: str | None, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(with_field(INSTANCE, field, token))
    assert error_of(read_instance, path) == f"{path}: {field}: {problem}"


@pytest.mark.parametrize("token", ["NaN", "[1e999]", DIGITS, f'{{"deep": [-{DIGITS}]}}'])
def test_parameters_must_be_numbers_that_json_has(tmp_path: Path, token: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(with_field(INSTANCE, "parameters.made", token))
    assert error_of(read_instance, path).startswith(f"{path}: parameters: expected plain JSON values (Out of range")


def test_a_repeated_name_is_found_at_any_depth(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(with_field(INSTANCE, "parameters.made", '[0, {"a": [[{"b": 1, "c": 2, "b": 3}]]}]'))
    assert error_of(read_instance, path) == f"{path}: parameters.made[1].a[0][0].b: is given twice"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected JSON, the file is empty"),
        (b"\n", "not JSON at line 2, column 1: Expecting value (is the file whole?)"),
        (b"\0" * 100, "not JSON at line 1, column 1: Expecting value (is the file whole?)"),
        (
            json_text(INSTANCE).encode()[:99],
            "not JSON at line 1, column 96: Unterminated string starting at (is the file",
        ),
        (json_text(INSTANCE).encode() * 2, "not JSON at line 1, column 562: Extra data (is the file whole?)"),
        (bytes(range(256)), "expected UTF-8 text, got byte 0x80 at 128"),
        (json_text(INSTANCE).encode("utf-16"), "expected UTF-8 text, got byte 0xff at 0"),
        (gzip.compress(json_text(INSTANCE).encode(), mtime=0), "expected UTF-8 text, got byte 0x8b at 1"),
        (b"[1, 2]", 'expected an object with "format": "relocbench-instance/1", got [1, 2]'),
        (b"[" * 100_000, "expected an object, got lists or objects nested too deeply"),
        (b"[" * 100_000 + b"]" * 100_000, "expected an object, got lists or objects nested too deeply"),
        (b'{"a":' * 100_000, "expected an object, got lists or objects nested too deeply"),
        (DIGITS.encode(), 'expected an object with "format": "relocbench-instance/1", got inf'),
    ],
    ids=lambda value: None if isinstance(value, str) else f"{value[:12]!r} of {len(value)} bytes",
)
def test_a_file_that_is_not_a_json_object_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    assert error_of(read_instance, path).startswith(f"{path}: {problem}")


def test_a_byte_order_mark_is_accepted(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "marked.json"
    path.write_text(json_text(INSTANCE), encoding="utf-8-sig")
    assert read_instance(path).hash == sample.hash


COMPRESSED = gzip.compress(json_text(INSTANCE).encode(), mtime=0)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected JSON, the file is empty"),
        (json_text(INSTANCE).encode(), "cannot be read (Not a gzipped file (b'{\"'))"),
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
    assert error_of(read_instance, path).startswith(f"{path}: {problem}")


@pytest.mark.parametrize("name", ["huge.json", "bomb.json.gz"])
def test_a_file_above_the_size_limit_is_refused_before_it_is_parsed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(limited_file, "LARGEST_SMALL", 3 << 20)
    monkeypatch.setattr(read_object, "__defaults__", (3 << 20,))
    path = tmp_path / name
    content = b" " * (30 << 20)
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    tracemalloc.start()
    message = error_of(read_instance, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message == f"{path}: expected at most 3 MiB, got more"
    assert peak < 10 << 20


def test_a_small_file_needs_little_memory(tmp_path: Path, sample: Instance) -> None:
    tracemalloc.start()
    read_instance(tmp_path / "sample.json")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 << 20


def test_a_file_too_large_for_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(json, "loads", fail)
    path = tmp_path / "large.json"
    path.write_text(json_text(INSTANCE))
    assert error_of(read_instance, path) == f"{path}: too large for the memory of this machine"


def test_a_repeated_name_among_many_is_found_quickly(tmp_path: Path) -> None:
    # A comparison of all pairs of names would take minutes.
    path = tmp_path / "bad.json"
    path.write_text("{" + ", ".join(f'"n{i}": 0' for i in range(200_000)) + ', "n199999": 0}')
    assert error_of(read_instance, path) == f"{path}: n199999: is given twice"


def test_more_servers_than_their_delay_matrix_fits_into_memory_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    many = [0.0] * 100_000
    path.write_text(json.dumps(EUCLIDEAN | {"servers": dict.fromkeys(("x", "y", "storage", "compute"), many)}))
    assert error_of(read_instance, path) == f"{path}: servers.x: expected at most 5000 entries, got 100000"


FAR, NEAR = 1e9 / 3, 1e8
LARGE: dict[str, Any] = EUCLIDEAN | {"cloud_delay": 1e12, "delay_per_km": 1e12}
UNUSUAL = {
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
    # A move between two servers at one place costs nothing. Rounding errors must not count as gains for ever.
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


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_but_valid_instances_are_described_and_solved(tmp_path: Path, name: str) -> None:
    path = tmp_path / "unusual.json"
    path.write_text(json.dumps(UNUSUAL[name]))
    for command, *options in (("describe",), ("solve", "--method", "nearest")):
        code, out, err = run_command(command, path, "--json", *options)
        assert (code, err) == (0, "")
        json.loads(out)


COMMANDS = [("describe", "FILE"), ("describe", "FILE", "--json"), ("solve", "FILE", "--method", "nearest", "--json")]


@pytest.mark.slow
@pytest.mark.parametrize("content", [INSTANCE, EUCLIDEAN], ids=["explicit", "euclidean"])
def test_no_change_to_the_tree_ends_in_a_traceback(tmp_path: Path, content: dict[str, Any]) -> None:
    check_mutations(mutated_json(content), tmp_path / "mutated.json", 400, COMMANDS)


@pytest.mark.slow
@pytest.mark.parametrize("content", [INSTANCE, EUCLIDEAN], ids=["explicit", "euclidean"])
def test_no_unusual_number_ends_in_a_traceback(tmp_path: Path, content: dict[str, Any]) -> None:
    codes = check_mutations(unusual_json(content), tmp_path / "mutated.json", 200, COMMANDS)
    assert codes[0] > codes[2]  # most of these files are valid


@pytest.mark.slow
def test_no_change_to_the_bytes_ends_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(mutated_bytes(json_text(INSTANCE).encode()), tmp_path / "mutated.json", 400, COMMANDS)


@pytest.mark.slow
def test_no_change_to_the_compressed_bytes_ends_in_a_traceback(tmp_path: Path) -> None:
    check_mutations(mutated_bytes(COMPRESSED), tmp_path / "mutated.json.gz", 200, COMMANDS)


def test_the_installed_command_prints_one_line_and_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(with_field(INSTANCE, "servers.storage[1]", "-1"))
    code, out, err = run_installed_command(tmp_path, "solve", "bad.json", "--method", "nearest")
    problem = "servers.storage[1]: expected a number from 0 to 1e+15, got -1.0"
    assert (code, out, err) == (2, "", f"relocbench: bad.json: {problem}\n")
