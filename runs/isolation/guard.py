"""The guard: a small process between the supervisor and a worker, which ends everything that the worker has started.

The system gives the guard every process below it whose parent has ended (it is a *subreaper*), also a process that has
left the session of the worker. The guard ends all of them when the worker has ended, and when the supervisor has ended,
for whatever reason. A thread of the worker could not do this, because a solver may hold Python's global lock for
minutes. The module imports nothing large, because it is the first thing that the process runs.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from typing import NoReturn

from relocbench.runs.isolation.process_tree import KILL_SECONDS, MARK, kill_descendants

# Options of prctl(2), which only Linux has.
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def start_guard(parent_pipe: int, channel: int, cgroup: str) -> None:
    """Make this process the guard of a new process, and return in the new process only.

    Parameters
    ----------
    parent_pipe
        File descriptor of the reading end of a pipe. Only the supervisor holds the writing end, so the pipe is closed
        as soon as the supervisor ends, for whatever reason.
    channel
        File descriptor of the worker's socket. The guard closes its copy, because otherwise the supervisor would not
        notice when the worker closes the socket.
    cgroup
        The control group to enter, a folder; empty for none.
    """
    if cgroup:
        # Where the system does not allow it, the list of processes is all there is.
        with contextlib.suppress(OSError), open(os.path.join(cgroup, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    worker = os.fork()
    if worker:
        os.close(channel)
        _guard(worker, parent_pipe)
    os.close(parent_pipe)
    os.setsid()  # a signal that the worker sends to its group must not reach the guard
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _guard(worker: int, parent_pipe: int) -> NoReturn:
    """Wait until the worker or the supervisor has ended, end everything else, and end like the worker."""
    wake_pipe, wake_end = os.pipe()
    os.set_blocking(wake_end, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)  # only a signal with a handler is written to the pipe
    poll = select.poll()
    poll.register(parent_pipe, 0)  # without any flag, poll reports only the hang-up
    poll.register(wake_pipe, select.POLLIN)
    status = _reap(worker)
    while status is None:
        if any(number == parent_pipe for number, _ in poll.poll()):
            _end_all()
            os._exit(1)
        os.read(wake_pipe, 4096)
        status = _reap(worker)
    _end_all()
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        with contextlib.suppress(OSError, ValueError):  # SIGKILL and SIGSTOP have no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(max(code, 0))


def _end_all() -> None:
    """Kill and reap every process below this one, so that none is left to the first process of the system."""
    kill_descendants(os.getpid(), os.environ[MARK])
    deadline = time.perf_counter() + KILL_SECONDS
    with contextlib.suppress(ChildProcessError):  # no child is left
        while time.perf_counter() < deadline:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                time.sleep(0.002)


def _reap(worker: int) -> int | None:
    """Reap every child that has ended; return the status of the worker if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while (child := os.waitpid(-1, os.WNOHANG))[0]:
            if child[0] == worker:
                status = child[1]
    return status


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
