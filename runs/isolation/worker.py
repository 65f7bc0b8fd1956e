"""The inside of an isolated run: a process that is handed runs and tells, line by line, how they go.

The other side is :mod:`runs.isolation.supervisor`. Jobs come in as pickles behind their length, reports go out as JSON,
one a line: ``ready``, ``point``, ``home``, and at the end ``result`` or ``failure``.
"""

import contextlib
import ctypes
import json
import os
import pickle
import resource
import socket
import struct
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.runs.selectors import Selector

LENGTH = struct.Struct("<Q")
# Homes of more clients than this are not sent at every improvement.
MANY_CLIENTS = 100_000
# The limit per process that makes allocation fail leaves the watching from outside the first word.
HEADROOM = 256 << 20


@dataclass(frozen=True, eq=False)
class Job:
    """One run, as it is handed to the process.

    Attributes
    ----------
    instance, selector, seed, time_limit
        What to run.
    log
        Whether the solver may print what it does.
    output
        The file that takes all the process prints.
    """

    instance: Instance
    selector: Selector
    seed: int
    time_limit: float
    log: bool
    output: str


class Reporter:
    """Passes on what a run says of itself.

    It is the ``on_progress`` of the method. A method that has the homes at hand may give them to ``keep`` first, so
    that they survive the process.
    """

    def __init__(self, channel: socket.socket, clients: int) -> None:
        self._channel = channel
        self._few = clients <= MANY_CLIENTS

    def __call__(self, seconds: float, incumbent: float, bound: float) -> None:
        """Report progress."""
        self.send("point", (float(seconds), float(incumbent), float(bound)))

    def keep(self, home: npt.ArrayLike) -> None:
        """Report the homes of the incumbent."""
        if self._few:
            self.send("home", np.asarray(home).tolist())

    def ready(self) -> None:
        """Report that everything is loaded and the clock starts."""
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # the peak of memory is that of this run
        self.send("ready", _cpu_seconds())

    def send(self, kind: str, content: Any) -> None:
        """Send one line."""
        self._channel.sendall(json.dumps([kind, content]).encode() + b"\n")


def main(channel_number: int, memory_limit: int) -> None:
    """Do jobs until the other side closes the channel."""
    channel = socket.socket(fileno=channel_number)
    channel.set_inheritable(False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    most = memory_limit + HEADROOM
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    incoming = channel.makefile("rb")
    while length := incoming.read(LENGTH.size):
        job: Job = pickle.loads(incoming.read(*LENGTH.unpack(length)))
        reporter = Reporter(channel, job.instance.n_clients)
        with _printing_to(job.output):
            reporter.send(*_run(job, reporter))
    os._exit(0)  # what libraries do at the end of a process no longer matters


def _run(job: Job, reporter: Reporter) -> tuple[str, dict[str, Any]]:
    from relocbench.runs.solve import solve

    try:
        result = solve(
            job.instance,
            job.selector,
            seed=job.seed,
            time_limit=job.time_limit,
            on_progress=reporter,
            log=job.log,
            on_ready=reporter.ready,
        )
        return "result", {
            "home": result.solution.home.tolist(),
            "bound": float(result.solution.bound),
            "status": result.solution.status,
            "trace": [[float(number) for number in point] for point in result.solution.trace],
            "facts": {str(name): float(value) for name, value in result.solution.facts.items()},
            "seconds": result.seconds,
            "cpu": _cpu_seconds(),
            "peak": _peak_memory(),
        }
    except BaseException as error:  # whatever it is, the other side has to hear of it
        if isinstance(error, MemoryError):
            kind = "memory"
        elif isinstance(error, InputError) and error.field.startswith("method"):
            kind = "refused"
        elif type(error) is ArithmeticError:  # not its subclasses, which are accidents
            kind = "claim"
        else:
            kind = "raised"
        traceback.print_exc()
        message = " ".join(str(error).split())
        if kind == "raised":
            message = f"{type(error).__name__}: {message}" if message else type(error).__name__
        return "failure", {"kind": kind, "message": message[:2000], "cpu": _cpu_seconds(), "peak": _peak_memory()}


@contextlib.contextmanager
def _printing_to(path: str) -> Iterator[None]:
    """Send everything printed, by Python, by C and by children, to the end of a file."""
    _print_to(path)
    yield
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    _print_to(os.devnull)


def _print_to(path: str) -> None:
    # Appending, so that the other side can cut the file while it grows.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _peak_memory() -> int:
    """Return the peak of this process since it was ready, or of a child that has ended, whichever is more."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        return max([children, *(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))])
    return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
