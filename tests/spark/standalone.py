"""A small standalone cluster on this machine: a master and workers, each in a process of its own.

``python -m tests.spark.standalone`` starts one, prints its address, and ends it at Ctrl-C.
"""

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pyspark

from relocbench.spark.java import java_home

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
# Seconds after which a test fails if what it waits for has not happened; far more than a busy machine needs.
WAIT_LIMIT = 600.0


@dataclass
class Cluster:
    """The address of the master, the URL of its state, the processes of the workers, and what starts another one."""

    master: str
    state_url: str
    start_worker: Callable[[], None]
    workers: list[subprocess.Popen] = field(default_factory=list)

    def alive(self):
        """Return the number of workers that are alive according to the master."""
        with urllib.request.urlopen(self.state_url, timeout=10) as response:
            return sum(worker["state"] == "ALIVE" for worker in json.load(response)["workers"])


@contextlib.contextmanager
def standalone(folder, workers=2):
    """Start a cluster whose workers have one core and 1 GiB each. ``folder`` is for logs and temporary files."""
    port, page = free_ports(2)
    environment = os.environ | {
        "JAVA_HOME": str(java_home()),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    master = f"spark://127.0.0.1:{port}"
    numbers = itertools.count()
    with contextlib.ExitStack() as stack:

        def start(name, *arguments):
            log = stack.enter_context(open(folder / f"{name}.log", "wb"))
            command = [SPARK_CLASS, *arguments]
            # A process group of its own: executors are children of their worker and must end with it.
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
            )
            stack.callback(kill, process)
            return process

        start("master", "org.apache.spark.deploy.master.Master", *f"--host 127.0.0.1 --port {port}".split(),
              "--webui-port", str(page))  # fmt: skip

        def start_worker():
            # Each worker has a folder of its own for the files of its executors.
            place = folder / f"worker{next(numbers)}"
            place.mkdir(exist_ok=True)
            resources = ["--host", "127.0.0.1", "--webui-port", "0", "-c", "1", "-m", "1g", "-d", str(place)]
            kind = "org.apache.spark.deploy.worker.Worker"
            cluster.workers.append(start(place.name, kind, *resources, cluster.master))

        cluster = Cluster(master, f"http://127.0.0.1:{page}/json/", start_worker)
        for _ in range(workers):
            start_worker()
        wait_until(
            lambda: alive_workers(cluster) == workers, f"a cluster of {workers} workers, see the logs in {folder}"
        )
        yield cluster


def kill(process):
    """Kill a process and its process group."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def alive_workers(cluster):
    with contextlib.suppress(OSError, ValueError):  # the master has not started yet, or its page is incomplete
        return cluster.alive()
    return 0


def wait_until(condition, description):
    deadline = time.monotonic() + WAIT_LIMIT
    while not condition():
        assert time.monotonic() < deadline, f"timeout while waiting for {description}"
        time.sleep(0.1)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for free in sockets:
            free.bind(("127.0.0.1", 0))
        return [free.getsockname()[1] for free in sockets]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, standalone(Path(place)) as running:
        print(f"relocbench spark … --master {running.master}", flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    sys.exit(0)
