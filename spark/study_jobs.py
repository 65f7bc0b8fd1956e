"""The runs of a study at full scale: which methods, numbers of clusters, relations and seeds.

Beside methods of one machine there are two that exist on Spark only: ``spark-anneal`` (:mod:`spark.anneal`) and
``spark-bound`` (:mod:`spark.bound`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from relocbench.heuristics.readings import DEFAULT_READING, Reading, named_reading
from relocbench.heuristics.reloc import auto_counts
from relocbench.instances.errors import InputError, one_of
from relocbench.runs.methods import METHODS, Selector
from relocbench.runs.methods import Method as MethodEntry
from relocbench.runs.selectors import parse_selectors
from relocbench.spark.anneal import AnnealOptions
from relocbench.spark.assign import Method, RelocOptions
from relocbench.spark.bound import BoundOptions

# The methods of a study. `anneal` runs on one machine (:mod:`spark.local_references`), the others on Spark.
StudyMethod = Literal["reloc", "nearest", "random", "otos", "anneal", "spark-anneal", "spark-bound"]
SPARK_ANNEAL, SPARK_BOUND = "spark-anneal", "spark-bound"
# The settings of these two are the fields of their options.
ONLY_ON_SPARK = {
    entry.name: entry
    for entry in (
        MethodEntry(SPARK_ANNEAL, "annealing in regions", "nothing", "relocbench.spark.anneal:AnnealOptions"),
        MethodEntry(SPARK_BOUND, "a lower bound in blocks", "bound", "relocbench.spark.bound:BoundOptions"),
    )
}
# Methods that run with the first seed only: their homes do not depend on it, or one bound is enough.
ONE_SEED = ("nearest", "otos", SPARK_BOUND)
# Settings of the local method that have no meaning on Spark.
LOCAL_SETTINGS = ("near", "threads")


@dataclass(frozen=True)
class Job:
    """One result of a study.

    Attributes
    ----------
    selector
        The method with its settings.
    seed
        The seed of the method.
    options
        The options of RELOC, of annealing in regions or of the bound; None for other methods. For ``k=auto`` those of
        no particular ``k``.
    candidates
        For ``k=auto`` the results among which the cheapest is chosen.
    """

    selector: Selector
    seed: int
    options: RelocOptions | AnnealOptions | BoundOptions | None = None
    candidates: tuple["Job", ...] = ()

    @property
    def k(self) -> int | None:
        """The number of clusters of RELOC; None for other methods and for ``k=auto``."""
        return self.options.k if isinstance(self.options, RelocOptions) and not self.candidates else None

    @property
    def label(self) -> str:
        """The selector as text."""
        return str(self.selector)

    @property
    def method(self) -> Method:
        """The name of the method, if :func:`spark.pipeline.solve_method` runs it."""
        name: Method = self.selector.method.name  # type: ignore[assignment]
        return name

    @property
    def folder(self) -> str:
        """The name of the folder of the result, such as ``reloc_k-8_relation-svd_seed-0``."""
        return (
            re.sub(r"_+", "_", re.sub(r"[^\w.+-]", "_", self.label.replace("=", "-"))).strip("_") + f"_seed-{self.seed}"
        )


def plan_jobs(
    methods: Iterable[str],
    counts: Iterable[str],
    relations: Iterable[str],
    seeds: Iterable[int],
    *,
    servers: int,
    rounds: int,
) -> list[Job]:
    """Return the results of a study.

    Parameters
    ----------
    methods
        Selectors. ``reloc`` stands for RELOC with all given numbers of clusters and relations that the selector does
        not set itself.
    counts
        The numbers of clusters ``K``; ``auto`` is possible.
    relations
        The relations, ``exact`` or ``svd``; none for that of the reading.
    seeds
        The seeds of the methods.
    servers
        The number of servers. Numbers of clusters above it are refused.
    rounds
        The number of rounds of the factorisation.

    Returns
    -------
    list of Job
        The results, without repetitions.

    Raises
    ------
    InputError
        If a method, a setting or a value is wrong.
    """
    jobs: dict[tuple[str, int], Job] = {}
    counts, relations, seeds = list(counts), list(relations), list(seeds)
    for given in parse_selectors(methods, METHODS | ONLY_ON_SPARK):
        name = given.method.name
        if name not in get_args(StudyMethod):
            raise InputError("--methods", one_of(list(get_args(StudyMethod)), name))
        if given.start is not None:
            raise InputError(f"method {name}", "start: a study at full scale has no start; remove it")
        for selector in _crossed(given, counts, relations) if name == "reloc" else [given]:
            for seed in seeds[:1] if name in ONE_SEED else seeds:
                if name in ONLY_ON_SPARK:
                    job = spark_job(name, seed, selector.settings)
                else:
                    job = _reloc_job(selector, seed, servers, rounds) if name == "reloc" else Job(selector, seed)
                jobs[job.label, job.seed] = job
    if not jobs:
        raise InputError("--methods", "expected at least one")
    return list(jobs.values())


def spark_job(name: str, seed: int, settings: Mapping[str, Any]) -> Job:
    """Return annealing in regions, or the bound in blocks.

    Parameters
    ----------
    name
        A key of ``ONLY_ON_SPARK``.
    seed
        The seed.
    settings
        Options that differ from their defaults.

    Returns
    -------
    Job
        The job.
    """
    options = AnnealOptions if name == SPARK_ANNEAL else BoundOptions
    return Job(Selector(ONLY_ON_SPARK[name], settings), seed, options(**settings, seed=seed))


def _crossed(selector: Selector, counts: list[str], relations: list[str]) -> list[Selector]:
    """Return the selector with each number of clusters and each relation, unless it sets them itself."""
    chosen_counts: list[Any] = (
        [selector.settings["k"]] if "k" in selector.settings else [_count(text) for text in counts]
    )
    chosen_relations: list[Any] = (
        [selector.settings["relation"]] if "relation" in selector.settings else relations or [None]
    )
    crossed = []
    for relation in chosen_relations:
        for k in chosen_counts:
            settings = {**selector.settings, "k": k} | ({} if relation is None else {"relation": relation})
            crossed.append(replace(selector, settings=settings))
    return crossed


def _count(text: str) -> int | str:
    if text != "auto" and not re.fullmatch(r"[0-9]{1,6}", text):
        raise InputError("--k", f"expected numbers of clusters such as 4,8,auto, got {text}")
    return text if text == "auto" else int(text)


def _reloc_job(selector: Selector, seed: int, servers: int, rounds: int) -> Job:
    settings = dict(selector.settings)
    for name in LOCAL_SETTINGS:
        if name in settings:
            raise InputError("method reloc", f"{name}: has a meaning in local runs only; remove it")
    k = settings.pop("k")
    if k == "auto":
        jobs = (_reloc_job(_with_count(selector, count), seed, servers, rounds) for count in auto_counts(servers))
        return Job(selector, seed, _options(settings, servers, seed, rounds), tuple(jobs))
    if k > servers:
        raise InputError("--k", f"expected at most {servers}, the number of servers, got {k}")
    return Job(selector, seed, _options(settings, k, seed, rounds))


def _with_count(selector: Selector, count: int) -> Selector:
    return replace(selector, settings={**selector.settings, "k": count})


def _options(settings: Mapping[str, Any], k: int, seed: int, rounds: int) -> RelocOptions:
    fields = {name: settings.get(name) for name in Reading.__dataclass_fields__}
    chosen = named_reading(settings.get("reading", DEFAULT_READING), **fields)
    values = {name: getattr(chosen, name) for name in Reading.__dataclass_fields__}
    related = settings.get("related", 100)
    return RelocOptions(**values, k=k, related=related, rounds=rounds, seed=seed)
