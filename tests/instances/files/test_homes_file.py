"""Files with homes: every accepted form gives the same homes, and what is wrong is named in one line."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from relocbench.instances.files.homes_file import read_homes, read_solution
from relocbench.instances.instance import Instance
from tests.instances.files.bad_files import check_reader, error_of, run_command

HOME = [0, 1, 1, 0]
CSV = "client,home\n0,0\n1,1\n2,1\n3,0\n"


def write_npy(path: Path, *arguments: object) -> None:
    """Write an array as .npy."""
    np.save(path, np.array(*arguments), allow_pickle=True)


def named(instance: Instance, clients: list[str | int], servers: list[str | int]) -> Instance:
    """Return the instance with ids."""
    return dataclasses.replace(instance, parameters={"client_ids": clients, "server_ids": servers})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", "[0, 1, 1, 0]"),
        ("floats.json", "[0.0, 1.0, 1, 0]"),
        ("texts.json", '["0", "1", "1", "0"]'),
        ("object.json", '{"home": [0, 1, 1, 0]}'),
        ("some.json", '{"home": [0, 1, 1, 0], "method": "mine", "instance": null, "bound": 0}'),
        ("a.csv", CSV),
        ("order.csv", "client,home\n3,0\n2,1\n0,0\n1,1\n"),
        ("extra.csv", '\ufeffnote, Home ,CLIENT\n"a, b",0,0\n\n,1.0,1\n,1,2.0\n,0, 3 \n'),
        ("index.csv", "home_index,client_index\n0,0\n1,1\n1,2\n0,3\n"),
        ("column.csv", "home\n0\n1\n1\n0\n"),
    ],
)
def test_homes_are_read_from_text(tmp_path: Path, sample: Instance, name: str, content: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert read_homes(path, sample).tolist() == HOME


@pytest.mark.parametrize("dtype", ["int64", ">i2", "uint8", "float32", "U3"])
def test_homes_are_read_from_arrays(tmp_path: Path, sample: Instance, dtype: str) -> None:
    write_npy(tmp_path / "a.npy", HOME, dtype)
    assert read_homes(tmp_path / "a.npy", sample).tolist() == HOME


def test_clients_and_servers_may_be_named(tmp_path: Path, sample: Instance) -> None:
    instance = named(sample, ["ann", "bob", "cid", "dan"], ["north", "7"])
    csv, listed = tmp_path / "a.csv", tmp_path / "a.json"
    csv.write_text("home,client\n7,bob\nnorth,dan\n7,cid\nnorth,ann\n")
    listed.write_text('["north", "7", "7", "north"]')
    assert read_homes(csv, instance).tolist() == read_homes(listed, instance).tolist() == HOME
    csv.write_text(CSV)  # indices stay possible
    assert read_homes(csv, instance).tolist() == HOME
    listed.write_text('["north", "south", "7", "north"]')
    assert (
        error_of(read_homes, listed, instance)
        == f"{listed}: home[1]: expected the id of a server such as 'north', got 'south'"
    )
    csv.write_text("home,client\n7,bob\nnorth,eve\n")
    assert (
        error_of(read_homes, csv, instance)
        == f"{csv}: line 3: client: expected the id of a client such as 'ann', got 'eve'"
    )


def test_numbers_that_may_be_ids_or_indices_are_not_guessed(tmp_path: Path, sample: Instance) -> None:
    instance = named(sample, [1, 2, 3, 4], [1, 0])
    path = tmp_path / "a.csv"
    path.write_text("client,home\n1,1\n2,0\n3,0\n4,1\n")
    problem = "the numbers may be ids or indices; name the column home_id or home_index"
    assert error_of(read_homes, path, instance) == f"{path}: home: {problem}"
    path.write_text("client,home_id\n1,1\n2,0\n3,0\n4,1\n")
    assert read_homes(path, instance).tolist() == HOME
    path.write_text("client,home_index\n1,1\n2,0\n3,0\n4,1\n")
    assert read_homes(path, instance).tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.json", "5", "expected a list of homes or an object with the field home, got 5"),
        ("a.json", "[]", "home: expected 4 servers, one per client, got 0"),
        ("a.json", "[0, 1, 1, 3.5]", "home[3]: expected a whole number, got 3.5"),
        ("a.json", "[0, 1, 1, 5]", "home[3]: expected a server from 0 to 1, got 5"),
        ("a.json", '["0", "1", "1", "2"]', "home[3]: expected a server from 0 to 1, got '2'"),
        ("a.json", '{"homes": [0, 1, 1, 0]}', "homes: unknown field; expected one of format, instance, method, seed"),
        ("a.csv", "", "expected a column named home, got columns []"),
        ("a.csv", "client,server\n0,1\n", "expected a column named home, got columns ['client', 'server']"),
        ("a.csv", "home,home_id\n0,1\n", "expected one column for the home, got home and home_id"),
        ("a.csv", "home\n", "home: expected 4 servers, one per client, got 0"),
        ("a.csv", CSV.replace("3,0", "3,0.5"), "line 5: home: expected the index of a server from 0 to 1, got '0.5'"),
        ("a.csv", CSV.replace("3,0", "3,inf"), "line 5: home: expected the index of a server from 0 to 1, got 'inf'"),
        ("a.csv", CSV.replace("3,0", "3"), "line 5: home: is missing"),
        ("a.csv", CSV.replace("3,0", "4,0"), "line 5: client: expected the index of a client from 0 to 3, got '4'"),
        ("a.csv", CSV.replace("3,0", "2,0"), "line 5: client '2' is listed twice"),
        ("a.csv", CSV.replace("3,0\n", ""), "client 3 is missing"),
        ("a.csv", CSV.replace("1,1\n2,1\n", ""), "client 1 is missing, and 1 more"),
    ],
)
def test_what_is_wrong_in_a_text_is_named(
    tmp_path: Path, sample: Instance, name: str, content: str, problem: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert error_of(read_homes, path, sample).startswith(f"{path}: {problem}")


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([0.5, 1.0, 1.0, 0.0], "home[0]: expected a whole number, got 0.5"),
        ([0.0, np.nan, 1.0, 0.0], "home[1]: expected a whole number, got nan"),
        ([0, 1, 1, 2], "home[3]: expected a server from 0 to 1, got 2"),
        ([HOME], "expected 4 whole numbers, one per client, got an array of int64 and shape (1, 4)"),
        ([True, True, False, True], "expected 4 whole numbers, one per client, got an array of bool and shape (4,)"),
        ([None] * 4, "expected 4 whole numbers, one per client, got an array of object and shape (4,)"),
    ],
)
def test_what_is_wrong_in_an_array_is_named(
    tmp_path: Path, sample: Instance, values: list[object], problem: str
) -> None:
    path = tmp_path / "a.npy"
    write_npy(path, values)
    assert error_of(read_homes, path, sample) == f"{path}: {problem}"


def test_damaged_arrays_and_tables_are_refused_in_one_line(tmp_path: Path, sample: Instance) -> None:
    write_npy(tmp_path / "whole.npy", HOME)
    check_reader(lambda path: read_homes(path, sample), (tmp_path / "whole.npy").read_bytes(), tmp_path / "bad.npy")
    check_reader(lambda path: read_homes(path, sample), CSV.encode(), tmp_path / "bad.csv")


def test_a_certificate_states_its_homes_and_its_claim(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "cert.json"
    content = {"format": "relocbench-certificate/1", "instance": sample.hash, "home": HOME, "claim": 7, "bits": 1}
    path.write_text(json.dumps({**content, "proof": []}))
    stored = read_solution(path, sample)
    assert (stored.home.tolist(), stored.bound, stored.objective) == (HOME, 3.5, None)
    path.write_text(json.dumps({**content, "proof": [], "instance": "0" * 64}))
    assert error_of(read_solution, path, sample).startswith(f"{path}: instance: expected the hash {sample.hash[:16]}…")


def test_evaluate_compares_only_what_the_file_claims(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "homes.json"
    path.write_text(json.dumps(HOME))
    code, out, err = run_command("evaluate", tmp_path / "sample.json", path, "--json")
    assert (code, err) == (0, "")
    cost = json.loads(out)["objective"]
    for claim, expected in (({"objective": cost}, 0), ({"objective": cost + 1}, 1), ({"bound": cost + 1}, 1)):
        path.write_text(json.dumps({"home": HOME, **claim}))
        assert run_command("evaluate", tmp_path / "sample.json", path)[0] == expected
    path.write_text(json.dumps({"home": HOME, "instance": "0" * 64}))
    assert run_command("evaluate", tmp_path / "sample.json", path)[0] == 2
