import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest

from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.generate import generate
from relocbench.instances.instance_source import instance_files, read_instance
from relocbench.runs.run_store import Store, read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits, Task, sweep
from relocbench.spark.anneal import AnnealOptions, anneal_folder
from relocbench.spark.bound import BoundOptions, bound_folder
from relocbench.spark.compare_local import compare, local_ids, read_homes
from relocbench.spark.java import java_home
from tests.spark.standalone import kill, standalone, wait_until

pytestmark = pytest.mark.slow
LIMITS = Limits(time=60.0)
SEEDS = range(8)
SETTINGS = (
    "spark.driver.memory=512m",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1",
)
OPTIONS = ["--memory", "0.5", *(part for setting in SETTINGS for part in ("--conf", setting))]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with standalone(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def start_command(cluster, tmp_path_factory):
    """Yield a function that starts a command in a process of its own; the executors have no code of this project."""
    python = tmp_path_factory.mktemp("python") / "python"
    packages = Path(pyarrow.__file__).parent.parent
    # -S ignores .pth files, by which an editable installation of this project would be found.
    python.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    test = f'"{python}" -c "import pyarrow, relocbench"'
    done = subprocess.run(test, shell=True, capture_output=True, text=True, cwd=os.sep, check=False)
    assert "No module named 'relocbench'" in done.stderr

    drivers = []

    def start(*arguments):
        script = "from relocbench.cli import run; run()"
        words = ["spark", *map(str, arguments), "--master", cluster.master, *OPTIONS, "--json"]
        driver = subprocess.Popen(
            [sys.executable, "-c", script, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=os.sep,
            env=os.environ | {"PYSPARK_PYTHON": str(python)},
        )
        drivers.append(driver)
        return driver

    start.python = str(python)
    yield start
    for driver in drivers:
        if driver.poll() is None:  # a test has failed before it has waited for its driver
            driver.kill()
            driver.communicate()


def finish(process):
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    return json.loads(out)


@pytest.fixture(scope="module")
def existing(cluster, start_command, tmp_path_factory):
    """Run three commands on the cluster, in one process whose session the user has created.

    Return what the process printed before them, the folder in which they wrote, and their answers by name.
    """
    folder = tmp_path_factory.mktemp("existing")
    edges = "".join(f"{follower}\t{(follower * step) % 97}\n" for follower in range(97) for step in (2, 3, 5, 7))
    (folder / "edges.txt").write_text(edges)
    sizes = "--servers 16 --k 2 --rounds 1 --storage 60 --compute 200"
    commands = [
        f"generate --family preliminary --seed 0 --out {folder}/preliminary",
        f"arrange {folder}/edges.txt --out {folder}/topics",
        f"reloc {folder}/topics {sizes} --out {folder}/out",
    ]
    script = f"""
import contextlib, io, json, sys
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("{cluster.master}").config("spark.driver.host", "127.0.0.1")
for setting in {SETTINGS!r}:
    builder = builder.config(*setting.split("=", 1))
spark = builder.config("spark.executor.memory", "512m").config("spark.sql.shuffle.partitions", 4).getOrCreate()
from relocbench.spark.session import session
for _ in range(2):  # the second call has nothing to send
    with session() as same:
        from relocbench.instances.errors import plural
        print(same is spark, same.sparkContext.parallelize([2], 1).map(lambda n: plural(n, "run")).collect())
from relocbench.cli import main
from relocbench.spark import factors
factors.DEGREE = 2  # fewer stages
for command in {commands!r}:
    sys.argv = ["relocbench", "spark", *command.split(), "--json"]
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
        main()
    print(json.dumps(json.loads(out.getvalue())))
spark.stop()
"""
    environment = os.environ | {"PYSPARK_PYTHON": start_command.python, "JAVA_HOME": str(java_home())}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.sep, env=environment)
    assert done.returncode == 0, done.stderr
    *before, generated, arranged, solved = done.stdout.splitlines()
    answers = {"generate": json.loads(generated), "arrange": json.loads(arranged), "reloc": json.loads(solved)}
    return before, folder, answers


@pytest.fixture(scope="module")
def family(existing):
    """Return the folder of the instances that the cluster has generated."""
    return existing[1] / "preliminary"


@pytest.fixture(scope="module")
def local_rows(family, tmp_path_factory):
    instances = [read_instance(file) for file in instance_files(family)]
    tasks = [Task(instance, parse_selector("nearest"), seed) for instance in instances for seed in SEEDS]
    store = Store(tmp_path_factory.mktemp("local"))
    list(sweep(tasks, store, LIMITS, jobs=2))
    return without_times(store.folder)


def without_times(folder):
    """Return the rows of a store with times and memory set to zero, because these differ between runs."""
    rows, problems = read(folder)
    assert problems == []
    return [dataclasses.replace(row, seconds=0.0, cpu_seconds=0.0, peak_memory=0) for row in rows]


def run_all(start_command, family, out):
    return start_command("run", family, "--methods", "nearest", "--seeds", "0-7", "--time-limit", 60, "--out", out)


def modification_times(out):
    return {file.name: file.stat().st_mtime_ns for file in out.glob("*.parquet")}


def test_a_session_that_exists_already_gets_the_code(existing):
    assert existing[0] == ["True ['2 runs']"] * 2


def test_a_follower_graph_is_solved_on_the_cluster_as_locally(existing):
    _, folder, answers = existing
    assert answers["arrange"]["lines"] == 4 * 97
    assert min(answers["reloc"]["theta"]) < 1.0
    assert compare(folder / "out", "reloc").equal


def test_annealing_that_loses_a_worker_has_the_homes_of_a_local_run(start_command, cluster, existing, spark, tmp_path):
    out = existing[1] / "out"
    local = shutil.copytree(out, tmp_path / "local")
    options = AnnealOptions(rounds=2, proposals=200, region_clients=40)
    settings = ("--rounds", 2, "--proposals", 200, "--region-clients", 40, "--partitions", 4)
    driver = start_command("anneal", out, *settings)
    wait_until((out / "anneal" / "rounds" / "0001" / "made.json").exists, "the first round")
    kill(cluster.workers.pop(0))
    assert not (out / "anneal" / "made.json").exists()
    assert len(finish(driver)["rounds"]) == options.rounds
    cluster.start_worker()
    assert not anneal_folder(spark, local, options)[1]
    ids = local_ids(local)
    for name in ("homes", *(f"rounds/{number:04}/homes" for number in range(1, options.rounds + 1))):
        assert np.array_equal(read_homes(out / "anneal" / name, ids), read_homes(local / "anneal" / name, ids)), name


def test_a_bound_that_loses_a_worker_is_the_bound_of_a_local_run(start_command, cluster, existing, spark, tmp_path):
    out = existing[1] / "out"
    local = shutil.copytree(out, tmp_path / "local", ignore=shutil.ignore_patterns("bound"))
    options = BoundOptions(rounds=2, labels=6, region_clients=40)
    settings = ("--rounds", 2, "--labels", 6, "--region-clients", 40, "--partitions", 4)
    driver = start_command("bound", out, "--homes", out / "reloc" / "homes", *settings)
    wait_until((out / "bound" / "rounds" / "0001" / "made.json").exists, "the first round")
    kill(cluster.workers.pop(0))
    assert not (out / "bound" / "made.json").exists()
    answer = finish(driver)
    cluster.start_worker()
    record, existed = bound_folder(spark, local, local / "reloc" / "homes", options)
    assert not existed
    assert {name: answer[name] for name in ("bound", "objective")} == {
        name: record[name] for name in ("bound", "objective")
    }
    for number in (1, 2):
        rounds = [
            json.loads((folder / "bound" / f"rounds/{number:04}/made.json").read_text()) for folder in (out, local)
        ]
        assert rounds[0]["priced"]
        for name in ("before", "after", "alpha", "beta", "load"):
            assert rounds[0][name] == rounds[1][name], name


def test_a_cluster_generates_the_same_bytes_as_the_local_command(existing, family, tmp_path):
    generated = existing[2]["generate"]
    assert (generated["instances"], generated["found"]) == (2, 0)
    assert len(list(instance_files(family))) == 2
    for file in instance_files(family):
        _, storage, _, seed = file.stem.split("-")
        write_rows([generate("preliminary", int(seed), storage=float(storage[1:]))], tmp_path / file.name)
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_a_sweep_whose_driver_was_killed_is_completed_by_one_that_loses_a_worker(
    start_command, cluster, family, local_rows, tmp_path
):
    out = tmp_path / "runs"
    driver = run_all(start_command, family, out)
    wait_until(lambda: len(modification_times(out)) >= 2, "the first rows")
    driver.kill()
    driver.communicate()
    before = modification_times(out)
    assert len(before) < len(local_rows)
    driver = run_all(start_command, family, out)
    wait_until(lambda: len(modification_times(out)) >= len(before) + 2, "the first rows of the second sweep")
    kill(cluster.workers[0])
    assert len(modification_times(out)) < len(local_rows)
    assert finish(driver)["runs"] == len(local_rows)
    assert before.items() <= modification_times(out).items()  # finished runs were not repeated
    assert without_times(out) == local_rows
