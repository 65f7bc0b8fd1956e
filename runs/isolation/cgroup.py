"""Control groups of Linux (version 2): a process cannot leave its group, and the system kills a whole group at once.

They need the permission to create a folder below the group of this process. Root, a systemd user session and some
containers have it. Without it the guard (:mod:`runs.isolation.guard`) does the same work by listing processes.
"""

import contextlib
import itertools
import os
import time
from pathlib import Path

PREFIX = "relocbench-"
# Seconds that the system may take until an emptied group can be removed.
REMOVAL_SECONDS = 0.5
_NUMBERS = itertools.count()


def create_group(memory_limit: int) -> Path | None:
    """Create a control group below that of this process.

    Parameters
    ----------
    memory_limit
        Bytes that the processes of the group may use together, including cached files. The system enforces it only
        where this user may use the memory controller.

    Returns
    -------
    Path or None
        The folder of the group; None where groups cannot be used.
    """
    if (parent := _own_group()) is None:
        return None
    _remove_abandoned(parent)
    group = parent / f"{PREFIX}{os.getpid()}-{next(_NUMBERS)}"
    try:
        group.mkdir()
    except OSError:
        return None
    if not (group / "cgroup.kill").exists() or not os.access(parent / "cgroup.procs", os.W_OK):
        _remove(group)
        return None
    with contextlib.suppress(OSError):
        (group / "memory.max").write_text(str(memory_limit), encoding="ascii")
    return group


def end_group(group: Path) -> None:
    """Kill all processes of a group and remove it.

    Parameters
    ----------
    group
        The folder of the group.
    """
    with contextlib.suppress(OSError):
        (group / "cgroup.kill").write_text("1", encoding="ascii")
    deadline = time.perf_counter() + REMOVAL_SECONDS
    while not _remove(group) and time.perf_counter() < deadline:
        time.sleep(0.005)


def _own_group() -> Path | None:
    """Return the folder of the group of this process in the hierarchy of version 2."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    mount = next((fields[1] for line in mounts if (fields := line.split())[2] == "cgroup2"), None)
    path = next((line[3:] for line in groups if line.startswith("0::")), None)
    if mount is None or path is None:
        return None
    folder = Path(mount, path.lstrip("/"))
    return folder if folder.is_dir() else None


def _remove_abandoned(parent: Path) -> None:
    """Remove the empty groups of supervisors that were killed."""
    with contextlib.suppress(OSError):
        for group in parent.glob(f"{PREFIX}*-*"):
            owner = group.name.removeprefix(PREFIX).partition("-")[0]
            if owner.isdecimal() and not os.path.isdir(f"/proc/{owner}"):
                _remove(group)


def _remove(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return not group.exists()
    return True
