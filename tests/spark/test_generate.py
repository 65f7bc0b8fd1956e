import json

import pytest

from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import plan
from relocbench.instances.instance_source import read_instance


@pytest.mark.parametrize("family", ["paper", "tiny"])
def test_every_file_equals_that_of_the_local_generator(spark, run, tmp_path, family):
    code, out, _ = run("spark", "generate", "--family", family, "--seeds", "0-1", "--out", tmp_path / "all", "--json")
    planned = plan(family, range(2), {})
    assert code == 0
    assert json.loads(out) == {"instances": len(planned), "found": 0, "out": str(tmp_path / "all")}
    for number in range(len(planned)):
        local, remote = tmp_path / "local.parquet", tmp_path / "all" / f"{planned.name(number)}.parquet"
        write_rows([planned.build(number)], local)
        assert remote.read_bytes() == local.read_bytes()
    assert len(list((tmp_path / "all").iterdir())) == len(planned)


def test_only_missing_instances_are_built(spark, run, tmp_path):
    command = ("spark", "generate", "--family", "preliminary", "--seed", "0-2", "--out", tmp_path / "all")
    assert run(*command)[1].startswith("6 instances in ")
    files = sorted((tmp_path / "all").iterdir())
    before = {file: file.stat().st_mtime_ns for file in files}
    content = files[2].read_bytes()
    files[2].unlink()
    (tmp_path / "all" / f".{files[2].name}.abc.part").write_bytes(
        content[:99]
    )  # left by a process that was killed while writing
    assert run(*command)[1].endswith(", 5 existed before\n")
    assert files[2].read_bytes() == content
    assert {file for file in files if file.stat().st_mtime_ns != before[file]} == {files[2]}


def test_a_follower_graph_is_sent_with_the_plan(spark, run, tmp_path):
    edges = "".join(f"{a}\t{b}\n" for a in range(40) for b in range(a + 1, a + 4))
    (tmp_path / "edges.txt").write_text(edges)
    options = ("--family", "paper", "--sigma", 5, "--seed", 0, "--set", "topics=12", "--social", tmp_path / "edges.txt")
    assert run("generate", *options, "--out", tmp_path / "local.json")[0] == 0
    assert run("spark", "generate", *options, "--out", tmp_path / "all")[0] == 0
    remote = read_instance(tmp_path / "all" / "paper-s5-topics-12-0-edges.parquet")
    assert remote.hash == read_instance(tmp_path / "local.json").hash
    assert remote.parameters["social"] == "edges.txt"


def test_an_instance_that_cannot_be_built_gives_one_line(spark, run, tmp_path):
    code, _, err = run("spark", "generate", "--family", "paper", "--set", "topics=0", "--out", tmp_path / "all")
    assert (code, err.count("\n")) == (2, 1)
    (tmp_path / "file").touch()
    code, _, err = run("spark", "generate", "--family", "paper", "--out", tmp_path / "file")
    assert (code, err.endswith("expected a folder for instances, got a file\n")) == (2, True)
