"""``relocbench study``."""

import shlex
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relocbench.print_output import Print, print_files

if TYPE_CHECKING:
    from relocbench.reports.study.study import Study

FAMILY = "Instances of families"
SPARK = "Spark"
# The four methods of the paper, our own heuristic in the spirit of RELOC, and annealing with three budgets.
METHODS = (
    "random",
    "nearest",
    "otos",
    "reloc",
    "adaptive",
    "anneal[moves=2e4]",
    "anneal[moves=2e5]",
    "anneal[moves=2e6]",
)


def run(
    instances: Annotated[
        list[Path] | None,
        typer.Argument(help="Folders of instances, files (JSON, Parquet), or library:PATTERN. Default: see above."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Selectors, separated by commas; repeatable. Default: the paper's methods and annealing."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for the page, its data and the runs. Runs that are in it are not repeated.")
    ] = Path("study"),
    seed: Annotated[str, typer.Option(help="Seeds of the methods: 3, 0-9 or 1,4,7.")] = "0-2",
    time_limit: Annotated[float, typer.Option(help="Time limit of each run in seconds.", min=0)] = 60.0,
    reference_time: Annotated[
        float, typer.Option(help="Time limit in seconds of each proof that is not in the library.", min=1)
    ] = 12.0,
    memory_limit: Annotated[float, typer.Option(help="Memory limit of each run in GiB.", min=0.25, max=1e6)] = 4.0,
    jobs: Annotated[
        int | None, typer.Option(help="Number of runs at the same time. Default: one per core.", min=1, max=256)
    ] = None,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Repeat runs that ended in an error.")] = False,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Instances to compare together: family (default), name, folder, clients, servers, topics, a parameter "
            "such as sigma, several with commas, or /REGEX/ on the name.",
        ),
    ] = None,
    block_by: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Instances that are one independent sample. Default: those of one family and seed that share draws.",
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(help="The family; repeatable. `relocbench families` lists them.", rich_help_panel=FAMILY),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Seeds of the instances: 3, 0-9 or 1,4,7. Default: all replicates of the family.",
            rich_help_panel=FAMILY,
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A parameter, such as sigma=10; repeatable.", rich_help_panel=FAMILY
        ),
    ] = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark.", rich_help_panel=SPARK)] = False,
    master: Annotated[
        str | None, typer.Option(help="local[*], local[2] or spark://host:port.", rich_help_panel=SPARK)
    ] = None,
    print_: Print = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure how far methods are above the optimum, and write a page with tables and plots.

    The excess of a run is objective / reference - 1. The reference is the proven optimum or, where none is known, a
    certified bound. It comes from the library or is proved during the study. By default, the study uses small instances
    of every regime and those of the paper. Exit code 1 means that a run contradicts a proof or left no result.

    Example: relocbench study

    Example: relocbench study --family paper-spooler --seeds 0-2 --method 'nearest,reloc,anneal[moves=2e6]' --out spool
    """
    from relocbench.commands.options import read_parameters, read_seeds, started
    from relocbench.instances.errors import InputError
    from relocbench.reports.pages.index import FILE, is_index, write_index
    from relocbench.reports.pages.requirements import require
    from relocbench.reports.study import subjects
    from relocbench.reports.study.groups import grouped
    from relocbench.reports.study.runner import Design
    from relocbench.reports.study.study import conduct
    from relocbench.runs.environment import cores
    from relocbench.runs.isolation.supervisor import GIB
    from relocbench.runs.selectors import parse_selectors, require_available
    from relocbench.runs.sweep import Limits
    from relocbench.terminal import command_line, resumable

    require()
    selectors = parse_selectors(method or METHODS)
    require_available(selectors)
    parameters = read_parameters({}, set_ or [])
    if family is None and (parameters or seeds is not None):
        raise InputError("--set" if parameters else "--seeds", "needs --family")
    if master is not None and not spark:
        raise InputError("--master", "needs --spark")
    found = subjects.of_files(instances or ())
    for name in family or ():
        found += subjects.of_family(name, read_seeds("--seeds", seeds), parameters)
    found = subjects.without_duplicates(found if instances or family else subjects.default())
    found = grouped(found, group_by, block_by)
    design = Design(
        selectors=selectors,
        seeds=read_seeds("--seed", seed) or [0],
        limits=Limits(time_limit, round(memory_limit * GIB)),
        reference_time=reference_time,
        jobs=jobs or cores(),
        retry_errors=retry_errors,
        session=partial(started, master) if spark else None,
    )
    with resumable(out):
        done = conduct(found, design, out, command_line())
    if is_index(out.resolve().parent / FILE):
        write_index(out.resolve().parent, f"relocbench index {shlex.quote(str(out.parent))}")
    _print_study(done, as_json)
    print_files(done.page, print_, as_json)
    if done.wrong or done.problems:
        raise typer.Exit(1)


def _print_study(done: "Study", as_json: bool) -> None:
    from relocbench.reports.pages.markup import plain
    from relocbench.reports.pages.method_style import name_of
    from relocbench.reports.study.anytime import times_to_targets
    from relocbench.reports.study.excess import comparisons, summaries
    from relocbench.reports.study.page import lead, reference_counts
    from relocbench.terminal import print_json, print_table

    found = summaries(done.measurements)
    if as_json:
        print_json(
            {
                "page": str(done.page),
                "runs": len(done.measurements),
                "warnings": done.warnings,
                "summary": [asdict(summary) for summary in found],
                "time_to_target": [asdict(one) for one in times_to_targets(done.courses)],
                "comparisons": [asdict(one) | {"better": one.better} for one in comparisons(done.measurements)],
            }
        )
        return
    selectors = list(dict.fromkeys(summary.selector for summary in found))
    means = {(summary.group, summary.regime, summary.selector): f"{summary.mean:.2%}" for summary in found}
    parts = {(summary.group, summary.regime): summary for summary in found}
    columns = ("instances", "reference", "n", *map(name_of, selectors))
    rows = [
        (part[1], reference_counts(one), str(one.blocks), *(means.get((*part, name), "-") for name in selectors))
        for part, one in parts.items()
    ]
    title = "Mean excess over the proven optimum or the certified bound; n independent samples"
    print_table(title, columns, rows, columns[2:])
    print(plain(lead(done.measurements)))
    for warning in done.warnings:
        print(plain(warning))
    print(f"report: {done.page}")
