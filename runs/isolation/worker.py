"""The program of a worker process: it receives jobs from the supervisor, runs them and reports their progress.

:mod:`runs.isolation.messages` defines the messages.
"""

import contextlib
import ctypes
import functools
import json
import os
import pickle
import resource
import socket
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from relocbench.instances.errors import InputError
from relocbench.instances.kernels import compile_notice
from relocbench.runs.exception_text import described, message_of
from relocbench.runs.isolation.import_guard import importing
from relocbench.runs.isolation.messages import JOB_LENGTH, Job, Question
from relocbench.runs.isolation.worker_process import MEMORY_HEADROOM

# With more clients than this, the homes of intermediate incumbents are not sent: each message would be large.
MAX_CLIENTS_FOR_HOMES = 100_000
# The longest error message that is sent, in characters.
MAX_ERROR_LENGTH = 2000


class Reporter:
    """Sends the progress of a run to the supervisor.

    It is the ``on_progress`` argument of the method. A method that has the homes of its incumbent may pass them to
    ``keep`` before it reports the progress; they are then available even if the process is killed.

    Parameters
    ----------
    channel
        The socket to the supervisor.
    run
        The id of the run.
    clients
        How many clients the instance has.
    """

    def __init__(self, channel: socket.socket, run: str, clients: int = 0) -> None:
        self._channel, self._run = channel, run
        self._sends_homes = clients <= MAX_CLIENTS_FOR_HOMES

    def __call__(self, seconds: float, incumbent: float, bound: float) -> None:
        """Report progress.

        Parameters
        ----------
        seconds, incumbent, bound
            The time since the start, the objective of the incumbent and the lower bound.
        """
        self.send("point", (float(seconds), float(incumbent), float(bound)))

    def keep(self, home: npt.ArrayLike) -> None:
        """Report the homes of the incumbent.

        Parameters
        ----------
        home
            One server per client.
        """
        if self._sends_homes:
            self.send("home", np.asarray(home).tolist())

    def ready(self) -> None:
        """Report that the method is loaded and compiled and that its time limit begins."""
        with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
            file.write("5")  # resets the peak memory of the process, so that the peak is that of this run
        self.send("ready", {"cpu": _cpu_seconds(), "clock": time.perf_counter()})

    def send(self, kind: str, content: Any) -> None:
        """Send one message.

        Parameters
        ----------
        kind, content
            As in :mod:`runs.isolation.messages`.
        """
        self._channel.sendall(json.dumps([self._run, kind, content]).encode() + b"\n")


def main(channel_number: int, memory_limit: int) -> None:
    """Run jobs until the supervisor closes the socket.

    Parameters
    ----------
    channel_number
        File descriptor of the socket to the supervisor.
    memory_limit
        Bytes that the process may use.
    """
    channel = socket.socket(fileno=channel_number)
    channel.set_inheritable(False)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    limit = memory_limit + MEMORY_HEADROOM
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    incoming = channel.makefile("rb")
    while length := incoming.read(JOB_LENGTH.size):
        job: Job | Question = pickle.loads(incoming.read(*JOB_LENGTH.unpack(length)))
        reporter = Reporter(channel, job.run, job.instance.n_clients if isinstance(job, Job) else 0)
        compile_notice.on_compilation = functools.partial(reporter.send, "compiling", None)
        with _output_to(job.output):
            reporter.send(*_answer(job, reporter))
    os._exit(0)  # skips the exit handlers of libraries, which could hang or crash


def _answer(job: Job | Question, reporter: Reporter) -> tuple[str, Any]:
    """Do a job; return the kind and the content of the final message."""
    try:
        if isinstance(job, Question):
            from relocbench.runs.external_function import describe_function

            with importing():
                return "description", describe_function(job.where)
        return "result", _run(job, reporter)
    except BaseException as error:  # every exception must reach the supervisor, SystemExit included
        with contextlib.suppress(BaseException):  # printing calls code of the exception
            traceback.print_exc()
        kind, message = _failure(error)
        if isinstance(job, Question) and isinstance(error, InputError):
            message = error.problem  # the one who asked knows which method it is about
        return "failure", {
            "kind": kind,
            "message": message[:MAX_ERROR_LENGTH],
            **_usage(),
        }


def _run(job: Job, reporter: Reporter) -> dict[str, Any]:
    from relocbench.runs.solve import solve_here, warm_up

    with importing():
        job.selector.load()
    if job.selector.runs_external_code:
        warm_up("nearest")  # what this project itself must load does not count against the limit of other people's code
    reporter.send("loaded", None)
    result = solve_here(
        job.instance,
        job.selector,
        seed=job.seed,
        time_limit=job.time_limit,
        on_progress=reporter,
        log=job.log,
        on_ready=reporter.ready,
    )
    return {
        "home": result.solution.home.tolist(),
        "bound": float(result.solution.bound),
        "status": str(result.solution.status),
        "trace": [[float(number) for number in point] for point in result.solution.trace],
        "facts": {str(name): float(value) for name, value in result.solution.facts.items()},
        "seconds": result.seconds,
        **_usage(),
    }


def _failure(error: BaseException) -> tuple[str, str]:
    """Return the kind of a failure and one line about it."""
    kind = _failure_kind(error)
    return kind, described(error) if kind == "raised" else message_of(error)


def _failure_kind(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "memory"
    if isinstance(error, InputError) and error.field.startswith("method"):
        return "refused"
    # Only the class itself means a false claim. Subclasses such as ZeroDivisionError are ordinary errors.
    return "claim" if type(error) is ArithmeticError else "raised"


@contextlib.contextmanager
def _output_to(path: str) -> Iterator[None]:
    """Append everything that Python, C libraries and child processes print to a file."""
    _redirect_output(path)
    yield
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)
    _redirect_output(os.devnull)


def _redirect_output(path: str) -> None:
    # O_APPEND: the supervisor may truncate the file while the process writes to it.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


def _usage() -> dict[str, float]:
    return {
        "cpu": _cpu_seconds(),
        "peak": _peak_memory(),
        "threads": len(sys._current_frames()),
        "clock": time.perf_counter(),
    }


def _cpu_seconds() -> float:
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _peak_memory() -> int:
    """Return the larger of the peak of this process since ``ready`` and the peak of any child that has ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        return max([children, *(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))])
    return max(children, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10)
