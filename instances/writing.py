"""Files that are either whole or not there."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from instances.errors import InputError


@contextlib.contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` to write to, and rename it into place when the block ends well."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
        os.close(handle)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes the file private; give it the permissions an ordinary new file would have.
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(path)
    except OSError as error:
        raise InputError(str(path), f"cannot be written ({error.strerror})") from error
    finally:
        temporary.unlink(missing_ok=True)
