"""Refuse work that other people's code starts while a worker process imports it.

A script that calls ``relocbench.check`` at its top level would otherwise run itself again in the worker process, which
imports the script to find its heuristic.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError

_importing = False


class CalledDuringImportError(InputError):
    """The error for a call of this project at the top level of a file that is being imported."""


@contextlib.contextmanager
def importing() -> Iterator[None]:
    """Mark the time during which a worker process imports code of other people.

    Yields
    ------
    None
        Nothing; the code is imported inside the context.
    """
    global _importing
    _importing = True
    try:
        yield
    finally:
        _importing = False


def refuse_during_import(function: str) -> None:
    """Raise an error if this process is a worker process that is importing code of other people.

    Parameters
    ----------
    function
        The public function that was called, such as ``relocbench.check``.

    Raises
    ------
    CalledDuringImportError
        If so. The message names the file and the line of the call, and the remedy.
    """
    if not _importing:
        return
    ours = f"{Path(__file__).parents[2]}{os.sep}"
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((ours, "<")):
        frame = frame.f_back
    place = f"{Path(frame.f_code.co_filename).name}, line {frame.f_lineno},"
    remedy = 'put the call below `if __name__ == "__main__":`'
    raise CalledDuringImportError("method", f"{place} calls {function} when it is imported; {remedy}")
