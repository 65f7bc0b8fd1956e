import dataclasses
import json
import sys

import pytest

from relocbench.cli import main
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import write_instance
from relocbench.runs.run_store import Store, read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task
from relocbench.runs.sweep import sweep as sweep_here
from relocbench.spark.sweep import missing, sweep
from tests.runs.fake_methods import fake

LIMITS = Limits(time=20.0)
INSTANCES = [FAMILIES["tiny"].cells({"regime": "scarce", "shape": shape})[0].build(0) for shape in ("plain", "roles")]


def timeless(row):
    """Return a row without what differs from one run to the next."""
    trace = [(0.0, incumbent, bound) for _, incumbent, bound in row.trace]
    return dataclasses.replace(row, seconds=0.0, cpu_seconds=0.0, peak_memory=0, trace=trace)


def rows(folder):
    found, problems = read(folder)
    assert problems == []
    return [timeless(row) for row in found]


def written(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}


def test_rows_are_those_of_a_local_sweep(spark, tmp_path):
    selectors = [parse_selector("random"), parse_selector("enumerate"), fake("crashes")]
    tasks = [Task(instance, selector, 1) for instance in INSTANCES for selector in selectors]
    assert sweep(spark, tasks, Store(tmp_path / "there"), LIMITS) == []
    list(sweep_here(tasks, Store(tmp_path / "here"), LIMITS))
    assert rows(tmp_path / "there") == rows(tmp_path / "here")
    assert {row.status for row in rows(tmp_path / "there")} == {"feasible", "optimal", "error"}


def test_local_and_spark_go_on_where_the_other_stopped(spark, tmp_path):
    store = Store(tmp_path)
    tasks = [Task(instance, parse_selector("nearest"), seed) for instance in INSTANCES for seed in range(2)]
    list(sweep_here(tasks[:2], store, LIMITS))
    first = written(tmp_path)
    # What a kill in mid-write leaves: a part, and on some disks a file without content.
    (tmp_path / ".x.parquet.part").write_bytes(b"half")
    (tmp_path / f"{tasks[2].run(LIMITS).digest}.parquet").write_bytes(b"")
    assert missing(tasks, store, LIMITS) == tasks[2:]
    assert sweep(spark, missing(tasks, store, LIMITS), store, LIMITS) == []
    assert first.items() <= written(tmp_path).items()
    assert len(rows(tmp_path)) == 4
    assert missing(tasks, store, LIMITS) == []
    second = written(tmp_path)
    assert len(list(sweep_here(tasks, store, LIMITS))) == 4
    assert written(tmp_path) == second


def test_a_run_that_leaves_no_row_costs_no_other(spark, tmp_path):
    store = Store(tmp_path)
    tasks = [Task(instance, parse_selector("nearest")) for instance in INSTANCES]
    damaged = tmp_path / "instances" / f"{INSTANCES[0].hash}.parquet"
    damaged.parent.mkdir()
    damaged.write_bytes(b"no Parquet")
    [problem] = sweep(spark, tasks, store, LIMITS)
    assert problem.startswith(f"nearest, seed 0, on {damaged}: ")
    assert [row.hash for row in rows(tmp_path)] == [INSTANCES[1].hash]
    damaged.unlink()
    assert sweep(spark, missing(tasks, store, LIMITS), store, LIMITS) == []
    assert len(rows(tmp_path)) == 2


def test_errors_are_run_again_when_asked_for(spark, tmp_path):
    store = Store(tmp_path)
    tasks = [Task(INSTANCES[0], fake("crashes"))]
    sweep(spark, tasks, store, LIMITS)
    before = written(tmp_path)
    assert missing(tasks, store, LIMITS) == []
    assert missing(tasks, store, LIMITS, retry_errors=True) == tasks
    sweep(spark, tasks, store, LIMITS)
    assert written(tmp_path) == before
    sweep(spark, tasks, store, LIMITS, retry_errors=True)
    assert written(tmp_path) != before


def test_the_command_reads_a_folder_and_sums_up(spark, tmp_path, monkeypatch, capsys):
    for instance in INSTANCES:
        write_instance(instance, tmp_path / "all" / f"{instance.name}.parquet")
    words = ["relocbench", "spark", "run", str(tmp_path / "all"), "--methods", "nearest,random", "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path / "runs"), "--json"])
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        answer = json.loads(capsys.readouterr().out)
        assert (answer["runs"], answer["errors"]) == (4, [])
        assert {part["method"] for part in answer["summary"]} == {"nearest", "random"}
    assert len(rows(tmp_path / "runs")) == 4
