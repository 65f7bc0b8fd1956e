"""Calls of functions in a child process with limits on time and memory."""

import contextlib
import multiprocessing
import resource
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

# Bytes that a child process may allocate. Above the largest use that is allowed, so that an excess is measured.
DATA_LIMIT = 3 << 30
# Seconds for starting a child process and its imports, in addition to the limit of a call.
STARTUP_SECONDS = 90.0


@dataclass(frozen=True)
class Answer:
    """What became of a call.

    Attributes
    ----------
    value
        What the function returned; None if it did not return.
    error
        Why it did not return: the last lines of the traceback, or how the process ended; empty if it returned.
    hung
        Whether it was killed at its time limit.
    peak
        The bytes by which the resident memory of the process grew, at most.
    """

    value: Any = None
    error: str = ""
    hung: bool = False
    peak: int = 0


class Sandbox:
    """A child process that calls functions, one after the other. It is replaced if a call kills it or hangs."""

    def __init__(self) -> None:
        self._process: Any = None
        self._connection: Connection | None = None
        self._used = False

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def call(self, function: Callable[..., Any], *arguments: Any, seconds: float) -> Answer:
        """Call a function.

        Parameters
        ----------
        function
            A function at the top level of a module.
        *arguments
            Its arguments, which can be pickled.
        seconds
            The time limit.

        Returns
        -------
        Answer
            What became of it.
        """
        if self._connection is None:
            context = multiprocessing.get_context("spawn")
            self._connection, other = context.Pipe()
            self._process = context.Process(target=_serve, args=(other,), daemon=True)
            self._process.start()
            other.close()
            self._used = False
        limit = seconds + (0.0 if self._used else STARTUP_SECONDS)
        begin = time.perf_counter()
        try:
            self._connection.send((function, arguments))
            if not self._connection.poll(limit):
                self._end()
                return Answer(error=f"did not end within {time.perf_counter() - begin:.0f} s", hung=True)
            answer: Answer = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(5.0)
            code = self._process.exitcode
            self._end()
            return Answer(error=f"the process ended with the exit code {code}")
        self._used = True
        return answer

    def _end(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._process.kill()
            self._process.join()
            self._connection = None


def _serve(connection: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, resource.getrlimit(resource.RLIMIT_DATA)[1]))
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        before = _reset_peak()
        try:
            value, error = function(*arguments), ""
        except Exception:
            value, error = None, " | ".join(traceback.format_exc().strip().splitlines()[-5:])
        connection.send(Answer(value, error, peak=max(0, _memory("VmHWM:") - before)))


def _reset_peak() -> int:
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    return _memory("VmRSS:")


def _memory(name: str) -> int:
    with contextlib.suppress(OSError), open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
