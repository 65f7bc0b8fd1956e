"""Linear algebra with one thread, so that the order of every sum, and so its last bit, is the same on all machines."""

import sys
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController

# The number of modules that were loaded when the libraries were looked for, and the libraries found then.
_found: tuple[int, ThreadpoolController] | None = None


def one_thread() -> AbstractContextManager[object]:
    """Return a context in which BLAS and OpenMP use one thread.

    Looking for the libraries takes several milliseconds, about half of a run of RELOC at the paper's size. So they are
    looked for again only if a module has been imported since, which may have loaded another library.

    Returns
    -------
    context manager
        The context.
    """
    global _found
    loaded = len(sys.modules)
    if _found is None or _found[0] != loaded:
        _found = (loaded, ThreadpoolController())
    limited: AbstractContextManager[object] = _found[1].limit(limits=1)
    return limited
