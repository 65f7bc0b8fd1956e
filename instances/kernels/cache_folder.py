"""A folder for what can be made again: the user's cache, or the next best."""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def cache_folder(purpose: str, chosen: str | None = None) -> Path:
    """Return the first folder that is ours to write to: the one chosen, the user's cache, a temporary one."""
    for root in _candidates(purpose, chosen):
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        # A cache holds code: a folder of somebody else's is not to be trusted.
        if os.access(root, os.W_OK) and (not hasattr(os, "getuid") or root.stat().st_uid == os.getuid()):
            return root
    return Path(tempfile.mkdtemp(prefix=f"relocbench-{purpose}-"))


def _candidates(purpose: str, chosen: str | None) -> Iterator[Path]:
    if chosen:
        yield Path(chosen)
    if caches := os.environ.get("XDG_CACHE_HOME"):
        yield Path(caches) / "relocbench" / purpose
    # A user without a home, as containers have them, makes this raise RuntimeError.
    with contextlib.suppress(RuntimeError):
        yield Path.home() / ".cache" / "relocbench" / purpose
    user = os.getuid() if hasattr(os, "getuid") else "user"
    yield Path(tempfile.gettempdir()) / f"relocbench-{purpose}-{user}"
