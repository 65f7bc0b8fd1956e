"""A certified lower bound at full scale: the dual of the relaxation is improved in blocks and verified in blocks.

The dual is a dataset with the messages along all pairs of clients that share a topic (:mod:`spark.dual_tables`). In
each round the clients are divided into blocks, in another way than before. A block improves the messages between its
own clients (:mod:`formulations.bounding.block_relaxation`). Those across its border are fixed, so the bounds of the
blocks add up. Where capacities may bind, they have multipliers, which are the same in all blocks. A block improves them
for its part of the capacities, and the driver passes their means on. In the end the exact verifier computes each
block's part of the bound in integers (:mod:`formulations.certificates.block_bound`), and the driver adds them up.
"""

import math
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relocbench.formulations.bounding.block_relaxation import (
    BlockResult,
    Capacities,
    fitted_shares,
    improve_block,
    likely_labels,
)
from relocbench.formulations.certificates.block_bound import (
    UNIT_BITS,
    DualBlock,
    Multipliers,
    block_bound,
    check_delegation,
    triangle_violation,
)
from relocbench.formulations.certificates.integer_problem import BoolArray
from relocbench.formulations.certificates.packed_arrays import Int64Array
from relocbench.formulations.certificates.verification import rounded_down
from relocbench.heuristics.anneal_region import divide_regions
from relocbench.instances.checks import LARGEST_CAPACITY
from relocbench.instances.errors import InputError, shown
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
    with_numbers,
)
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.locations import Location, relative_to
from relocbench.spark.placement import Field, read_field
from relocbench.spark.region_tables import read_region, region_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# A round adds these columns to a dual. Rows of the dual have a topic. One more row for each block has its part of the
# bound before and after the round, its multipliers (those of storage, then those of compute) and its loads in the same
# order.
PART_SCHEMA = "before double, after double, multipliers array<bigint>, load array<double>"
LABELS_SCHEMA = "client bigint, home int, labels array<int>"
PARTS_SCHEMA = "own bigint, topics bigint, part string"
_PART_COLUMNS = {
    "before": pa.float64(),
    "after": pa.float64(),
    "multipliers": pa.list_(pa.int64()),
    "load": pa.list_(pa.float64()),
}
# Entries that the record of a bound has.
BOUND_ENTRIES = ("bound", "claim")
# The version of the certificate. The first one had no multipliers, and other messages to inactive servers.
VERSION = 2
# The temperatures of the first and of the last round, in mean delays of the given homes.
FIRST_HEAT, LAST_HEAT = 0.05, 0.004
# Capacities get multipliers if the given homes use more than this share of one of them.
PRICED_FROM = 0.5


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
        The number of sweeps of block coordinate ascent over all clients of a block in each round.
    region_clients
        The mean number of clients of a block.
    seed
        The seed of the blocks.
    """

    rounds: int = 8
    labels: int = 12
    sweeps: int = 4
    region_clients: int = 400_000
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
        If delegation could make an assignment cheaper.
    """
    check_bounded(read_field(folder / "field"))
    out = folder / "bound"
    return run_once(
        out,
        _inputs(folder, homes, options),
        lambda: bound_rounds(spark, folder, out, homes, options, on_round),
    )


def check_bounded(field: Field) -> None:
    """Refuse a field for which this module has no bound.

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
        sums = np.array([evaluation.storage_load, evaluation.compute_load, evaluation.sent, evaluation.spread])
        rows = region_rows(clients, good, field, region).groupBy("region")
        write_dataset(rows.applyInArrow(_labels_task(field, region, sums, count), LABELS_SCHEMA), at / "labels")
        labels = read_dataset(spark, at / "labels")
        loads = (evaluation.storage_load, field.storage_capacity), (evaluation.compute_load, field.compute_capacity)
        priced = any(bool((load > PRICED_FROM * capacity).any()) for load, capacity in loads)
        write_dataset(first_dual(clients, labels, field, count, priced), at / "dual")
        none = [0] * len(field.server_x)
        values = {"objective": evaluation.objective, "Y": evaluation.y}
        return {**values, "priced": priced, "alpha": none, "beta": none}

    before, record = out / "rounds" / "start", run_once(out / "rounds" / "start", inputs, first)[0]
    start, states = record, [(before, record)]
    for number in range(options.rounds):
        now = out / "rounds" / f"{number + 1:04}"
        work = _Round(spark, clients, field, homes, options, number, before, record, start["Y"], now)
        before, record = now, run_once(now, inputs | {"round": number + 1}, work.run)[0]
        states.append((before, record))
        if on_round is not None:
            on_round(number + 1, record["after"])
    # If several blocks changed multipliers in a round, each its own ones, only the next round knows the bound after it:
    # that round begins with their means.
    values = [after["before"] for _, after in states[1:]] + [record["after"]]
    before, record = states[int(np.argmax(values))]
    multipliers = _multipliers(record, field)
    dual = read_dataset(spark, before / "dual").where("topic IS NOT NULL")
    region = options.regions(field, 0)
    rows = block_rows(clients, read_dataset(spark, homes), dual, field, region).groupBy("region")
    write_dataset(
        rows.applyInArrow(_collect_task(field, region, count, multipliers), dual_schema(field.roles)), out / "dual"
    )
    claim = verified_sum(spark, folder, out / "dual", homes, count, multipliers)
    bound = rounded_down(Fraction(claim, 1 << UNIT_BITS))
    objective = start["objective"]
    values_of_bound = {"bound": bound, "claim": str(claim), "unit_bits": UNIT_BITS, "objective": objective}
    return {
        **values_of_bound,
        "Y": start["Y"],
        "gap": (objective - bound) / objective if objective else 0.0,
        "version": VERSION,
        "alpha": list(multipliers.alpha),
        "beta": list(multipliers.beta),
    }


def _multipliers(record: dict[str, Any], field: Field) -> Multipliers:
    """Return the multipliers of a record."""
    servers = len(field.server_x)
    for name in ("alpha", "beta"):
        values = record.get(name)
        if not isinstance(values, list) or len(values) != servers:
            raise InputError(name, f"expected a list of {servers} multipliers")
    return Multipliers(tuple(record["alpha"]), tuple(record["beta"]))


@dataclass(frozen=True, eq=False)
class _Round:
    """One round: the dual before it with its record, and the folder of the dual after it."""

    spark: "SparkSession"
    clients: "DataFrame"
    field: Field
    homes: Location
    options: BoundOptions
    number: int
    before: Location
    record: dict[str, Any]
    mean_delay: float
    folder: Location

    def run(self) -> dict[str, Any]:
        """Improve all blocks, write their duals, and return the bounds, the multipliers and the loads."""
        field, options = self.field, self.options
        region = options.regions(field, self.number)
        dual = read_dataset(self.spark, self.before / "dual").where("topic IS NOT NULL")
        rows = block_rows(self.clients, read_dataset(self.spark, self.homes), dual, field, region).groupBy("region")
        multipliers = _multipliers(self.record, field)
        task = _improve_task(field, region, options, multipliers, self._temperature(), self._capacities(region))
        write_dataset(rows.applyInArrow(task, f"{dual_schema(field.roles)}, {PART_SCHEMA}"), self.folder / "dual")
        found = read_dataset(self.spark, self.folder / "dual").where("topic IS NULL").select(*_PART_COLUMNS).collect()
        parts = sorted([row["before"], row["after"], row["multipliers"], row["load"]] for row in found)
        load = np.sum([part[3] for part in parts], axis=0)
        after = _mean_multipliers([part[2] for part in parts], [part[3] for part in parts])
        lost = [
            float(Fraction(each.capacity_cost(field.storage_capacity, field.compute_capacity), 1 << UNIT_BITS))
            for each in (multipliers, after)
        ]
        return {
            "before": sum(part[0] for part in parts) - lost[0],
            "after": sum(part[1] for part in parts) - lost[1],
            "blocks": len(parts),
            "priced": self.record["priced"],
            "alpha": list(after.alpha),
            "beta": list(after.beta),
            "load": load.tolist(),
        }

    def _temperature(self) -> float:
        """Return the temperature of the round; from round to round it falls by the same factor."""
        passed = self.number / (self.options.rounds - 1) if self.options.rounds > 1 else 1.0
        heat: float = FIRST_HEAT * (LAST_HEAT / FIRST_HEAT) ** passed
        return max(heat * self.mean_delay, float(np.finfo(np.float32).tiny))

    def _capacities(self, region: IntArray) -> Capacities | None:
        """Return the capacities for the blocks; None if they do not bind."""
        if not self.record["priced"]:
            return None
        one, known = not region.any(), "load" in self.record
        return Capacities(
            self.field.storage_capacity,
            self.field.compute_capacity,
            np.array(self.record["load"]).reshape(2, -1) if known and not one else None,
            # The multipliers of several blocks need a round with their means.
            adjust=one or (known and self.number < self.options.rounds - 1),
        )


def _mean_multipliers(multipliers: list[list[int]], loads: list[list[float]]) -> Multipliers:
    """Return the means of the multipliers of all blocks, weighted by their loads."""
    each, weight = np.array(multipliers, np.int64), np.array(loads)
    total = weight.sum(axis=0)
    part = np.divide(weight, total, out=np.full_like(weight, 1 / len(weight)), where=total > 0)
    mean = np.minimum(np.floor((each * part).sum(axis=0)).astype(np.int64), each.max(axis=0))
    same = (each == each[0]).all(axis=0)
    alpha, beta = np.where(same, each[0], mean).reshape(2, -1).tolist()
    return Multipliers(tuple(alpha), tuple(beta))


def _inputs(folder: Location, homes: Location, options: BoundOptions) -> dict[str, Any]:
    return {**asdict(options), "version": VERSION, "homes": relative_to(homes, folder)}


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

    Raises
    ------
    InputError
        If the bound has another version, its claim is no number, its multipliers do not fit the servers, or its dual is
        not of the instance.
    """
    bound = folder / "bound" if bound is None else bound
    record = read_record(bound, "spark bound", BOUND_ENTRIES)
    field = read_field(folder / "field")
    check_bounded(field)
    # A study notes the homes that it chose as a result, not as an input.
    inputs = record | record[INPUTS_KEY]
    labels, version = inputs.get("labels"), record.get("version", 1)
    if type(labels) is not int or labels < 1:
        raise InputError("labels", f"expected a whole number from 1, got {shown(labels)}")
    count = min(labels, len(field.server_x))
    if version not in (1, VERSION):
        raise InputError(str(bound), f"expected a bound of version 1 or {VERSION}, got {shown(version)}")
    first = version == 1
    multipliers = Multipliers.none(len(field.server_x)) if first else _multipliers(record, field)
    claim, recorded = _claim(record)
    place = folder / inputs["homes"]
    found = verified_sum(spark, folder, bound / "dual", place, count, multipliers, is_first_version=first)
    proved = found >= claim and recorded <= Fraction(claim, 1 << UNIT_BITS)
    return proved, record, rounded_down(Fraction(found, 1 << UNIT_BITS))


def _claim(record: dict[str, Any]) -> tuple[int, Fraction]:
    """Return the claim of a record, in units of ``2^-UNIT_BITS``, and the bound that follows from it."""
    claim, bound = record["claim"], record["bound"]
    if not isinstance(claim, str) or not re.fullmatch(r"-?[0-9]{1,1000}", claim):
        raise InputError("claim", f"expected the digits of a whole number, got {shown(claim)}")
    if type(bound) not in (int, float) or not math.isfinite(bound):
        raise InputError("bound", f"expected a number, got {shown(bound)}")
    return int(claim), Fraction(bound)


def verified_sum(
    spark: "SparkSession",
    folder: Location,
    dual: Location,
    homes: Location,
    count: int,
    multipliers: Multipliers,
    *,
    is_first_version: bool = False,
    block_clients: int = 4000,
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
    multipliers
        The multipliers of the capacities.
    is_first_version
        Whether inactive servers have the messages of the first version of the certificate.
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
    from pyspark.sql import functions as sql

    field = read_field(folder / "field")
    clients = read_dataset(spark, folder / "field" / "clients")
    # A client with two rows would be counted twice, in the place of one that has none. A stage that is repeated has to
    # choose the same row again.
    good = read_dataset(spark, homes).groupBy("client").agg(sql.min("home").alias("home"))
    messages = read_dataset(spark, dual)
    servers = len(field.server_x)
    region = divide_regions(
        field.server_x, field.server_y, max(1, min(servers // 2, -(-field.clients // block_clients))), 0, 0
    )
    violation = None if is_first_version else triangle_violation(server_delays(field))

    def verify(table: pa.Table) -> pa.Table:
        block, _, _, topics = read_block(table, field, count)
        kept = int(_keeps(topics, region, table["region"][0].as_py()).sum())
        numbers = {"own": pa.array([block.own], pa.int64()), "topics": pa.array([kept], pa.int64())}
        return pa.table({**numbers, "part": [str(block_bound(block, multipliers, violation))]})

    rows = block_rows(clients, good, messages, field, region).groupBy("region")
    parts = rows.applyInArrow(verify, PARTS_SCHEMA).collect()
    own = sum(row["own"] for row in parts)
    if own != field.clients:
        raise InputError(str(homes), f"expected one home for each of {field.clients} clients, got {own}")
    # Every topic has a row, because each block has all topics of its clients. If one had two rows, two blocks could see
    # different messages of it.
    of_topics = sum(row["topics"] for row in parts)
    if of_topics != field.topics:
        raise InputError(str(dual), f"expected one row for each of {field.topics} topics, got {of_topics}")
    lost = multipliers.capacity_cost(field.storage_capacity, field.compute_capacity)
    return sum(int(row["part"]) for row in parts) - lost


def _labels_task(field: Field, region: IntArray, loads: FloatArray, count: int) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that chooses the active servers of the clients of a region."""

    def choose(table: pa.Table) -> pa.Table:
        ids, instance, home, around = read_region(table, field, region, loads)
        # In the relaxation a full server is a good home, too. Without its capacity it is also one for a single client.
        ample = np.full(len(field.server_x), LARGEST_CAPACITY)
        instance = replace(instance, storage_capacity=ample, compute_capacity=ample)
        labels = likely_labels(RegionState(instance, home, around), count)
        return pa.table(
            {"client": ids, "home": home, "labels": lists(np.full(len(ids), count, np.int64), labels.ravel())}
        )

    return choose


def _improve_task(
    field: Field,
    region: IntArray,
    options: BoundOptions,
    multipliers: Multipliers,
    temperature: float,
    capacities: Capacities | None,
) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that improves the dual of one block."""
    count = min(options.labels, len(field.server_x))

    def improve(table: pa.Table) -> pa.Table:
        number = table["region"][0].as_py()
        block, _, start, topics = read_block(table, field, count, add=True)
        free = (block.first < block.own) & (block.second < block.own)
        result = improve_block(block, free, multipliers, temperature, options.sweeps, capacities)
        # One block keeps the topic. The others send what they changed.
        keeps = _keeps(topics, region, number)
        fitted = fitted_shares(block, multipliers)
        changes = result.messages - block.messages, result.shares - fitted
        changed = np.zeros(len(topics), np.bool_)
        changed[block.topic[changes[0].any(axis=1)]] = True
        changed[block.member_topic[changes[1].any(axis=1)]] = True
        messages = np.where(keeps[block.topic][:, None], result.messages, changes[0])
        sent = with_numbers(topics, "messages", np.diff(start) * count, messages.ravel())
        shares = np.where(keeps[block.member_topic][:, None], result.shares, changes[1])
        sent = _with_shares(sent, block, shares, capacities is not None).filter(pa.array(keeps | changed))
        for name, kind in _PART_COLUMNS.items():
            sent = sent.append_column(name, pa.nulls(len(sent), kind))
        return pa.concat_tables([sent, _part_row(sent.schema, result)])

    return improve


def _collect_task(
    field: Field, region: IntArray, count: int, multipliers: Multipliers
) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that adds up the messages and shares of the topics that a block keeps."""

    def collect(table: pa.Table) -> pa.Table:
        block, _, _, topics = read_block(table, field, count, add=True)
        topics = _with_shares(topics, block, fitted_shares(block, multipliers), multipliers.charging)
        return topics.filter(pa.array(_keeps(topics, region, table["region"][0].as_py())))

    return collect


def _keeps(topics: pa.Table, region: IntArray, number: int) -> BoolArray:
    """Return which topics a block keeps: those whose first member has its home there."""
    homes = topics["member_home"].combine_chunks()
    first = np.cumsum(homes.value_lengths().to_numpy()) - homes.value_lengths().to_numpy()
    keeps: BoolArray = region[homes.flatten().to_numpy()[first]] == number
    return keeps


def _with_shares(topics: pa.Table, block: DualBlock, shares: Int64Array, priced: bool) -> pa.Table:
    """Return rows of topics with other shares, or with none."""
    sizes = np.bincount(block.member_topic, minlength=len(topics)) * shares.shape[1] * priced
    return with_numbers(topics, "shares", sizes, shares.ravel() if priced else np.empty(0, np.int64))


def _part_row(schema: pa.Schema, result: BlockResult) -> pa.Table:
    """Return the row of a block that has no topic."""
    columns = {name: pa.nulls(1, schema.field(name).type) for name in schema.names}
    multipliers = [*result.multipliers.alpha, *result.multipliers.beta]
    values = ([result.before], [result.after], [multipliers], [result.load.ravel().tolist()])
    found = {name: pa.array(value, kind) for (name, kind), value in zip(_PART_COLUMNS.items(), values, strict=True)}
    return pa.table(columns | found)
