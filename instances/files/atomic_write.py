"""Atomic writing: a file either gets its complete new content or stays as it was."""

import contextlib
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError, reason
from relocbench.instances.files.file_lock import locked, make_folder, try_lock

# Names of temporary files and folders. They do not contain the name of the file, which may have the largest length.
PREFIX, SUFFIX = ".relocbench-", ".part"
# A process locks its temporary file right after it has created it. A younger file may not be locked yet.
YOUNGEST_STRAY = 60.0
# The folders that this process has cleaned. Once is enough, and a run store may contain very many files.
_cleaned: set[Path] = set()
# Reading the permissions of new files changes them for a moment, for all threads.
_UMASK = threading.Lock()


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Write a file atomically: the block writes to a temporary file, which then replaces the file.

    Missing folders are created. If the block raises an exception, the temporary file is deleted and ``path`` stays
    unchanged. Temporary files that killed processes have left in the folder are removed.

    Parameters
    ----------
    path
        The file to write.

    Yields
    ------
    Path
        The temporary file, in the same folder.

    Raises
    ------
    InputError
        If the file cannot be written.
    """
    with _as_input_error(path):
        path = Path(os.path.realpath(path))  # the target of a link is replaced, not the link
        special = path.exists() and not path.is_file()
        if path.is_dir():
            raise InputError(str(path), "expected a file to write, got a folder")
        make_folder(path.parent)
        # A special file (a pipe, /dev/null) must not be replaced; the content is copied into it.
        folder = None if special else path.parent
        if folder is not None:
            remove_stray_files(folder)
        descriptor, name = tempfile.mkstemp(dir=folder, prefix=PREFIX, suffix=SUFFIX)
    temporary = Path(name)
    try:
        if sys.platform == "win32":  # a locked file could not be written, so stray files stay there
            os.close(descriptor)
        else:
            with contextlib.suppress(OSError):  # without locks, stray files of this folder stay
                try_lock(descriptor)
        with _as_input_error(path):
            yield temporary
            if special:
                with temporary.open("rb") as source, path.open("wb") as target:
                    shutil.copyfileobj(source, target)
                return
            _make_ordinary(temporary, 0o666)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
        if sys.platform != "win32":
            os.close(descriptor)


@contextlib.contextmanager
def folder_written_whole(path: str | Path) -> Iterator[Path]:
    """Write a folder atomically: the block creates a temporary folder, which then replaces the folder.

    Parameters
    ----------
    path
        The folder to write.

    Yields
    ------
    Path
        The temporary folder, which does not exist yet.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    with _as_input_error(path):
        path = Path(os.path.realpath(path))
        make_folder(path.parent)
        remove_stray_files(path.parent)
        room = Path(tempfile.mkdtemp(dir=path.parent, prefix=PREFIX, suffix=SUFFIX))
    descriptor = None if sys.platform == "win32" else os.open(room, os.O_RDONLY)
    try:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                try_lock(descriptor)
        with _as_input_error(path):
            _make_ordinary(room, 0o777)  # processes of other users may write the content
            yield room / "new"
            with locked(path):  # a folder that has files cannot be replaced in one step
                if path.exists():
                    path.rename(room / "old")
                (room / "new").rename(path)
    finally:
        shutil.rmtree(room, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _make_ordinary(path: Path, mode: int) -> None:
    """Give a file that was created as a private one the permissions of an ordinary new file."""
    with _UMASK:
        umask = os.umask(0)
        os.umask(umask)
    path.chmod(mode & ~umask)


@contextlib.contextmanager
def _as_input_error(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({reason(error)})") from error
    except ValueError as error:
        if isinstance(error, InputError) or "null byte" not in str(error):
            raise
        raise InputError(str(path), "cannot be written (the name contains a null character)") from error


def remove_stray_files(folder: Path) -> None:
    """Remove the temporary files and folders of processes that have ended, once per process and folder.

    Parameters
    ----------
    folder
        The folder.
    """
    if folder in _cleaned or sys.platform == "win32":
        return
    _cleaned.add(folder)
    for path in folder.glob(f"{PREFIX}*{SUFFIX}"):
        # Another process may remove or lock the same file, and in a shared folder it may be a file of another user.
        with contextlib.suppress(OSError):
            _remove_if_stray(path)


def _remove_if_stray(path: Path) -> None:
    is_folder = path.is_dir()
    # Locks on network file systems need a file that is opened for writing, which is not possible for a folder.
    mode = os.O_RDONLY if is_folder else os.O_RDWR
    descriptor = os.open(path, mode | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        age = time.time() - os.fstat(descriptor).st_mtime
        if age <= YOUNGEST_STRAY or not try_lock(descriptor):
            return
        if is_folder:
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)
