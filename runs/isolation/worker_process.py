"""A worker process, its guard and the socket to it, as seen by the supervisor."""

import contextlib
import os
import pickle
import secrets
import selectors
import signal
import socket
import subprocess
import sys
import time

from relocbench.runs.isolation.cgroup import create_group, end_group
from relocbench.runs.isolation.messages import JOB_LENGTH, Job, Question
from relocbench.runs.isolation.process_tree import (
    MARK,
    Process,
    Usage,
    descendants,
    has_ended,
    kill_descendants,
    usage_of,
)

# How long a process that has closed its socket may take to exit by itself.
EXIT_SECONDS = 1.0
# A message may have at most this many bytes. The homes of 20 million clients have as many.
MAX_MESSAGE = 1 << 28
# Above the memory limit there is this much room before an allocation fails or the system kills the process. So the
# supervisor, which counts all processes together, normally acts first.
MEMORY_HEADROOM = 256 << 20


class WorkerProcess:
    """A guard, the process below it that runs :func:`runs.isolation.worker.main`, and the socket to that process.

    Parameters
    ----------
    environment
        The environment variables of the process.
    memory_limit
        Bytes that the process may use.
    output
        The file to which the output of its start is appended.

    Attributes
    ----------
    id
        The process number of the guard.
    """

    def __init__(self, environment: dict[str, str], memory_limit: int, output: str) -> None:
        self._channel, worker_end = socket.socketpair()
        self._incomplete = bytearray()
        self._readable = selectors.DefaultSelector()
        self._readable.register(self._channel, selectors.EVENT_READ)
        self._mark = secrets.token_hex(8)
        # Every process seen so far. The last list alone is not enough: it is empty if the guard has just been killed.
        self._known: dict[int, Process] = {}
        self._group = create_group(memory_limit + MEMORY_HEADROOM)
        # The guard waits until the writing end of this pipe is closed: see start_guard.
        parent_pipe, self._parent_pipe_end = os.pipe()
        channel = worker_end.fileno()
        # The worker imports from the same folders as this process, including those that were added at run time.
        program = f"import sys; sys.path[:] = {sys.path!r}\n"
        program += "from relocbench.runs.isolation.guard import start_guard\n"
        program += f"start_guard({parent_pipe}, {channel}, {str(self._group or '')!r})\n"
        program += f"from relocbench.runs.isolation.worker import main; main({channel}, {memory_limit})"
        try:
            with worker_end, open(output, "ab") as log:
                self._popen = subprocess.Popen(
                    [sys.executable, "-u", "-c", program],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[channel, parent_pipe],
                    env=environment | {MARK: self._mark},
                    start_new_session=True,  # Ctrl-C on a terminal must not reach it
                )
        finally:
            os.close(parent_pipe)
        self.id = self._popen.pid

    def send(self, job: Job | Question, timeout: float) -> None:
        """Send a job.

        Parameters
        ----------
        job
            What to run.
        timeout
            Seconds to wait until the process has taken it.

        Raises
        ------
        TimeoutError
            If the process does not read the job in time.
        OSError
            If the process has ended or closed its socket.
        """
        content = pickle.dumps(job)
        self._channel.settimeout(timeout)
        # MSG_NOSIGNAL: writing to a dead worker must not kill this process with SIGPIPE.
        self._channel.sendall(JOB_LENGTH.pack(len(content)) + content, getattr(socket, "MSG_NOSIGNAL", 0))

    def receive(self, timeout: float) -> list[bytes] | None:
        """Return the messages that have arrived.

        Parameters
        ----------
        timeout
            Seconds to wait for the first of them.

        Returns
        -------
        list of bytes or None
            Complete messages without their line breaks, perhaps none; None if the process has closed the socket.
        """
        if not self._readable.select(timeout):
            return []
        try:
            received = self._channel.recv(1 << 20)
        except OSError:
            return None
        if not received:
            return None
        first, line_break, rest = received.partition(b"\n")
        self._incomplete += first
        if not line_break:
            # An endless message is passed on as it is, and refused like every other invalid one.
            return [bytes(self._incomplete)] if len(self._incomplete) > MAX_MESSAGE else []
        *lines, incomplete = [bytes(self._incomplete), *rest.split(b"\n")]
        self._incomplete = bytearray(incomplete)
        return lines

    def has_messages(self) -> bool:
        """Return whether :func:`receive` would return at once.

        Returns
        -------
        bool
            Whether something has arrived that was not received yet, or the socket is closed.
        """
        return bool(self._readable.select(0))

    def usage(self) -> Usage:
        """Return what the process and all processes that it has started use now.

        Returns
        -------
        Usage
            The sums, without the guard.
        """
        present = descendants(self.id)
        self._known |= {process.id: process for process in present}
        return usage_of(present)

    def is_idle(self) -> bool:
        """Return whether the process is the only one below its guard, and has sent nothing that was not received.

        Returns
        -------
        bool
            Whether a run has left neither a process nor a message behind.
        """
        return len(descendants(self.id)) == 1 and not self._incomplete and not self.has_messages()

    def end(self) -> tuple[int | None, float]:
        """End the process, its guard and every process that it has started.

        Returns
        -------
        code
            The exit code, or the negative number of a signal; None if the process had not ended by itself.
        cpu
            The CPU seconds of the process and of the children that it waited for.
        """
        # A process that has closed its socket is about to exit. Its exit code explains why.
        deadline = time.perf_counter() + EXIT_SECONDS
        while self._is_closed() and not has_ended(self.id) and time.perf_counter() < deadline:
            time.sleep(0.005)
        ended_by_itself = has_ended(self.id)
        self._readable.close()
        self._channel.close()
        kill_descendants(self.id, self._mark, self._known.values())
        # The guard reaps its children and ends by itself, unless a method has stopped it.
        os.close(self._parent_pipe_end)
        deadline = time.perf_counter() + EXIT_SECONDS
        while not has_ended(self.id) and time.perf_counter() < deadline:
            time.sleep(0.002)
        if self._group is not None:
            end_group(self._group)
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS raises the latter for an ended process
            os.kill(self.id, signal.SIGKILL)
        _, status, usage = os.wait4(self.id, 0)
        self._popen.returncode = os.waitstatus_to_exitcode(status)
        return self._popen.returncode if ended_by_itself else None, usage.ru_utime + usage.ru_stime

    def _is_closed(self) -> bool:
        with contextlib.suppress(OSError):
            return bool(self._readable.select(0)) and self._channel.recv(1, socket.MSG_PEEK) == b""
        return True
