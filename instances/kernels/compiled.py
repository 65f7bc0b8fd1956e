"""Compilation of numerical kernels, with a cache on disk that a changed source file cannot make stale."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba

from relocbench.instances.kernels.cache_folder import cache_folder
from relocbench.instances.kernels.imported_files import content_hash, imported_files

Kernel = TypeVar("Kernel", bound=Callable[..., object])


def compiled(function: Kernel) -> Kernel:
    """Compile a function with numba, without Python objects and without fast-math, and cache the result on disk.

    numba renews a cached kernel when the file of the kernel changes. It does not notice a change in another file, such
    as the file of a kernel that it calls or of a constant that it uses. The cache therefore lives in a folder whose
    name is a hash of all files that the kernel's module imports, directly or through other modules.

    Parameters
    ----------
    function
        The kernel, a function of numbers, arrays and named tuples.

    Returns
    -------
    Kernel
        The compiled function.
    """
    numba.config.CACHE_DIR = str(_cache_folder(Path(function.__code__.co_filename)))  # type: ignore[attr-defined]
    return cast(Kernel, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@functools.cache
def _cache_folder(module: Path) -> Path:
    return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR")) / content_hash(imported_files(module))
