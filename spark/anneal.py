"""Simulated annealing at full scale: in each round the regions of the servers are annealed in parallel.

:mod:`heuristics.anneal_region` describes a round of a region. The homes after each round are a dataset of their own,
evaluated as all homes are. The best of them are the result.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from relocbench.heuristics.anneal_prices import FirstPrices
from relocbench.heuristics.anneal_region import Cooling, anneal_region, divide_regions
from relocbench.instances.errors import InputError
from relocbench.instances.kernels.ragged import FloatArray, IntArray
from relocbench.instances.kernels.random_numbers import random_words
from relocbench.instances.kernels.random_streams import stream
from relocbench.spark.assign import nearest_homes
from relocbench.spark.checkpoints import INPUTS_KEY, read_dataset, run_once, write_dataset
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.locations import Location, relative_to, remove
from relocbench.spark.placement import Field, read_field
from relocbench.spark.region_tables import read_region, region_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Rows of clients have a home; rows of servers have prices.
ROUND_SCHEMA = "client bigint, home int, server int, storage_price double, compute_price double"
LOADS = ("storage", "compute", "sent", "spread")
# Costs that differ by less than this share are equal up to rounding.
SAME_COST = 1e-9


@dataclass(frozen=True)
class AnnealOptions:
    """Options of annealing at full scale.

    Attributes
    ----------
    rounds
        The number of rounds.
    proposals
        The number of proposals for each client, of all rounds together.
    region_clients
        The mean number of clients of a region.
    heat
        The initial temperature, as a share of the typical change.
    seed
        The seed of the regions and proposals.
    """

    rounds: int = 16
    proposals: int = 1000
    region_clients: int = 12_000
    heat: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rounds", "proposals", "region_clients"):
            if getattr(self, name) < 1:
                option = name.replace("_", "-")
                raise InputError(f"--{option}", f"expected at least 1, got {getattr(self, name)}")
        if not 0.005 < self.heat <= 10:
            raise InputError("--heat", f"expected a number above 0.005, at most 10, got {self.heat:g}")

    def regions(self, field: Field) -> int:
        """Return the number of regions.

        Parameters
        ----------
        field
            The servers and the number of clients.

        Returns
        -------
        int
            The number; each region has two servers or more.
        """
        return max(1, min(len(field.server_x) // 2, round(field.clients / self.region_clients)))


def anneal_folder(
    spark: "SparkSession",
    folder: Location,
    options: AnnealOptions,
    start: Location | None = None,
    on_round: Callable[[int, float], None] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Improve homes by annealing in regions.

    Parameters
    ----------
    spark
        The session.
    folder
        A folder that ``relocbench spark reloc`` wrote. The homes go to ``anneal/homes`` in it, and those after each
        round to ``anneal/rounds``. Rounds that exist are not repeated.
    options
        The options.
    start
        A dataset of homes to start from; None for the nearest servers.
    on_round
        Called after each round with its number and the mean delay ``Y`` of its homes.

    Returns
    -------
    record
        The cost of the best homes, under the names of ``relocbench evaluate --json``, and the inputs of the step.
    existed
        Whether the homes had been computed by an earlier call.
    """
    out = folder / "anneal"
    return run_once(
        out,
        _inputs(folder, options, start),
        lambda: anneal_rounds(spark, folder, out, options, start, on_round),
    )


def anneal_rounds(
    spark: "SparkSession",
    folder: Location,
    out: Location,
    options: AnnealOptions,
    start: Location | None = None,
    on_round: Callable[[int, float], None] | None = None,
) -> dict[str, Any]:
    """Run the rounds that are missing, and write the best homes.

    Parameters
    ----------
    spark, folder, options, start, on_round
        As for :func:`anneal_folder`.
    out
        The folder to write ``homes`` and ``rounds`` to.

    Returns
    -------
    dict
        The cost of the best homes, and the name of their round (``best``).
    """
    field = read_field(folder / "field")
    clients = read_dataset(spark, folder / "field" / "clients")
    inputs = _inputs(folder, options, start)

    def first_homes() -> dict[str, Any]:
        homes = nearest_homes(clients, field) if start is None else read_dataset(spark, start)
        write_dataset(homes.select("client", "home"), out / "rounds" / "start" / "homes")
        return _cost(spark, clients, field, out / "rounds" / "start" / "homes") | {"prices": None}

    before, record = out / "rounds" / "start", run_once(out / "rounds" / "start", inputs, first_homes)[0]
    best, best_record = before, record
    for number in range(options.rounds):
        now = out / "rounds" / f"{number + 1:04}"
        work = _Round(spark, clients, field, options, number, before, record, now)
        before, record = now, run_once(now, inputs | {"round": number + 1}, work.run)[0]
        if on_round is not None:
            on_round(number + 1, record["Y"])
        if record["objective"] < best_record["objective"] * (1 - SAME_COST):
            best, best_record = now, record
    write_dataset(read_dataset(spark, best / "homes"), out / "homes")
    history = {"best": best.name}
    return {name: value for name, value in best_record.items() if name not in (INPUTS_KEY, "prices")} | history


def _inputs(folder: Location, options: AnnealOptions, start: Location | None) -> dict[str, Any]:
    return {"method": "anneal", **asdict(options), "start": None if start is None else relative_to(start, folder)}


@dataclass(frozen=True, eq=False)
class _Round:
    """One round: the homes before it, and the folder of the homes after it."""

    spark: "SparkSession"
    clients: "DataFrame"
    field: Field
    options: AnnealOptions
    number: int
    before: Location
    record: dict[str, Any]
    folder: Location

    def run(self) -> dict[str, Any]:
        """Anneal all regions, write the homes, and return their cost and the prices."""
        options, field = self.options, self.field
        region = divide_regions(field.server_x, field.server_y, options.regions(field), options.seed, self.number)
        cooling = Cooling(
            options.proposals, options.heat, self.number / options.rounds, (self.number + 1) / options.rounds
        )
        loads = np.array([self.record[name] for name in LOADS])
        prices = self.record["prices"]
        first = None if prices is None else (np.array(prices[0]), np.array(prices[1]))
        homes = read_dataset(self.spark, self.before / "homes")
        task = _region_task(field, region, loads, cooling, options.seed, first)
        rows = region_rows(self.clients, homes, field, region).groupBy("region").applyInArrow(task, ROUND_SCHEMA)
        raw = self.folder / "regions"
        write_dataset(rows, raw)
        result = read_dataset(self.spark, raw)
        write_dataset(result.where("client IS NOT NULL").select("client", "home"), self.folder / "homes")
        after = [[0.0] * len(region), [0.0] * len(region)]
        if prices is not None:
            after = [list(prices[0]), list(prices[1])]
        for row in result.where("server IS NOT NULL").collect():
            after[0][row["server"]], after[1][row["server"]] = row["storage_price"], row["compute_price"]
        remove(raw)
        return _cost(self.spark, self.clients, field, self.folder / "homes") | {"prices": after}


def _region_task(
    field: Field, region: IntArray, loads: FloatArray, cooling: Cooling, seed: int, prices: FirstPrices | None
) -> Callable[[pa.Table], pa.Table]:
    """Return a function for ``applyInArrow`` that anneals one region."""

    def anneal(table: pa.Table) -> pa.Table:
        number = table["region"][0].as_py()
        ids, instance, home, around = read_region(table, field, region, loads)
        words = random_words(int(stream("anneal", seed, str(cooling.begin), number).integers(2**62)))
        home, (storage, compute) = anneal_region(instance, home, around, cooling, words, prices)
        own, clients = around.own, len(ids)
        client_null, server_null = pa.nulls(clients, pa.int32()), pa.nulls(clients, pa.float64())
        return pa.table(
            {
                "client": pa.concat_arrays([pa.array(ids), pa.nulls(len(own), pa.int64())]),
                "home": pa.concat_arrays([pa.array(home.astype(np.int32)), pa.nulls(len(own), pa.int32())]),
                "server": pa.concat_arrays([client_null, pa.array(own.astype(np.int32))]),
                "storage_price": pa.concat_arrays([server_null, pa.array(storage[own])]),
                "compute_price": pa.concat_arrays([server_null, pa.array(compute[own])]),
            }
        )

    return anneal


def _cost(spark: "SparkSession", clients: "DataFrame", field: Field, homes: Location) -> dict[str, Any]:
    """Return the cost of homes, under the names of ``relocbench evaluate --json``."""
    return evaluate_homes(clients, read_dataset(spark, homes), field, homes).values()
