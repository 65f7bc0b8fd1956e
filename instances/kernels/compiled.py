"""Compilation of numerical kernels, with a cache on disk that a changed source file cannot make stale."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import numba
from numba.core.event import Event, Listener, register

from relocbench.instances.kernels import compile_notice
from relocbench.instances.kernels.cache_folder import cache_folder
from relocbench.instances.kernels.imported_files import content_hash, imported_files

Kernel = TypeVar("Kernel", bound=Callable[..., object])

# The kernels of this project that have been loaded.
_kernels: set[object] = set()


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
    return _compile(function, set())


def compiled_reordered(function: Kernel) -> Kernel:
    """Compile a function as :func:`compiled` does, but allow sums in another order, and assume that no number is NaN.

    Then loops that add up numbers get vector instructions, which makes them several times faster. The last bits of the
    results depend on the processor. So this is for iterative methods whose results are checked in another way.

    Parameters
    ----------
    function
        The kernel, a function of numbers, arrays and named tuples.

    Returns
    -------
    Kernel
        The compiled function.
    """
    return _compile(function, {"reassoc", "nnan", "nsz"})


def _compile(function: Kernel, fast_math: set[str]) -> Kernel:
    numba.config.CACHE_DIR = str(_cache_folder(Path(function.__code__.co_filename)))  # type: ignore[attr-defined]
    kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fast_math)(function)
    _kernels.add(kernel)
    return cast(Kernel, kernel)


class _Announcer(Listener):
    """Announces that a kernel is compiled. numba tells it only if the cache on disk does not have the kernel."""

    def on_start(self, event: Event) -> None:
        # Code of other people may compile functions of its own.
        if event.data["dispatcher"] in _kernels:
            compile_notice.on_compilation()

    def on_end(self, event: Event) -> None:
        pass


register("numba:compile", _Announcer())  # type: ignore[no-untyped-call]


@functools.cache
def _cache_folder(module: Path) -> Path:
    return cache_folder("numba", os.environ.get("NUMBA_CACHE_DIR")) / content_hash(imported_files(module))
