"""Compile a numerical kernel, with a cache on disk that a changed source can never make stale."""

import functools
import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

from relocbench.instances.kernels.cache_folder import cache_folder

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
    package = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for folder in sorted({room, package / "instances", package / "heuristics", package / "formulations"}):
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR")) / digest.hexdigest()[:16]
