"""Exceptions of other people's code in one line."""

import os
import traceback
from pathlib import Path


def message_of(error: BaseException) -> str:
    """Return the message of an exception on one line.

    Parameters
    ----------
    error
        The exception.

    Returns
    -------
    str
        The message; empty if there is none.
    """
    try:
        return " ".join(str(error).split())
    except BaseException:  # the exception belongs to other people's code
        return ""


def described(error: BaseException) -> str:
    """Return what an exception is, and where other people's code raised it.

    Parameters
    ----------
    error
        The exception.

    Returns
    -------
    str
        Such as ``ValueError: no homes (mine.py, line 3)``.
    """
    text, name = message_of(error), type(error).__name__
    return (f"{name}: {text}" if text else name) + _place(error)


def _place(error: BaseException) -> str:
    """Return the file and line of other people's code in which an exception was raised; empty if there is none."""
    ours = (f"{Path(__file__).parents[1]}{os.sep}", "<frozen", "<string>")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(ours)]
    if not frames:
        return ""
    # The first frame is the function of the method. The error may be raised in another library, which it has called.
    project = Path(frames[0].filename).parent
    while (project / "__init__.py").exists() and (project.parent / "__init__.py").exists():
        project = project.parent
    last = next(frame for frame in reversed(frames) if Path(frame.filename).is_relative_to(project))
    # The cell of a notebook has no file. Its lines are counted from the top of the cell.
    place = Path(last.filename).name if Path(last.filename).is_file() else f"in {last.name}"
    return f" ({place}, line {last.lineno})"
