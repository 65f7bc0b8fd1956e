"""Compile a numerical kernel, with a cache on disk that a changed source can never make stale."""

import functools
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile ``function`` with numba (no Python objects, no fast-math, cached on disk).

    numba renews a cached kernel when its own file changes, but not when a kernel it calls from another file does.
    So the cache lives in a folder named after the content of every kernel file it could depend on: those of its
    own room and of ``instances``, the room all others build on.
    """
    numba.config.CACHE_DIR = str(_cache_folder(Path(function.__code__.co_filename).parent))  # type: ignore[attr-defined]
    return cast(Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@functools.cache
def _cache_folder(room: Path) -> Path:
    digest = hashlib.sha256()
    for folder in sorted({room, Path(__file__).parent}):
        for file in sorted(folder.glob("*.py")):
            content = file.read_bytes()
            if b"@compiled" in content:
                digest.update(content)
    return _cache_root() / digest.hexdigest()[:16]


def _cache_root() -> Path:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    root = caches / "relocbench" / "numba"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError:
        return _fallback_root()
    return root if os.access(root, os.W_OK) else _fallback_root()


def _fallback_root() -> Path:
    """Return a folder of this user's for machines without a writable home."""
    user = os.getuid() if hasattr(os, "getuid") else "user"
    return Path(tempfile.gettempdir()) / f"relocbench-numba-{user}"
