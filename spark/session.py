"""The one place that makes a Spark session."""

import contextlib
import os
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from relocbench.instances.errors import InputError, reason
from relocbench.runs.environment import cores
from relocbench.spark.code_shipping import ship
from relocbench.spark.java import java_home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL = "local[*]"
QUIET = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""
GIB = 1 << 30


@contextlib.contextmanager
def session(
    master: str | None = None,
    *,
    memory: float | None = None,
    partitions: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator["SparkSession"]:
    """Give a Spark session, and end it with its Java process.

    A session that this process has already is given as it is and left running: its owner decides.

    Parameters
    ----------
    master
        ``local[*]`` (every core of this machine, the default), ``local[2]``, ``spark://host:7077``.
    memory
        GiB for Java: of the driver where that does the work (``local``), else of each executor. Default: a quarter of
        this machine's, at most 8; on a cluster what Spark or its configuration says.
    partitions
        How many parts a shuffle makes. Default: four a core; on a cluster what Spark says (200).
    settings
        Any settings of Spark's, which have the last word.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError("spark", "pyspark not installed: pip install 'relocbench[spark]'") from error

    if (running := SparkSession.getActiveSession()) is not None:
        yield running
        return
    master = master or LOCAL
    local = master.startswith("local")
    with tempfile.TemporaryDirectory(prefix="relocbench-spark-", ignore_cleanup_errors=True) as folder:
        chosen = _settings(master, Path(folder), memory, partitions) | dict(settings or {})
        with _environment(_variables(local)):
            spark = _start(master, chosen, Path(folder) / "java.log")
            try:
                if not local:
                    ship(spark, Path(folder))
                yield spark
            finally:
                _stop(spark)


def _settings(master: str, folder: Path, memory: float | None, partitions: int | None) -> dict[str, str]:
    local = master.startswith("local")
    (folder / "log4j2.properties").write_text(QUIET, encoding="utf-8")
    chosen = {
        "spark.app.name": "relocbench",
        "spark.driver.defaultJavaOptions": f"-Dlog4j2.configurationFile={(folder / 'log4j2.properties').as_uri()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.pyspark.fallback.enabled": "false",
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.log.level": "ERROR",
    }
    if local:
        chosen["spark.driver.memory"] = _mebibytes(memory or min(8.0, max(1.0, _memory() / 4)))
        chosen["spark.driver.host"] = chosen["spark.driver.bindAddress"] = "127.0.0.1"
        chosen["spark.sql.shuffle.partitions"] = str(partitions or 4 * cores())
        chosen["spark.local.dir"] = os.environ.get("SPARK_LOCAL_DIRS", str(folder))
        return chosen
    chosen["spark.driver.host"] = _address_towards(master)
    if memory:
        chosen["spark.executor.memory"] = _mebibytes(memory)
    if partitions:
        chosen["spark.sql.shuffle.partitions"] = str(partitions)
    if cache := os.environ.get("NUMBA_CACHE_DIR"):
        chosen["spark.executorEnv.NUMBA_CACHE_DIR"] = cache
    return chosen


def _variables(local: bool) -> dict[str, str]:
    """Return what the environment says while Spark runs."""
    # Without this the workers are whatever python3 the PATH has. A cluster may have ours elsewhere.
    python = None if local else os.environ.get("PYSPARK_PYTHON")
    variables = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": python or sys.executable}
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


def _start(master: str, settings: Mapping[str, str], log: Path) -> "SparkSession":
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    # Spark gives up at the first failure on one machine; there, too, a worker can die that need not have.
    patient = re.sub(r"^local(\[(\*|\d+)\])?$", lambda found: f"local[{found[2] or 1},4]", master)
    conf = SparkConf(loadDefaults=False).setMaster(patient).setAll(list(settings.items()))
    try:
        with _java_printing_to(log):
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        why = _last_words(log) or str(error).strip().partition("\n")[0]
        _end_java()
        raise InputError("spark", f"does not start on {master}: {why}") from error


def _stop(spark: "SparkSession") -> None:
    spark.stop()
    _end_java()


def _end_java() -> None:
    """End the Java process, which pyspark would keep, with its memory settings, for the next session."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # which is what it waits for
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _java_printing_to(log: Path) -> Iterator[None]:
    """Let a process started meanwhile print to a file: Java greets with warnings that no setting turns off."""
    sys.stdout.flush()
    sys.stderr.flush()
    ours = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(ours[0], 1)
        os.dup2(ours[1], 2)
        for descriptor in (*ours, file):
            os.close(descriptor)


def _last_words(log: Path) -> str | None:
    """Return what Java had to say about its end, which is more than Python hears of it."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for sign in (
        r"^(?:Caused by: |Exception in .*? )?[\w.$]+(?:Exception|Error): (.+)$",
        r"^(?:ERROR|Could|Invalid) .+$",
    ):
        if said := list(re.finditer(sign, text, re.MULTILINE)):
            return said[-1][said[-1].lastindex or 0]
    return None


def _address_towards(master: str) -> str:
    """Return the address of this machine that the master sees."""
    url = urlsplit(master)
    try:
        if url.scheme != "spark" or not url.hostname or "," in url.netloc:  # another manager's, or several masters
            return socket.gethostbyname(socket.gethostname())
        # Spark itself would ask for a minute.
        with socket.create_connection((url.hostname, url.port or 7077), timeout=10) as connection:
            return str(connection.getsockname()[0])
    except (OSError, ValueError) as error:
        raise InputError(
            "--master", f"expected local[*] or spark://host:port, got {master} ({reason(error)})"
        ) from error


def _memory() -> float:
    """Return this machine's memory in GiB."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    except (AttributeError, ValueError, OSError):
        return 4.0


def _mebibytes(gibibytes: float) -> str:
    return f"{max(1, round(gibibytes * 1024))}m"
