"""Small files that expand to much are refused before they do, and large files of ordinary content are read."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from relocbench.instances.files.follower_graph import read_follower_graph
from relocbench.instances.files.homes_file import read_homes
from relocbench.instances.files.json_fields import _check_parsed_size, read_object
from relocbench.instances.files.limited_file import LARGEST_SMALL, open_limited
from relocbench.instances.files.places import read_places
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance
from relocbench.instances.library.library import Library
from relocbench.reports.gate.baseline import SHIPPED, read_baseline
from relocbench.runs.run_store import Row, Store, _read_row
from tests.instances.files.bad_files import INSTANCE, check_reader, error_of

RATIO = f"expected at most {LARGEST_SMALL >> 20} MiB from a compressed file of this size; decompress it first, got more"


def compressed(path: Path, start: bytes, repeated: bytes) -> Path:
    """Write a file of about 20 kB that expands to 20 MB."""
    path.write_bytes(gzip.compress(start + repeated * (20_000_000 // len(repeated)), mtime=0))
    assert path.stat().st_size < 50_000
    return path


@pytest.mark.parametrize(
    ("name", "start", "repeated", "read"),
    [
        ("bomb.json.gz", b"[", b"[],", read_instance),
        ("bomb.json.gz", b'{"format": "relocbench-baseline/1", "methods": [', b"[],", read_baseline),
        ("edges.txt.gz", b"", b"1 2\n", read_follower_graph),
        ("edges.txt.gz", b"1 2\n3, 4\n", b"1 2\n", read_follower_graph),
        ("places.csv.gz", b"latitude,longitude\n", b"1,2," + b"x" * 996 + b"\n", read_places),
    ],
)
def test_a_small_compressed_file_cannot_fill_the_memory(tmp_path, name, start, repeated, read):
    path = compressed(tmp_path / name, start, repeated)
    tracemalloc.start()
    message = error_of(read, path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message == f"{path}: {RATIO}"
    assert peak < 200 << 20


def test_a_large_compressed_file_may_expand_to_a_multiple_of_its_size(tmp_path):
    path = tmp_path / "text.gz"
    content = b"".join(b"%d\n" % number for number in range(3_000_000))
    assert len(content) > LARGEST_SMALL
    path.write_bytes(gzip.compress(content, 1))
    with open_limited(path) as file:
        assert file.read() == content


@pytest.mark.parametrize("part", ["[]", "[[]]", "{}", '{"": 0}', '"é"'])
def test_json_of_many_small_parts_is_refused_before_it_is_parsed(tmp_path, part):
    path = tmp_path / "bomb.json"
    path.write_text('{"format": "x", "a": [' + f"{part}," * (12_000_000 // (len(part) + 1)) + "0]}")
    if part == '"é"':  # texts need less, so that this file is read
        assert len(read_object(path, "x", ("format", "a")).entries("a")) > 2_000_000
        return
    tracemalloc.start()
    message = error_of(read_object, path, "x", ("format", "a"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert message.startswith("expected JSON that needs at most 4")
    assert message.endswith("; too many lists or objects")
    assert peak < 50 << 20


def test_the_densest_ordinary_instances_are_within_the_limits():
    topics = [{"spool": 1, "publishers": [0], "subscribers": [1]}] * 1_000_000
    text = json.dumps({**INSTANCE, "topics": topics}, separators=(",", ":")).encode()
    assert len(text) > 40_000_000
    _check_parsed_size(text)


def test_a_line_without_end_is_refused(tmp_path):
    path = compressed(tmp_path / "edges.txt.gz", b"", b"1")
    assert "line 1: expected at most 1" in error_of(read_follower_graph, path)


@pytest.mark.parametrize(
    ("name", "content"), [("homes.csv", b"home\n" + b"0\n" * 600_000), ("homes.npy", b"0" * 2**21)]
)
def test_homes_are_at_most_as_large_as_their_instance_allows(tmp_path, sample: Instance, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    assert error_of(read_homes, path, sample) == f"{path}: expected at most 1 MiB, got more"


def test_damaged_baselines_indexes_and_runs_are_refused_in_one_line(tmp_path):
    whole = json.loads(SHIPPED.read_text(encoding="utf-8"))
    whole["methods"] = [{**whole["methods"][0], "instances": whole["methods"][0]["instances"][:2]}]
    check_reader(read_baseline, json.dumps(whole).encode(), tmp_path / "baseline.json")
    index = json.loads(Library().index_path.read_text(encoding="utf-8"))
    index["entries"] = index["entries"][:2]
    check_reader(lambda path: Library(path.parent).entries, json.dumps(index).encode(), tmp_path / "index.json")
    row = {"instance": "a", "hash": "b", "parameters": "{}", "clients": 1, "servers": 1, "topics": 1, "home": [0]}
    run = {"selector": "nearest", "seed": 0, "time_limit": 1.0, "memory_limit": 1, "status": "feasible"}
    Store(tmp_path / "store").write(Row(**row, **run, trace=[(0.1, 1.0, 0.5)], facts={"a": 1.0}))
    [file] = (tmp_path / "store").glob("*.parquet")
    check_reader(_read_row, file.read_bytes(), tmp_path / "run.parquet")
