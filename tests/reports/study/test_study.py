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
from relocbench.reports.study.excess import SCHEMA
from tests.samples import worked_example

pytestmark = pytest.mark.slow

# One that is proved here, and one, too large for that, that the library has a bound of.
ARGUMENTS = [
    *("study", "library:small-overloaded-m39-l9-0", "--family", "small", "--seeds", "1", "--set", "clients=10"),
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


def test_the_data_says_what_each_gap_is_measured_against(folder):
    table = pq.read_table(folder / "gaps.parquet")
    assert table.schema.equals(SCHEMA)
    told = table.to_pylist()
    assert len(told) == 2 * 2 * 2
    for row in told:
        assert row["gap"] == pytest.approx(max(0.0, row["objective"] / row["reference"] - 1))
        known = row["instance"] == "small-overloaded-m39-l9-0"
        assert row["reference_kind"] == ("certified bound" if known else "proven optimum")
        assert row["reference_by"].startswith("library" if known else "branch-price")
        assert row["best_known"] <= row["objective"]
    assert {row["regime"] for row in told} == {"small-overloaded"}


def test_a_second_call_runs_nothing_again(folder, monkeypatch, capsys):
    before = {file.name: file.stat().st_mtime_ns for file in (folder / "runs").glob("*.parquet")}
    page = (folder / "report.html").stat().st_mtime_ns
    assert run(monkeypatch, *ARGUMENTS, "--out", folder, "--json") == 0
    assert {file.name: file.stat().st_mtime_ns for file in (folder / "runs").glob("*.parquet")} == before
    assert (folder / "report.html").stat().st_mtime_ns > page
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 8
    assert [line["selector"] for line in told["summary"]] == ["nearest", "anneal[moves=20000]"]


def test_the_command_that_a_click_names_gives_the_cost_of_the_point(folder, tmp_path):
    rows = pq.read_table(folder / "gaps.parquet").to_pylist()
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


def test_a_study_from_python_keeps_the_instances_it_was_given(tmp_path):
    given = worked_example()
    done = relocbench.study("nearest", [given], families={"preliminary": [0]}, out=tmp_path, seeds=[0])
    assert done.page.exists()
    assert len(done.gaps) == 1 + 2
    assert done.warnings == []
    [mine] = [gap for gap in done.gaps if gap.hash == given.hash]
    assert read_instance(mine.command.split()[2]).hash == given.hash
    with pytest.raises(InputError, match="at least one instance"):
        relocbench.study("nearest", out=tmp_path)


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
def test_wrong_use_is_one_line(monkeypatch, capsys, tmp_path, arguments, message):
    assert run(monkeypatch, "study", *arguments, "--out", tmp_path) == 2
    told = capsys.readouterr().err
    assert message in told
    assert len(told.splitlines()) == 1
