import gzip
import json
import pickle
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import generate as build
from relocbench.spark import remote_path
from relocbench.spark.checkpoints import run_once, write_dataset
from relocbench.spark.locations import location, relative_to, write_text, written_folder
from relocbench.spark.remote_path import RemotePath
from tests.spark.object_store import object_store


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("out/x", Path("out/x")),
        ("/data/a:b", Path("/data/a:b")),
        ("file:///data/a%20b", Path("/data/a b")),
        ("file:/data", Path("/data")),
        ("library:name", Path("library:name")),
        ("C:/data", Path("C:/data")),
    ],
)
def test_a_path_without_another_scheme_is_local(text, expected):
    assert location(text) == expected


def test_a_uri_keeps_its_scheme_and_host():
    place = location("s3a://bucket/x/")
    assert str(place / "field" / "made.json") == "s3a://bucket/x/field/made.json"
    assert (str(place.parent), place.name) == ("s3a://bucket/", "x")
    assert pickle.loads(pickle.dumps(place)) == place == location(place)
    assert str(location("hdfs:///x")) == "hdfs:///x"
    assert relative_to(location("s3a://bucket/topics"), place / "field") == "../../topics"
    assert relative_to(Path("a/topics"), Path("a/out")) == "../topics"


@pytest.mark.parametrize("text", ["file://host/x", "hdfs://"])
def test_a_uri_without_a_usable_path_is_refused(text):
    with pytest.raises(InputError, match="expected "):
        location(text)


def test_a_place_that_nothing_can_reach_is_refused_in_one_line(spark, tmp_path):
    words = ["spark", "generate", "--family", "tiny", "--out", "viewfs://t/x"]
    with pytest.raises(InputError, match="viewfs://t/x: cannot be used by Python without Java: give a local folder"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    for words in (["s3a://b/x", "--out", "runs"], ["library:x", "--out", "s3a://b/x"]):
        with pytest.raises(InputError, match=r"s3a://b/x: spark run (reads|writes) .* local paths only"):
            CliRunner().invoke(app, ["spark", "run", *words, "--method", "nearest"], catch_exceptions=False)
    (tmp_path / "edges").write_text("1\t2\n")
    words = ["spark", "arrange", str(tmp_path / "edges"), "--out", "s3a://b/x"]
    with pytest.raises(InputError, match=r"Spark has no class .*S3AFileSystem: add its jar with --conf"):
        CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.fixture
def mounted(spark, tmp_path):
    """Mount a folder under viewfs://tests/data."""
    spark.sparkContext._jsc.hadoopConfiguration().set(
        "fs.viewfs.mounttable.tests.link./data", (tmp_path / "data").as_uri()
    )
    # Hadoop keeps a file system with the mount table that it had when it was first used.
    spark.sparkContext._jsc.hadoopConfiguration().set("fs.viewfs.impl.disable.cache", "true")
    (tmp_path / "data").mkdir()
    return location("viewfs://tests/data"), tmp_path / "data"


def test_a_file_system_of_hadoop_holds_the_same_topics_as_a_local_folder(spark, mounted, tmp_path):
    remote, here = mounted
    (here / "edges").mkdir()
    text = "from,to\n# comment\n" + "".join(f"{a},{b}\n" for a in range(60) for b in range(a % 7))
    (here / "edges" / "one.csv").write_text(text)
    (here / "edges" / "two.csv.gz").write_bytes(gzip.compress(b"from,to\n3,77\n77,78\n"))
    (here / "edges" / "_hidden").write_text("no edges")

    def arranged(source, out):
        words = ["spark", "arrange", str(source), "--out", str(out), "--json"]
        return json.loads(CliRunner().invoke(app, words, catch_exceptions=False).output)

    ours, local = arranged(remote / "edges", remote / "topics"), arranged(here / "edges", tmp_path / "local")
    assert ours.pop("folder") == "viewfs://tests/data/topics"
    local.pop("folder")
    assert (ours.pop("source"), local.pop("source")) == ("../edges", "../data/edges")
    assert ours == local
    tables = [pq.read_table(folder / "topics").sort_by("topic") for folder in (here / "topics", tmp_path / "local")]
    assert tables[0] == tables[1]
    assert {path.name for path in here.iterdir()} == {"edges", "topics"}


def test_a_remote_folder_is_complete_or_absent(spark, mounted):
    remote, here = mounted
    write_dataset(spark.range(3), remote / "numbers")
    with pytest.raises(InputError, match="stopped"), written_folder(remote / "numbers") as room:  # noqa: PT012
        spark.range(9).write.parquet(str(room))
        raise InputError("", "stopped")
    assert pq.read_table(here / "numbers")["id"].to_pylist() == [0, 1, 2]
    write_dataset(spark.range(4), remote / "numbers")
    assert sorted(pq.read_table(here / "numbers")["id"].to_pylist()) == [0, 1, 2, 3]
    write_text(remote / "below" / "text", "Σ")
    assert (remote / "below" / "text").read_text() == (here / "below" / "text").read_text(encoding="utf-8") == "Σ"
    assert {path.name for path in here.iterdir()} == {"numbers", "below"}
    assert run_once(remote / "step", {"k": 1}, dict) == ({"asked": {"k": 1}}, False)
    with pytest.raises(InputError, match="viewfs://tests/data/step: was written with k 1"):
        run_once(remote / "step", {"k": 2}, dict)
    with pytest.raises(InputError, match="text: expected a folder to write to, got a file"):
        run_once(remote / "below" / "text", {"k": 2}, dict)


def test_a_failed_step_leaves_no_folder(tmp_path):
    def fail():
        raise InputError("step", "failed")

    with pytest.raises(InputError, match="step: failed"):
        run_once(tmp_path / "step", {}, fail)
    assert list(tmp_path.iterdir()) == []


def test_python_workers_write_instances_to_an_object_store(spark, monkeypatch, tmp_path):
    with object_store() as (variables, objects):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
            monkeypatch.setitem(spark.sparkContext.environment, name, value)
        words = ["spark", "generate", "--family", "tiny", "--seed", "0", "--out", "s3a://bucket/tiny"]
        assert "15 instances in s3a://bucket/tiny\n" in CliRunner().invoke(app, words, catch_exceptions=False).output
        assert "15 existed before" in CliRunner().invoke(app, words, catch_exceptions=False).output
        assert len(objects) == 15
        write_rows([build("tiny", 0, regime="scarce", shape="plain")], tmp_path / "local.parquet")
        assert objects["bucket/tiny/tiny-scarce-plain-0.parquet"] == (tmp_path / "local.parquet").read_bytes()
        objects["bucket/x/made.json"] = b'{"asked": {}}'
        monkeypatch.setattr(remote_path, "_context", lambda: None)  # as in a command without a session
        assert RemotePath("s3a://bucket", "x/made.json").read_text() == '{"asked": {}}'
