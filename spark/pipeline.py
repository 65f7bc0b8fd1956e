"""RELOC and the other methods of the paper on one full-scale instance: positions, factors, homes and their cost.

Each step has a folder of its own: ``field``, ``factors``, and one with the name of the method. A completed step is not
repeated.
"""

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relocbench.instances.evaluation import Evaluation
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark.assign import (
    IMPLIED_READING,
    Method,
    RelocOptions,
    nearest_homes,
    otos_homes,
    random_homes,
    reloc_homes,
)
from relocbench.spark.checkpoints import RECORD_FILE, read_dataset, read_record, run_once, write_dataset
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.factors import factor_blocks, factorise
from relocbench.spark.locations import Location
from relocbench.spark.placement import Field, earlier_field_inputs, field_inputs, place_field, read_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")
OnStage = Callable[[str, float], None]


def solve_field(
    spark: "SparkSession",
    topics: Location,
    out: Location,
    method: Method,
    parameters: PaperParameters,
    options: RelocOptions,
    *,
    proportional: bool = True,
    on_stage: OnStage | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run a method on an instance made from topics.

    Parameters
    ----------
    spark
        The session.
    topics
        A folder that ``relocbench spark arrange`` wrote.
    out
        The folder to write to: datasets ``field/clients``, ``factors/factors`` and, in a folder with the name of the
        method, ``homes``.
    method
        The method.
    parameters, proportional
        As for :func:`spark.placement.place_field`.
    options
        The options of RELOC. Their seed is also the seed of positions and of random homes.
    on_stage
        Called with the name and the seconds of each stage when the stage has ended.

    Returns
    -------
    record
        The cost of the homes, under the names of ``relocbench evaluate --json``, and the inputs of the step.
    existed
        Whether the homes had been computed by an earlier call.
    """

    def timed(stage: str, work: Callable[[], Result]) -> Result:
        begin = time.perf_counter()
        result = work()
        if on_stage is not None:
            on_stage(stage, time.perf_counter() - begin)
        return result

    field = timed("field", lambda: place_field(spark, topics, out / "field", parameters, options.seed, proportional))
    clients = read_dataset(spark, out / "field" / "clients")
    factors = None
    if method == "reloc" and options.needs_factors:
        timed("factors", lambda: _write_factors(clients, field, out / "factors", options))
        factors = read_dataset(spark, out / "factors" / "factors")

    def compute() -> dict[str, Any]:
        methods: dict[Method, Callable[[], DataFrame]] = {
            "reloc": lambda: reloc_homes(clients, factors, field, options),
            "nearest": lambda: nearest_homes(clients, field),
            "random": lambda: random_homes(clients, field, options.seed),
            "otos": lambda: otos_homes(clients, field),
        }
        homes = out / method / "homes"
        timed("homes", lambda: write_dataset(methods[method](), homes))
        return timed("evaluation", lambda: evaluate_homes(clients, read_dataset(spark, homes), field, homes)).values()

    return run_once(out / method, _method_inputs(method, options), compute, implied=IMPLIED_READING)


def finished_run(
    topics: Location,
    out: Location,
    method: Method,
    parameters: PaperParameters,
    options: RelocOptions,
    *,
    proportional: bool,
) -> dict[str, Any] | None:
    """Return the record of an earlier run of :func:`solve_field`. This needs no session.

    Parameters
    ----------
    topics, out, method, parameters, options, proportional
        As for :func:`solve_field`.

    Returns
    -------
    dict or None
        The record that :func:`solve_field` would return; None if a step is missing, or if a folder can only be read
        with a session.

    Raises
    ------
    InputError
        If ``out`` was written with other inputs.
    """
    needs_factors = method == "reloc" and options.needs_factors
    if not (isinstance(topics, Path) and isinstance(out, Path)):
        return None
    if not all((out / step / RECORD_FILE).exists() for step in ("field", *(["factors"] * needs_factors), method)):
        return None
    asked = field_inputs(read_record(topics, "spark arrange"), parameters, options.seed, proportional)
    run_once(out / "field", asked, _nothing_to_compute, earlier_form=earlier_field_inputs(topics, asked))
    if needs_factors:
        run_once(out / "factors", _factor_inputs(options), _nothing_to_compute, implied=IMPLIED_READING)
    return run_once(out / method, _method_inputs(method, options), _nothing_to_compute, implied=IMPLIED_READING)[0]


def _nothing_to_compute() -> dict[str, Any]:
    raise AssertionError("a step without a record")


def _method_inputs(method: Method, options: RelocOptions) -> dict[str, Any]:
    return {"method": method, **(asdict(options) if method == "reloc" else {"seed": options.seed})}


def _factor_inputs(options: RelocOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in ("rank", "rounds", "factorised")}


def evaluate_folder(spark: "SparkSession", folder: Location, homes: Location) -> Evaluation:
    """Evaluate an assignment of a full-scale instance.

    Parameters
    ----------
    spark
        The session.
    folder
        The instance: a folder that ``relocbench spark reloc`` wrote.
    homes
        A Parquet dataset with columns ``client`` and ``home``.

    Returns
    -------
    Evaluation
        The cost of the assignment.
    """
    field = read_field(folder / "field")
    clients = read_dataset(spark, folder / "field" / "clients")
    return evaluate_homes(clients, read_dataset(spark, homes), field, homes)


def _write_factors(clients: "DataFrame", field: Field, folder: Location, options: RelocOptions) -> None:
    def compute() -> dict[str, Any]:
        rank, rounds, factorised = options.columns, options.rounds, options.factorised
        blocks = factor_blocks(field.memberships, field.n_blocks)
        with factorise(clients, field.topics, blocks, rank, rounds, folder / "work", factorised) as found:
            write_dataset(found.rows, folder / "factors")
        # The share is unknown if fewer than three rounds were allowed.
        missing = found.missing if math.isfinite(found.missing) else None
        return {"done": found.rounds, "captured": found.captured, "missing": missing, "converged": found.converged}

    run_once(folder, _factor_inputs(options), compute, implied=IMPLIED_READING)
