"""A worker process and the socket to it, as seen by the supervisor."""

import contextlib
import os
import pickle
import selectors
import socket
import subprocess
import sys
import time

from relocbench.runs.isolation.messages import JOB_LENGTH, Job
from relocbench.runs.isolation.usage import has_ended, kill_group

# How long a process that has closed its socket may take to exit by itself.
EXIT_SECONDS = 1.0


class WorkerProcess:
    """A process that runs :func:`runs.isolation.worker.main`, and the socket to it.

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
        The process number, which is also the number of its group and session.
    """

    def __init__(self, environment: dict[str, str], memory_limit: int, output: str) -> None:
        self._channel, worker_end = socket.socketpair()
        self._incomplete = b""
        self._readable = selectors.DefaultSelector()
        self._readable.register(self._channel, selectors.EVENT_READ)
        # The watchdog of the process waits until the writing end of this pipe is closed: see start_watchdog.
        parent_pipe, self._parent_pipe_end = os.pipe()
        channel = worker_end.fileno()
        # The worker imports from the same folders as this process, including those that were added at run time.
        program = f"import sys; sys.path[:] = {sys.path!r}\n"
        program += f"from relocbench.runs.isolation.watchdog import start_watchdog as w; w({parent_pipe}, {channel})\n"
        program += f"from relocbench.runs.isolation.worker import main; main({channel}, {memory_limit})"
        try:
            with worker_end, open(output, "ab") as log:
                self._popen = subprocess.Popen(
                    [sys.executable, "-u", "-c", program],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=[channel, parent_pipe],
                    env=environment,
                    # In a session of its own the process does not receive Ctrl-C, and can be killed with its children.
                    start_new_session=True,
                )
        finally:
            os.close(parent_pipe)
        self.id = self._popen.pid

    def send(self, job: Job, timeout: float) -> None:
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
        *lines, self._incomplete = (self._incomplete + received).split(b"\n")
        return lines

    def has_messages(self) -> bool:
        """Return whether :func:`receive` would return at once.

        Returns
        -------
        bool
            Whether something has arrived that was not received yet, or the socket is closed.
        """
        return bool(self._readable.select(0))

    def end(self) -> tuple[int | None, float]:
        """End the process together with its group.

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
        os.close(self._parent_pipe_end)
        self._popen.returncode, cpu = kill_group(self.id)
        return self._popen.returncode if ended_by_itself else None, cpu

    def _is_closed(self) -> bool:
        with contextlib.suppress(OSError):
            return self.has_messages() and self._channel.recv(1, socket.MSG_PEEK) == b""
        return True
