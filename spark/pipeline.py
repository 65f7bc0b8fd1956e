"""RELOC and the other methods of the paper on one huge instance: the field, the factors, the homes, what they cost.

Each is a step in a folder of its own (``field``, ``factors``, and one named like the method), done once.
"""

import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import Evaluation
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark.assign import Method, Reading, nearest_homes, otos_homes, random_homes, reloc_homes
from relocbench.spark.checkpoints import once, write_step
from relocbench.spark.evaluate import evaluate_homes
from relocbench.spark.factors import factorised
from relocbench.spark.placement import Field, place_field, read_field

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Answer = TypeVar("Answer")
OnStage = Callable[[str, float], None]


def solve_field(
    spark: "SparkSession",
    topics: Path,
    out: Path,
    method: Method,
    parameters: PaperParameters,
    reading: Reading,
    *,
    proportional: bool = True,
    on_stage: OnStage | None = None,
) -> tuple[dict[str, Any], bool]:
    """Run a method on the topics of a folder; return what its homes cost, and whether they were there already.

    Parameters
    ----------
    spark
        The session.
    topics
        A folder that ``arrange`` wrote.
    out
        Folder to write to: datasets ``field/clients``, ``factors/factors`` and, by the name of the method, its homes.
    method
        Which.
    parameters, proportional
        As for :func:`spark.placement.place_field`.
    reading
        What RELOC is told; its seed is that of everything.
    on_stage
        Told the name and the seconds of each stage when it is done.
    """

    def timed(stage: str, work: Callable[[], Answer]) -> Answer:
        begin = time.perf_counter()
        answer = work()
        if on_stage is not None:
            on_stage(stage, time.perf_counter() - begin)
        return answer

    field = timed("field", lambda: place_field(spark, topics, out / "field", parameters, reading.seed, proportional))
    clients = dataset(spark, out / "field" / "clients")
    factors = None
    if method == "reloc" and reading.needs_factors:
        timed("factors", lambda: _write_factors(clients, field, out / "factors", reading))
        factors = dataset(spark, out / "factors" / "factors")

    def make() -> dict[str, Any]:
        chosen: dict[Method, Callable[[], DataFrame]] = {
            "reloc": lambda: reloc_homes(clients, factors, field, reading),
            "nearest": lambda: nearest_homes(clients, field),
            "random": lambda: random_homes(clients, field, reading.seed),
            "otos": lambda: otos_homes(clients, field),
        }
        homes = out / method / "homes"
        timed("homes", lambda: write_step(chosen[method](), homes))
        return timed("evaluation", lambda: evaluate_homes(clients, dataset(spark, homes), field, homes)).values()

    asked = {"method": method, **(asdict(reading) if method == "reloc" else {"seed": reading.seed})}
    return once(out / method, asked, make)


def evaluate_folder(spark: "SparkSession", folder: Path, homes: Path) -> Evaluation:
    """Evaluate an assignment, a dataset of clients and homes, of the instance in a folder that ``reloc`` wrote."""
    field = read_field(folder / "field")
    return evaluate_homes(dataset(spark, folder / "field" / "clients"), dataset(spark, homes), field, homes)


def dataset(spark: "SparkSession", folder: Path) -> "DataFrame":
    """Return a dataset."""
    from pyspark.errors import AnalysisException

    try:
        return spark.read.parquet(str(folder.resolve()))
    except AnalysisException as error:
        raise InputError(str(folder), "expected a Parquet dataset, found none") from error


def _write_factors(clients: "DataFrame", field: Field, folder: Path, reading: Reading) -> None:
    def make() -> dict[str, Any]:
        with factorised(clients, field.topics, field.blocks, reading.rank, reading.rounds, folder / "work") as frame:
            write_step(frame, folder / "factors")
        return {}

    once(folder, {"rank": reading.rank, "rounds": reading.rounds}, make)
