"""The project's code as an archive that Spark hands to every executor."""

import importlib.metadata
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from spark.arrival import CARGO

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOMS = ("instances", "heuristics", "formulations", "relocbench", "spark")
HERE = Path(__file__).parent.parent
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
    content = {f"{room}/__init__.py": STUB.encode() for room in ROOMS}
    content["relocbench_arrival.py"] = (HERE / "spark" / "arrival.py").read_bytes()
    content["relocbench_caches.py"] = (HERE / "instances" / "caches.py").read_bytes()
    for room in ROOMS:
        for file in sorted((HERE / room).rglob("*.py")):
            content[CARGO + file.relative_to(HERE).as_posix()] = file.read_bytes()
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
