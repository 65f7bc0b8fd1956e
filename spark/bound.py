"""A certified lower bound at full scale: the dual of the relaxation is improved in blocks and verified in blocks.

The dual is a dataset with the messages along all pairs of clients that share a topic (:mod:`spark.dual_tables`). In
each round the clients are divided into blocks, in another way than before. A block improves the messages between its
own clients (:mod:`formulations.bounding.block_relaxation`); those across its border are fixed, so the bounds of the
blocks add up and the whole bound cannot fall. In the end the exact verifier computes each block's part of the bound in
integers (:mod:`formulations.certificates.block_bound`), and the driver adds them up.
"""

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relocbench.formulations.bounding.block_relaxation import improve_block, likely_labels
from relocbench.formulations.certificates.block_bound import UNIT_BITS, block_bound, check_delegation
from relocbench.formulations.certificates.verification import rounded_down
from relocbench.heuristics.anneal_region import divide_regions
from relocbench.instances.errors import InputError
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.kernels.random_streams import stream
from relocbench.instances.region_state import RegionState
from relocbench.spark.checkpoints import INPUTS_KEY, read_dataset, read_record, run_once, write_dataset
from relocbench.spark.dual_tables import (
    block_rows,
    dual_schema,
    first_dual,
    lists,
    read_block,
    server_delays,
    with_messages,
)
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.locations import Location, relative_to
from relocbench.spark.placement import Field, read_field
from relocbench.spark.region_tables import read_region, region_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LABELS_SCHEMA = "client bigint, home int, labels array<int>"
PARTS_SCHEMA = "own bigint, part string"
# Entries that the record of a bound has.
BOUND_ENTRIES = ("bound", "claim")
# The number of evaluations of the bound of a block in each round.
CHECKS = 3


@dataclass(frozen=True)
class BoundOptions:
    """Options of a bound at full scale.

    Attributes
    ----------
    rounds
        The number of rounds.
    labels
        The number of servers for which each client has messages. All other servers count too, with messages that follow
        from these.
    sweeps
        The number of sweeps of block coordinate ascent over all pairs of a block in each round.
    iterations
        The number of iterations of the first-order method after these sweeps; 0 for none.
    region_clients
        The mean number of clients of a block.
    seed
        The seed of the blocks.
    """

    rounds: int = 8
    labels: int = 12
    sweeps: int = 10
    iterations: int = 0
    region_clients: int = 60_000
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "labels", "sweeps", "region_clients"):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise InputError(f"--{option}", f"expected at least 1, got {getattr(self, name)}")

    def regions(self, field: Field, number: int) -> IntArray:
        """Return the region of each server in a round.

        Parameters
        ----------
        field
            The servers and the number of clients.
        number
            The number of the round.

        Returns
        -------
        array
            The regions. Every second round joins cells from different parts of the field, so that clients far from each
            other come into one block.
        """
        servers = len(field.server_x)
        regions = max(1, min(servers // 2, round(field.clients / self.region_clients)))
        if regions == 1:
            return np.zeros(servers, np.int32)
        if number % 2 == 0:
            return divide_regions(field.server_x, field.server_y, regions, self.seed, number)
        cells = divide_regions(field.server_x, field.server_y, min(servers // 2, 4 * regions), self.seed, number)
        n_cells = int(cells.max()) + 1
        joined = stream("cells", self.seed, number).permutation(n_cells) % regions
        return joined[cells].astype(np.int32)


def bound_folder(
    spark: "SparkSession",
    folder: Location,
    homes: Location,
    options: BoundOptions,
    on_round: Callable[[int, float], None] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Compute a lower bound on the cost of all assignments, and verify it.

    Parameters
    ----------
    spark
        The session.
    folder
        A folder that ``relocbench spark reloc`` wrote. The dual goes to ``bound/dual`` in it, and that of each round to
        ``bound/rounds``. Rounds that exist are not repeated.
    homes
        A dataset of good homes, from which the servers with messages and the blocks are chosen.
    options
        The options.
    on_round
        Called after each round with its number and the bound, in floating point.

    Returns
    -------
    record
        The verified ``bound``, its exact value in units of ``2^-unit_bits`` (``claim``), the cost of the homes
        (``objective``), and the ``gap``.
    existed
        Whether the bound had been computed by an earlier call.

    Raises
    ------
    InputError
        If delegation could make an assignment cheaper: then capacities may not be ignored in a bound.
    """
    require_delegation(read_field(folder / "field"))
    out = folder / "bound"
    return run_once(
        out,
        _inputs(folder, homes, options),
        lambda: bound_rounds(spark, folder, out, homes, options, on_round),
    )


def require_delegation(field: Field) -> None:
    """Refuse a field in which capacities may not be ignored in a bound.

    Parameters
    ----------
    field
        The servers and delays.

    Raises
    ------
    InputError
        If delegation could make an assignment cheaper.
    """
    check_delegation(field.cloud_delay, server_delays(field))


def bound_rounds(
    spark: "SparkSession",
    folder: Location,
    out: Location,
    homes: Location,
    options: BoundOptions,
    on_round: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Run the rounds that are missing, write the dual, and verify the bound that it proves.

    Parameters
    ----------
    spark, folder, homes, options, on_round
        As for :func:`bound_folder`.
    out
        The folder to write ``dual`` and ``rounds`` to.

    Returns
    -------
    dict
        The record of :func:`bound_folder`, without its inputs.
    """
    field = read_field(folder / "field")
    clients = read_dataset(spark, folder / "field" / "clients")
    inputs = _inputs(folder, homes, options)
    count = min(options.labels, len(field.server_x))

    def first() -> dict[str, Any]:
        at = out / "rounds" / "start"
        good = read_dataset(spark, homes).select("client", "home")
        evaluation = evaluate_homes(clients, good, field, homes)
        region = divide_regions(
            field.server_x, field.server_y, max(1, min(len(field.server_x) // 2, field.clients // 10_000)), 0, 0
        )
        loads = np.array([evaluation.storage_load, evaluation.compute_load, evaluation.sent, evaluation.spread])
        rows = region_rows(clients, good, field, region).groupBy("region")
        write_dataset(rows.applyInArrow(_labels_task(field, region, loads, count), LABELS_SCHEMA), at / "labels")
        labels = read_dataset(spark, at / "labels")
        write_dataset(first_dual(clients, labels, field, count), at / "dual")
        return {"objective": evaluation.objective, "Y": evaluation.y}

    def improve(number: int, before: Location) -> dict[str, Any]:
        region = options.regions(field, number)
        good, dual = read_dataset(spark, homes), read_dataset(spark, before / "dual").where("topic IS NOT NULL")
        rows = block_rows(clients, good, dual, field, region).groupBy("region")
        at = out / "rounds" / f"{number + 1:04}" / "dual"
        # Rows of the dual have a topic. One more row for each block has its part of the bound before and after.
        schema = f"{dual_schema(field)}, before double, after double"
        write_dataset(rows.applyInArrow(_improve_task(field, region, options, count), schema), at)
        parts = sorted(
            (row["before"], row["after"]) for row in read_dataset(spark, at).where("topic IS NULL").collect()
        )
        return {"before": sum(part[0] for part in parts), "after": sum(part[1] for part in parts), "blocks": len(parts)}

    before, record = out / "rounds" / "start", run_once(out / "rounds" / "start", inputs, first)[0]
    objective, mean_delay = record["objective"], record["Y"]
    for number in range(options.rounds):
        now = out / "rounds" / f"{number + 1:04}"
        at = before
        record = run_once(now, inputs | {"round": number + 1}, functools.partial(improve, number, at))[0]
        before = now
        if on_round is not None:
            on_round(number + 1, record["after"])
    dual = read_dataset(spark, before / "dual").where("topic IS NOT NULL")
    region = options.regions(field, 0)
    rows = block_rows(clients, read_dataset(spark, homes), dual, field, region).groupBy("region")
    write_dataset(rows.applyInArrow(_collect_task(field, region, count), dual_schema(field)), out / "dual")
    claim = verified_sum(spark, folder, out / "dual", homes, count)
    bound = rounded_down(Fraction(claim, 1 << UNIT_BITS))
    values = {"bound": bound, "claim": str(claim), "unit_bits": UNIT_BITS, "objective": objective, "Y": mean_delay}
    return values | {"gap": (objective - bound) / objective if objective else 0.0}


def _inputs(folder: Location, homes: Location, options: BoundOptions) -> dict[str, Any]:
    return {**asdict(options), "homes": relative_to(homes, folder)}


def verify_folder(
    spark: "SparkSession", folder: Location, bound: Location | None = None
) -> tuple[bool, dict[str, Any], float]:
    """Verify a bound again, from the datasets alone.

    Parameters
    ----------
    spark
        The session.
    folder
        The folder of the instance.
    bound
        The folder of the bound, which :func:`bound_rounds` wrote to; by default ``bound`` in that of the instance.

    Returns
    -------
    proved
        Whether the dual proves the claim, and the recorded bound is not above the claim.
    record
        The record with the claim.
    found
        The bound that the dual proves.
    """
    bound = folder / "bound" if bound is None else bound
    record = read_record(bound, "spark bound", BOUND_ENTRIES)
    field = read_field(folder / "field")
    require_delegation(field)
    # A study notes the homes that it chose as a result, not as an input.
    inputs = record | record[INPUTS_KEY]
    count = min(int(inputs["labels"]), len(field.server_x))
    found = verified_sum(spark, folder, bound / "dual", folder / inputs["homes"], count)
    proved = found >= int(record["claim"]) and Fraction(record["bound"]) <= Fraction(
        int(record["claim"]), 1 << UNIT_BITS
    )
    return proved, record, rounded_down(Fraction(found, 1 << UNIT_BITS))


def verified_sum(
    spark: "SparkSession", folder: Location, dual: Location, homes: Location, count: int, block_clients: int = 4000
) -> int:
    """Compute exactly, in blocks, what the dual of a folder proves.

    Parameters
    ----------
    spark
        The session.
    folder
        The folder of the instance.
    dual
        The dataset of the dual.
    homes
        The homes by which clients are divided into blocks. They do not influence the bound.
    count
        The number of active servers of each client.
    block_clients
        The mean number of clients of a block.

    Returns
    -------
    int
        The bound in units of ``2^-UNIT_BITS``.

    Raises
    ------
    InputError
        If the dual does not belong to the instance. Tasks raise it too.
    """
    field = read_field(folder / "field")
    clients = read_dataset(spark, folder / "field" / "clients")
    # A client with two rows would be counted twice, in the place of one that has none.
    good = read_dataset(spark, homes).dropDuplicates(["client"])
    messages = read_dataset(spark, dual)
    servers = len(field.server_x)
    region = divide_regions(
        field.server_x, field.server_y, max(1, min(servers // 2, -(-field.clients // block_clients))), 0, 0
    )

    def verify(table: pa.Table) -> pa.Table:
        block, _, _, _ = read_block(table, field, count)
        return pa.table({"own": pa.array([block.own], pa.int64()), "part": [str(block_bound(block))]})

    rows = block_rows(clients, good, messages, field, region).groupBy("region")
    parts = rows.applyInArrow(verify, PARTS_SCHEMA).collect()
    own = sum(row["own"] for row in parts)
    if own != field.clients:
        raise InputError(str(homes), f"expected one home for each of {field.clients} clients, got {own}")
    return sum(int(row["part"]) for row in parts)


def _labels_task(field: Field, region: IntArray, loads: FloatArray, count: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that chooses the active servers of the clients of a region."""

    def choose(table: pa.Table) -> pa.Table:
        ids, instance, home, around = read_region(table, field, region, loads)
        labels = likely_labels(RegionState(instance, home, around), count)
        return pa.table(
            {"client": ids, "home": home, "labels": lists(np.full(len(ids), count, np.int64), labels.ravel())}
        )

    return choose


def _improve_task(field: Field, region: IntArray, options: BoundOptions, count: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that improves the messages of one block."""

    def improve(table: pa.Table) -> pa.Table:
        number = table["region"][0].as_py()
        block, home, start, topics = read_block(table, field, count, add=True)
        free = (block.first < block.own) & (block.second < block.own)
        result = improve_block(block, home, free, options.sweeps, options.iterations, CHECKS)
        # One block keeps the topic: the one with its first member. The others send what they changed.
        homes = topics["member_home"].combine_chunks()
        first = np.cumsum(homes.value_lengths().to_numpy()) - homes.value_lengths().to_numpy()
        keeps = region[homes.flatten().to_numpy()[first]] == number
        change = result.messages - block.messages
        changed = np.zeros(len(topics), np.bool_)
        changed[block.topic[change.any(axis=1)]] = True
        messages = np.where(keeps[block.topic][:, None], result.messages, change)
        sent = with_messages(topics, np.diff(start) * count, messages.ravel()).filter(pa.array(keeps | changed))
        none = pa.nulls(len(sent), pa.float64())
        sent = sent.append_column("before", none).append_column("after", none)
        return pa.concat_tables([sent, _part_row(topics.schema, result.before, result.after)])

    return improve


def _collect_task(field: Field, region: IntArray, count: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that adds up the rows of each topic, in the block of its first member."""

    def collect(table: pa.Table) -> pa.Table:
        _, _, _, topics = read_block(table, field, count, add=True)
        homes = topics["member_home"].combine_chunks()
        first = np.cumsum(homes.value_lengths().to_numpy()) - homes.value_lengths().to_numpy()
        return topics.filter(pa.array(region[homes.flatten().to_numpy()[first]] == table["region"][0].as_py()))

    return collect


def _part_row(schema: pa.Schema, before: float, after: float) -> pa.Table:
    columns = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
    return pa.table(columns | {"before": [before], "after": [after]})
