"""Locks between processes: one process at a time reads, merges and writes a shared file."""

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError, reason

# How long a process waits for a lock, in seconds. A lock is held only to read, merge and write a file.
PATIENCE = 60.0
_PAUSE = 0.02


@contextlib.contextmanager
def locked(path: str | Path) -> Iterator[None]:
    """Hold the lock of a file, so that no other process changes the file in this context.

    The lock is a file ``.NAME.lock`` beside the file. It is removed afterwards. The system releases the lock of a
    process that is killed.

    Parameters
    ----------
    path
        The file, which need not exist.

    Yields
    ------
    None

    Raises
    ------
    InputError
        If the folder cannot be written, if its file system has no locks, or if another process holds the lock too long.
    """
    path = Path(os.path.realpath(path))
    lock = path.with_name(f".{path.name}.lock")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            make_folder(path.parent)
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        except OSError as error:
            raise InputError(str(path), f"cannot be written ({reason(error)})") from error
        try:
            if _acquired(descriptor, path):
                # The process that held the lock before may have removed the file, which then protects nothing.
                if _is_same(descriptor, lock):
                    break
            elif time.monotonic() > deadline:
                problem = f"another process has held its lock for {PATIENCE:g} s; end that process, or try again later"
                raise InputError(str(path), problem)
            else:
                time.sleep(_PAUSE)
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps a file that another process has opened
            lock.unlink()
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Create a folder and the folders above it, if they do not exist.

    Parameters
    ----------
    folder
        The folder.

    Raises
    ------
    InputError
        If a file has the name of one of these folders.
    OSError
        If a folder cannot be created.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise InputError(str(error.filename or folder), "expected a folder to write to, got a file") from error


def _acquired(descriptor: int, path: Path) -> bool:
    try:
        return try_lock(descriptor)
    except OSError as error:
        problem = f"its folder has no locks ({reason(error)}); copy the folder to a local disk"
        raise InputError(str(path), problem) from error


def _is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def try_lock(descriptor: int) -> bool:
    """Lock an open file, if no other process holds its lock.

    Parameters
    ----------
    descriptor
        The file. Closing it releases the lock.

    Returns
    -------
    bool
        Whether this process has the lock now.

    Raises
    ------
    OSError
        If the file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EDEADLK):
                return False
            raise
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
