"""Compile a numerical kernel, with a cache on disk that a changed source can never make stale."""

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile ``function`` with numba (no Python objects, no fast-math, cached on disk).

    numba renews a cached kernel when its own file changes, but not when a kernel it calls or a constant it uses does
    in another file. So the cache lives in a folder named after the content of every file it could depend on: its own
    room and the rooms that have kernels for others.
    """
    numba.config.CACHE_DIR = str(_cache_folder(Path(function.__code__.co_filename).parent))  # type: ignore[attr-defined]
    return cast(Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@functools.cache
def _cache_folder(room: Path) -> Path:
    rooms = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in sorted({room, rooms / "instances", rooms / "heuristics", rooms / "formulations"}):
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return _cache_root() / digest.hexdigest()[:16]


def _cache_root() -> Path:
    """Return the first folder that is ours to write to: the one chosen, the user's cache, a temporary one."""
    for root in _candidates():
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # A cache holds code: a folder of somebody else's is not to be trusted.
        if os.access(root, os.W_OK) and (not hasattr(os, "getuid") or root.stat().st_uid == os.getuid()):
            return root
    return Path(tempfile.mkdtemp(prefix="relocbench-numba-"))


def _candidates() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        yield Path(caches) / "relocbench" / "numba"
    # A user without a home, as containers have them, makes this raise RuntimeError.
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "relocbench" / "numba"
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"relocbench-numba-{user}"
