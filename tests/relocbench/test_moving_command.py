"""The command `relocbench moving`: from a generator or a trace to the cost of policies."""

import json

import pytest

import relocbench
from relocbench.runs.timeline import replay_store

SMALL = ("--epochs", "6", "--topics", "8", "--servers", "4", "--speed", "60")


@pytest.fixture
def timeline(run, tmp_path):
    path = tmp_path / "moving.parquet"
    assert run("moving", "generate", *SMALL, "--seed", "3", "--out", path)[0] == 0
    return path


def test_generate_writes_the_timeline_that_python_generates(run, tmp_path):
    path = tmp_path / "t.parquet"
    code, out, err = run(
        *("moving", "generate", *SMALL, "--movement", "gauss-markov", "--topic-churn", "3", "--sigma", "10"),
        *("--handover-price", "7", "--set", "cloud_delay=4", "--seed", "2", "--out", path, "--json"),
    )
    assert code == 0, err
    expected = relocbench.generate_timeline(
        2,
        movement="gauss-markov",
        n_epochs=6,
        topics=8,
        servers=4,
        speed=60.0,
        topic_churn=3.0,
        sigma=10,
        handover_price=7.0,
        cloud_delay=4.0,
    )
    assert json.loads(out)["hash"] == expected.hash == relocbench.read_timeline(path).hash


def test_describe_says_how_much_moves(run, timeline):
    code, out, _ = run("moving", "describe", timeline, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["hash"] == relocbench.read_timeline(timeline).hash
    assert (found["epochs"], found["servers"], found["seconds"], found["topics"]) == (6, 4, 360.0, [8, 8])
    assert 20 < found["mean_speed_km_per_hour"] < 60
    assert (found["arrivals"], found["departures"], found["new_topics"]) == (0, 0, 0)
    assert "mean_speed_km_per_hour" in run("moving", "describe", timeline)[1]


def test_import_makes_a_timeline_of_a_trace(run, tmp_path):
    (tmp_path / "servers.csv").write_text("id,x,y,storage,compute\nnorth,0,9,50,50\nsouth,0,0,50,50\n")
    (tmp_path / "members.csv").write_text("topic,client\nnews,ann\nnews,bob\n")
    (tmp_path / "trace.csv").write_text("minute,client,x,y\n0,ann,1,8\n0,bob,1,1\n1,ann,1,7\n")
    files = ("--servers", tmp_path / "servers.csv", "--members", tmp_path / "members.csv")
    out = tmp_path / "t.parquet"
    code, text, err = run("moving", "import", tmp_path / "trace.csv", *files, "--spool-price", "3", "--out", out)
    assert (code, text) == (0, f"Timeline trace: 2 epochs, 2 servers in {out}\n"), err
    read = relocbench.read_timeline(out)
    assert read.prices.spool == 3
    assert [epoch.clients.tolist() for epoch in read.epochs()] == [[0, 1], [0]]
    (tmp_path / "trace.csv").write_text("minute,client,x,y\n1,ann,1,8\n0,bob,1,1\n")
    code, _, err = run("moving", "import", tmp_path / "trace.csv", *files, "--out", out)
    assert code == 2
    assert err.startswith(f"relocbench: {tmp_path / 'trace.csv'}: line 3: minute: expected at least 1.0, the minute of")


def test_run_prints_what_python_computes_and_does_not_repeat_it(run, timeline, tmp_path, monkeypatch):
    command = (
        *("moving", "run", timeline, "--policy", "never,every[k=2]", "--method", "nearest,otos"),
        *("--out", tmp_path / "replays"),
    )
    code, out, err = run(*command, "--json")
    assert code == 0, err
    found = json.loads(out)
    assert [(one["policy"], one["method"]) for one in found] == [
        *(("never", "nearest"), ("never", "otos")),
        *(("every[k=2]", "nearest"), ("every[k=2]", "otos")),
    ]
    expected = relocbench.replay(relocbench.read_timeline(timeline), "every[k=2]", "otos").cost
    assert found[3]["total"] == expected.total
    assert len(list((tmp_path / "replays").iterdir())) == 4
    again = json.loads(run(*command, "--json")[1])
    assert again == found
    monkeypatch.setenv("COLUMNS", "200")  # a narrow table breaks names
    _, table, _ = run(*command)
    assert "every[k=2]" in table
    assert f"4 results in {tmp_path / 'replays'}" in table


def test_run_takes_other_prices_and_staleness(run, timeline, tmp_path):
    command = ("moving", "run", timeline, "--policy", "always", "--method", "nearest", "--out", tmp_path, "--json")
    [usual] = json.loads(run(*command)[1])
    [free] = json.loads(run(*command, "--handover-price", "0", "--spool-price", "0")[1])
    [stale] = json.loads(run(*command, "--stale-seconds", "45")[1])
    [measured] = json.loads(run(*command, "--stale")[1])
    assert usual["total"] > free["total"] == free["delay_cost"] == usual["delay_cost"]
    assert stale["delay_cost"] > measured["delay_cost"] > 0


def test_an_interrupted_run_says_that_it_can_continue(run, timeline, tmp_path, monkeypatch):
    def interrupt(self, key, totals):
        raise KeyboardInterrupt

    command = ("moving", "run", timeline, "--policy", "always", "--method", "nearest", "--out", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(replay_store.ReplayStore, "finish", interrupt)
        code, _, err = run(*command)
    assert code == 130
    assert "the same command continues from there" in err
    assert run(*command)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--policy", "sometimes", "--method", "nearest"), "policy: expected one of never, always,"),
        (("--policy", "never", "--method", "nope"), "method: expected one of"),
        (("--policy", ",", "--method", "nearest"), "--policies: expected at least one"),
    ],
)
def test_wrong_use_is_refused_in_one_line(arguments, problem, run, timeline, tmp_path):
    code, _, err = run("moving", "run", timeline, *arguments, "--out", tmp_path / "out")
    assert code == 2
    assert err.startswith(f"relocbench: {problem}")
    assert err.count("\n") == 1


def test_an_instance_file_is_no_timeline(run, tmp_path):
    relocbench.write(relocbench.generate("tiny", regime="scarce", shape="plain"), tmp_path / "inst.parquet")
    code, _, err = run("moving", "describe", tmp_path / "inst.parquet")
    assert code == 2
    assert err.startswith(f"relocbench: {tmp_path / 'inst.parquet'}: expected a timeline, the metadata ")


def test_policies_are_listed_with_their_parameters(run):
    found = {one["name"]: one["parameters"] for one in json.loads(run("moving", "policies", "--json")[1])}
    assert found["gap"] == {"above": 0.1, "limit": 1.0}
    assert "relocate" in run("moving", "policies")[1]
