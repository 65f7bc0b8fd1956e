"""The file of a timeline: what is written is read again, and a wrong file is refused in one line."""

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.timeline import timeline_parquet
from relocbench.instances.timeline.timeline import Timeline
from relocbench.instances.timeline.timeline_parquet import METADATA_KEY, read_timeline, write_timeline
from tests.instances.files.bad_files import check_mutations, mutated_bytes
from tests.samples import KINDS, random_instance
from tests.timelines import random_timeline, timeline_of, two_servers


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_a_timeline_is_read_as_it_was_written(seed, tmp_path):
    timeline = random_timeline(seed)
    assert write_timeline(timeline, tmp_path / "t.parquet") == timeline.hash
    again = read_timeline(tmp_path / "t.parquet")
    assert (again.name, again.hash, again.prices) == (timeline.name, timeline.hash, timeline.prices)
    for one, other in zip(timeline.epochs(), again.epochs(), strict=True):
        assert one.hash == other.hash
        assert one.instance.hash == other.instance.hash


def test_ids_and_parameters_are_kept(tmp_path):
    instance = two_servers([1, 9], [[0, 1]])
    parameters = {"client_ids": ["ann", 7], "made": "by hand"}
    made = Timeline.static(instance, n_epochs=2)
    timeline = Timeline(instance, made.epochs, 2, name="née", parameters=parameters)
    write_timeline(timeline, tmp_path / "t.parquet")
    again = read_timeline(tmp_path / "t.parquet")
    assert (again.name, dict(again.parameters), again.client_ids) == ("née", parameters, ["ann", 7])


def test_epochs_are_written_in_groups_and_read_across_them(tmp_path, monkeypatch):
    monkeypatch.setattr(timeline_parquet, "EPOCHS_PER_GROUP", 2)
    timeline = Timeline.static(random_instance(2), n_epochs=5)
    write_timeline(timeline, tmp_path / "t.parquet")
    assert pq.ParquetFile(tmp_path / "t.parquet").num_row_groups == 3
    assert [epoch.number for epoch in read_timeline(tmp_path / "t.parquet").epochs()] == list(range(5))


GOOD = timeline_of(([4, 7], [3], two_servers([1, 9], [[0, 1]])), ([4, 7], [3], two_servers([2, 9], [[0, 1]])))


def changed(tmp_path, change=None, header=None):
    """Write a good file with some cells of row 1, or fields of the header, replaced."""
    path = tmp_path / "t.parquet"
    write_timeline(GOOD, path)
    table = pq.read_table(path)
    known = json.loads(pq.ParquetFile(path).metadata.metadata[METADATA_KEY])
    rows = table.to_pylist()
    rows[1] |= change or {}
    schema = pa.schema([pa.field(field.name, field.type) for field in table.schema])
    metadata = {METADATA_KEY: json.dumps({**known, **(header or {})})}
    pq.write_table(pa.Table.from_pylist(rows, schema=schema).replace_schema_metadata(metadata), path)
    return path


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"publishers": [[4, 5]]},
            "publishers[0][1]: expected a client that is present, got 5; add it to client, or remove it here",
        ),
        ({"publishers": []}, "publishers: expected 1 lists, one for each topic, got 0"),
        ({"publishers": [[4, None]]}, "publishers: expected lists of clients, got a null among them"),
        ({"subscribers": [[4, 4]]}, "topics[0].subscribers[1]: client 0 is listed twice"),
        ({"client": [4]}, "client_x: expected 1 numbers, one for each client, got 2"),
        ({"client": [4, 4]}, "publishers[0][1]: expected a client that is present, got 7; "),
        ({"client": []}, "client: expected at least one client, got none; leave the epoch out"),
        ({"client_x": [1.0, None]}, "client_x: expected numbers, got a null among them"),
        ({"client_x": [1.0, float("nan")]}, "clients.x[1]: expected a number from -1e+09 to 1e+09, got nan"),
        ({"client_x": None}, "client_x: is missing (null)"),
        ({"topic": [3, 4]}, "spool: expected 2 numbers, one for each topic, got 1"),
        ({"length": 0.0}, "length: expected seconds above 0 to 1e+12, got 0.0"),
        ({"length": float("inf")}, "length: expected seconds above 0 to 1e+12, got inf"),
        ({"start": 11.0}, "hash: expected "),
        ({"client_server_delay": [1.0]}, "client_server_delay: expected rows of 2 numbers, got 1 numbers"),
    ],
)
def test_a_wrong_row_is_refused_with_its_file_row_and_column(change, problem, tmp_path):
    path = changed(tmp_path, change)
    with pytest.raises(InputError) as error:
        list(read_timeline(path).epochs())
    assert str(error.value).startswith(f"{path}: row 1: {problem}")


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        ([(0.0, 10.0), (5.0, 10.0)], "row 1: start: expected at least 10, the end of the epoch before, got 5; shorten"),
        ([(9.0, 1.0), (5.0, 1.0)], "row 1: start: expected at least 9, the start of the epoch before, got 5; sort"),
    ],
)
def test_epochs_out_of_order_or_overlapping_are_refused_with_their_row(times, problem, tmp_path, monkeypatch):
    from dataclasses import replace

    epochs = [
        replace(epoch, start=start, length=length) for epoch, (start, length) in zip(GOOD.epochs(), times, strict=True)
    ]
    timeline = Timeline(epochs[0].instance, lambda: iter(epochs), 2)
    monkeypatch.setattr(Timeline, "epochs", lambda self: self._produce())  # writes what is wrong
    write_timeline(timeline, tmp_path / "t.parquet")
    monkeypatch.undo()
    with pytest.raises(InputError) as error:
        list(read_timeline(tmp_path / "t.parquet").epochs())
    assert str(error.value).startswith(f"{tmp_path / 't.parquet'}: {problem}")


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"format": "relocbench-timeline/9"}, 'format: expected "relocbench-timeline/1", got'),
        ({"epochs": 3}, "epochs: expected 2, the number of rows, got 3"),
        ({"hash": "00"}, "hash: expected "),
        ({"servers": {"x": [], "y": [], "storage": [], "compute": []}}, "servers.x: expected at least one entry, got"),
        (
            {"prices": {"handover": -1, "spool": 0, "publication_period": 1}},
            "prices.handover: expected a number from 0",
        ),
        ({"speed": 3}, "speed: unknown field; expected one of"),
        ({"parameters": [1]}, "parameters: expected an object, got [1]"),
        ({"name": 7}, "name: expected"),
    ],
)
def test_a_wrong_header_is_refused(header, problem, tmp_path):
    path = changed(tmp_path, header=header)
    with pytest.raises(InputError) as error:
        read_timeline(path)
    assert str(error.value).startswith(f"{path}: {problem}")


def test_other_files_are_refused(tmp_path):
    path = changed(tmp_path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata(None), path)
    with pytest.raises(InputError, match="expected a timeline, the metadata relocbench-timeline are missing"):
        read_timeline(path)
    pq.write_table(table.drop_columns(["spool"]), path)
    with pytest.raises(InputError, match="spool: the column is missing; expected one of type"):
        read_timeline(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read_timeline(path)
    with pytest.raises(InputError, match="No such file"):
        read_timeline(tmp_path / "absent.parquet")
    with pytest.raises(InputError, match=r"expected a name ending in \.parquet"):
        write_timeline(GOOD, tmp_path / "t.json")


def test_damaged_bytes_give_one_line_and_no_crash(tmp_path):
    path = changed(tmp_path)
    # As short as Parquet can be, so that most changes matter.
    pq.write_table(pq.read_table(path), path, compression="none", store_schema=False, write_statistics=False)
    check_mutations(mutated_bytes(path.read_bytes()), path, 120, [("moving", "describe", "FILE")])


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.parquet"
    write_timeline(GOOD, path)
    before = path.read_bytes()
    wrong = Timeline(GOOD.network, GOOD.epochs, 3)
    with pytest.raises(InputError, match="epochs: expected 3, got 2"):
        write_timeline(wrong, path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_a_name_with_braces_is_a_name(tmp_path):
    path = tmp_path / "{}{0}.parquet"
    write_timeline(GOOD, path)
    assert sum(np.ones(len(list(read_timeline(path).epochs())))) == 2
