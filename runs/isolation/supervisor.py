"""Run methods in worker processes, and enforce hard limits on their time and memory.

A method in a worker process (:mod:`runs.isolation.worker`) may crash, hang, use too much memory or print without end.
Each of these becomes an :class:`runs.outcome.Outcome` that describes it.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Progress
from relocbench.runs.isolation.messages import Job, RunRecord
from relocbench.runs.isolation.usage import Usage, has_ended, session_usage
from relocbench.runs.isolation.worker_process import WorkerProcess
from relocbench.runs.outcome import Failure, Outcome, verified
from relocbench.runs.selectors import Selector, as_selector

GIB = 1 << 30
# Default memory limit of a run, in bytes.
MEMORY_LIMIT = 4 * GIB
# Seconds for loading and compiling a method. The first compilation on a machine takes long.
STARTUP_LIMIT = 180.0
# Seconds between two checks of the memory, the log and the time of a process.
CHECK_INTERVAL = 0.1
# Bytes after which a log file is truncated.
MAX_LOG_SIZE = 32 << 20
# Environment variables that limit the threads of numerical libraries.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
# Phrases in the output of a dead process that mean that it ran out of memory.
OUT_OF_MEMORY_PHRASES = ("bad_alloc", "MemoryError", "out of memory", "cannot allocate memory")


def grace(time_limit: float) -> float:
    """Return how many seconds after its time limit a run may still end by itself.

    Parameters
    ----------
    time_limit
        The time limit of the run, in seconds.

    Returns
    -------
    float
        Seconds. After them the process is killed.
    """
    return 5.0 + 0.1 * time_limit


def run_isolated(
    instance: Instance,
    method: str | Callable[..., Any] | Selector,
    *,
    seed: int = 0,
    time_limit: float = 60.0,
    memory_limit: int = MEMORY_LIMIT,
    log: Path | None = None,
    on_progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Run a method in a new process.

    Parameters
    ----------
    instance, method, seed, time_limit, on_progress
        As in :func:`runs.solve.solve`.
    memory_limit
        Resident bytes that the process and its children may use together.
    log
        File for the solver's log and everything else that the process prints. Without it the solver prints no log.
    stop
        When it is set, the process is killed and KeyboardInterrupt is raised.

    Returns
    -------
    Outcome
        The verified outcome, also if the run failed.

    Raises
    ------
    InputError
        If there is no such method, or the log cannot be written.
    KeyboardInterrupt
        If ``stop`` was set.
    """
    selector = as_selector(method)
    with Worker(threads=threads_of(selector), memory_limit=memory_limit, stop=stop) as worker:
        return worker.run(instance, selector, seed=seed, time_limit=time_limit, log=log, on_progress=on_progress)


def threads_of(selector: Selector) -> int:
    """Return how many threads a method uses.

    Parameters
    ----------
    selector
        The method.

    Returns
    -------
    int
        The setting ``threads`` of the selector, or the method's default; 1 for a method without this parameter.
    """
    known = selector.method.parameters()
    return int(selector.settings.get("threads", known["threads"].default if "threads" in known else 1))


class Worker:
    """Runs methods, one after the other, in a separate process.

    A process that had to be killed is replaced by a new one at the next run.

    Parameters
    ----------
    threads
        How many threads numerical libraries in the process may use.
    memory_limit, stop
        As in :func:`run_isolated`.
    startup_limit
        Seconds for loading and compiling, before the time limit of a run begins.
    """

    def __init__(
        self,
        *,
        threads: int = 1,
        memory_limit: int = MEMORY_LIMIT,
        startup_limit: float = STARTUP_LIMIT,
        stop: threading.Event | None = None,
    ) -> None:
        self._environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(threads))
        self._memory_limit = memory_limit
        self._startup_limit = startup_limit
        self._stop = stop
        self._process: WorkerProcess | None = None

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
        """Run a method.

        Parameters
        ----------
        instance, selector, seed, time_limit, log, on_progress
            As in :func:`run_isolated`.

        Returns
        -------
        Outcome
            The verified outcome, also if the run failed.

        Raises
        ------
        InputError
            If the log cannot be written.
        KeyboardInterrupt
            If ``stop`` was set.
        """
        if log is not None:
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(b"")
            except OSError as error:
                raise InputError(str(log), f"cannot be written ({error.strerror})") from error
        job = Job(instance, selector, seed, time_limit, log is not None, str(log or os.devnull))
        try:
            if self._process is None:
                self._process = WorkerProcess(self._environment, self._memory_limit, job.output)
            record = RunRecord(on_progress)
            return self._outcome(job, record, self._watch(self._process, job, record))
        except BaseException:
            self.close()  # the process is still busy with the run and cannot take another
            raise

    def _watch(self, process: WorkerProcess, job: Job, record: RunRecord) -> "_Abort | None":
        """Record the messages of a run until its final message; return why the run must be aborted, if it must."""
        deadline = time.perf_counter() + self._startup_limit
        try:
            process.send(job, self._startup_limit)
        except TimeoutError:
            return _Abort("stopped", "error", f"did not start within {self._startup_limit:g} s; killed")
        except OSError:
            return _Abort("died")
        last_check = 0.0
        while True:
            lines = process.receive(CHECK_INTERVAL)
            for line in lines or ():
                record.add(line)
            now = time.perf_counter()
            if record.invalid is not None:
                return _Abort("raised", "error", record.invalid)
            if record.answer is not None:
                return None
            if lines is None or has_ended(process.id):
                return None if _receive_answer(process, record) else _Abort("died")
            if self._stop is not None and self._stop.is_set():
                raise KeyboardInterrupt
            if record.ready_at is not None:
                deadline = record.ready_at + job.time_limit + grace(job.time_limit)
            if now > deadline:
                return self._timeout(job, record, now)
            if now - last_check >= CHECK_INTERVAL:
                last_check = now
                record.usage = _maximum(record.usage, session_usage(process.id))
                if record.usage.memory > self._memory_limit:
                    used, limit = record.usage.memory / GIB, self._memory_limit / GIB
                    return _Abort("stopped", "memory_limit", f"used {used:.2f} GiB, the limit is {limit:g} GiB; killed")
                _truncate_log(job.output)

    def _timeout(self, job: Job, record: RunRecord, now: float) -> "_Abort":
        if record.ready_at is None:
            return _Abort("stopped", "error", f"was not ready to run after {self._startup_limit:g} s; killed")
        seconds = now - record.ready_at
        error = f"did not stop at its time limit of {job.time_limit:g} s; killed after {seconds:.1f} s"
        return _Abort("stopped", "time_limit", error)

    def _outcome(self, job: Job, record: RunRecord, abort: "_Abort | None") -> Outcome:
        """Return the outcome of a run that has ended; end the process if the run is aborted."""
        status, failure, error = "error", None, None
        answer = record.answer or {}
        cpu = answer.get("cpu", record.usage.cpu)
        seconds = answer.get("seconds", time.perf_counter() - (record.ready_at or record.begin))
        if abort is not None:
            assert self._process is not None
            code, cpu_of_process = self._process.end()
            self._process = None
            cpu = max(cpu, cpu_of_process)
            failure, status, error = abort.failure, abort.status, abort.error
            if failure == "died":
                status, error = self._exit_diagnosis(code, job, record)
        elif record.failed:
            failure, error = answer["kind"], answer["message"]
            if answer["kind"] == "memory":
                status, failure = "memory_limit", "raised"
                error = f"ran out of memory, the limit is {self._memory_limit / GIB:g} GiB"
        else:
            status = answer["status"]
        _truncate_log(job.output)
        return verified(
            job.instance,
            status=status,
            home=answer.get("home", record.home),
            bound=answer.get("bound", float("-inf")),
            trace=[(p[0], p[1], p[2]) for p in answer.get("trace", ())] or record.points,
            facts=answer.get("facts", {}),
            failure=failure,
            error=error,
            seconds=seconds,
            cpu_seconds=max(0.0, cpu - record.cpu_when_ready),
            peak_memory=max(record.usage.memory, answer.get("peak", 0)),
        )

    def _exit_diagnosis(self, code: int | None, job: Job, record: RunRecord) -> tuple[str, str]:
        """Return the status and the error message of a process that has ended without a final message."""
        output = _log_tail(job.output)
        no_memory = any(phrase in output for phrase in OUT_OF_MEMORY_PHRASES)
        no_memory = no_memory or record.usage.memory > 0.8 * self._memory_limit
        if code and no_memory:
            return "memory_limit", f"{_exit_cause(code)}: out of memory, the limit is {self._memory_limit / GIB:g} GiB"
        error = f"{_exit_cause(code)} before it returned a result"
        lines = output.strip().splitlines()
        return "error", f"{error}; the last line of its output: {lines[-1].strip()[:200]}" if lines else error


@dataclass(frozen=True)
class _Abort:
    """Why a run is aborted before its final message, as in :class:`runs.outcome.Outcome`."""

    failure: Failure
    status: str = "error"
    error: str = ""


def _receive_answer(process: WorkerProcess, record: RunRecord) -> bool:
    """Record the messages that a dead process has left in the socket; return whether the final one is among them."""
    while record.answer is None and process.has_messages():
        lines = process.receive(0)
        if lines is None:
            break
        for line in lines:
            record.add(line)
    return record.answer is not None


def _exit_cause(code: int | None) -> str:
    if code is None:
        return "the process closed its connection and was killed"
    if code >= 0:
        return f"the process exited with code {code}"
    if code == -signal.SIGKILL:
        return "the process was killed by SIGKILL (from outside, perhaps because the system ran out of memory)"
    try:
        return f"the process was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"the process was killed by signal {-code}"


def _maximum(one: Usage, other: Usage) -> Usage:
    return Usage(max(one.memory, other.memory), max(one.cpu, other.cpu))


def _truncate_log(path: str) -> None:
    """Keep the first part of a log that has become too long, so that it cannot fill the disk."""
    if path != os.devnull and os.stat(path).st_size > MAX_LOG_SIZE:
        os.truncate(path, MAX_LOG_SIZE // 2)
        with open(path, "ab") as file:
            file.write(b"\n[the log was cut here]\n")


def _log_tail(path: str) -> str:
    if path == os.devnull:
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.stat(path).st_size - 4096))
        return file.read().decode("utf-8", errors="replace")
