"""The folder for cached files, which can always be produced again."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_folder(purpose: str, chosen: str | None = None) -> Path:
    """Return a folder for cached files that belongs to this user and is writable.

    Candidates are, in this order, the chosen folder, the user's cache folder, and a folder for temporary files.

    Parameters
    ----------
    purpose
        Name of the cache, such as ``numba``.
    chosen
        A folder to try first.

    Returns
    -------
    Path
        The folder, which exists.
    """
    for root in _candidates(purpose, chosen):
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # The cache contains code that will be executed, so a folder of another user must not be trusted.
        if os.access(root, os.W_OK) and (not hasattr(os, "getuid") or root.stat().st_uid == os.getuid()):
            return root
    return Path(tempfile.mkdtemp(prefix=f"relocbench-{purpose}-"))


def _candidates(purpose: str, chosen: str | None) -> Iterator[Path]:
    if chosen:
        yield Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        yield Path(caches) / "relocbench" / purpose
    # Path.home raises RuntimeError for a user without a home folder, which occurs in containers.
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "relocbench" / purpose
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"relocbench-{purpose}-{user}"
