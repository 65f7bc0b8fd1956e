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
from relocbench.runs.sweep import sweep as local_sweep
from relocbench.spark.sweep import missing, sweep
from tests.runs.fake_methods import fake

LIMITS = Limits(time=20.0)
INSTANCES = [FAMILIES["tiny"].cells({"regime": "scarce", "shape": shape})[0].build(0) for shape in ("plain", "roles")]


def without_times(row):
    """Return a row with times and memory set to zero, because these differ between runs."""
    trace = [(0.0, incumbent, bound) for _, incumbent, bound in row.trace]
    return dataclasses.replace(row, seconds=0.0, cpu_seconds=0.0, peak_memory=0, trace=trace)


def rows(folder):
    found, problems = read(folder)
    assert problems == []
    return [without_times(row) for row in found]


def modification_times(folder):
    return {file.name: file.stat().st_mtime_ns for file in folder.glob("*.parquet")}


@pytest.mark.slow
def test_rows_are_those_of_a_local_sweep(spark, tmp_path):
    selectors = [parse_selector("random"), parse_selector("enumerate"), fake("crashes")]
    tasks = [Task(instance, selector, 1) for instance in INSTANCES for selector in selectors]
    assert sweep(spark, tasks, Store(tmp_path / "spark"), LIMITS) == []
    list(local_sweep(tasks, Store(tmp_path / "local"), LIMITS))
    assert rows(tmp_path / "spark") == rows(tmp_path / "local")
    assert {row.status for row in rows(tmp_path / "spark")} == {"feasible", "optimal", "error"}
    # Executors see the Java of the session, which a local sweep does not see.
    assert not any("java" in row.versions for row in rows(tmp_path / "spark"))


def test_local_and_spark_sweeps_continue_each_other(spark, tmp_path):
    store = Store(tmp_path)
    tasks = [Task(instance, parse_selector("nearest"), seed) for instance in INSTANCES for seed in range(2)]
    list(local_sweep(tasks[:2], store, LIMITS))
    first = modification_times(tmp_path)
    # A process that is killed while writing leaves a temporary file and, on some disks, an empty file.
    (tmp_path / ".x.parquet.part").write_bytes(b"half")
    (tmp_path / f"{tasks[2].run(LIMITS).digest}.parquet").write_bytes(b"")
    assert missing(tasks, store, LIMITS) == tasks[2:]
    assert sweep(spark, missing(tasks, store, LIMITS), store, LIMITS) == []
    assert first.items() <= modification_times(tmp_path).items()
    assert len(rows(tmp_path)) == 4
    assert missing(tasks, store, LIMITS) == []
    second = modification_times(tmp_path)
    assert len(list(local_sweep(tasks, store, LIMITS))) == 4
    assert modification_times(tmp_path) == second


def test_a_run_without_a_row_does_not_affect_others(spark, tmp_path):
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


def test_errors_are_run_again_on_request(spark, tmp_path):
    store = Store(tmp_path)
    tasks = [Task(INSTANCES[0], fake("crashes"))]
    sweep(spark, tasks, store, LIMITS)
    before = modification_times(tmp_path)
    assert missing(tasks, store, LIMITS) == []
    assert missing(tasks, store, LIMITS, retry_errors=True) == tasks
    sweep(spark, tasks, store, LIMITS)
    assert modification_times(tmp_path) == before
    sweep(spark, tasks, store, LIMITS, retry_errors=True)
    assert modification_times(tmp_path) != before


def test_the_command_reads_a_folder_and_prints_a_summary(spark, tmp_path, monkeypatch, capsys):
    for instance in INSTANCES:
        write_instance(instance, tmp_path / "all" / f"{instance.name}.parquet")
    words = ["relocbench", "spark", "run", str(tmp_path / "all"), "--methods", "nearest,random", "--seeds", "0"]
    monkeypatch.setattr(sys, "argv", [*words, "--out", str(tmp_path / "runs"), "--json"])
    for _ in range(2):
        with pytest.raises(SystemExit) as end:
            main()
        assert not end.value.code
        summary = json.loads(capsys.readouterr().out)
        assert (summary["runs"], summary["errors"]) == (4, [])
        assert {part["method"] for part in summary["summary"]} == {"nearest", "random"}
    assert len(rows(tmp_path / "runs")) == 4
