"""Compilation of numerical kernels, with a cache on disk that a changed source file cannot make stale."""

import functools
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FunctionType
from typing import TypeVar, cast

import numba
from numba.core.caching import CacheImpl, _CacheLocator
from numba.core.event import Event, Listener, register

from relocbench.instances.kernels import compile_notice
from relocbench.instances.kernels.cache_folder import cache_folder
from relocbench.instances.kernels.imported_files import content_hash, imported_files

Kernel = TypeVar("Kernel", bound=Callable[..., object])

# The kernels of this project that have been loaded, and the code of their functions.
_kernels: set[object] = set()
_codes: set[CodeType] = set()


def compiled(function: Kernel) -> Kernel:
    """Compile a function with numba, without Python objects and without fast-math, and cache the result on disk.

    numba renews a cached kernel when the file of the kernel changes. It does not notice a change in another file, such
    as the file of a kernel that it calls or of a constant that it uses. The cache therefore lives in a folder whose
    name is a hash of all files that the kernel's module imports, directly or through other modules. Copies of the same
    code, such as clones, installed wheels and code that Spark shipped, share it.

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
    _codes.add(function.__code__)
    kernel = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=fast_math)(function)
    _kernels.add(kernel)
    return cast(Kernel, kernel)


class _ByContent(_CacheLocator):
    """Tells numba where the cache of a kernel is. By default the place depends on the folder of the source file."""

    def __init__(self, function: FunctionType, file: str) -> None:
        self._py_file = file  # numba names it in warnings
        self._line = function.__code__.co_firstlineno
        self._folder = _cache_folder(Path(file)) / function.__module__

    @classmethod
    def from_function(cls, py_func: FunctionType, py_file: str) -> "_ByContent | None":
        """Return the place of a kernel; None for functions of other people, whose places numba chooses."""
        return cls(py_func, py_file) if py_func.__code__ in _codes else None

    def get_cache_path(self) -> str:
        """Return the folder."""
        return str(self._folder)

    def get_source_stamp(self) -> str:
        """Return what a cached kernel must have in common with the source: nothing more than the folder."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what distinguishes kernels of the same name in a module."""
        return str(self._line)


CacheImpl._locator_classes.insert(0, _ByContent)


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
