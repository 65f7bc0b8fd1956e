"""Comparison of Spark's homes with those of the local method. The full-scale datasets are read without Spark."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from relocbench.heuristics import nearest, otos
from relocbench.heuristics.clusters import make_clusters
from relocbench.heuristics.reloc import (
    Related,
    Steps,
    auto_counts,
    factor_relations,
    loop_rules,
    relation_finder,
    run_clusters,
)
from relocbench.heuristics.reloc_tasks import cluster_tasks
from relocbench.instances.errors import InputError, reason
from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.id_hash import IdArray
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.spark.assign import RelocOptions
from relocbench.spark.checkpoints import INPUTS_KEY, read_record
from relocbench.spark.locations import Location, arrow_file
from relocbench.spark.membership_roles import lists_by_role, role_columns, roles_of
from relocbench.spark.pipeline import CHOSEN_KEY, FACTORS, FACTORS_KEY, RESULTS
from relocbench.spark.placement import read_field


@dataclass(frozen=True)
class Comparison:
    """The difference between an assignment computed by Spark and one computed locally.

    Attributes
    ----------
    clients
        The number of clients.
    different
        The number of clients whose homes differ.
    objective, local_objective
        ``ΣD`` as Spark computed it, and ``ΣD`` of the local homes.
    """

    clients: int
    different: int
    objective: float
    local_objective: float

    @property
    def equal(self) -> bool:
        """Whether all homes are equal, and the objectives agree to nine digits."""
        return not self.different and abs(self.objective - self.local_objective) <= 1e-9 * abs(self.local_objective)


def read_local(folder: Location) -> tuple[Instance, IdArray]:
    """Read a full-scale instance as an ordinary one. It must fit into memory.

    Parameters
    ----------
    folder
        A folder that ``relocbench spark reloc`` wrote.

    Returns
    -------
    instance
        The instance, with clients and topics numbered in the order of their ids.
    ids
        The id of each client.
    """
    field, inputs = read_field(folder / "field"), read_record(folder / "field")[INPUTS_KEY]
    columns = ["client", "x", "y", "topic", "position", "size", *role_columns(field.roles)]
    clients = _read(folder / "field" / "clients", columns).sort_by("client")
    ids = clients["client"].to_numpy()
    degree = clients["topic"].combine_chunks().value_lengths().to_numpy(zero_copy_only=False)
    member = np.repeat(np.arange(len(ids), dtype=np.int32), degree)
    topic, position = _flat(clients, "topic"), _flat(clients, "position")
    order = np.lexsort((position, topic))
    _, index, size = np.unique(topic[order], return_inverse=True, return_counts=True)
    role = roles_of(clients, _flat(clients, "size")).role
    publishers, subscribers = lists_by_role(index, member[order], role[order], len(size))
    instance = Instance(
        name=folder.resolve().name if isinstance(folder, Path) else folder.name,
        cloud_delay=field.cloud_delay,
        delay_per_km=field.delay_per_km,
        server_x=field.server_x,
        server_y=field.server_y,
        storage_capacity=field.storage_capacity,
        compute_capacity=field.compute_capacity,
        client_x=clients["x"].to_numpy(),
        client_y=clients["y"].to_numpy(),
        spool=field.spool_per_member * size.astype(np.float64),
        publishers=publishers,
        subscribers=subscribers,
        parameters=inputs,
    )
    return instance, ids


def local_ids(folder: Location) -> IdArray:
    """Read the ids of the clients of a full-scale instance.

    Parameters
    ----------
    folder
        A folder that ``relocbench spark reloc`` wrote.

    Returns
    -------
    numpy.ndarray
        The ids, sorted.
    """
    return np.sort(_read(folder / "field" / "clients", ["client"])["client"].to_numpy())


def read_homes(folder: Location, ids: IdArray) -> IntArray:
    """Read a dataset of homes.

    Parameters
    ----------
    folder
        The Parquet dataset.
    ids
        The ids of the clients, sorted.

    Returns
    -------
    numpy.ndarray
        The home of each client, in the order of ``ids``.

    Raises
    ------
    InputError
        If the dataset cannot be read or does not have exactly one row for each client.
    """
    table = _read(folder, ["client", "home"]).sort_by("client")
    if not np.array_equal(table["client"].to_numpy(), ids):
        raise InputError(str(folder), f"expected one home for each of {len(ids)} clients, got {len(table)} rows")
    return np.asarray(table["home"].to_numpy(), np.int32)


def read_factors(folder: Location, ids: IdArray) -> FloatArray:
    """Read a dataset of factors.

    Parameters
    ----------
    folder, ids
        As for :func:`read_homes`.

    Returns
    -------
    numpy.ndarray
        One row of factors for each client.

    Raises
    ------
    InputError
        If the dataset cannot be read or does not have exactly one row for each client.
    """
    table = _read(folder, ["client", "factors"]).sort_by("client")
    if not np.array_equal(table["client"].to_numpy(), ids):
        raise InputError(str(folder), f"expected factors for each of {len(ids)} clients, got {len(table)} rows")
    flat = table["factors"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(flat.reshape(len(ids), -1))


def local_homes(folder: Location, result: Location, instance: Instance, ids: IdArray) -> IntArray:
    """Run the local method with the options that the Spark run had.

    RELOC by factors uses the factors in the folder. The local factorisation would compute others.

    Parameters
    ----------
    folder
        A folder that ``relocbench spark reloc`` or ``relocbench spark study`` wrote.
    result
        The folder of the result in it.
    instance, ids
        What :func:`read_local` returned for the folder.

    Returns
    -------
    numpy.ndarray
        The home of each client.

    Raises
    ------
    InputError
        If the method is not RELOC, NS or OTOS. The draws of ``random`` differ between Spark and the local method.
    """
    record = read_record(result)
    method = record[INPUTS_KEY]["method"]
    if method == "nearest":
        return nearest.solve(instance, seed=0, time_limit=0.0).home
    if method == "otos":
        return otos.solve(instance, seed=0, time_limit=0.0).home
    if method != "reloc":
        raise InputError(str(result), f"expected reloc, nearest or otos, got {method}: nothing local to compare with")
    options = RelocOptions.of_record(record[INPUTS_KEY])
    related: Related | None
    if options.needs_factors:
        factors = read_factors(folder / record.get(FACTORS_KEY, FACTORS) / "factors", ids)
        related = factor_relations(factors, options, options.related, options.seed)
    else:
        related = relation_finder(instance, options, options.related, options.seed)
    steps, visits = Steps(related, loop_rules(options)), options.visits(ids, _topic_ids(folder))

    def homes(count: int) -> IntArray:
        tasks = cluster_tasks(instance, make_clusters(instance, count, options.seed), visits=visits)
        return run_clusters(instance, tasks, steps, threads=2)

    if CHOSEN_KEY not in record:
        return homes(options.k)
    # k=auto: the first of the cheapest.
    return min(map(homes, auto_counts(instance.n_servers)), key=lambda home: evaluate(instance, home).objective)


def compare(folder: Location, method: str) -> Comparison:
    """Run a method locally and compare its homes and objective with those that Spark wrote.

    Parameters
    ----------
    folder
        A folder that ``relocbench spark reloc`` or ``relocbench spark study`` wrote.
    method
        ``reloc``, ``nearest`` or ``otos``, or the name of a folder in ``results``.

    Returns
    -------
    Comparison
        How many homes differ, and both objectives.
    """
    instance, ids = read_local(folder)
    result = next((path for path in (folder / method, folder / RESULTS / method) if path.is_dir()), folder / method)
    record = read_record(result)
    with_homes = folder / RESULTS / record[CHOSEN_KEY] if CHOSEN_KEY in record else result
    homes = read_homes(with_homes / "homes", ids)
    local = local_homes(folder, result, instance, ids)
    different = int(np.count_nonzero(homes != local))
    return Comparison(len(ids), different, record["objective"], evaluate(instance, local).objective)


def _topic_ids(folder: Location) -> IdArray:
    return np.unique(_flat(_read(folder / "field" / "clients", ["topic"]), "topic"))


def _flat(table: pa.Table, name: str) -> IdArray:
    return np.asarray(table[name].combine_chunks().flatten().to_numpy(zero_copy_only=False), np.int64)


def _read(folder: Location, columns: list[str]) -> pa.Table:
    system, path = arrow_file(folder)
    try:
        return pq.read_table(path, columns=columns, filesystem=system)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(str(folder), f"cannot be read as Parquet ({reason(error)})") from error
