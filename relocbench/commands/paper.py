"""``relocbench paper``."""

import shlex
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Master, People, Sites, Social, read_parameters, started
from relocbench.instances.errors import plural
from relocbench.print_output import Print, print_files


def run(
    out: Annotated[Path, typer.Option(help="Folder for the page, its data and the runs.")] = Path("paper"),
    seeds: Annotated[int, typer.Option(help="Number of replicates per cell; intervals need 5.", min=1, max=1000)] = 5,
    time_limit: Annotated[
        float,
        typer.Option(
            help="Seconds to certify an instance that is not in the library; three quarters of it for tightness.",
            min=0.1,
        ),
    ] = 2.0,
    jobs: Annotated[int, typer.Option(help="Number of runs at the same time.", min=1, max=256)] = 2,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Replace a parameter of the families; repeatable."),
    ] = None,
    social: Social = None,
    sites: Sites = None,
    people: People = None,
    readings: Annotated[
        bool, typer.Option("--readings", help="Run RELOC in all readings of Algorithm 1, not only in the main ones.")
    ] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Run the readings on Spark, not with --jobs.")] = False,
    master: Master = None,
    print_: Print = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Repeat the paper's evaluation: every figure, with certified bounds, and where every claim holds.

    Runs that are already in the folder are not repeated.

    Example: relocbench paper --out paper

    Example: relocbench paper --readings --seeds 10 --out paper

    Example: relocbench paper --social facebook_combined.txt.gz --seeds 2 --out paper-facebook
    """
    from relocbench.reports.pages import requirements

    requirements.require()
    from relocbench.reports.paper.claim_sections import default_verdicts
    from relocbench.reports.paper.claims import CLAIMS
    from relocbench.reports.paper.evaluation import run_evaluation
    from relocbench.reports.paper.measures import write_rows
    from relocbench.reports.paper.page import write_page
    from relocbench.reports.paper.planner import Setup
    from relocbench.reports.paper.readings import all_readings, main_readings
    from relocbench.reports.paper.verdict_maps import where
    from relocbench.terminal import print_json, print_table, resumable

    setup = Setup(seeds, time_limit, jobs, read_parameters({}, set_ or []), social, sites, people)
    chosen = all_readings() if readings else main_readings()
    with resumable(out), started(master) if spark else nullcontext() as session:
        found = run_evaluation(setup, chosen, out / "runs", session)
    data, page = out / "assignments.parquet", out / "paper.html"
    write_rows((row for measures in found.groups.values() for row in measures.rows), data)
    words = ["relocbench", "paper", "--seeds", str(seeds), "--time-limit", f"{time_limit:g}"]
    words += ["--readings"] if readings else []
    for text in set_ or []:
        words += ["--set", text]
    for option, file in (("--social", social), ("--sites", sites), ("--people", people)):
        words += [] if file is None else [option, file.name]
    agreement = write_page(found, setup, shlex.join(words), page)
    print_files(page, print_, as_json)
    verdicts = default_verdicts(agreement)
    if as_json:
        claims = [
            {
                "claim": CLAIMS[key].statement,
                "test": CLAIMS[key].test,
                "verdict": verdict.word,
                "numbers": verdict.numbers,
                "holds_for": where(agreement, key),
                "readings": {
                    reading: {group: agreement.verdicts[group, reading][key].word for group in agreement.groups}
                    for reading in agreement.readings
                },
            }
            for key, verdict in verdicts.items()
        ]
        scores = {reading: agreement.score(reading) for reading in agreement.readings}
        print_json(
            {
                "page": str(page),
                "data": str(data),
                "claims": claims,
                "plausible_sizes": agreement.plausible,
                "agreement": scores,
                "chosen_reading": agreement.chosen,
                "errors": list(found.problems),
            }
        )
        return
    rows = [
        (str(number), CLAIMS[key].statement, verdict.word, where(agreement, key).replace("`", ""))
        for number, (key, verdict) in enumerate(verdicts.items(), start=1)
    ]
    print_table(
        f"Claims of the paper, tested with {plural(seeds, 'seed')}",
        ("#", "claim", "default reading", "over readings and sizes of topics"),
        rows,
    )
    for problem in found.problems:
        print(problem)
    print(f"page: {page}\ndata: {data}")
