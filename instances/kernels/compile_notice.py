"""The notice that kernels are being compiled, which takes long on the first call on a machine."""

import os
import sys
from collections.abc import Callable

from relocbench.instances.settings import setting

# Seconds between two lines of progress where there is no terminal; 0 prints nothing.
PROGRESS_VARIABLE = "RELOCBENCH_PROGRESS"
PROGRESS_INTERVAL = 30.0
NOTICE = "relocbench: compiling numerical code, once on this machine (5 to 30 s)"

_printed = False


def progress_interval() -> float:
    """Return how many seconds lie between two lines of progress.

    Returns
    -------
    float
        The value of the environment variable ``RELOCBENCH_PROGRESS``, or 30; 0 if nothing shall be printed.

    Raises
    ------
    InputError
        If the variable is not a number of seconds.
    """
    text = os.environ.get(PROGRESS_VARIABLE, "")
    return min(max(0.0, setting(PROGRESS_VARIABLE, float, text)), 1e6) if text else PROGRESS_INTERVAL


def print_notice() -> None:
    """Print the notice to standard error; a second call in the same process prints nothing."""
    global _printed
    if not _printed and progress_interval():
        _printed = True
        print(NOTICE, file=sys.stderr, flush=True)


# Called whenever the compilation of a kernel begins. A worker process, whose output nobody sees, replaces it.
on_compilation: Callable[[], None] = print_notice
