"""A study at full scale: many results on one field, each in a folder of its own, and a lower bound.

The folder of a study holds ``field``, a folder in ``factors`` for each factorisation, a folder in ``results`` for each
method with its settings and seed. What is complete is not repeated.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relocbench.instances.errors import InputError
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.spark.anneal import AnnealOptions, anneal_rounds
from relocbench.spark.assign import RelocOptions
from relocbench.spark.bound import BoundOptions, bound_rounds, check_bounded
from relocbench.spark.checkpoints import INPUTS_KEY, RECORD_FILE, read_record, run_once
from relocbench.spark.compare_local import local_ids, read_homes
from relocbench.spark.field_choices import FieldChoices
from relocbench.spark.local_references import certify_locally, solve_locally
from relocbench.spark.locations import Location
from relocbench.spark.pipeline import (
    CHOSEN_KEY,
    FACTORS,
    RESULTS,
    evaluated,
    finished_field,
    finished_step,
    method_inputs,
    solve_method,
)
from relocbench.spark.placement import Field, place_field, read_field
from relocbench.spark.stages import STAGES_KEY, Stages
from relocbench.spark.study_jobs import ONLY_ON_SPARK, SPARK_ANNEAL, SPARK_BOUND, Job, spark_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Called with a method, the record of its result and whether it had been computed by an earlier call.
OnResult = Callable[[str, dict[str, Any], bool], None]
# The name of the result that has a bound of one machine. The keys of a bound and of the homes that it started from.
CERTIFY, BOUND_KEY, HOMES_KEY = "certify", "bound", "homes"
# The methods of one machine, by their names in the inputs of results.
ON_ONE_MACHINE = ("anneal", CERTIFY)


@dataclass(frozen=True, kw_only=True)
class LocalLimits:
    """Limits of what a study computes on one machine. Larger instances are annealed and bounded on Spark.

    Attributes
    ----------
    time_limit
        Seconds for each run of annealing.
    bound_time
        Seconds for the bound; 0 for none. On Spark the bound has rounds instead of a time.
    most_clients
        The largest number of clients of an instance that one machine anneals and bounds.
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
    on_result: OnResult,
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
        Limits of annealing and of the bound on one machine.
    on_result
        Called after each result.

    Returns
    -------
    list of str
        What was computed on Spark because it is too large for one machine: one line each.

    Raises
    ------
    InputError
        If the inputs differ from those of the folder, or a job does not fit the field.
    """
    stages = Stages()
    field = place_field(spark, topics, out / "field", parameters, field_seed, proportional, choices, stages)
    jobs, notes = jobs_at_scale(jobs, field, limits)
    for job in jobs:
        on_result(job.label, *_solve(spark, out, field, job, limits, stages, on_result))
    if bound_here(field, limits):
        on_result(CERTIFY, *_prove_bound(spark, out, field, limits, stages))
    return notes


def finished_study(
    topics: Location,
    out: Path,
    jobs: Sequence[Job],
    parameters: PaperParameters,
    *,
    field_seed: int,
    proportional: bool,
    choices: FieldChoices,
    limits: LocalLimits,
    on_result: OnResult,
) -> list[str] | None:
    """Report the results of an earlier call of :func:`run_study`. This needs no session.

    Parameters
    ----------
    topics, out, jobs, parameters, field_seed, proportional, choices, limits, on_result
        As for :func:`run_study`.

    Returns
    -------
    list of str or None
        What :func:`run_study` would return; None, and no report, if a result is missing.

    Raises
    ------
    InputError
        As for :func:`run_study`.
    """
    if not finished_field(topics, out, parameters, field_seed, proportional=proportional, choices=choices):
        return None
    field = read_field(out / "field")
    jobs, notes = jobs_at_scale(jobs, field, limits)
    steps = [(one.label, *_step(one, limits)) for job in jobs for one in (*job.candidates, job)]
    if bound_here(field, limits):
        steps.append((CERTIFY, *_bound_step(limits)))
    records = [(label, finished_step(out / RESULTS / folder, inputs)) for label, folder, inputs in steps]
    found = [(label, record) for label, record in records if record is not None]
    if len(found) < len(records):
        return None
    for label, record in found:
        on_result(label, record, True)
    return notes


def jobs_at_scale(jobs: Sequence[Job], field: Field, limits: LocalLimits) -> tuple[list[Job], list[str]]:
    """Replace jobs that are too large for one machine by those of Spark, and put bounds last.

    Parameters
    ----------
    jobs
        The results to compute.
    field
        The field.
    limits
        The limits of one machine.

    Returns
    -------
    jobs
        The results, without repetitions.
    notes
        A line for each kind of job that was replaced.

    Raises
    ------
    InputError
        If a job has settings of the local method only, or no bound is possible.
    """
    reason = f"because {field.clients:,} clients are more than --most-local-clients {limits.most_clients:,}"
    large, notes = field.clients > limits.most_clients, []
    chosen = {(job.label, job.seed): job for job in jobs}
    if large:
        for key, job in [(key, job) for key, job in chosen.items() if job.selector.method.name == "anneal"]:
            if job.selector.settings:
                problem = f"its settings are those of one machine; give {SPARK_ANNEAL} with its own, {reason}"
                raise InputError(f"method {job.label}", problem)
            del chosen[key]
            replaced = spark_job(SPARK_ANNEAL, job.seed, {})
            chosen.setdefault((replaced.label, replaced.seed), replaced)
            notes.append(f"anneal, seed {job.seed}: in regions on Spark, without a time limit, {reason}")
    if limits.bound_time > 0 and large and not any(job.selector.method.name == SPARK_BOUND for job in chosen.values()):
        bound = spark_job(SPARK_BOUND, 0, {})
        chosen[bound.label, 0] = bound
        notes.append(f"bound: in blocks on Spark, without a time limit, {reason}")
    bounds = [job for job in chosen.values() if job.selector.method.name == SPARK_BOUND]
    if bounds:
        check_bounded(field)
    return [job for job in chosen.values() if job not in bounds] + bounds, notes


def bound_here(field: Field, limits: LocalLimits) -> bool:
    """Return whether a bound is wanted and one machine computes it.

    Parameters
    ----------
    field
        The field.
    limits
        The limits of one machine.

    Returns
    -------
    bool
        Whether it does.
    """
    return limits.bound_time > 0 and field.clients <= limits.most_clients


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


def _step(job: Job, limits: LocalLimits) -> tuple[str, dict[str, Any]]:
    """Return the name of the folder of a result, and what determines it."""
    name = job.selector.method.name
    if name == "anneal":
        inputs = {"method": name, "selector": job.label, "seed": job.seed, "time_limit": limits.time_limit}
        return f"{job.folder}_{limits.time_limit:g}-s", inputs
    if name in ONLY_ON_SPARK:
        assert job.options is not None
        return job.folder, {"method": name, **asdict(job.options)}
    if job.candidates:
        assert job.options is not None
        # The options of no particular k: that of the record is the number of servers, at which the search begins.
        return job.folder, {"method": "reloc", "auto": True, **asdict(job.options)}
    return job.folder, method_inputs(job.method, _reloc_options(job))


def _reloc_options(job: Job) -> RelocOptions:
    return job.options if isinstance(job.options, RelocOptions) else RelocOptions(seed=job.seed)


def _solve(
    spark: "SparkSession",
    out: Path,
    field: Field,
    job: Job,
    limits: LocalLimits,
    stages: Stages,
    on_result: OnResult | None = None,
) -> tuple[dict[str, Any], bool]:
    if job.candidates:
        return _choose(spark, out, field, job, limits, stages, on_result)
    name, inputs = _step(job, limits)
    folder, homes = out / RESULTS / name, out / RESULTS / name / "homes"

    def anneal_here() -> dict[str, Any]:
        _, used = stages.run("homes", lambda: solve_locally(out, job.selector, job.seed, limits.time_limit, homes))
        return {"selector": job.label, **evaluated(spark, out, field, homes, stages, used)}

    def anneal_on_spark(options: AnnealOptions) -> dict[str, Any]:
        found, used = stages.run("homes", lambda: anneal_rounds(spark, out, folder, options))
        return {"selector": job.label, "best": found["best"], **evaluated(spark, out, field, homes, stages, used)}

    def bound_on_spark(options: BoundOptions) -> dict[str, Any]:
        start = _start_of_bound(out, folder)
        found, used = stages.run("bound", lambda: bound_rounds(spark, out, folder, out / start, options))
        return {"selector": job.label, HOMES_KEY: start, **found, STAGES_KEY: used}

    if job.selector.method.name == "anneal":
        return run_once(folder, inputs, anneal_here)
    if isinstance(options := job.options, AnnealOptions):
        return run_once(folder, inputs, lambda: anneal_on_spark(options))
    if isinstance(options, BoundOptions):
        return run_once(folder, inputs, lambda: bound_on_spark(options))
    reloc = _reloc_options(job)
    factors = f"{FACTORS}/rank-{reloc.rank}_rounds-{reloc.rounds}_{reloc.factorised}"
    labels = {"selector": job.label}
    return solve_method(
        spark, out, field, job.method, reloc, folder=f"{RESULTS}/{name}", factors=factors, stages=stages, labels=labels
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
    chosen, record = best
    entries = {name: value for name, value in record.items() if name not in (INPUTS_KEY, STAGES_KEY, "selector")}

    def note() -> dict[str, Any]:
        return {
            **entries,
            "selector": job.label,
            CHOSEN_KEY: chosen.folder,
            "chosen_k": chosen.k,
            STAGES_KEY: {},
        }

    folder, inputs = _step(job, limits)
    return run_once(out / RESULTS / folder, inputs, note)


def _bound_step(limits: LocalLimits) -> tuple[str, dict[str, Any]]:
    """Return the name of the folder of the bound of one machine, and what determines it."""
    return f"{CERTIFY}_{limits.bound_time:g}-s", {"method": CERTIFY, "seed": 0, "time_limit": limits.bound_time}


def _prove_bound(
    spark: "SparkSession", out: Path, field: Field, limits: LocalLimits, stages: Stages
) -> tuple[dict[str, Any], bool]:
    """Prove a bound, from the cheapest homes of the study, and keep the homes that were found meanwhile."""
    name, inputs = _bound_step(limits)
    folder = out / RESULTS / name

    def compute() -> dict[str, Any]:
        start, homes = _cheapest(out, folder), folder / "homes"
        given = None if start is None else read_homes(start / "homes", local_ids(out))
        certificate = folder / "certificate.json.gz"
        bound, used = stages.run("homes", lambda: certify_locally(out, given, 0, limits.bound_time, homes, certificate))
        return {"selector": CERTIFY, BOUND_KEY: bound, **evaluated(spark, out, field, homes, stages, used)}

    return run_once(folder, inputs, compute)


def _start_of_bound(out: Path, folder: Path) -> str:
    """Return the homes that a bound starts from, relative to the study: those of an earlier call, or the cheapest."""
    first = folder / "rounds" / "start"
    if (first / RECORD_FILE).exists():
        return str(read_record(first)[INPUTS_KEY]["homes"])
    if (start := _cheapest(out, folder)) is None:
        raise InputError("--methods", f"{SPARK_BOUND}: a bound needs homes; give another method too, such as nearest")
    return (start / "homes").relative_to(out).as_posix()


def _cheapest(out: Path, besides: Path) -> Path | None:
    """Return the folder of the cheapest homes of a study, besides one folder; None if there are none."""
    found = [path for path in result_folders(out) if (path / "homes").exists() and path != besides]
    return min(found, key=lambda path: float(read_record(path)["objective"]), default=None)
