"""Creation of a Spark session. No other module creates one."""

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

DEFAULT_MASTER = "local[*]"
LOGGING_CONFIGURATION = """rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""
# Without the second compiler, Java takes less than half of the processor time for a short command. The work of long
# ones is done in Python.
FAST_START = "-XX:TieredStopAtLevel=1"
# A batch of rows for Python has at most about this size. Java writes zeros over all of its buffer after each batch,
# also where the next one is small. Checksums of shuffled rows find results that differ between attempts of a task, and
# broken files; on one machine they cost more than they find.
FAST_SHUFFLES = {
    "spark.sql.execution.arrow.maxBytesPerBatch": "4m",
    "spark.shuffle.checksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enabled": "false",
    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch": "false",
}
GIB = 1 << 30
# An address for documentation (RFC 5737), which no machine has. The default route leads to it.
OUTSIDE = "192.0.2.1"


@contextlib.contextmanager
def session(
    master: str | None = None,
    *,
    memory: float | None = None,
    partitions: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> Iterator["SparkSession"]:
    """Create a Spark session, and stop it and its Java process at the end.

    If this process has a session already, that one is used and is not stopped. Its settings stay what they are, and its
    executors get the code of this project.

    Parameters
    ----------
    master
        ``local[*]`` (every core of this machine, the default), ``local[2]``, ``spark://host:7077``.
    memory
        GiB for Java: for the driver if the master is ``local``, otherwise for each executor. Default: a quarter of
        this machine's memory, at most 8; on a cluster Spark's own default.
    partitions
        The number of partitions of a shuffle. Default: four per core; on a cluster Spark's own default (200).
    settings
        Further Spark settings. They override all others.

    Yields
    ------
    pyspark.sql.SparkSession
        The session.

    Raises
    ------
    InputError
        If pyspark is not installed, no Java is found, or the session does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError("spark", "pyspark not installed: pip install 'relocbench[spark]'") from error

    if (running := SparkSession.getActiveSession()) is not None:
        ship(running)
        yield running
        return
    master = master or DEFAULT_MASTER
    local = master.startswith("local")
    with tempfile.TemporaryDirectory(prefix="relocbench-spark-", ignore_cleanup_errors=True) as folder:
        chosen = _settings(master, Path(folder), memory, partitions, settings or {})
        # Only while Java starts: processes that the caller starts later must not see another JAVA_HOME.
        with _environment_variables(_variables(local)):
            spark = _start(master, chosen, Path(folder) / "java.log")
        try:
            ship(spark)
            yield spark
        finally:
            _stop(spark)


def _settings(
    master: str, folder: Path, memory: float | None, partitions: int | None, settings: Mapping[str, str]
) -> dict[str, str]:
    local = master.startswith("local")
    (folder / "log4j2.properties").write_text(LOGGING_CONFIGURATION, encoding="utf-8")
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
        chosen["spark.driver.defaultJavaOptions"] += f" {FAST_START}"
        chosen["spark.python.daemon.module"] = "relocbench.spark.worker_daemon"
        chosen["spark.driver.memory"] = _mebibytes(memory or min(8.0, max(1.0, _memory() / 4)))
        chosen["spark.driver.host"] = chosen["spark.driver.bindAddress"] = "127.0.0.1"
        chosen["spark.sql.shuffle.partitions"] = str(partitions or 4 * cores())
        chosen["spark.local.dir"] = os.environ.get("SPARK_LOCAL_DIRS", str(folder))
        return chosen | FAST_SHUFFLES | dict(settings)
    if "spark.driver.host" not in settings:
        chosen["spark.driver.host"] = address_towards(master)
    if memory:
        chosen["spark.executor.memory"] = _mebibytes(memory)
    if partitions:
        chosen["spark.sql.shuffle.partitions"] = str(partitions)
    if cache := os.environ.get("NUMBA_CACHE_DIR"):
        chosen["spark.executorEnv.NUMBA_CACHE_DIR"] = cache
    return chosen | dict(settings)


def _variables(local: bool) -> dict[str, str]:
    """Return the environment variables that Spark needs."""
    # By default Spark starts the first python3 of the PATH. On a cluster Python may be installed under another path.
    python = None if local else os.environ.get("PYSPARK_PYTHON")
    variables = {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": python or sys.executable}
    if local:
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
    return variables


def _start(master: str, settings: Mapping[str, str], log: Path) -> "SparkSession":
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

    # In local mode Spark does not repeat failed tasks by default. `local[n,4]` allows four attempts, as on a cluster.
    with_retries = re.sub(r"^local(\[(\*|\d+)\])?$", lambda found: f"local[{found[2] or 1},4]", master)
    conf = SparkConf(loadDefaults=False).setMaster(with_retries).setAll(list(settings.items()))
    try:
        with _output_redirected(log):
            return SparkSession.builder.config(conf=conf).getOrCreate()
    except Exception as error:
        cause = _java_error(log) or str(error).strip().partition("\n")[0]
        _end_java()
        raise InputError("spark", f"does not start on {master}: {cause}") from error


def _stop(spark: "SparkSession") -> None:
    spark.stop()
    _end_java()


def _end_java() -> None:
    """End the Java process. Otherwise pyspark would use it, with its memory settings, for the next session."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.stdin.close()  # Java exits at the end of its input
        process.wait()
    SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _environment_variables(variables: Mapping[str, str]) -> Iterator[None]:
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
def _output_redirected(log: Path) -> Iterator[None]:
    """Redirect the output of started processes to a file. Java prints warnings that no setting turns off."""
    sys.stdout.flush()
    sys.stderr.flush()
    saved = os.dup(1), os.dup(2)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.dup2(file, 1)
        os.dup2(file, 2)
        yield
    finally:
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, file):
            os.close(descriptor)


def _java_error(log: Path) -> str | None:
    """Return the error message that Java printed. The exception in Python contains less information."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    for pattern in (
        r"^(?:Caused by: |Exception in .*? )?[\w.$]+(?:Exception|Error): (.+)$",
        r"^(?:ERROR|Could|Invalid) .+$",
    ):
        if matches := list(re.finditer(pattern, text, re.MULTILINE)):
            return matches[-1][matches[-1].lastindex or 0]
    return None


def address_towards(master: str) -> str:
    """Find the address under which a cluster reaches this machine.

    Parameters
    ----------
    master
        The master: ``spark://host:port``, also with several hosts, ``k8s://https://host:port``, or ``yarn``.

    Returns
    -------
    str
        The address of the network interface that leads to the master. For a master without an address it is the one
        that leads out of this machine. The name of the machine is not used: many systems resolve it to 127.0.1.1.

    Raises
    ------
    InputError
        If no master answers, or this machine has no address but its own loopback.
    """
    problem = ""
    for host, port in _hosts(master):
        try:
            # Without this test Spark itself would try to connect for a minute.
            with socket.create_connection((host, port), timeout=10) as connection:
                return str(connection.getsockname()[0])
        except (OSError, ValueError) as error:
            problem = reason(error)
    if problem or master.startswith(("spark:", "k8s:")):
        problem = problem or "it has no host"
        raise InputError("--master", f"expected local[*], spark://host:port, k8s:// or yarn, got {master} ({problem})")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
            outward.connect((OUTSIDE, 9))  # nothing is sent
            return str(outward.getsockname()[0])
    except OSError as error:
        advice = "give the address of this machine: --conf spark.driver.host=…"
        raise InputError("--master", f"{master} cannot be told how to reach this machine; {advice}") from error


def _hosts(master: str) -> list[tuple[str, int]]:
    """Return the hosts and ports in the URL of a master."""
    kind, _, rest = master.partition("://")
    if kind not in ("spark", "k8s"):
        return []
    hosts = []
    for part in rest.split(","):
        url = urlsplit(part if "://" in part else f"//{part}")
        try:
            port = url.port or (7077 if kind == "spark" else 443)
        except ValueError as error:
            raise InputError("--master", f"expected {kind}://host:port, got {master} ({reason(error)})") from error
        if url.hostname:
            hosts.append((url.hostname, port))
    return hosts


def _memory() -> float:
    """Return this machine's memory in GiB."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    except (AttributeError, ValueError, OSError):
        return 4.0


def _mebibytes(gibibytes: float) -> str:
    return f"{max(1, round(gibibytes * 1024))}m"
