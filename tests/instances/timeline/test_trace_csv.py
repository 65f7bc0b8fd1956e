"""Traces in CSV files become timelines, and a wrong row is refused with its file, line and remedy."""

import gzip

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.load import load_of
from relocbench.instances.timeline.timeline_parquet import read_timeline, write_timeline
from relocbench.instances.timeline.trace_csv import import_trace

SERVERS = "id,x,y,storage,compute\nnorth,0,9,50,50\nsouth,0,0,50,50\n"
MEMBERS = "topic,client,role,spool\nnews,ann,publish,4\nnews,bob,subscribe,\nchat,bob,both,\nchat,cid,both,\n"
TRACE = "time,client,x,y\n0,ann,1,8\n0,bob,1,1\n30,bob,1,2\n60,ann,1,7\n60,dan,0,0\n200,cid,3,3\n"


@pytest.fixture
def made(tmp_path):
    """Return a function that writes files and imports the trace of them."""

    def make(trace=TRACE, *, servers=SERVERS, sites=None, members=MEMBERS, social=None, **parameters):
        paths = {}
        given = {"trace": trace, "servers": servers, "sites": sites, "members": members, "social": social}
        for name, text in given.items():
            if text is not None:
                paths[name] = tmp_path / f"{name}.csv"
                paths[name].write_text(text)
        return import_trace(paths.pop("trace"), **parameters, **paths)

    return make


def test_clients_come_and_go_with_their_rows_and_move_to_their_last_position_of_an_epoch(made):
    timeline = made(epoch_length=60)
    first, second, third = timeline.epochs()
    assert timeline.client_ids == ["ann", "bob", "cid"]  # dan is in no topic
    assert timeline.topic_ids == ["news", "chat"]
    assert [epoch.start for epoch in (first, second, third)] == [0, 60, 180]
    assert [epoch.clients.tolist() for epoch in (first, second, third)] == [[0, 1], [0], [2]]
    assert [epoch.topics.tolist() for epoch in (first, second, third)] == [[0, 1], [0], [1]]
    assert first.instance.client_y.tolist() == [8, 2]
    assert first.instance.publishers[0].tolist() == [0]
    assert first.instance.subscribers[0].tolist() == [1]
    # The spool of news is given; that of chat is 2 for each member that is present.
    assert first.instance.spool.tolist() == [4, 2]


def test_a_client_can_stay_where_it_was_last_seen(made):
    epochs = list(made(epoch_length=60, stay=100).epochs())
    assert [(epoch.start, epoch.clients.tolist()) for epoch in epochs] == [
        (0, [0, 1]),
        (60, [0, 1]),
        (120, [0, 1]),
        (180, [2]),
    ]


def test_an_imported_timeline_is_the_same_after_writing_and_reading(made, tmp_path):
    timeline = made()
    write_timeline(timeline, tmp_path / "t.parquet")
    again = read_timeline(tmp_path / "t.parquet")
    assert again.hash == timeline.hash
    assert again.parameters["server_ids"] == ["north", "south"]


def test_cells_are_looked_up_in_the_list_of_sites_which_may_be_the_servers(made, tmp_path):
    sites = "cell,latitude,longitude\n7,10.0,20.0\n8,10.1,20.0\n"
    trace = "minute,taxi,cell\n0,ann,7\n0,bob,8\n1,bob,7\n"
    timeline = made(trace, servers=None, sites=sites, members="topic,client\nt,ann\nt,bob\n", storage=5, compute=5)
    first, second = timeline.epochs()
    assert second.start == 60
    assert timeline.n_servers == 2
    assert np.array_equal(first.instance.client_x, first.instance.server_x)
    assert first.instance.server_y[1] - first.instance.server_y[0] == pytest.approx(11.119, abs=1e-3)
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(trace.encode()))
    packed = import_trace(
        tmp_path / "packed.csv.gz",
        sites=tmp_path / "sites.csv",
        members=tmp_path / "members.csv",
        storage=5,
        compute=5,
    )
    assert packed.hash == timeline.hash


def test_degrees_of_the_trace_are_projected_like_those_of_the_servers(made):
    servers = "latitude,longitude,storage,compute\n10.0,20.0,5,5\n10.1,20.0,5,5\n"
    timeline = made(
        "time,client,lat,lon\n0,ann,10.0,20.0\n0,bob,10.1,20.0\n",
        servers=servers,
        members="topic,client\nt,ann\nt,bob\n",
    )
    instance = timeline.instance(0)
    assert np.array_equal(instance.client_y, instance.server_y)


def test_topics_can_come_from_a_follower_graph(made):
    trace = "time,client,x,y\n" + "".join(f"0,c{n},{n},0\n" for n in range(9))
    edges = "1\t2\n1\t3\n4\t2\n4\t5\n"
    timeline = made(trace, members=None, social=edges, topics=2)
    epoch = timeline.epoch(0)
    assert sorted(map(len, epoch.instance.publishers)) == [3, 3]
    assert epoch.instance.n_clients == 5
    with pytest.raises(InputError, match="topics: expected at most 2 members, the clients of the trace, got 5; choose"):
        made("time,client,x,y\n0,a,0,0\n0,b,0,0\n", members=None, social=edges, topics=2)


def test_the_load_is_reached_in_the_epoch_with_the_largest_load(made):
    timeline = made(servers="x,y\n0,9\n0,0\n", load=1.5)
    loads = [load_of(epoch.instance).largest for epoch in timeline.epochs()]
    assert max(loads) == pytest.approx(1.5)


def test_some_of_the_sites_can_be_drawn_as_servers(made):
    servers = "x,y,storage,compute\n" + "".join(f"{n},0,5,5\n" for n in range(20))
    drawn = [made(servers=servers, n_servers=4, seed=seed) for seed in (1, 1, 2)]
    assert [one.n_servers for one in drawn] == [4, 4, 4]
    assert drawn[0].hash == drawn[1].hash != drawn[2].hash
    with pytest.raises(InputError, match=r"n_servers: expected at most 20, the number of sites in .*, got 21"):
        made(servers=servers, n_servers=21)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            {"trace": "time,client,x,y\n60,ann,0,0\n0,bob,1,1\n"},
            "trace.csv: line 3: time: expected at least 60.0, the time of an earlier row, got 0; sort the rows by time",
        ),
        ({"trace": "time,client,x,y\nsoon,ann,0,0\n"}, "trace.csv: line 2: time: expected a number from -1e+12 to"),
        ({"trace": "time,client,x,y\n0,ann,0,nan\n"}, "trace.csv: line 2: y: expected a number from -1e+09 to 1e+09"),
        ({"trace": "time,client,x,y\n0,,0,0\n"}, "trace.csv: line 2: client: is missing; every row needs a client"),
        ({"trace": "time,client,x,y\n"}, "trace.csv: expected at least one row, got none"),
        ({"trace": "when,client,x,y\n0,ann,0,0\n"}, "trace.csv: expected columns time and client, and x and y, "),
        ({"trace": "time,client,z\n0,ann,0\n"}, "trace.csv: expected columns x and y, latitude and longitude, or cell"),
        (
            {"trace": "time,client,lat,lon\n0,ann,0,0\n"},
            "trace.csv: expected x and y as the servers have, got latitude and longitude",
        ),
        (
            {"trace": "time,client,cell\n0,ann,4\n"},
            "trace.csv: cell: the trace names cells; give the file of sites with their positions (--sites)",
        ),
        (
            {"trace": "time,client,cell\n0,ann,4\n", "sites": "cell,x,y\n3,0,0\n"},
            "trace.csv: line 2: cell: '4' is not in {folder}/sites.csv; add the site there, or remove the row",
        ),
        ({"sites": "cell,lat,lon\n3,0,0\n"}, "sites.csv: expected x and y as the servers have, got latitude and "),
        ({"sites": "x,y\n3,0\n"}, "sites.csv: expected a column cell with the ids that the trace uses"),
        (
            {"members": "topic,client\nnews,zoe\n"},
            "members.csv: line 2: client: expected the id of a client such as 'ann', got 'zoe'; "
            "add it to the trace, or remove it here",
        ),
        ({"members": "topic,client\n"}, "members: expected at least one membership, got none"),
        ({"members": None}, "members: expected either a file of members or a follower graph"),
        ({"servers": None}, "servers: expected a file of servers, or of sites that are servers too"),
        ({"servers": "x,y\n0,0\n"}, "servers.csv: expected a column storage, or one value for all servers"),
        ({"epoch_lenght": 9}, "epoch_lenght: expected one of epoch_length, "),
        ({"epoch_length": 0}, "epoch_length: expected seconds above 0, got 0"),
        ({"epoch_length": 1e-9, "stay": 500}, "epoch_length: expected at most 86,400,000 epochs, got more"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments, problem, made, tmp_path):
    with pytest.raises(InputError) as error:
        made(**arguments)
    text = str(error.value).replace(f"{tmp_path}/", "", 1)
    assert text.startswith(problem.format(folder=tmp_path))
    assert "\n" not in text
