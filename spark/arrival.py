"""What shipped code does on arrival: it moves to a folder of its own on that machine.

Imported out of an archive it would work as well, but numba's cache, which goes by the paths of files, would miss: every
process would compile anew. The archive (:mod:`spark.shipping`) therefore holds a stub of the package that calls
:func:`arrive`. This module travels beside the package, so it imports nothing of it.
"""

import hashlib
import importlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

# Where in the archive the package is.
CARGO = "cargo/"


def arrive(package: str, archive: str, caches: Path) -> None:
    """Import the package from the archive's folder in place of its stub, which calls this."""
    folder = str(unpacked(archive, caches))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    del sys.modules[package]
    importlib.invalidate_caches()
    importlib.import_module(package)


def unpacked(archive: str, caches: Path) -> Path:
    """Return the folder that has what an archive holds; its name is made from the content."""
    folder = caches / hashlib.sha256(Path(archive).read_bytes()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    # Several processes may arrive at once: each unpacks for itself, and the first to be done gives it the name.
    temporary = tempfile.mkdtemp(dir=caches)
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(temporary, [name for name in file.namelist() if name.startswith(CARGO)])
        os.rename(os.path.join(temporary, CARGO), folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder
