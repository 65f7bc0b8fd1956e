"""``relocbench bench``."""

import contextlib
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from relocbench.benchmark_output import print_benchmark, print_report, write_report
from relocbench.commands.options import read_parameters, read_seeds
from relocbench.instances.errors import plural
from relocbench.print_output import Print
from relocbench.runs.progress import progress
from relocbench.terminal import print_json, resumable

if TYPE_CHECKING:
    from relocbench.instances.instance import Instance
    from relocbench.runs.methods import Selector
    from relocbench.runs.run_store import Row
    from relocbench.runs.sweep import Limits

FAMILY = "Instances of a family"
CHECK = "Methods against each other"


def run(
    instances: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Folders of instances, or files (JSON, Parquet with any number, family.parquet#name, library:name)."
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(help="Selectors, separated by commas; repeatable. `relocbench methods` lists the methods."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for rows and logs. Runs that are in it are not repeated.")] = Path(
        "bench"
    ),
    seed: Annotated[str, typer.Option(help="Seeds of the methods: 3, 0-9 or 1,4,7.")] = "0",
    time_limit: Annotated[float, typer.Option(help="Time limit of each run in seconds.", min=0)] = 60.0,
    memory_limit: Annotated[float, typer.Option(help="Memory limit of each run in GiB.", min=0.25, max=1e6)] = 4.0,
    jobs: Annotated[int, typer.Option(help="Number of runs at the same time.", min=1, max=256)] = 1,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Repeat runs that ended in an error.")] = False,
    family: Annotated[
        str | None, typer.Option(help="The family; `relocbench families` lists them.", rich_help_panel=FAMILY)
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(
            help="Seeds of the instances: 3, 0-9 or 1,4,7. Default: all replicates of the family.",
            rich_help_panel=FAMILY,
        ),
    ] = None,
    regime: Annotated[
        str | None, typer.Option(help="loose, scarce or overloaded (families tiny, small).", rich_help_panel=FAMILY)
    ] = None,
    clients: Annotated[
        int | None, typer.Option(help="Number of clients (family small).", rich_help_panel=FAMILY)
    ] = None,
    sigma: Annotated[
        float | None, typer.Option(help="Spread of a topic's members in km.", rich_help_panel=FAMILY)
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; repeatable.", rich_help_panel=FAMILY),
    ] = None,
    print_: Print = False,
    cross_check: Annotated[
        bool,
        typer.Option(
            "--cross-check",
            help="Compare the claims of methods about the same instances; exit 1 if they disagree. Default: every "
            "exact method on a selection of the family tiny.",
            rich_help_panel=CHECK,
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run methods on instances, each run in its own process with hard limits, and write a report.

    Every outcome is stored. The exit code is 1 if an answer is wrong: a claimed optimum that another run improves, or a
    bound above the cost of verified homes.

    Example: relocbench bench --family small --regime scarce --clients 15 --method milp-strong --method cpsat

    Example: relocbench bench --cross-check
    """
    from relocbench.runs.isolation.supervisor import GIB
    from relocbench.runs.selectors import parse_selectors, require_available
    from relocbench.runs.sweep import Limits

    selectors = parse_selectors(method or ())
    require_available(selectors)
    chosen = {"regime": regime, "clients": clients, "sigma": sigma}
    limits = Limits(time_limit, round(memory_limit * GIB))
    found = _instances(instances or [], family, seeds, chosen, set_ or [])
    if cross_check:
        _cross_check(found, selectors, out, limits, jobs, retry_errors, as_json, print_)
    else:
        _bench(found, selectors, read_seeds("--seed", seed) or [0], out, limits, jobs, retry_errors, as_json, print_)


def _bench(
    instances: "list[Instance]",
    selectors: "list[Selector]",
    seeds: list[int],
    out: Path,
    limits: "Limits",
    jobs: int,
    retry_errors: bool,
    as_json: bool,
    for_print: bool,
) -> None:
    from relocbench.instances.errors import InputError
    from relocbench.runs.run_store import Store
    from relocbench.runs.sweep import Task, announce_out_of_date, early_stops, gives_nothing, sweep

    if not instances:
        raise InputError("bench", "expected instance files, --family, or --cross-check")
    if not selectors:
        raise InputError("--method", "expected at least one")
    tasks = [Task(instance, selector, seed) for instance in instances for selector in selectors for seed in seeds]
    rows: list[Row] = []
    rule = gives_nothing(selectors)
    store = Store(out)
    announce_out_of_date(tasks, store, limits)
    running = sweep(tasks, store, limits, jobs=jobs, retry_errors=retry_errors, counts_as_failed=rule)
    with resumable(out), contextlib.closing(running):
        rows += progress(running, len(tasks), "running methods")
    order = {task.run(limits): number for number, task in enumerate(tasks)}
    ordered = sorted(rows, key=lambda row: order[row.run])
    if print_benchmark(ordered, out, as_json, early_stops(rows, tasks), for_print):
        raise typer.Exit(1)


def _cross_check(
    instances: "list[Instance]",
    selectors: "list[Selector]",
    out: Path,
    limits: "Limits",
    jobs: int,
    retry_errors: bool,
    as_json: bool,
    for_print: bool,
) -> None:
    from relocbench.runs.cross_check import conclude, default_instances, exact_methods, run_all, wrong_answers
    from relocbench.runs.run_store import Store

    absent: dict[str, str] = {}
    if not selectors:
        selectors, absent = exact_methods()
    instances = instances or default_instances()
    # The cross-check reuses processes, so its runs are not stored with those of a sweep, which starts one per run.
    store = Store(out / "cross-check")
    rows: list[Row] = []
    with resumable(store.folder):
        running = run_all(instances, selectors, limits, store=store, jobs=jobs, retry_errors=retry_errors)
        with contextlib.closing(running):
            rows += progress(running, len(instances) * len(selectors), "comparing methods")
        answer = conclude(rows, instances, selectors, limits, out=out / "disagreements")
    # The library may contradict a claim that no other method contradicts.
    known = {(one.hash, one.methods[0], one.seed) for one in answer.disagreements}
    further = [one for one in wrong_answers(rows) if (one.hash, one.methods[0], one.seed) not in known]
    answer = replace(answer, disagreements=(*answer.disagreements, *further))
    wrong = [one for one in answer.disagreements if one.kind != "error"]
    note = "In a cross-check, one process runs all problems of a method, one after the other."
    files = write_report(rows, store.folder, wrong, note, for_print)
    if as_json:
        print_json(asdict(answer) | {"unavailable": absent} | files)
    else:
        for name, reason in absent.items():
            print(f"not compared: {name} ({reason})")
        for found in answer.disagreements:
            print(f"{found.instance}: {found.message}" + (f"; smallest instance: {found.file}" if found.file else ""))
        others = f"{answer.unfinished} unfinished, {answer.refused} refused"
        print(
            f"{plural(answer.instances, 'instance')}, {plural(len(selectors), 'method')}, "
            f"{plural(answer.runs, 'run')} ({others}): "
            f"{plural(answer.optima, 'claimed optimum', 'claimed optima')} and "
            f"{plural(answer.bounds, 'other bound')} compared, "
            + (plural(len(answer.disagreements), "disagreement") if answer.disagreements else "all agree")
        )
        print_report(files)
    if answer.disagreements:
        raise typer.Exit(1)


def _instances(
    files: list[Path], family: str | None, seeds: str | None, chosen: dict[str, Any], settings: list[str]
) -> "list[Instance]":
    """Return the instances of all files, followed by those of the family."""
    from relocbench.instances.errors import InputError
    from relocbench.instances.generators.generate import generate_many
    from relocbench.instances.instance_source import read_all, unique

    found = read_all(files)
    parameters = read_parameters(chosen, settings)
    if family is not None:
        total, generated = generate_many(family, read_seeds("--seeds", seeds), parameters)
        found += progress(generated, total, "generating instances")
    elif parameters or seeds is not None:
        given = [*parameters, *(["seeds"] if seeds is not None else [])]
        raise InputError(f"--{given[0]}", "needs --family")
    return unique(found)
