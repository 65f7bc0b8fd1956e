"""Shipping the code of this project to the executors of a cluster.

:func:`ship` writes an archive and passes it to Spark. Code can be imported from inside an archive, but the
cache of kernels is found by the content of source files on disk, so that every process would compile them anew.
Therefore the archive holds a stub of the package. The stub calls :func:`import_unpacked`, which unpacks the code into a
folder of the executor's machine and imports it from there. The stub needs this module before the package exists: the
archive holds a copy of it under another name, and the module imports nothing from the package.
"""

import hashlib
import importlib
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVE = "relocbench.zip"
# Folder of the archive that holds the package itself.
PACKAGE_PREFIX = "package/"
PACKAGE = Path(__file__).parent.parent
# The parts of the package that executors need. Commands and reports run in the driver only.
SHIPPED_PARTS = ("instances", "heuristics", "formulations", "runs", "spark")
STUB = """from relocbench_code_shipping import import_unpacked
from relocbench_cache_folder import cache_folder

import_unpacked(__name__, __loader__.archive, cache_folder("code"))
"""


def ship(spark: "SparkSession") -> None:
    """Send the code of this process to the executors of a session, unless that has been done already.

    Parameters
    ----------
    spark
        The session. Nothing is sent if its executors are on this machine.
    """
    from pyspark import SparkFiles

    context = spark.sparkContext
    if re.match(r"local(\[|$)", context.master or "") or ARCHIVE in (context._python_includes or ()):
        return
    # Executors fetch the archive from the driver whenever they start. This folder exists as long as the session.
    folder = Path(SparkFiles.getRootDirectory()) / "relocbench-code"
    folder.mkdir(exist_ok=True)
    archive = folder / ARCHIVE
    write_archive(archive)
    context.addPyFile(str(archive))
    # Spark adds the archive to the import path of this process too, but here the installed code must be used.
    sys.path[:] = [entry for entry in sys.path if Path(entry).name != archive.name]


def write_archive(path: Path) -> None:
    """Write the archive. The same code always gives the same bytes.

    Parameters
    ----------
    path
        The file to write.
    """
    content = {"relocbench/__init__.py": STUB.encode()}
    content["relocbench_code_shipping.py"] = Path(__file__).read_bytes()
    content["relocbench_cache_folder.py"] = (PACKAGE / "instances" / "kernels" / "cache_folder.py").read_bytes()
    shipped = [PACKAGE / "__init__.py", *(file for part in SHIPPED_PARTS for file in (PACKAGE / part).rglob("*.py"))]
    for file in sorted(shipped):
        content[f"{PACKAGE_PREFIX}relocbench/{file.relative_to(PACKAGE).as_posix()}"] = file.read_bytes()
    content |= _metadata()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            # A ZipInfo has a constant date. A plain name would get the date of today.
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def import_unpacked(package: str, archive: str, caches: Path) -> None:
    """Unpack the archive and import the package from its folder in place of the stub that calls this function.

    Parameters
    ----------
    package
        The name of the package.
    archive
        The path of the archive.
    caches
        The folder below which the archive is unpacked.
    """
    folder = str(unpack_archive(archive, caches))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    del sys.modules[package]
    importlib.invalidate_caches()
    importlib.import_module(package)


def unpack_archive(archive: str, caches: Path) -> Path:
    """Unpack the archive unless an earlier process has done so.

    Parameters
    ----------
    archive, caches
        As for :func:`import_unpacked`.

    Returns
    -------
    pathlib.Path
        The folder with the content of the archive. Its name is a hash of the archive.
    """
    folder = caches / hashlib.sha256(Path(archive).read_bytes()).hexdigest()[:16]
    if folder.is_dir():
        return folder
    # Several processes may start at once. Each unpacks into its own folder, and the first to finish renames that.
    temporary = tempfile.mkdtemp(dir=caches)
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(temporary, [name for name in file.namelist() if name.startswith(PACKAGE_PREFIX)])
        os.rename(os.path.join(temporary, PACKAGE_PREFIX), folder)
    except OSError:
        if not folder.is_dir():
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _metadata() -> dict[str, bytes]:
    """Return the package metadata. It names the dependencies whose versions each run records."""
    try:
        distribution = importlib.metadata.distribution("relocbench")
    except importlib.metadata.PackageNotFoundError:  # the package is used without being installed
        return {}
    text = distribution.read_text("METADATA") or ""
    return {f"{PACKAGE_PREFIX}relocbench-{distribution.version}.dist-info/METADATA": text.encode()}
