"""Instances from tables: every accepted form gives the same instance, ids survive, and errors name row and column."""

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.instance_source import read_instance, write_instance
from relocbench.instances.tables import read_table
from tests.instances.files.bad_files import run_command

SERVERS = [(0, 0, 10, 20), (10, 0, 10, 20)]
CLIENTS = [(1, 0), (2, 0), (9, 0), (11, 0)]
TOPICS = [
    {"publishers": [0, 1, 2], "subscribers": [3], "spool": 8},
    {"publishers": [2], "subscribers": [3], "spool": 6},
]
LONG = {
    "topic": ["a", "a", "a", "a", "b", "b"],
    "client": [0, 1, 2, 3, 2, 3],
    "role": ["publish", "Publisher", "pub", "subscribe", "publish", "sub"],
    "spool": [8, 8, 8, 8, 6, 6],
}


def columns(rows, names):
    """Return rows of tuples as a dict of columns."""
    return {name: [row[position] for row in rows] for position, name in enumerate(names)}


SERVER_COLUMNS = columns(SERVERS, ("x", "y", "storage", "compute"))
CLIENT_COLUMNS = columns(CLIENTS, ("x", "y"))


def plain():
    return Instance.of(servers=SERVERS, clients=CLIENTS, topics=TOPICS)


def test_an_instance_is_built_from_lists():
    instance = plain()
    assert (instance.cloud_delay, instance.delay_per_km) == (5.0, 0.1)
    assert instance.storage_capacity.tolist() == [10, 10]
    assert instance.compute_capacity.tolist() == [20, 20]
    assert instance.client_x.tolist() == [1, 2, 9, 11]
    assert instance.spool.tolist() == [8, 6]
    assert [topic.tolist() for topic in instance.publishers] == [[0, 1, 2], [2]]
    assert [topic.tolist() for topic in instance.subscribers] == [[3], [3]]
    assert (instance.client_ids, instance.server_ids) == ([0, 1, 2, 3], [0, 1])


def as_frames():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(SERVER_COLUMNS), pandas.DataFrame(CLIENT_COLUMNS), pandas.DataFrame(LONG)


def as_arrow():
    pyarrow = pytest.importorskip("pyarrow")
    return tuple(pyarrow.table(table) for table in (SERVER_COLUMNS, CLIENT_COLUMNS, LONG))


def as_dicts():
    return tuple(
        [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        for table in (SERVER_COLUMNS, CLIENT_COLUMNS, LONG)
    )


@pytest.mark.parametrize(
    "forms",
    [
        as_frames,
        as_arrow,
        as_dicts,
        lambda: (np.array(SERVERS), np.array(CLIENTS, float), TOPICS),
        lambda: (SERVER_COLUMNS, CLIENT_COLUMNS, dict(enumerate(TOPICS))),
        lambda: ({"X": [0, 10], "y": [0, 0], "storage_capacity": [10, 10], "compute": [20, 20]}, CLIENTS, LONG),
        lambda: (SERVERS, CLIENTS, [{**topic, "publishers": np.array(topic["publishers"], float)} for topic in TOPICS]),
    ],
)
def test_every_form_of_table_gives_the_same_instance(forms):
    servers, clients, topics = forms()
    assert Instance.of(servers=servers, clients=clients, topics=topics).hash == plain().hash


def test_capacities_may_be_given_once_and_spools_by_member():
    instance = Instance.of(
        servers=[(0, 0), (10, 0)], clients=CLIENTS, topics=[[0, 1, 2], [2, 3]], storage=5, compute=7, spool_per_member=3
    )
    assert instance.storage_capacity.tolist() == [5, 5]
    assert instance.compute_capacity.tolist() == [7, 7]
    assert instance.spool.tolist() == [9, 6]
    assert [topic.tolist() for topic in instance.subscribers] == [[0, 1, 2], [2, 3]]


def test_an_array_of_clients_is_read_like_a_list_of_lists():
    listed, array = (Instance.of(**given(topics=topics)) for topics in ([[0, 1], [2, 3]], np.array([[0, 1], [2, 3]])))
    assert array.hash == listed.hash


def test_matrices_of_delays_are_taken():
    instance = Instance.of(
        servers=SERVERS, clients=CLIENTS, topics=TOPICS, server_server_delay=[[0, 3], [4, 0]], name="measured"
    )
    assert instance.server_delay.tolist() == [[0, 3], [4, 0]]
    assert instance.name == "measured"


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_ids_survive_in_the_file(tmp_path, ending):
    instance = Instance.of(
        servers={"id": ["north", 7], "x": [0, 10], "y": [0, 0], "storage": [10, 10], "compute": [20, 20]},
        clients={"name": ["ann", "bob", "cid", "dan"], **CLIENT_COLUMNS},
        topics={"news": {"publishers": ["ann", "bob", "cid"], "subscribers": ["dan"], "spool": 8}, 5: ["cid", "dan"]},
    )
    write_instance(instance, tmp_path / f"named{ending}")
    read = read_instance(tmp_path / f"named{ending}")
    assert read.server_ids == ["north", 7]
    assert read.client_ids == ["ann", "bob", "cid", "dan"]
    assert read.parameters["topic_ids"] == ["news", 5]
    assert read.hash == instance.hash


def test_the_index_of_a_frame_holds_ids():
    pandas = pytest.importorskip("pandas")
    clients = pandas.DataFrame(CLIENT_COLUMNS, index=[101.0, 102.0, 103.0, 104.0])
    instance = Instance.of(servers=SERVERS, clients=clients, topics=[[101, 104]])
    assert instance.client_ids == [101, 102, 103, 104]
    assert instance.publishers[0].tolist() == [0, 3]


def test_names_that_are_not_different_are_no_ids():
    clients = {"name": ["ann", "ann", "bob", "bob"], **CLIENT_COLUMNS}
    assert Instance.of(servers=SERVERS, clients=clients, topics=TOPICS).client_ids == [0, 1, 2, 3]


def test_degrees_are_projected_to_kilometres():
    servers = {"lat": [10.0, 10.0], "LON": [179.9, -179.9], "storage": [1, 1], "compute": [1, 1]}
    instance = Instance.of(servers=servers, clients={"latitude": [11.0], "longitude": [180.0]}, topics=[[0]])
    assert instance.server_x == pytest.approx([-10.95, 10.95], abs=0.01)
    assert instance.client_y == pytest.approx([111.195], abs=0.01)


def given(**changes):
    return {"servers": SERVERS, "clients": CLIENTS, "topics": TOPICS, **changes}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (given(servers=[(0, 0)]), "servers: expected a column storage, or one value for all servers (storage= or"),
        (given(storage=5), "storage: is given twice: by this argument and by the column storage of the servers"),
        (given(servers="x"), "servers: expected a list, got 'x'"),
        (given(servers=[(0, 0, 1, 1, 1)]), "servers[0]: expected at most 4 values (x, y, storage, compute), got 5"),
        (given(servers=[5]), "servers[0]: expected a mapping or a tuple, got 5"),
        (given(clients=[]), "clients: expected at least one row, got none"),
        (given(clients={"x": [1, 2]}), "clients: expected columns x and y, or latitude and longitude, got ['x']"),
        (given(clients={"x": [1, 2], "y": [1]}), "clients.y: expected 2 values as in other columns, got 1"),
        (given(clients=[(0, 0), (1, "far")]), "clients[1].y: expected a number, got 'far'"),
        (given(clients=[(0, 0), (1, float("nan"))]), "clients[1].y: is missing"),
        (given(clients=[(0, 0), {"x": 1}]), "clients[1].y: is missing"),
        (given(clients=[{"id": 5, "x": 0, "y": 0}] * 2), "clients[1].id: 5 is listed twice"),
        (
            given(clients={"lat": [1], "lon": [2]}),
            "servers: expected latitude and longitude as in the other table, got",
        ),
        (given(topics=[]), "topics: expected at least one topic, got none"),
        (given(topics=[[0, 4]]), "topics[0].publishers[1]: expected a client from 0 to 3, got 4"),
        (given(topics=[[0, 0.5]]), "topics[0].publishers[1]: expected a client from 0 to 3, got 0.5"),
        (given(topics=[[0, 0]]), "topics[0].publishers[1]: client 0 is listed twice"),
        (
            given(topics=[{"publishers": [0]}]),
            "topics[0].subscribers: is missing; use members for clients that publish",
        ),
        (given(topics=[{"members": [0], "publishers": [1]}]), "topics[0]: expected either members, who publish and"),
        (given(topics=[{"member": [0]}]), "topics[0].member: unknown field; expected one of publishers, subscribers"),
        (given(topics={"a": {"members": [0], "spool": "big"}}), "topics['a'].spool: expected a number, got 'big'"),
        (
            given(topics={**LONG, "client": [0, 1, 2, 9, 2, 3]}),
            "topics[3].client: expected a client from 0 to 3, got 9",
        ),
        (given(topics={**LONG, "client": [0, 1, 1, 3, 2, 3]}), "topics[2].client: 1 is listed twice in topic 'a'"),
        (given(topics={**LONG, "role": ["x"] * 6}), "topics[0].role: expected publish, subscribe or both, got 'x'"),
        (
            given(topics={**LONG, "spool": [8, 7, 8, 8, 6, 6]}),
            "topics[1].spool: expected 8 as in an earlier row of the",
        ),
        (given(spool_per_member=True), "spool_per_member: expected a number, got True"),
    ],
)
def test_the_error_names_the_row_and_the_column(arguments, problem):
    with pytest.raises(InputError) as caught:
        Instance.of(**arguments)
    assert str(caught.value).startswith(problem)


def test_an_id_that_no_client_has_is_named():
    clients = {"id": ["ann", "bob", "cid", "dan"], **CLIENT_COLUMNS}
    with pytest.raises(InputError) as caught:
        Instance.of(servers=SERVERS, clients=clients, topics=[["ann", "eve"]])
    problem = "expected the id of a client such as 'ann', got 'eve'; add it to the clients, or remove it here"
    assert str(caught.value) == f"topics[0].publishers[1]: {problem}"


def test_ids_in_a_file_must_fit_the_instance():
    instance = Instance.of(**given(parameters={"client_ids": ["ann"], "server_ids": [1, "1"]}))
    with pytest.raises(InputError, match=r"parameters.client_ids: expected 4 texts or whole numbers, got \['ann'\]"):
        _ = instance.client_ids
    with pytest.raises(InputError, match=r"parameters.server_ids\[1\]: '1' is listed twice"):
        _ = instance.server_ids


@pytest.fixture
def files(tmp_path):
    (tmp_path / "servers.csv").write_text("ID,x,y,storage,compute\nnorth,0,0,10,20\nsouth,10,0,10,20\n")
    (tmp_path / "clients.csv").write_text("id,x,y\nann,1,0\nbob,2,0\ncid,9,0\ndan,11,0\n")
    rows = zip(*LONG.values(), strict=True)
    names = ["ann", "bob", "cid", "dan"]
    lines = [f"{topic},{names[client]},{role},{spool}\n" for topic, client, role, spool in rows]
    (tmp_path / "members.csv").write_text("topic,client,role,spool\n" + "".join(lines))
    return tmp_path


def convert(files, *more):
    tables = [word for name in ("servers", "clients", "members") for word in (f"--{name}", files / f"{name}.csv")]
    return run_command("convert", *tables, "--out", files / "inst.json", *more)


def test_tables_in_files_become_an_instance_file(files):
    code, out, err = convert(files)
    assert (code, err) == (0, "")
    assert out == f"Instance inst: 4 clients, 2 servers, 2 topics in {files / 'inst.json'}\n"
    instance = read_instance(files / "inst.json")
    assert instance.hash == plain().hash
    assert (instance.client_ids, instance.server_ids) == (["ann", "bob", "cid", "dan"], ["north", "south"])
    (files / "homes.csv").write_text("client,home\ndan,south\ncid,south\nann,north\nbob,north\n")
    assert run_command("evaluate", files / "inst.json", files / "homes.csv")[0] == 0


def test_files_without_capacities_can_be_scaled_to_a_load(files):
    (files / "servers.csv").write_text("x,y\n0,0\n10,0\n")
    assert convert(files)[0] == 2
    assert convert(files, "--load", "1.25")[0] == 0
    instance = read_instance(files / "inst.json")
    assert instance.storage_capacity.sum() * 1.25 == pytest.approx(8 + 14)
    assert (instance.compute_capacity / instance.storage_capacity).tolist() == pytest.approx([5, 5])


def test_what_is_wrong_in_a_file_is_named_with_its_line(files):
    (files / "clients.csv").write_text("id,x,y\nann,1,0\n\nbob,two,0\n")
    code, _, err = convert(files)
    assert (code, err) == (2, f"relocbench: {files / 'clients.csv'}: line 4: x: expected a number, got 'two'\n")
    (files / "clients.csv").write_text("x,y,x\n1,0,1\n")
    with pytest.raises(InputError, match="the column 'x' is listed twice"):
        read_table(files / "clients.csv")
