"""``relocbench moving study``."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import (
    Master,
    Set,
    read_numbers,
    read_parameters,
    read_seeds,
    read_whole_numbers,
    started,
)
from relocbench.instances.errors import InputError, plural
from relocbench.print_output import Print, print_files
from relocbench.terminal import command_line, print_json, print_table, resumable

# The options that describe generated timelines, by the name of their parameter.
OF_GENERATED = {
    "speeds": "--speeds",
    "prices": "--prices",
    "seeds": "--seeds",
    "epochs": "--epochs",
    "set_": "--set",
}


def run(
    context: typer.Context,
    timelines: Annotated[
        list[Path] | None, typer.Argument(help="Timeline files. Default: timelines are generated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the page, its data and the replays.")] = Path("moving"),
    speeds: Annotated[str, typer.Option("--speeds", "--speed", help="Mean speeds in km/h.")] = "5,30,100",
    prices: Annotated[str, typer.Option("--prices", "--price", help="Factors of both default prices.")] = "1",
    seeds: Annotated[
        str, typer.Option("--seeds", "--seed", help="Seeds of the timelines: 3, 0-9 or 1,4,7; intervals need 5.")
    ] = "0-4",
    epochs: Annotated[int, typer.Option(help="Number of epochs of a generated timeline.", min=1)] = 60,
    periods: Annotated[
        str, typer.Option("--periods", "--period", help="Epochs after which homes are computed again.")
    ] = "1,2,5,10,30,60",
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policies",
            "--policy",
            help="Further policies, separated by commas; repeatable. Default: threshold[worse=0.05], relocate and "
            "relocate[ahead=4].",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            "--methods",
            "--method",
            help="Selectors of methods, separated by commas; repeatable. Default: reloc, nearest and adaptive. The "
            "questions are asked about the first one.",
        ),
    ] = None,
    clusters: Annotated[
        str, typer.Option(help="Numbers of clusters of RELOC to compare; empty for none.")
    ] = "1,2,4,8,16,auto",
    sizes: Annotated[
        str, typer.Option(help="Numbers of clients at which run times are measured; empty for none.")
    ] = "1000,10000,100000",
    time_limit: Annotated[float, typer.Option(help="Seconds for each run of a method.", min=0)] = 60.0,
    bound_time: Annotated[
        float,
        typer.Option(
            help="Seconds for a bound on each timeline that counts relocation. With 0, the bound is the sum of the "
            "epochs' own bounds.",
            min=0,
        ),
    ] = 0.0,
    jobs: Annotated[int, typer.Option(help="Number of processes.", min=1, max=256)] = 2,
    set_: Set = None,
    spark: Annotated[bool, typer.Option("--spark", help="Run on Spark, not with --jobs.")] = False,
    master: Master = None,
    print_: Print = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Study how often homes must be computed again: periods, policies and methods, with a page that answers.

    What is already in the folder is not repeated. Without files, timelines are generated for each speed and seed.

    Example: relocbench moving study --out moving

    Example: relocbench moving study taxis.parquet --periods 1,10,60,1440 --out moving-taxis
    """
    from relocbench.reports.pages import requirements

    requirements.require()
    from relocbench.reports.moving.findings import answers
    from relocbench.reports.moving.page import write_page
    from relocbench.reports.moving.plan import Plan
    from relocbench.reports.moving.study import run_study
    from relocbench.reports.moving.summary import Summary
    from relocbench.reports.pages.markup import plain
    from relocbench.runs.selectors import split_at_commas

    if timelines:
        _refuse_generator_options(context)
    default = Plan()
    parameters = read_parameters({"n_epochs": epochs}, set_ or [])
    plan = Plan(
        speeds=read_numbers("--speeds", speeds),
        prices=read_numbers("--prices", prices),
        seeds=tuple(read_seeds("--seeds", seeds) or ()),
        parameters=parameters,
        files=tuple(timelines or ()),
        periods=read_whole_numbers("--periods", periods),
        policies=default.policies if policy is None else tuple(one for one in policy if one.strip()),
        methods=default.methods if method is None else tuple(part for text in method for part in split_at_commas(text)),
        clusters=tuple(filter(None, (part.strip() for part in clusters.split(",")))),
        sizes=read_whole_numbers("--sizes", sizes),
        time_limit=time_limit,
        bound_time=bound_time,
    )
    with resumable(out), started(master) if spark else nullcontext() as session:
        found = run_study(plan, out, jobs=jobs, spark=session)
    data = found.write(out)
    summary = Summary(found)
    page = write_page(found, summary, command_line(), out / "moving.html")
    print_files(page, print_, as_json)
    words = answers(summary)
    if as_json:
        print_json(
            {
                "page": str(page),
                "data": list(map(str, data)),
                "answers": {answer.question: plain(answer.text) for answer in words},
                "policies": [line.values() for line in summary.lines],
            }
        )
        return
    columns = ("timelines", "policy", "method", "ms/publication", "cost/bound", "handovers/h", "overload")
    rows = [
        (
            line.group,
            line.policy,
            line.method,
            f"{line.cost.mean:.4f}",
            "" if line.ratio is None else f"{line.ratio.mean:.3f}",
            f"{line.handovers:.3g}",
            f"{line.overload:.0%}",
        )
        for line in summary.main_lines
    ]
    print_table(f"Cost of schedules, means over {plural(len(found.subjects), 'timeline')}", columns, rows, columns[3:])
    for answer in words:
        print(f"{answer.question}\n  {plain(answer.text)}")
    print(f"page: {page}\ndata: {', '.join(map(str, data))}")


def _refuse_generator_options(context: typer.Context) -> None:
    """Refuse options that would have no effect, because the timelines are files."""
    for parameter, option in OF_GENERATED.items():
        source = context.get_parameter_source(parameter)
        if source is not None and source.name == "COMMANDLINE":
            problem = "has no effect on timeline files, expected it without files only"
            raise InputError(option, f"{problem}; set it when the file is made, with `relocbench moving generate`")
