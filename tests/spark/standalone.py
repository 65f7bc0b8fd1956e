"""A small real cluster on this machine: a master and workers, each a process of its own.

python -m tests.spark.standalone starts one, prints its address, and ends it at Ctrl-C.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pyspark

from relocbench.spark.java import java_home

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
PATIENCE = 120.0


@dataclass
class Cluster:
    """The address of the master, where it tells its state, and the workers."""

    master: str
    state: str
    workers: list[subprocess.Popen]

    def alive(self):
        """Return how many workers the master knows to be alive."""
        with urllib.request.urlopen(self.state, timeout=10) as answer:
            return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])


@contextlib.contextmanager
def standalone(folder, workers=2):
    """Start a cluster whose workers have a core and 1 GiB each; ``folder`` takes logs and work."""
    port, page = free_ports(2)
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    cluster = Cluster(f"spark://127.0.0.1:{port}", f"http://127.0.0.1:{page}/json/", [])
    with contextlib.ExitStack() as stack:

        def start(name, *arguments):
            log = stack.enter_context(open(folder / f"{name}.log", "wb"))
            command = [SPARK_CLASS, *arguments]
            # A group of its own, so that it ends whole: executors are children of their worker.
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            stack.callback(kill, process)
            return process

        start("master", "org.apache.spark.deploy.master.Master", *f"--host 127.0.0.1 --port {port}".split(),
              "--webui-port", str(page))  # fmt: skip
        for number in range(workers):
            # From a worker's own folder: what it does not say in its arguments it puts there.
            place = folder / f"worker{number}"
            place.mkdir(exist_ok=True)
            resources = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(place)]
            kind = "org.apache.spark.deploy.worker.Worker"
            cluster.workers.append(start(f"worker{number}", kind, *resources, cluster.master))
        wait_until(lambda: answers(cluster) == workers, f"a cluster of {workers} workers, see the logs in {folder}")
        yield cluster


def kill(process):
    """End a process and its group at once, as a power cut would."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def answers(cluster):
    with contextlib.suppress(OSError, ValueError):  # not there yet, or only with another page
        return cluster.alive()
    return 0


def wait_until(holds, what):
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.1)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, standalone(Path(place)) as running:
        print(f"relocbench spark … --master {running.master}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    sys.exit(0)
