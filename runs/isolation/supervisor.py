"""Runs in processes of their own, behind hard limits of time and memory.

What happens inside (:mod:`runs.isolation.worker`) can crash, hang, eat memory or print without end: it becomes an
:class:`Outcome` that says so.
"""

import contextlib
import json
import os
import pickle
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError, shown
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress
from relocbench.runs.isolation.usage import Usage, end, has_ended, session_usage
from relocbench.runs.isolation.worker import LENGTH, Job
from relocbench.runs.outcome import Failure, Outcome, Point, verified
from relocbench.runs.selectors import Selector, parse_selector

GIB = 1 << 30
MEMORY_LIMIT = 4 * GIB
# Loading and compiling; the first time on a machine this takes a while.
STARTUP_LIMIT = 180.0
# How often a process is looked at: its memory, its log, the clock.
INTERVAL = 0.1
LARGEST_LOG = 32 << 20
MOST_POINTS = 10_000
THREAD_SETTINGS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
SIGNS_OF_NO_MEMORY = ("bad_alloc", "MemoryError", "out of memory", "cannot allocate memory")


def grace(time_limit: float) -> float:
    """Return how long after its time limit a run may still come to its end by itself."""
    return 5.0 + 0.1 * time_limit


def run_isolated(
    instance: Instance,
    method: str | Selector,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    memory_limit: int = MEMORY_LIMIT,
    log: Path | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Run a method in a fresh process.

    Parameters
    ----------
    instance, method, seed, time_limit, on_progress
        As in :func:`runs.solve.solve`.
    memory_limit
        Bytes resident that the process and its children may use together.
    log
        File that takes the solver's log and whatever else the process prints; without one the solver is silent.
    stop
        When set, the process is killed and the call ends with KeyboardInterrupt.
    """
    selector = parse_selector(method) if isinstance(method, str) else method
    with Worker(threads=threads_of(selector), memory_limit=memory_limit, stop=stop) as worker:
        return worker.run(instance, selector, seed=seed, time_limit=time_limit, log=log, on_progress=on_progress)


def threads_of(selector: Selector) -> int:
    """Return how many threads a method uses: as its selector says, or by its own default."""
    known = selector.method.parameters()
    return int(selector.settings.get("threads", known["threads"].default if "threads" in known else 1))


class Worker:
    """A process that does runs, one after the other, and is replaced by a new one when it had to be killed.

    Parameters
    ----------
    threads
        What libraries in the process are told to use.
    memory_limit, stop
        As in :func:`run_isolated`.
    startup_limit
        Seconds for loading and compiling, before the clock of a run starts.
    """

    def __init__(
        self,
        *,
        threads: int = 1,
        memory_limit: int = MEMORY_LIMIT,
        startup_limit: float = STARTUP_LIMIT,
        stop: threading.Event | None = None,
    ) -> None:
        self._environment = os.environ | dict.fromkeys(THREAD_SETTINGS, str(threads))
        self._memory_limit = memory_limit
        self._startup_limit = startup_limit
        self._stop = stop
        self._process: _Process | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process and everything it has started."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def run(
        self,
        instance: Instance,
        selector: Selector,
        *,
        seed: int = 0,
        time_limit: float = 60.0,
        log: Path | None = None,
        on_progress: Progress | None = None,
    ) -> Outcome:
        """Run a method; the arguments are those of :func:`run_isolated`."""
        if log is not None:
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(b"")
            except OSError as error:
                raise InputError(str(log), f"cannot be written ({error.strerror})") from error
        job = Job(instance, selector, seed, time_limit, log is not None, str(log or os.devnull))
        try:
            if self._process is None:
                self._process = _Process(self._environment, self._memory_limit, job.output)
            heard = _Heard(on_progress)
            return self._outcome(job, heard, self._watch(self._process, job, heard))
        except BaseException:
            self.close()  # it is in the middle of something
            raise

    def _watch(self, process: "_Process", job: Job, heard: "_Heard") -> "_Stop | None":
        """Listen until there is an answer; return why the process has to end, if it does."""
        deadline = time.perf_counter() + self._startup_limit
        if (problem := process.send(job, self._startup_limit)) is not None:
            return problem
        looked = 0.0
        while heard.answer is None:
            open_ = process.listen(heard, INTERVAL)
            now = time.perf_counter()
            if heard.unreadable is not None:
                return _Stop("raised", "error", heard.unreadable)
            if heard.answer is not None:
                break
            if not open_ or has_ended(process.id):
                process.listen_to_the_end(heard)
                return None if heard.answer is not None else _Stop("died", "error", "")
            if self._stop is not None and self._stop.is_set():
                raise KeyboardInterrupt
            if heard.ready_at is not None:
                deadline = heard.ready_at + job.time_limit + grace(job.time_limit)
            if now > deadline:
                if heard.ready_at is None:
                    return _Stop("stopped", "error", f"was not ready to run after {self._startup_limit:g} s; killed")
                late = (
                    f"did not stop at its time limit of {job.time_limit:g} s; killed after {now - heard.ready_at:.1f} s"
                )
                return _Stop("stopped", "time_limit", late)
            if now - looked >= INTERVAL:
                looked = now
                heard.usage = _larger(heard.usage, session_usage(process.id))
                if heard.usage.memory > self._memory_limit:
                    used = f"used {heard.usage.memory / GIB:.2f} GiB, the limit is {self._memory_limit / GIB:g}; killed"
                    return _Stop("stopped", "memory_limit", used)
                _cut(job.output)
        return None

    def _outcome(self, job: Job, heard: "_Heard", stop: "_Stop | None") -> Outcome:
        status, failure, error = "error", None, None
        answer = heard.answer or {}
        cpu = answer.get("cpu", heard.usage.cpu)
        seconds = answer.get("seconds", time.perf_counter() - (heard.ready_at or heard.begin))
        if stop is not None:
            assert self._process is not None
            code, spent = self._process.end()
            self._process = None
            cpu = max(cpu, spent)
            failure, status, error = stop.failure, stop.status, stop.error
            if failure == "died":
                status, error = self._last_words(code, job, heard)
        elif heard.failed:
            failure, error = answer["kind"], answer["message"]
            if answer["kind"] == "memory":
                status, failure = "memory_limit", "raised"
                error = f"ran out of memory, the limit is {self._memory_limit / GIB:g} GiB"
        else:
            status = answer["status"]
        _cut(job.output)
        return verified(
            job.instance,
            status=status,
            home=answer.get("home", heard.home),
            bound=answer.get("bound", float("-inf")),
            trace=[(p[0], p[1], p[2]) for p in answer.get("trace", ())] or heard.points,
            facts=answer.get("facts", {}),
            failure=failure,
            error=error,
            seconds=seconds,
            cpu_seconds=max(0.0, cpu - heard.cpu_when_ready),
            peak_memory=max(heard.usage.memory, answer.get("peak", 0)),
        )

    def _last_words(self, code: int | None, job: Job, heard: "_Heard") -> tuple[str, str]:
        """Return the status and the error of a process that has ended without an answer."""
        how = f"the process ended with exit code {code}"
        if code is None:
            how = "the process closed its channel and was killed"
        elif code < 0:
            with contextlib.suppress(ValueError):
                how = f"the process died of {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += ", sent from outside (the system's own reaction to too little memory, perhaps)"
        said = _last_lines(job.output)
        starved = any(sign in said for sign in SIGNS_OF_NO_MEMORY) or heard.usage.memory > 0.8 * self._memory_limit
        if code and starved:
            return "memory_limit", f"{how}: out of memory, the limit is {self._memory_limit / GIB:g} GiB"
        words = said.strip().splitlines()
        return "error", f"{how} without an answer" + (f"; its last words: {words[-1].strip()[:200]}" if words else "")


@dataclass(frozen=True)
class _Stop:
    """Why a process has to end before its answer."""

    failure: Failure
    status: str
    error: str


@dataclass
class _Heard:
    """What a process has told of its run so far, and what was seen of it."""

    on_progress: Progress | None
    begin: float = field(default_factory=time.perf_counter)
    ready_at: float | None = None
    cpu_when_ready: float = 0.0
    points: list[Point] = field(default_factory=list)
    home: list[int] | None = None
    answer: dict[str, Any] | None = None
    failed: bool = False
    unreadable: str | None = None
    usage: Usage = field(default_factory=Usage)

    def take(self, line: bytes) -> None:
        """Take one report; one that is none, as a method might write that finds the channel, ends the run."""
        try:
            self._understand(*json.loads(line))
        except (ValueError, TypeError, KeyError, IndexError):
            self.unreadable = f"reported something unreadable: {shown(line)}"

    def _understand(self, kind: str, content: Any) -> None:
        if kind == "ready":
            self.ready_at, self.cpu_when_ready = time.perf_counter(), float(content)
        elif kind == "home":
            self.home = content
        elif kind == "point":
            self.points.append((float(content[0]), float(content[1]), float(content[2])))
            if len(self.points) > MOST_POINTS:
                del self.points[1::2]  # who reports that often can spare every other
            if self.on_progress is not None:
                self.on_progress(*self.points[-1])
        else:
            needed = {
                "failure": ("kind", "message"),
                "result": ("home", "bound", "status", "trace", "facts", "seconds"),
            }
            self.answer = dict(content) | {name: content[name] for name in needed[kind]}
            self.failed = kind == "failure"


class _Process:
    """The process and the channel to it."""

    def __init__(self, environment: dict[str, str], memory_limit: int, output: str) -> None:
        self._channel, other = socket.socketpair()
        self._received = b""
        self._incoming = selectors.DefaultSelector()
        self._incoming.register(self._channel, selectors.EVENT_READ)
        theirs, self._lifeline = os.pipe()
        # The same places to import from, wherever they came from.
        start = f"import sys; sys.path[:] = {sys.path!r}\n"
        start += f"from relocbench.runs.isolation.watchdog import guard; guard({theirs}, {other.fileno()})\n"
        start += f"from relocbench.runs.isolation.worker import main; main({other.fileno()}, {memory_limit})"
        try:
            with other, open(output, "ab") as log:
                self._popen = subprocess.Popen(
                    [sys.executable, "-u", "-c", start],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[other.fileno(), theirs],
                    env=environment,
                    start_new_session=True,  # a group of its own, which Ctrl-C does not reach and which is killed whole
                )
        finally:
            os.close(theirs)
        self.id = self._popen.pid

    def send(self, job: Job, timeout: float) -> _Stop | None:
        """Hand over a job; tell if that did not work."""
        content = pickle.dumps(job)
        self._channel.settimeout(timeout)
        # The flag: who writes to a dead process must not die of it, as the command otherwise does.
        quietly = getattr(socket, "MSG_NOSIGNAL", 0)
        try:
            self._channel.sendall(LENGTH.pack(len(content)) + content, quietly)
        except TimeoutError:
            return _Stop("stopped", "error", f"did not start within {timeout:g} s; killed")
        except OSError:
            return _Stop("died", "error", "")
        return None

    def listen(self, heard: _Heard, timeout: float) -> bool:
        """Take what has been reported, waiting for it a while; tell whether more can come."""
        if not self._incoming.select(timeout):
            return True
        try:
            received = self._channel.recv(1 << 20)
        except OSError:
            return False
        *lines, self._received = (self._received + received).split(b"\n")
        for line in lines:
            heard.take(line)
        return bool(received)

    def listen_to_the_end(self, heard: _Heard) -> None:
        """Take what a process that has ended left in the channel."""
        while heard.answer is None and self._incoming.select(0) and self.listen(heard, 0):
            pass

    def end(self) -> tuple[int | None, float]:
        """End the process with its group; return its exit code, None if it had to be killed, and its CPU seconds."""
        limit = time.perf_counter() + 1.0
        # One that has closed the channel is about to end by itself, and how it ends is worth knowing.
        while self._closed() and not has_ended(self.id) and time.perf_counter() < limit:
            time.sleep(0.005)
        by_itself = has_ended(self.id)
        self._incoming.close()
        self._channel.close()
        os.close(self._lifeline)
        self._popen.returncode, cpu = end(self.id)
        return self._popen.returncode if by_itself else None, cpu

    def _closed(self) -> bool:
        with contextlib.suppress(OSError):
            if self._incoming.select(0):
                return self._channel.recv(1, socket.MSG_PEEK) == b""
            return False
        return True


def _larger(one: Usage, other: Usage) -> Usage:
    return Usage(max(one.memory, other.memory), max(one.cpu, other.cpu))


def _cut(path: str) -> None:
    """Keep a log from filling the disk: of a very long one the first part stays."""
    if path != os.devnull and os.stat(path).st_size > LARGEST_LOG:
        os.truncate(path, LARGEST_LOG // 2)
        with open(path, "ab") as file:
            file.write(b"\n[the log was cut here]\n")


def _last_lines(path: str) -> str:
    if path == os.devnull:
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.stat(path).st_size - 4096))
        return file.read().decode("utf-8", errors="replace")
