"""Memory and CPU time of the processes of a session, and how to end a process group."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """What the living processes of a session use.

    Attributes
    ----------
    memory
        Resident bytes.
    cpu
        CPU seconds, including those of children that have ended and were waited for.
    """

    memory: int = 0
    cpu: float = 0.0


def session_usage(session: int) -> Usage:
    """Add up what the processes of a session use.

    Parameters
    ----------
    session
        The session's number.

    Returns
    -------
    Usage
        The sums; zero on systems without ``/proc``.
    """
    pages, ticks = 0, 0
    for process in _process_numbers():
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # the process has ended since the listing
            continue
        # The second field is the program's name in parentheses and may contain any character. All fields after it are
        # numbers or single letters; the first of them is field 3, the state.
        fields = stat.rpartition(")")[2].split()
        if int(fields[3]) == session:
            pages += int(fields[21])
            ticks += sum(map(int, fields[11:15]))
    if not pages and not ticks:
        return Usage()
    return Usage(pages * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))


def has_ended(child: int) -> bool:
    """Return whether a child process has ended, without reaping it.

    Its process number stays reserved until :func:`kill_group` reaps it, so no other process can receive the signal.

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


def kill_group(child: int) -> tuple[int, float]:
    """Kill a child process that leads a process group, together with the group, and reap it.

    Parameters
    ----------
    child
        The process number, which is also the number of the group.

    Returns
    -------
    code
        The exit code, or the negative number of the signal that ended the process.
    cpu
        The CPU seconds of the process and of the children that it waited for.
    """
    # macOS raises PermissionError for a group that has ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def _process_numbers() -> list[str]:
    try:
        return [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
