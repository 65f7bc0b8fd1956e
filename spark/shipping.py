"""The project's code as an archive that Spark hands to every executor."""

import importlib.metadata
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from relocbench.spark.arrival import CARGO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What executors need; the command and the reports stay here.
PACKAGE = Path(__file__).parent.parent
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark")
STUB = """from relocbench_arrival import arrive
from relocbench_caches import cache_folder

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
    content["relocbench_arrival.py"] = (PACKAGE / "spark" / "arrival.py").read_bytes()
    content["relocbench_caches.py"] = (PACKAGE / "instances" / "kernels" / "cache_folder.py").read_bytes()
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
