"""What a study computes on one machine, on the whole instance: annealing and a certified bound.

Both read the datasets of a full-scale instance without Spark (:func:`spark.compare_local.read_local`) and run the local
method with a time limit. The instance must fit into the memory of the driver.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.formulations.certificates.certificate import write_certificate
from relocbench.instances.files.atomic_write import folder_written_whole
from relocbench.instances.kernels.id_hash import IdArray
from relocbench.instances.kernels.ragged import IntArray
from relocbench.runs.certify import certify
from relocbench.runs.methods import Selector
from relocbench.runs.solve import solve_here
from relocbench.spark.compare_local import read_local


def solve_locally(instance: Path, selector: Selector, seed: int, time_limit: float, homes: Path) -> None:
    """Run a local method and write its homes.

    Parameters
    ----------
    instance
        The folder of a full-scale instance.
    selector
        The method.
    seed
        Its seed.
    time_limit
        Seconds, without reading and compiling.
    homes
        The dataset to write.
    """
    local, ids = read_local(instance)
    write_homes(homes, ids, solve_here(local, selector, seed=seed, time_limit=time_limit).home)


def certify_locally(
    instance: Path, start: IntArray | None, seed: int, time_limit: float, homes: Path, certificate: Path
) -> float:
    """Prove a lower bound, and write the certificate and the best homes.

    Parameters
    ----------
    instance
        The folder of a full-scale instance.
    start
        Homes to start from, in the order of the clients' ids; None for the nearest servers.
    seed
        The seed of the search.
    time_limit
        Seconds, including the verification of the certificate.
    homes, certificate
        The dataset and the file to write.

    Returns
    -------
    float
        The lower bound on ``ΣD``.
    """
    local, ids = read_local(instance)
    found = certify(local, seed=seed, time_limit=time_limit, start=start)
    write_certificate(found.certificate, certificate)
    write_homes(homes, ids, found.home)
    return found.bound


def write_homes(folder: Path, ids: IdArray, home: IntArray) -> None:
    """Write a dataset of homes without Spark.

    Parameters
    ----------
    folder
        The dataset. An existing one is replaced.
    ids, home
        The id and the home of each client.
    """
    table = pa.table({"client": pa.array(ids, pa.int64()), "home": pa.array(np.asarray(home, np.int32))})
    with folder_written_whole(folder) as temporary:
        temporary.mkdir()
        pq.write_table(table, temporary / "part-0.parquet")
