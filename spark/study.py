"""A study at full scale: many results on one field, each in a folder of its own, and a lower bound.

The folder of a study holds ``field``, a folder in ``factors`` for each factorisation, a folder in ``results`` for each
method with its settings and seed. What is complete is not repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark.assign import RelocOptions
from relocbench.spark.checkpoints import INPUTS_KEY, RECORD_FILE, read_record, run_once
from relocbench.spark.compare_local import local_ids, read_homes
from relocbench.spark.field_choices import FieldChoices
from relocbench.spark.local_references import certify_locally, solve_locally
from relocbench.spark.locations import Location
from relocbench.spark.pipeline import CHOSEN_KEY, FACTORS, RESULTS, evaluated, solve_method
from relocbench.spark.placement import Field, place_field
from relocbench.spark.stages import STAGES_KEY, Stages
from relocbench.spark.study_jobs import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Called with a method, the record of its result and whether it had been computed by an earlier call.
OnResult = Callable[[str, dict[str, Any], bool], None]
# The name of the result that has a certified bound, and the key of the bound in its record.
CERTIFY, BOUND_KEY = "certify", "bound"


@dataclass(frozen=True, kw_only=True)
class LocalLimits:
    """Limits of what a study computes on one machine.

    Attributes
    ----------
    time_limit
        Seconds for each run of annealing.
    bound_time
        Seconds for the bound; 0 for none.
    most_clients
        Instances with more clients get neither.
    """

    time_limit: float = 60.0
    bound_time: float = 0.0
    most_clients: int = 200_000


def run_study(
    spark: "SparkSession",
    topics: Location,
    out: Path,
    jobs: Sequence[Job],
    parameters: PaperParameters,
    *,
    field_seed: int,
    proportional: bool,
    choices: FieldChoices,
    limits: LocalLimits,
    on_result: OnResult | None = None,
) -> list[str]:
    """Compute the results of a study that are missing.

    Parameters
    ----------
    spark
        The session.
    topics
        A folder that ``relocbench spark arrange`` wrote.
    out
        The folder of the study.
    jobs
        The results to compute.
    parameters, proportional, choices
        As for :func:`spark.placement.place_field`.
    field_seed
        The seed of the positions.
    limits
        Limits of annealing and of the bound.
    on_result
        Called after each result.

    Returns
    -------
    list of str
        What was left out, and why: one line each.
    """
    stages = Stages()
    field = place_field(spark, topics, out / "field", parameters, field_seed, proportional, choices, stages)
    left_out = []
    for job in jobs:
        if job.selector.method.name == "anneal" and field.clients > limits.most_clients:
            left_out.append(f"{job.label}: {_too_large(field, limits)}")
            continue
        record, existed = _solve(spark, out, field, job, limits, stages, on_result)
        if on_result is not None:
            on_result(job.label, record, existed)
    if limits.bound_time > 0:
        if field.clients > limits.most_clients:
            left_out.append(f"bound: {_too_large(field, limits)}")
        else:
            record, existed = _prove_bound(spark, out, field, limits, stages)
            if on_result is not None:
                on_result(CERTIFY, record, existed)
    return left_out


def result_folders(out: Path) -> Iterator[Path]:
    """Find the complete results of a study.

    Parameters
    ----------
    out
        The folder of the study.

    Yields
    ------
    pathlib.Path
        The folders, sorted by name.
    """
    for path in sorted((out / RESULTS).glob(f"*/{RECORD_FILE}")):
        yield path.parent


def _solve(
    spark: "SparkSession",
    out: Path,
    field: Field,
    job: Job,
    limits: LocalLimits,
    stages: Stages,
    on_result: OnResult | None = None,
) -> tuple[dict[str, Any], bool]:
    folder = f"{RESULTS}/{job.folder}"
    if job.candidates:
        return _choose(spark, out, field, job, limits, stages, on_result)
    if job.selector.method.name == "anneal":
        return _anneal(spark, out, field, job, limits, stages)
    options = job.options or RelocOptions(seed=job.seed)
    factors = f"{FACTORS}/rank-{options.rank}_rounds-{options.rounds}_{options.factorised}"
    labels = {"selector": job.label}
    return solve_method(
        spark, out, field, job.method, options, folder=folder, factors=factors, stages=stages, labels=labels
    )


def _choose(
    spark: "SparkSession",
    out: Path,
    field: Field,
    job: Job,
    limits: LocalLimits,
    stages: Stages,
    on_result: OnResult | None,
) -> tuple[dict[str, Any], bool]:
    """Compute all candidates of ``k=auto`` and note the first of the cheapest, as the local method does."""
    best: tuple[Job, dict[str, Any]] | None = None
    for candidate in job.candidates:
        record, existed = _solve(spark, out, field, candidate, limits, stages)
        if on_result is not None:
            on_result(candidate.label, record, existed)
        if best is None or record["objective"] < best[1]["objective"]:
            best = candidate, record
    assert best is not None
    assert job.options is not None
    chosen, record = best
    entries = {name: value for name, value in record.items() if name not in (INPUTS_KEY, STAGES_KEY, "selector")}
    # The options of no particular k: that of the record is the number of servers, at which the search begins.
    inputs = {"method": "reloc", "auto": True, **asdict(job.options)}

    def note() -> dict[str, Any]:
        return {
            **entries,
            "selector": job.label,
            CHOSEN_KEY: chosen.folder,
            "chosen_k": chosen.k,
            STAGES_KEY: {},
        }

    return run_once(out / RESULTS / job.folder, inputs, note)


def _anneal(
    spark: "SparkSession", out: Path, field: Field, job: Job, limits: LocalLimits, stages: Stages
) -> tuple[dict[str, Any], bool]:
    folder = out / RESULTS / f"{job.folder}_{limits.time_limit:g}-s"
    homes = folder / "homes"

    def compute() -> dict[str, Any]:
        _, used = stages.run("homes", lambda: solve_locally(out, job.selector, job.seed, limits.time_limit, homes))
        return {"selector": job.label, **evaluated(spark, out, field, homes, stages, used)}

    inputs = {"method": "anneal", "selector": job.label, "seed": job.seed, "time_limit": limits.time_limit}
    return run_once(folder, inputs, compute)


def _prove_bound(
    spark: "SparkSession", out: Path, field: Field, limits: LocalLimits, stages: Stages
) -> tuple[dict[str, Any], bool]:
    """Prove a bound, from the cheapest homes of the study, and keep the homes that were found meanwhile."""
    folder = out / RESULTS / f"{CERTIFY}_{limits.bound_time:g}-s"
    start = min(
        (path for path in result_folders(out) if (path / "homes").exists() and path != folder),
        key=lambda path: float(read_record(path)["objective"]),
        default=None,
    )

    def compute() -> dict[str, Any]:
        homes = folder / "homes"
        given = None if start is None else read_homes(start / "homes", local_ids(out))
        certificate = folder / "certificate.json.gz"
        bound, used = stages.run("homes", lambda: certify_locally(out, given, 0, limits.bound_time, homes, certificate))
        return {"selector": CERTIFY, BOUND_KEY: bound, **evaluated(spark, out, field, homes, stages, used)}

    return run_once(folder, {"method": CERTIFY, "seed": 0, "time_limit": limits.bound_time}, compute)


def _too_large(field: Field, limits: LocalLimits) -> str:
    return f"left out, because {field.clients:,} clients are more than --most-local-clients {limits.most_clients:,}"
