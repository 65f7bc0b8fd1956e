"""Ragged of processes: what they use, and their end."""

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Usage:
    """What the living processes of a session use: resident bytes; CPU seconds, with children they saw end."""

    memory: int = 0
    cpu: float = 0.0


def session_usage(session: int) -> Usage:
    """Add up what a session uses; nothing where the system has no ``/proc``."""
    memory, ticks = 0, 0
    for process in _numbered("/proc"):
        try:
            stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # it has ended meanwhile
            continue
        # The name, in parentheses, may hold anything; what follows are numbers, from field 3 (the state) on.
        field = stat.rpartition(")")[2].split()
        if int(field[3]) == session:
            memory += int(field[21])
            ticks += sum(map(int, field[11:15]))
    if not memory and not ticks:
        return Usage()
    return Usage(memory * os.sysconf("SC_PAGE_SIZE"), ticks / os.sysconf("SC_CLK_TCK"))


def has_ended(child: int) -> bool:
    """Tell whether a child has ended, without taking note of it: its number stays its own until :func:`end`."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def end(child: int) -> tuple[int, float]:
    """Kill a child that leads a group, with its group; return its exit code (minus a signal) and its CPU seconds."""
    with contextlib.suppress(ProcessLookupError, PermissionError):  # the latter is macOS's word for a dead group
        os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime


def _numbered(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.isdecimal()]
    except OSError:
        return []
