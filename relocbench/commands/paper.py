"""``relocbench paper``."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import People, Sites, Social, read_parameters
from relocbench.instances.errors import plural


def run(
    out: Annotated[Path, typer.Option(help="Folder for the page, its data and the runs.")] = Path("paper"),
    seeds: Annotated[int, typer.Option(help="Number of replicates per cell; intervals need 5.", min=1, max=1000)] = 5,
    time_limit: Annotated[
        float, typer.Option(help="Time limit in seconds to certify each instance that is not in the library.", min=0.1)
    ] = 6.0,
    jobs: Annotated[int, typer.Option(help="Number of runs at the same time.", min=1, max=256)] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Replace a parameter of the families; repeatable."),
    ] = None,
    social: Social = None,
    sites: Sites = None,
    people: People = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Repeat the paper's evaluation: every figure, with certified optima, and a verdict on every claim.

    Runs that are already in the folder are not repeated.

    Example: relocbench paper --out paper

    Example: relocbench paper --social facebook_combined.txt.gz --seeds 2 --out paper-facebook
    """
    from relocbench.reports.pages import requirements

    requirements.require()
    from relocbench.reports.paper.evaluation import Setup, run_evaluation
    from relocbench.reports.paper.page import write_page
    from relocbench.terminal import print_json, print_table, resumable

    setup = Setup(seeds, time_limit, jobs, read_parameters({}, set_ or []), social, sites, people)
    with resumable(out):
        found = run_evaluation(setup, out / "runs")
    data, page = out / "assignments.parquet", out / "paper.html"
    found.measures.write(data)
    words = ["relocbench", "paper", "--seeds", str(seeds), "--time-limit", f"{time_limit:g}"]
    for text in set_ or []:
        words += ["--set", text]
    for option, file in (("--social", social), ("--sites", sites), ("--people", people)):
        words += [] if file is None else [option, file.name]
    judged = write_page(found, setup, shlex.join(words), page)
    if as_json:
        verdicts = [
            {
                "claim": claim.statement,
                "test": claim.test,
                "verdict": claim.verdict.word,
                "numbers": claim.verdict.numbers,
                "other_readings": {reading: verdict.word for reading, verdict in claim.others.items()},
            }
            for claim in judged
        ]
        print_json({"page": str(page), "data": str(data), "claims": verdicts, "errors": list(found.problems)})
        return
    rows = [(str(number), claim.statement, claim.verdict.word) for number, claim in enumerate(judged, start=1)]
    print_table(f"Claims of the paper, tested with {plural(seeds, 'seed')}", ("#", "claim", "verdict"), rows)
    for problem in found.problems:
        print(problem)
    print(f"page: {page}\ndata: {data}")
