"""RELOC and the other methods of the paper on one full-scale instance: positions, factors, homes and their cost.

Each step has a folder of its own: ``field``, ``factors``, and one with the name of the method. A completed step is not
repeated.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError
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
from relocbench.spark.checkpoints import run_once, write_dataset
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.factors import factorise
from relocbench.spark.field_choices import FieldChoices
from relocbench.spark.placement import Field, place_field, read_field
from relocbench.spark.stages import STAGES_KEY, OnStage, Stages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The folder of factors and the folder of one result, below the folder of an instance.
FACTORS, RESULTS = "factors", "results"
# Keys of the record of a result, besides the cost.
CLIENTS_KEY, FACTORS_KEY, CHOSEN_KEY = "clients_by_server", "factors", "chosen"


def solve_field(
    spark: "SparkSession",
    topics: Path,
    out: Path,
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
    instance: Path,
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

    inputs = {"method": method, **(asdict(options) if method == "reloc" else {"seed": options.seed})}
    return run_once(instance / folder, inputs, compute, implied=IMPLIED_READING)


def evaluated(
    spark: "SparkSession", instance: Path, field: Field, homes: Path, stages: Stages, used: Mapping[str, Any]
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


def evaluate_folder(spark: "SparkSession", folder: Path, homes: Path) -> Evaluation:
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


def read_dataset(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Open a Parquet dataset.

    Parameters
    ----------
    spark
        The session.
    folder
        The folder or file of the dataset.

    Returns
    -------
    pyspark.sql.DataFrame
        The dataset.

    Raises
    ------
    InputError
        If there is no such dataset.
    """
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(str(folder.resolve()))
    except AnalysisException as error:
        raise InputError(str(folder), "expected a Parquet dataset, found none") from error


def _write_factors(clients: "DataFrame", field: Field, folder: Path, options: RelocOptions, stages: Stages) -> None:
    def write() -> None:
        rank, rounds, factorised = options.columns, options.rounds, options.factorised
        with factorise(clients, field.topics, field.n_blocks, rank, rounds, folder / "work", factorised) as factors:
            write_dataset(factors, folder / "factors")

    def compute() -> dict[str, Any]:
        return {STAGES_KEY: stages.run("factors", write)[1]}

    inputs = {name: getattr(options, name) for name in ("rank", "rounds", "factorised")}
    run_once(folder, inputs, compute, implied=IMPLIED_READING)
