"""The versions and the hardware that can influence a result, for bug reports and for the rows of the run store."""

import functools
import importlib.metadata
import os
import platform
import re
import shutil
import subprocess

from relocbench.runs.version import __version__


def information(*, java: bool = True) -> dict[str, str | int | None]:
    """Return versions, cores, memory and Java.

    Parameters
    ----------
    java
        Whether to include the version of Java, which has to be started for it.

    Returns
    -------
    dict
        Names with their values; None for what is not installed or not known.
    """
    found: dict[str, str | int | None] = {
        "relocbench": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": cores(),
        "memory_mib": _memory_mib(),
    }
    if java:
        found["java"] = _java()
    return found | {name: _version(name) for name in _dependencies()}


def cores() -> int:
    """Return how many cores this process may use.

    Returns
    -------
    int
        The number of cores; an affinity mask is respected where the system has one.
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _dependencies() -> list[str]:
    """Return the packages that relocbench declares, and the numerical packages that these use."""
    try:
        declared = importlib.metadata.requires("relocbench") or []
    except importlib.metadata.PackageNotFoundError:  # the package is not installed
        declared = []
    names = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower() for requirement in declared}
    return sorted(names | {"numpy", "numba", "llvmlite", "pyarrow"})


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
            return next(models, platform.processor())
    except OSError:
        return platform.processor()


def _memory_mib() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    except (AttributeError, ValueError, OSError):
        return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else None
    java = java or shutil.which("java")
    return None if java is None else _java_version(java)


@functools.cache
def _java_version(java: str) -> str:
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not start ({error})"
    lines = (answer.stderr or answer.stdout).strip().splitlines()
    return lines[0] if lines else f"exit {answer.returncode}"
