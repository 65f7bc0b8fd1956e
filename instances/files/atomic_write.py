"""Atomic writing: a file either gets its complete new content or stays as it was."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Write a file atomically: the block writes to a temporary file, which then replaces the file.

    Missing folders are created. If the block raises an exception, the temporary file is deleted and ``path`` stays
    unchanged.

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
    path = Path(os.path.realpath(path))  # the target of a link is replaced, not the link
    special = path.exists() and not path.is_file() and not path.is_dir()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A special file (a pipe, /dev/null) must not be replaced; the content is copied into it.
        folder = None if special else path.parent
        handle, name = tempfile.mkstemp(dir=folder, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error
    temporary = Path(name)
    try:
        yield temporary
        if special:
            path.write_bytes(temporary.read_bytes())
            return
        # mkstemp creates a private file; it gets the permissions of an ordinary new file.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)
