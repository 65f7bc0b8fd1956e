import dataclasses
import json
import os
import subprocess
import sys
import sysconfig

import pytest

from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import generate
from relocbench.instances.instance_source import instance_files, read_instance
from relocbench.runs.run_store import Store, read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep
from relocbench.spark.compare_local import compare
from tests.spark.standalone import kill, standalone, wait_until

pytestmark = pytest.mark.slow
LIMITS = Limits(time=60.0)
SEEDS = range(6)
# Small executors; the driver needs no more.
SETTINGS = (
    "spark.driver.memory=512m",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
)
QUICK = ["--memory", "0.5", *(part for setting in SETTINGS for part in ("--conf", setting))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def begin(cluster, tmp_path_factory):
    """Start a command in a process of its own, as people do, on executors that have no code of this project."""
    python = tmp_path_factory.mktemp("python") / "python"
    packages = sysconfig.get_path("purelib")
    # -S: what is installed by reference, as this checkout is, cannot be found.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    search = f'"{python}" -c "import pyarrow, relocbench"'
    done = subprocess.run(search, shell=True, capture_output=True, text=True, cwd=os.sep, check=False)
    assert "No module named 'relocbench'" in done.stderr

    def call(*arguments):
        script = "from relocbench.cli import run; run()"
        words = ["spark", *map(str, arguments), "--master", cluster.master, *QUICK, "--json"]
        return subprocess.Popen(
            [sys.executable, "-c", script, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=os.sep,
            env=os.environ | {"PYSPARK_PYTHON": str(python)},
        )

    return call


def finish(process):
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return json.loads(out)


@pytest.fixture(scope="module")
def family(begin, tmp_path_factory):
    """Generate instances on the cluster, once."""
    folder = tmp_path_factory.mktemp("family") / "preliminary"
    answer = finish(begin("generate", "--family", "preliminary", "--seed", 0, "--out", folder))
    assert (answer["instances"], answer["found"]) == (2, 0)
    return folder


@pytest.fixture(scope="module")
def local_rows(family, tmp_path_factory):
    instances = [read_instance(file) for file in instance_files(family)]
    tasks = [Task(instance, parse_selector("nearest"), seed) for instance in instances for seed in SEEDS]
    store = Store(tmp_path_factory.mktemp("local"))
    list(sweep(tasks, store, LIMITS, jobs=2))
    return timeless(store.folder)


def timeless(folder):
    """Return the rows of a store without what differs from one run to the next."""
    rows, problems = read(folder)
    assert problems == []
    return [dataclasses.replace(row, seconds=0.0, cpu_seconds=0.0, peak_memory=0) for row in rows]


def run_all(begin, family, out):
    return begin("run", family, "--methods", "nearest", "--seeds", "0-5", "--time-limit", 60, "--out", out)


def written(out):
    return {file.name: file.stat().st_mtime_ns for file in out.glob("*.parquet")}


def test_a_follower_graph_is_arranged_and_solved_there_as_here(begin, tmp_path):
    edges = "".join(f"{follower}\t{(follower * step) % 97}\n" for follower in range(97) for step in (2, 3, 5, 7))
    (tmp_path / "edges.txt").write_text(edges)
    few = ("--partitions", 4)
    arranged = finish(begin("arrange", tmp_path / "edges.txt", *few, "--out", tmp_path / "topics"))
    assert arranged["lines"] == 4 * 97
    sizes = ("--servers", 16, "--k", 2, "--rounds", 1, "--storage", 60, "--compute", 200)
    cost = finish(begin("reloc", tmp_path / "topics", *sizes, *few, "--out", tmp_path / "out"))
    assert min(cost["theta"]) < 1.0
    assert compare(tmp_path / "out", "reloc").equal


def test_a_cluster_builds_the_bytes_of_a_local_family(family, tmp_path):
    for file in instance_files(family):
        _, storage, _, seed = file.stem.split("-")
        write_rows([generate("preliminary", int(seed), storage=float(storage[1:]))], tmp_path / file.name)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_a_sweep_whose_driver_is_killed_is_completed_by_the_next(begin, family, local_rows, tmp_path):
    out = tmp_path / "runs"
    driver = run_all(begin, family, out)
    wait_until(lambda: len(written(out)) >= 2, "the first rows")
    driver.kill()
    driver.communicate()
    before = written(out)
    assert len(before) < len(local_rows)
    assert finish(run_all(begin, family, out))["runs"] == len(local_rows)
    assert before.items() <= written(out).items()  # what was there has not been run again
    assert timeless(out) == local_rows


def test_a_sweep_that_loses_a_worker_ends_with_the_same_rows(begin, cluster, family, local_rows, tmp_path):
    out = tmp_path / "runs"
    driver = run_all(begin, family, out)
    wait_until(lambda: len(written(out)) >= 2, "the first rows")
    kill(cluster.workers[0])
    assert len(written(out)) < len(local_rows)
    assert finish(driver)["runs"] == len(local_rows)
    assert timeless(out) == local_rows
