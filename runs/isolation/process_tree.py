"""The processes below a process: what they use, and how to end them all.

Two things identify the processes of a worker. The guard of the worker (:mod:`runs.isolation.guard`) is the ancestor of
all of them, because the system gives it every process whose parent has ended. And all of them have the worker's mark in
their environment, unless a program removed it. The module imports nothing large, because the guard uses it too.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

# The environment variable that marks the processes of a worker.
MARK = "RELOCBENCH_WORKER"
# Seconds after which the attempt to end processes is given up. A killed process ends within milliseconds, unless the
# system itself is waiting for a device.
KILL_SECONDS = 2.0


@dataclass(frozen=True)
class Process:
    """A process at one moment.

    Attributes
    ----------
    id, parent
        The process number and that of its parent.
    ended
        Whether the process has ended and waits to be reaped.
    memory
        Resident bytes.
    cpu
        CPU seconds, including those of children that have ended and were waited for.
    born
        When it started; together with the number it identifies a process for ever.
    """

    id: int
    parent: int
    ended: bool
    memory: int
    cpu: float
    born: float


@dataclass(frozen=True)
class Usage:
    """What some processes use together.

    Attributes
    ----------
    memory
        Resident bytes.
    cpu
        CPU seconds, including those of children that have ended and were waited for.
    """

    memory: int = 0
    cpu: float = 0.0


def descendants(root: int) -> list[Process]:
    """List the processes below a process.

    Parameters
    ----------
    root
        The number of the process. It is not in the list.

    Returns
    -------
    list of Process
        Its children, their children and so on, without those that have ended.
    """
    children: dict[int, list[Process]] = {}
    for process in _processes():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    unvisited = [root]
    while unvisited:
        below = children.pop(unvisited.pop(), [])
        found += below
        unvisited += [process.id for process in below]
    return [process for process in found if not process.ended]


def all_of(root: int) -> list[Process]:
    """List a process and the processes below it.

    Parameters
    ----------
    root
        The number of the process.

    Returns
    -------
    list of Process
        The process itself, if it exists, and :func:`descendants`.
    """
    return [process for process in _processes() if process.id == root] + descendants(root)


def usage_of(processes: Iterable[Process]) -> Usage:
    """Add up what processes use.

    Parameters
    ----------
    processes
        The processes.

    Returns
    -------
    Usage
        The sums.
    """
    memory, cpu = 0, 0.0
    for process in processes:
        memory, cpu = memory + process.memory, cpu + process.cpu
    return Usage(memory, cpu)


def has_ended(child: int) -> bool:
    """Return whether a child process has ended, without reaping it.

    Its process number stays reserved until it is reaped, so no other process can receive a signal for it.

    Parameters
    ----------
    child
        The process number.

    Returns
    -------
    bool
        Whether the process has ended.
    """
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def kill_descendants(root: int, mark: str, known: Iterable[Process] = ()) -> None:
    """Kill all processes below a process, all that have a mark in their environment, and all that are known.

    A process may start another one while it is killed, so the processes are listed again until none is left.

    Parameters
    ----------
    root
        The number of the process, which is not killed.
    mark
        The value of the variable :data:`MARK`.
    known
        Processes that were below the process at an earlier moment.
    """
    born = {process.id: process.born for process in known}
    deadline = time.perf_counter() + KILL_SECONDS
    while time.perf_counter() < deadline:
        victims = {process.id for process in descendants(root)}
        victims |= {
            process.id
            for process in _processes()
            if not process.ended and (born.get(process.id) == process.born or _has_mark(process.id, mark))
        }
        victims -= {root, os.getpid()}
        if not victims:
            return
        for victim in victims:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(victim, signal.SIGKILL)
        time.sleep(0.002)


def _processes() -> Iterator[Process]:
    """Yield all processes of the machine."""
    try:
        numbers = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        yield from _processes_of_psutil()
        return
    page, tick = os.sysconf("SC_PAGE_SIZE"), os.sysconf("SC_CLK_TCK")
    for number in numbers:
        try:
            with open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as file:
                stat = file.read()
        except OSError:  # the process has ended since the listing
            continue
        # The second field is the program's name in parentheses and may contain any character. All fields after it are
        # numbers or single letters; the first of them is field 3, the state.
        fields = stat.rpartition(")")[2].split()
        yield Process(
            id=int(number),
            parent=int(fields[1]),
            ended=fields[0] in "ZX",
            memory=int(fields[21]) * page,
            cpu=sum(map(int, fields[11:15])) / tick,
            born=float(fields[19]),
        )


def _processes_of_psutil() -> Iterator[Process]:
    """Yield all processes on a system without ``/proc``, such as macOS."""
    import psutil

    for process in psutil.process_iter():
        try:
            with process.oneshot():
                times, ended = process.cpu_times(), process.status() == psutil.STATUS_ZOMBIE
                memory = process.memory_info().rss
                yield Process(
                    id=process.pid,
                    parent=process.ppid(),
                    ended=ended,
                    memory=memory,
                    cpu=times.user + times.system,
                    born=process.create_time(),
                )
        except psutil.Error:  # the process has ended since the listing, or belongs to another user
            continue


def _has_mark(process: int, mark: str) -> bool:
    if not os.path.isdir("/proc/self"):
        import psutil

        try:
            return bool(psutil.Process(process).environ().get(MARK) == mark)
        except psutil.Error:
            return False
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    except OSError:  # it has ended, or belongs to another user
        return False
