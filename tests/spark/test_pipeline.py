import dataclasses
import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.heuristics.clusters import divide_servers
from relocbench.heuristics.readings import READINGS
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark import placement
from relocbench.spark.assign import RelocOptions, reloc_homes
from relocbench.spark.compare_local import compare, read_homes, read_local
from relocbench.spark.field_choices import FieldChoices
from relocbench.spark.pipeline import evaluate_folder, finished_run, solve_field
from relocbench.spark.placement import read_field

PARTS = ("theta", "storage", "compute", "sent", "spread")


@pytest.fixture
def in_blocks(monkeypatch):
    """Make blocks small, so that small instances have several."""
    monkeypatch.setattr(placement, "BLOCK_MEMBERSHIPS", 600)


def run(spark, topics, out, method="reloc", options=None, capacity=None):
    parameters = PaperParameters(servers=25, sigma=8.0, **(capacity or {}))
    return solve_field(
        spark, topics, out, method, parameters, options or RelocOptions(k=3), proportional=capacity is None
    )


TIGHT = {"storage": 130.0, "compute": 700.0}
AT_RANDOM = dataclasses.asdict(READINGS["prose"]) | {"ties": "random", "client_order": "random"}


@pytest.mark.slow
@pytest.mark.usefixtures("in_blocks", "short_filter")
@pytest.mark.parametrize(
    ("method", "options", "capacity"),
    [
        ("reloc", RelocOptions(k=3, rounds=2), TIGHT),
        ("reloc", RelocOptions(k=4, relation="exact", seed=2), TIGHT),
        ("reloc", RelocOptions(k=1, related=0), None),
        ("reloc", RelocOptions(k=2, rounds=2, factorised="incidence", ties="placed", topic_order="random"), TIGHT),
        ("reloc", RelocOptions(k=4, seed=1, **AT_RANDOM), TIGHT),
        ("reloc", RelocOptions(relation="exact", ties="loaded", topic_order="large", initial="least-used"), TIGHT),
        ("otos", RelocOptions(), TIGHT),
        ("nearest", RelocOptions(), None),
    ],
)
def test_homes_and_costs_are_those_of_the_local_method(spark, topics, tmp_path, method, options, capacity):
    cost, existed = run(spark, topics, tmp_path, method, options, capacity)
    assert not existed
    found = compare(tmp_path, method)
    assert found.equal, found
    assert found.clients > 500
    instance, ids = read_local(tmp_path)
    local = evaluate(instance, read_homes(tmp_path / method / "homes", ids))
    for name, value in (("Y", local.y), ("Y1", local.y1), ("Y2", local.y2), ("objective", local.objective)):
        assert cost[name] == pytest.approx(value, rel=1e-9)
    assert cost["publications"] == local.n_publications
    for name in PARTS:
        assert cost[name] == pytest.approx(local.values()[name], rel=1e-9)
    if capacity is not None:
        assert min(cost["theta"]) < 1.0  # overload is what the cooperation step reacts to


@pytest.mark.slow
@pytest.mark.usefixtures("in_blocks", "short_filter")
def test_homes_do_not_depend_on_partitions(spark, topics, tmp_path):
    homes = []
    before = spark.conf.get("spark.sql.shuffle.partitions")
    for partitions in (1, 5):
        spark.conf.set("spark.sql.shuffle.partitions", partitions)
        run(spark, topics, tmp_path / str(partitions), options=RelocOptions(k=3, rounds=2), capacity=TIGHT)
        homes.append(read_homes(tmp_path / str(partitions) / "reloc" / "homes", read_local(tmp_path / "1")[1]).tolist())
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert homes[0] == homes[1]


@pytest.fixture(scope="module")
def nearest(spark, topics, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nearest")
    run(spark, topics, folder, "nearest")
    return folder


def test_random_homes_use_all_servers_and_cost_what_the_evaluator_computes(spark, topics, nearest):
    cost, _ = run(spark, topics, nearest, "random")
    instance, ids = read_local(nearest)
    home = read_homes(nearest / "random" / "homes", ids)
    assert set(home.tolist()) == set(range(25))
    assert cost["objective"] == pytest.approx(evaluate(instance, home).objective, rel=1e-9)


def test_commands_run_evaluate_and_compare(spark, topics, tmp_path):
    out = str(tmp_path / "out")
    command = ["spark", "reloc", str(topics), "--servers", "9", "--k", "2", "--relation", "exact", "--out", out]
    command += ["--reading", "pseudocode"]
    cost = json.loads(CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False).output)
    assert "(computed earlier)" in CliRunner().invoke(app, command, catch_exceptions=False).output
    homes = f"{out}/reloc/homes"
    answer = CliRunner().invoke(app, ["spark", "evaluate", out, homes, "--json"], catch_exceptions=False)
    assert json.loads(answer.output) == {name: cost[name] for name in json.loads(answer.output)}
    copy = tmp_path / "inst.parquet"
    compared = CliRunner().invoke(app, ["spark", "compare", out, "--out", str(copy)], catch_exceptions=False)
    assert compared.exit_code == 0
    assert "homes are equal" in compared.output
    described = CliRunner().invoke(app, ["describe", str(copy)], catch_exceptions=False)
    assert described.exit_code == 0
    with pytest.raises(InputError, match="reloc: was written with k 2: choose another folder"):
        CliRunner().invoke(app, [*command[:6], "3", *command[7:]], catch_exceptions=False)
    # A folder of the first version does not record the whole reading. It has the one that was the only one.
    record = json.loads((tmp_path / "out" / "reloc" / "made.json").read_text())
    for name in ("ties", "initial", "cooperation", "revisit", "topic_order", "client_order", "factorised", "diagonal"):
        del record["asked"][name]
    (tmp_path / "out" / "reloc" / "made.json").write_text(json.dumps(record))
    assert "(computed earlier)" in CliRunner().invoke(app, command, catch_exceptions=False).output
    assert "homes are equal" in CliRunner().invoke(app, ["spark", "compare", out], catch_exceptions=False).output
    with pytest.raises(InputError, match="reloc: was written with ties 'index': choose another folder"):
        CliRunner().invoke(app, [*command, "--ties", "placed"], catch_exceptions=False)


@pytest.mark.parametrize("option", [{"relation": "nmf"}, {"diagonal": False}, {"rank": "full"}])
def test_what_only_the_local_method_computes_is_refused(option):
    with pytest.raises(InputError, match="--"):
        RelocOptions(**option)


def test_as_many_clusters_as_servers_are_refused(topics, tmp_path):
    command = ["spark", "reloc", str(topics), "--servers", "9", "--k", "9", "--out", str(tmp_path)]
    with pytest.raises(InputError, match=r"--k: expected less than the number of servers, 9, got 9: .* RELOC is NS"):
        CliRunner().invoke(app, command, catch_exceptions=False)


def test_wrong_folders_and_other_options_are_refused_by_name(spark, topics, nearest, tmp_path):
    def refusal(*words):
        with pytest.raises(InputError) as found:
            CliRunner().invoke(app, ["spark", *map(str, words)], catch_exceptions=False)
        return str(found.value)

    reloc = ("--servers", 25, "--method", "nearest", "--out", nearest)
    assert "field: was written with parameters.sigma 8.0: choose another" in refusal("reloc", topics, *reloc)
    homes = nearest / "nearest" / "homes"
    assert "expected a folder that `relocbench spark reloc` wrote" in refusal("evaluate", topics, homes)
    assert "expected a folder that `relocbench spark arrange` wrote" in refusal("reloc", nearest, *reloc)
    assert "made.json has no entry 'lines'" in refusal("reloc", nearest / "field", *reloc)


def test_a_moved_instance_is_complete(nearest, tmp_path):
    shutil.copytree(nearest, tmp_path / "moved")
    record = json.loads((tmp_path / "moved" / "field" / "made.json").read_text())
    assert not any("/" in str(value) and str(value).startswith("/") for value in record.values())
    assert compare(tmp_path / "moved", "nearest").equal


def test_compare_reports_homes_that_differ(nearest, tmp_path):
    shutil.copytree(nearest, tmp_path / "copy")
    ids = read_local(nearest)[1]
    wrong = read_homes(nearest / "nearest" / "homes", ids).copy()
    wrong[3] = (wrong[3] + 1) % 25
    shutil.rmtree(tmp_path / "copy" / "nearest" / "homes")
    pq.write_table(pa.table({"client": ids, "home": wrong}), tmp_path / "copy" / "nearest" / "homes")
    answer = CliRunner().invoke(app, ["spark", "compare", str(tmp_path / "copy"), "--method", "nearest"])
    assert answer.exit_code == 1
    assert f"{len(ids) - 1:,} of {len(ids):,} homes are equal" in answer.output


def invalid_homes(kind, ids, home):
    if kind == "missing":
        return ids[1:], home[1:]
    if kind == "doubled":
        return np.append(ids, ids[:1]), np.append(home, home[:1])
    if kind == "stranger":
        return np.append(ids, 10**12), np.append(home, 0)
    return ids, np.append(home[:-1], 25)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("missing", "client {first} has no home"),
        ("doubled", "expected one home for each of {count} clients, got {more}"),
        ("stranger", "client 1000000000000 is not one of the clients"),
        ("outside", "client {last}: expected a server from 0 to 24, got 25"),
    ],
)
def test_an_invalid_assignment_is_refused(spark, nearest, tmp_path, kind, problem):
    ids = read_local(nearest)[1]
    client, home = invalid_homes(kind, ids, read_homes(nearest / "nearest" / "homes", ids))
    pq.write_table(pa.table({"client": client, "home": home.astype(np.int32)}), tmp_path / "homes.parquet")
    message = problem.format(first=ids[0], last=ids[-1], count=len(ids), more=len(ids) + 1)
    with pytest.raises(InputError, match=f"homes.parquet: {message}"):
        CliRunner().invoke(
            app, ["spark", "evaluate", str(nearest), str(tmp_path / "homes.parquet")], catch_exceptions=False
        )


def test_a_dataset_with_other_columns_is_refused(spark, nearest, tmp_path):
    pq.write_table(pa.table({"user": [1], "home": [1.5]}), tmp_path / "homes.parquet")
    with pytest.raises(InputError, match="expected whole numbers in columns client and home"):
        evaluate_folder(spark, nearest, tmp_path / "homes.parquet")
    with pytest.raises(InputError, match="nowhere: expected a Parquet dataset, found none"):
        evaluate_folder(spark, nearest, tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"made.json: cannot be read"):
        CliRunner().invoke(app, ["spark", "evaluate", str(tmp_path), "homes"], catch_exceptions=False)


def test_each_cluster_is_one_task_and_the_largest_comes_first(spark, nearest):
    from pyspark.sql.functions import spark_partition_id

    field = read_field(nearest / "field")
    clients = spark.read.parquet(str(nearest / "field" / "clients"))
    homes = reloc_homes(clients, None, field, RelocOptions(k=4, relation="exact")).withColumn("t", spark_partition_id())
    cluster, _ = divide_servers(field.server_x, field.server_y, 4, 0)
    clusters_of_task = {}
    for row in homes.collect():
        clusters_of_task.setdefault(row["t"], []).append(int(cluster[row["home"]]))
    assert sorted(clusters_of_task) == [0, 1, 2, 3]
    assert sorted(found[0] for found in clusters_of_task.values()) == [0, 1, 2, 3]
    assert all(len(set(found)) == 1 for found in clusters_of_task.values())
    sizes = [len(clusters_of_task[task]) for task in range(4)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]


def test_a_finished_run_is_reported_without_a_session(spark, topics, nearest):
    parameters = PaperParameters(servers=25, sigma=8.0)

    def finished(method, seed=0):
        options = RelocOptions(k=3, seed=seed)
        return finished_run(topics, nearest, method, parameters, options, proportional=True, choices=FieldChoices())

    assert finished("nearest") == run(spark, topics, nearest, "nearest")[0]
    assert finished("otos") is None
    with pytest.raises(InputError, match="seed"):
        finished("nearest", seed=1)
