"""The project's code on the executors of a cluster.

:func:`ship` writes an archive and hands it to Spark. Imported out of the archive the code would work as well, but
numba's cache, which goes by the paths of files, would miss: every process would compile anew. So the archive holds a
stub of the package that calls :func:`arrive`, which unpacks the code into a folder of its own on that machine. This
module travels beside the package, under another name, and therefore imports nothing of it.
"""

import hashlib
import importlib
import importlib.metadata
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Where in the archive the package is.
CARGO = "cargo/"
# What executors need; the command and the reports stay here.
PACKAGE = Path(__file__).parent.parent
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark")
STUB = """from relocbench_code_shipping import arrive
from relocbench_cache_folder import cache_folder

arrive(__name__, __loader__.archive, cache_folder("code"))
"""


def ship(spark: "SparkSession", folder: Path) -> None:
    """Hand the code of this process to the executors of a session; ``folder`` keeps the archive meanwhile."""
    archive = folder / "relocbench.zip"
    write_archive(archive)
    spark.sparkContext.addPyFile(str(archive))
    # Spark imports from it in this process, too; here, however, the code is as it was installed.
    sys.path[:] = [entry for entry in sys.path if Path(entry).name != archive.name]


def write_archive(path: Path) -> None:
    """Write the archive; the same code is the same bytes."""
    content = {"relocbench/__init__.py": STUB.encode()}
    content["relocbench_code_shipping.py"] = Path(__file__).read_bytes()
    content["relocbench_cache_folder.py"] = (PACKAGE / "instances" / "kernels" / "cache_folder.py").read_bytes()
    shipped = [PACKAGE / "__init__.py", *(file for room in ROOMS for file in (PACKAGE / room).rglob("*.py"))]
    for file in sorted(shipped):
        content[f"{CARGO}relocbench/{file.relative_to(PACKAGE).as_posix()}"] = file.read_bytes()
    content |= _metadata()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)  # the info: without today's date


def _metadata() -> dict[str, bytes]:
    """Return what names the packages this one uses: runs tell the versions of those."""
    try:
        found = importlib.metadata.distribution("relocbench")
    except importlib.metadata.PackageNotFoundError:  # run from a plain checkout
        return {}
    text = found.read_text("METADATA") or ""
    return {f"{CARGO}relocbench-{found.version}.dist-info/METADATA": text.encode()}


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
