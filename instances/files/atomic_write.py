"""Files that are either whole or not there."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from relocbench.instances.errors import InputError


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to, and rename it into place when the block ends well."""
    path = Path(os.path.realpath(path))  # a link is followed, not replaced
    special = path.exists() and not path.is_file() and not path.is_dir()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # What is no ordinary file (a pipe, /dev/null) is written to, never replaced.
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
        # mkstemp makes the file private; give it the permissions an ordinary new file would have.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)
