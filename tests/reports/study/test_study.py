import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import relocbench
from relocbench.cli import main
from relocbench.instances.errors import InputError
from relocbench.instances.instance_source import read_instance
from relocbench.reports.study import study as study_module
from relocbench.reports.study.excess import SCHEMA
from relocbench.reports.study.study import Study
from tests.samples import worked_example

pytestmark = pytest.mark.slow

# The first instance is too large to be solved exactly, and the library has a bound of it. The second is solved exactly.
ARGUMENTS = [
    *("study", "library:paper-s10-0", "--family", "small", "--seeds", "1", "--set", "clients=10"),
    *("--set", "regime=overloaded", "--method", "nearest,anneal[moves=2e4]", "--seed", "0,1", "--jobs", "2"),
]


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["relocbench", *map(str, arguments)])
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("study")
    with pytest.MonkeyPatch.context() as patch:
        assert run(patch, *ARGUMENTS, "--out", out) == 0
    return out


def test_the_data_states_the_reference_of_each_run(folder):
    table = pq.read_table(folder / "excess.parquet")
    assert table.schema.equals(SCHEMA)
    rows = table.to_pylist()
    assert len(rows) == 2 * 2 * 2
    for row in rows:
        assert row["format"] == "relocbench-excess/2"
        assert row["excess"] == pytest.approx(max(0.0, row["objective"] / row["reference"] - 1))
        known = row["instance"] == "paper-s10-0"
        assert row["reference_kind"] == ("certified bound" if known else "proven optimum")
        assert row["reference_by"].startswith("library" if known else "branch-price")
        assert row["best_known"] <= row["objective"]
    assert {row["regime"] for row in rows} == {"paper-s10", "small-overloaded"}


def test_a_second_call_repeats_no_runs(folder, monkeypatch, capsys):
    before = {file.name: file.stat().st_mtime_ns for file in (folder / "runs").glob("*.parquet")}
    page = (folder / "report.html").stat().st_mtime_ns
    assert run(monkeypatch, *ARGUMENTS, "--out", folder, "--json") == 0
    assert {file.name: file.stat().st_mtime_ns for file in (folder / "runs").glob("*.parquet")} == before
    assert (folder / "report.html").stat().st_mtime_ns > page
    answer = json.loads(capsys.readouterr().out)
    assert answer["runs"] == 8
    assert [line["selector"] for line in answer["summary"]] == ["nearest", "anneal[moves=20000]"] * 2


def test_the_command_of_a_point_reproduces_its_objective(folder, tmp_path):
    rows = pq.read_table(folder / "excess.parquet").to_pylist()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for row in (rows[0], next(row for row in rows if "generate" in row["command"] and row["seed"] == 1)):
        done = subprocess.run(
            row["command"] + " --json",
            shell=True,
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[-1])["objective"] == pytest.approx(row["objective"], rel=1e-12)


def test_a_study_from_python_writes_its_instances_to_files(tmp_path):
    given = worked_example()
    done = relocbench.study("nearest", [given], families={"preliminary": [0]}, out=tmp_path, seeds=[0])
    assert done.page.exists()
    assert len(done.measurements) == 1 + 2
    assert done.warnings == []
    [own] = [one for one in done.measurements if one.hash == given.hash]
    assert read_instance(own.command.split()[2]).hash == given.hash
    with pytest.raises(InputError, match="at least one instance"):
        relocbench.study("nearest", out=tmp_path)


def test_a_data_file_of_an_earlier_version_gives_a_warning(tmp_path):
    (tmp_path / "gaps.parquet").touch()
    done = relocbench.study("nearest", [worked_example()], out=tmp_path, seeds=[0])
    assert done.warnings == ["`gaps.parquet` in this folder is from an earlier version; `excess.parquet` replaces it."]


@pytest.mark.parametrize(
    ("wrong", "problems", "warnings", "code"),
    [
        (["a contradiction in other words"], [], [], 1),
        ([], ["a run without a row"], [], 1),
        ([], [], ["**A run contradicts a proof:** only the text says so."], 0),
    ],
)
def test_the_exit_code_depends_on_the_data_and_not_on_the_text(monkeypatch, tmp_path, wrong, problems, warnings, code):
    done = Study([], wrong, warnings, problems, tmp_path / "report.html")
    monkeypatch.setattr(study_module, "conduct", lambda *_: done)
    assert run(monkeypatch, "study", "library:tiny-loose-plain-0", "--method", "nearest", "--out", tmp_path) == code


def test_objectives_below_a_bound_reach_the_exit_code(monkeypatch, tmp_path):
    monkeypatch.setattr(study_module, "contradictions", lambda *_: ["reworded"])
    arguments = ("study", "library:tiny-loose-plain-0", "--method", "nearest", "--seed", "0", "--out", tmp_path)
    assert run(monkeypatch, *arguments) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1"], "--seeds: needs --family"),
        (["--set", "sigma=1"], "--set: needs --family"),
        (["--master", "local[1]"], "--master: needs --spark"),
        (["--method", "no-such"], "method: expected one of"),
        (["--family", "no-such"], "family: expected one of"),
        (["absent.json"], "absent.json"),
    ],
)
def test_wrong_use_gives_one_line(monkeypatch, capsys, tmp_path, arguments, message):
    assert run(monkeypatch, "study", *arguments, "--out", tmp_path) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1


def test_a_study_renews_the_index_above_it_and_makes_none(monkeypatch, tmp_path):
    arguments = ("study", "library:tiny-loose-plain-0", "--method", "nearest", "--seed", "0", "--out")
    assert run(monkeypatch, *arguments, tmp_path / "first") == 0
    assert not (tmp_path / "index.html").exists()
    assert run(monkeypatch, "index", tmp_path) == 0
    assert run(monkeypatch, *arguments, tmp_path / "second") == 0
    assert "second/report.html" in (tmp_path / "index.html").read_text(encoding="utf-8")


def test_groups_reach_the_table_the_data_and_the_json(monkeypatch, capsys, tmp_path):
    arguments = ("study", "library:tiny-loose-*", "--method", "nearest,reloc", "--seed", "0", "--out", tmp_path)
    assert run(monkeypatch, *arguments, "--group-by", "regime", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(one["group"], one["instances"], one["blocks"]) for one in answer["summary"]] == [
        ("regime=loose", 5, 5)
    ] * 2
    assert {one["group"] for one in answer["time_to_target"]} == {"regime=loose"}
    [compared] = answer["comparisons"]
    assert (compared["paired"]["blocks"], compared["tests"]) == (5, 1)
    assert {row["group"] for row in pq.read_table(tmp_path / "excess.parquet").to_pylist()} == {"regime=loose"}
    assert run(monkeypatch, *arguments, "--group-by", "nothing") == 2
    assert "--group-by: expected family, name, folder" in capsys.readouterr().err
