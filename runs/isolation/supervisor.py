"""Run methods in worker processes, and enforce hard limits on their time and memory.

A method in a worker process (:mod:`runs.isolation.worker`) may crash, hang, use too much memory or print without end.
Each of these becomes an :class:`runs.outcome.Outcome` that describes it.
"""

import contextlib
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relocbench.instances.errors import InputError
from relocbench.instances.instance import Instance
from relocbench.instances.settings import setting
from relocbench.instances.solution import Progress
from relocbench.runs.isolation.import_guard import refuse_during_import
from relocbench.runs.isolation.messages import Answer, Job, Question, ReportedFailure, RunRecord
from relocbench.runs.isolation.process_tree import Usage, has_ended
from relocbench.runs.isolation.worker_process import WorkerProcess
from relocbench.runs.methods import Selector
from relocbench.runs.outcome import INTERRUPTED, Failure, Outcome, verified

GIB = 1 << 30
# Default memory limit of a run, in bytes.
MEMORY_LIMIT = 4 * GIB
# Seconds for loading and compiling a method of this project. The first compilation on a machine takes long.
STARTUP_LIMIT = 180.0
# Seconds that importing the code of other people may take, unless the environment variable says otherwise.
IMPORT_LIMIT = 60.0
IMPORT_VARIABLE = "RELOCBENCH_IMPORT_LIMIT"
# Seconds after its time limit that a run has to end by itself. Then it is killed, which takes up to half a second.
GRACE = 1.5
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


class Worker:
    """Runs methods, one after the other, in a separate process.

    A process that had to be killed is replaced by a new one at the next run.

    Parameters
    ----------
    threads
        How many threads numerical libraries in the process may use.
    memory_limit, stop
        As in :func:`runs.solve.run_isolated`.
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
        refuse_during_import("relocbench")
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
        keep_incumbent: bool = False,
    ) -> Outcome:
        """Run a method.

        Parameters
        ----------
        instance, selector, seed, time_limit, log, on_progress, keep_incumbent
            As in :func:`runs.solve.run_isolated`.

        Returns
        -------
        Outcome
            The verified outcome, also if the run failed.

        Raises
        ------
        InputError
            If the log cannot be written.
        KeyboardInterrupt
            If ``stop`` was set, or the user interrupts the run (but see ``keep_incumbent``).
        """
        if log is not None:
            try:
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(b"")
            except OSError as error:
                raise InputError(str(log), f"cannot be written ({error.strerror})") from error
        job = Job(instance, selector, seed, time_limit, log is not None, str(log or os.devnull))
        record = RunRecord(job.run, on_progress)
        try:
            try:
                abort = self._watch(job, record)
            except KeyboardInterrupt:
                if not keep_incumbent or record.home is None:
                    raise
                abort = _Abort("stopped", "feasible", INTERRUPTED)
            outcome = self._outcome(job, record, abort)
            # A method may leave a process, a thread or a second answer behind, which would meddle with the next run.
            final = record.answer
            alone = isinstance(final, Answer | ReportedFailure) and final.threads == 1
            if self._process is not None and not (alone and self._process.is_idle()):
                self.close()
            return outcome
        except BaseException:
            self.close()  # the process is still busy with the run and cannot take another
            raise

    def describe(self, where: str, output: str) -> dict[str, Any]:
        """Ask the process what a function of other people is.

        Parameters
        ----------
        where
            The function, as in :class:`runs.isolation.messages.Question`.
        output
            The file to which everything that the process prints is appended.

        Returns
        -------
        dict
            The description that :func:`runs.external_function.describe_function` returns in the process.

        Raises
        ------
        InputError
            If the function cannot be imported.
        """
        question = Question(where, output)
        record = RunRecord(question.run)
        try:
            abort = self._watch(question, record)
            if abort is not None:
                code = self._end()
                problem = abort.error or self._exit_diagnosis(code, question, record)[1]
                raise InputError("method", f"cannot be imported ({problem})")
            if isinstance(record.answer, ReportedFailure):
                problem = record.answer.message
                if record.answer.kind != "refused":
                    problem = f"cannot be imported ({problem})"
                raise InputError("method", problem)
            assert isinstance(record.answer, dict)
            return record.answer
        finally:
            self.close()

    def _watch(self, job: Job | Question, record: RunRecord) -> "_Abort | None":
        """Record the messages of a run until its final message; return why the run must be aborted, if it must."""
        if self._process is None:
            self._process = WorkerProcess(self._environment, self._memory_limit, job.output)
        process = self._process
        try:
            process.send(job, self._startup_limit)
        except TimeoutError:
            return _Abort("stopped", "error", f"did not start within {self._startup_limit:g} s; killed")
        except OSError:
            return _Abort("died")
        last_check, last_look = 0.0, record.begin
        while True:
            lines = process.receive(CHECK_INTERVAL)
            now = time.perf_counter()
            for line in lines or ():
                record.add(line, last_look)
            last_look = now
            if record.invalid is not None:
                return _Abort("raised", "error", record.invalid)
            if record.answer is not None:
                fits = isinstance(record.answer, (dict if isinstance(job, Question) else Answer) | ReportedFailure)
                return None if fits else _Abort("raised", "error", "sent an answer to another question")
            if lines is None or has_ended(process.id):
                return None if _receive_answer(process, record) else _Abort("died")
            if self._stop is not None and self._stop.is_set():
                raise KeyboardInterrupt
            deadline, late = self._deadline(job, record)
            if now > deadline:
                return late
            if now - last_check >= CHECK_INTERVAL:
                last_check = now
                record.usage = _maximum(record.usage, process.usage())
                if record.usage.memory > self._memory_limit:
                    used, limit = record.usage.memory / GIB, self._memory_limit / GIB
                    return _Abort("stopped", "memory_limit", f"used {used:.2f} GiB, the limit is {limit:g} GiB; killed")
                _truncate_log(job.output)

    def _deadline(self, job: Job | Question, record: RunRecord) -> "tuple[float, _Abort]":
        """Return until when the present phase of a run must have ended, and the abort if it has not."""
        if isinstance(job, Question) or (job.selector.runs_external_code and record.loaded_at is None):
            limit = min(self._startup_limit, _import_limit())
            return record.begin + limit, _Abort("stopped", "error", f"was not imported within {limit:g} s; killed")
        if record.ready_at is not None:
            error = f"did not stop at its time limit of {job.time_limit:g} s; killed"
            return record.ready_at + job.time_limit + GRACE, _Abort("stopped", "time_limit", error)
        if job.selector.runs_external_code and record.loaded_at is not None:
            error = f"did not finish on a small instance within the time limit of {job.time_limit:g} s; killed"
            return record.loaded_at + job.time_limit + GRACE, _Abort("stopped", "time_limit", error)
        error = f"was not ready to run after {self._startup_limit:g} s; killed"
        return record.begin + self._startup_limit, _Abort("stopped", "error", error)

    def _end(self) -> int | None:
        """End the process; return its exit code if it had ended by itself."""
        assert self._process is not None
        code, _ = self._process.end()
        self._process = None
        return code

    def _outcome(self, job: Job, record: RunRecord, abort: "_Abort | None") -> Outcome:
        """Return the outcome of a run that has ended; end the process if the run is aborted."""
        status, failure, error = "error", None, None
        answer = record.answer if isinstance(record.answer, Answer) else None
        final = record.answer if isinstance(record.answer, Answer | ReportedFailure) else None
        # The clock of a process in which other people's code has run proves nothing.
        seconds = (record.ended_at or time.perf_counter()) - (record.ready_at or record.begin)
        if answer is not None and not job.selector.runs_external_code:
            seconds = answer.seconds
        cpu = record.usage.cpu if final is None else max(record.usage.cpu, final.cpu)
        if abort is not None:
            code = self._end()
            failure, status, error = abort.failure, abort.status, abort.error
            if failure == "died":
                status, error = self._exit_diagnosis(code, job, record)
        elif isinstance(record.answer, ReportedFailure):
            if record.answer.kind == "memory":
                status, failure = "memory_limit", "raised"
                error = f"ran out of memory, the limit is {self._memory_limit / GIB:g} GiB"
            else:
                failure, error = record.answer.kind, record.answer.message
        elif answer is not None:
            status = answer.status
        _truncate_log(job.output)
        outcome = verified(
            job.instance,
            status=status,
            home=record.home if answer is None else answer.home,
            bound=float("-inf") if answer is None else answer.bound,
            trace=(answer.trace if answer is not None else ()) or record.points,
            facts={} if answer is None else answer.facts,
            failure=failure,
            error=error,
            seconds=seconds,
            cpu_seconds=max(0.0, cpu - record.cpu_when_ready),
            peak_memory=max(record.usage.memory, 0 if final is None else final.peak),
        )
        # Nobody has checked the proof, and in that process nobody could.
        unchecked = job.selector.runs_external_code and outcome.status == "optimal"
        return replace(outcome, status="claimed") if unchecked else outcome

    def _exit_diagnosis(self, code: int | None, job: Job | Question, record: RunRecord) -> tuple[str, str]:
        """Return the status and the error message of a process that has ended without a final message."""
        output = _log_tail(job.output)
        no_memory = any(phrase in output for phrase in OUT_OF_MEMORY_PHRASES)
        no_memory = no_memory or record.usage.memory > 0.8 * self._memory_limit
        if code and no_memory:
            return "memory_limit", f"{_exit_cause(code)}: out of memory, the limit is {self._memory_limit / GIB:g} GiB"
        error = f"{_exit_cause(code)} before it returned a result"
        lines = output.strip().splitlines()
        return "error", f"{error}; the last line of its output: {lines[-1].strip()[:200]}" if lines else error


def _import_limit() -> float:
    text = os.environ.get(IMPORT_VARIABLE, "")
    return setting(IMPORT_VARIABLE, float, text) if text else IMPORT_LIMIT


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
    # A method may have deleted the file.
    with contextlib.suppress(FileNotFoundError):
        if path != os.devnull and os.stat(path).st_size > MAX_LOG_SIZE:
            os.truncate(path, MAX_LOG_SIZE // 2)
            with open(path, "ab") as file:
                file.write(b"\n[the log was cut here]\n")


def _log_tail(path: str) -> str:
    if path == os.devnull or not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.stat(path).st_size - 4096))
        return file.read().decode("utf-8", errors="replace")
