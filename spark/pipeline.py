"""RELOC and the other methods of the paper on one full-scale instance: positions, factors, homes and their cost.

Each step has a folder of its own: ``field``, ``factors``, and one with the name of the method. A completed step is not
repeated.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from relocbench.spark.field_choices import FieldChoices
from relocbench.spark.locations import Location
from relocbench.spark.placement import Field, earlier_field_inputs, field_inputs, place_field, read_field
from relocbench.spark.stages import STAGES_KEY, OnStage, Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The folder of factors and the folder of one result, below the folder of an instance.
FACTORS, RESULTS = "factors", "results"
# Keys of the record of a result, besides the cost.
CLIENTS_KEY, FACTORS_KEY, CHOSEN_KEY = "clients_by_server", "factors", "chosen"


def solve_field(
    spark: "SparkSession",
    topics: Location,
    out: Location,
    method: Method,
    parameters: PaperParameters,
    options: RelocOptions,
    *,
    proportional: bool = True,
    choices: FieldChoices | None = None,
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
    parameters, proportional, choices
        As for :func:`spark.placement.place_field`; by default no choices.
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
    stages, choices = Stages(on_stage), choices or FieldChoices()
    field = place_field(spark, topics, out / "field", parameters, options.seed, proportional, choices, stages)
    return solve_method(spark, out, field, method, options, folder=method, factors=FACTORS, stages=stages)


def solve_method(
    spark: "SparkSession",
    instance: Location,
    field: Field,
    method: Method,
    options: RelocOptions,
    *,
    folder: str,
    factors: str,
    stages: Stages,
    labels: Mapping[str, str] | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run a method on an instance whose field exists.

    Parameters
    ----------
    spark
        The session.
    instance
        The folder of the instance.
    field
        The field in that folder.
    method, options
        As for :func:`solve_field`.
    folder, factors
        The folders of the result and of the factors, relative to that of the instance.
    stages
        Notes what the stages use.
    labels
        Further entries of the record.

    Returns
    -------
    record
        The cost of the homes, the number of clients of each server, and the inputs of the step.
    existed
        Whether the homes had been computed by an earlier call.
    """
    clients = read_dataset(spark, instance / "field" / "clients")
    factor_rows = None
    if method == "reloc" and options.needs_factors:
        _write_factors(clients, field, instance / factors, options, stages)
        factor_rows = read_dataset(spark, instance / factors / "factors")
    methods: dict[Method, Callable[[], DataFrame]] = {
        "reloc": lambda: reloc_homes(clients, factor_rows, field, options),
        "nearest": lambda: nearest_homes(clients, field),
        "random": lambda: random_homes(clients, field, options.seed),
        "otos": lambda: otos_homes(clients, field),
    }

    def compute() -> dict[str, Any]:
        homes = instance / folder / "homes"
        _, used = stages.run("homes", lambda: write_dataset(methods[method](), homes))
        record = {**(labels or {}), **evaluated(spark, instance, field, homes, stages, used)}
        return record if factor_rows is None else {**record, FACTORS_KEY: factors}

    return run_once(instance / folder, method_inputs(method, options), compute, implied=IMPLIED_READING)


def evaluated(
    spark: "SparkSession", instance: Location, field: Field, homes: Location, stages: Stages, used: Mapping[str, Any]
) -> dict[str, Any]:
    """Evaluate homes, and return the entries of the record of a result.

    Parameters
    ----------
    spark
        The session.
    instance, field
        The folder of the instance, and its field.
    homes
        The dataset of homes.
    stages
        Notes what the evaluation uses.
    used
        What the earlier stages of the result used.

    Returns
    -------
    dict
        The cost, under the names of ``relocbench evaluate --json``, the number of clients of each server, and what all
        stages used.
    """
    rows, clients = read_dataset(spark, homes), read_dataset(spark, instance / "field" / "clients")
    evaluation, evaluation_use = stages.run("evaluation", lambda: evaluate_homes(clients, rows, field, homes))
    counts = {row["home"]: row["count"] for row in rows.groupBy("home").count().collect()}
    return {
        **evaluation.values(),
        CLIENTS_KEY: [counts.get(server, 0) for server in range(len(field.server_x))],
        STAGES_KEY: {**used, **evaluation_use},
    }


def finished_run(
    topics: Location,
    out: Location,
    method: Method,
    parameters: PaperParameters,
    options: RelocOptions,
    *,
    proportional: bool,
    choices: FieldChoices,
) -> dict[str, Any] | None:
    """Return the record of an earlier run of :func:`solve_field`. This needs no session.

    Parameters
    ----------
    topics, out, method, parameters, options, proportional, choices
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
    if not finished_field(topics, out, parameters, options.seed, proportional=proportional, choices=choices):
        return None
    if needs_factors and finished_step(out / FACTORS, _factor_inputs(options)) is None:
        return None
    return finished_step(out / method, method_inputs(method, options))


def finished_field(
    topics: Location,
    out: Location,
    parameters: PaperParameters,
    seed: int,
    *,
    proportional: bool,
    choices: FieldChoices,
) -> bool:
    """Return whether the field of an instance exists. This needs no session.

    Parameters
    ----------
    topics, out, parameters, proportional, choices
        As for :func:`solve_field`.
    seed
        The seed of the positions.

    Returns
    -------
    bool
        Whether it exists; False if a folder can only be read with a session.

    Raises
    ------
    InputError
        If it was written with other inputs.
    """
    if not (isinstance(topics, Path) and isinstance(out, Path) and (out / "field" / RECORD_FILE).exists()):
        return False
    asked = field_inputs(read_record(topics, "spark arrange"), parameters, seed, proportional, choices)
    finished_step(out / "field", asked, earlier_field_inputs(topics, asked))
    return True


def finished_step(
    folder: Location, inputs: Mapping[str, Any], earlier_form: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return the record of a step, if it exists.

    Parameters
    ----------
    folder, inputs, earlier_form
        As for :func:`spark.checkpoints.run_once`.

    Returns
    -------
    dict or None
        The record; None if the step is not complete.

    Raises
    ------
    InputError
        If the folder was written with other inputs.
    """
    if not (folder / RECORD_FILE).exists():
        return None
    return run_once(folder, inputs, _nothing_to_compute, IMPLIED_READING, earlier_form)[0]


def _nothing_to_compute() -> dict[str, Any]:
    raise AssertionError("a step without a record")


def method_inputs(method: Method, options: RelocOptions) -> dict[str, Any]:
    """Return everything that determines the homes of a method on a field.

    Parameters
    ----------
    method, options
        As for :func:`solve_field`.

    Returns
    -------
    dict
        The inputs of the step, for its record.
    """
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


def _write_factors(clients: "DataFrame", field: Field, folder: Location, options: RelocOptions, stages: Stages) -> None:
    def write() -> dict[str, Any]:
        rank, rounds, factorised = options.columns, options.rounds, options.factorised
        blocks = factor_blocks(field.memberships, field.n_blocks)
        with factorise(clients, field.topics, blocks, rank, rounds, folder / "work", factorised) as found:
            write_dataset(found.rows, folder / "factors")
        # The share is unknown if fewer than three rounds were allowed.
        missing = found.missing if math.isfinite(found.missing) else None
        return {"done": found.rounds, "captured": found.captured, "missing": missing, "converged": found.converged}

    def compute() -> dict[str, Any]:
        entries, used = stages.run("factors", write)
        return {**entries, STAGES_KEY: used}

    run_once(folder, _factor_inputs(options), compute, implied=IMPLIED_READING)
