"""``relocbench spark run``."""

import sys
from typing import Annotated

import typer

from relocbench.benchmark_output import print_benchmark
from relocbench.commands.options import Conf, Master, Memory, read_seeds, started
from relocbench.instances.errors import plural
from relocbench.terminal import resumable


def run(
    instances: Annotated[
        list[str],
        typer.Argument(
            metavar="INSTANCES...", help="Folders of instances, files (JSON; Parquet with any number), or library:name."
        ),
    ],
    method: Annotated[
        list[str],
        typer.Option(
            "--methods", "--method", help="Selectors, separated by commas; repeatable. `relocbench methods` lists them."
        ),
    ],
    out: Annotated[
        str, typer.Option(metavar="PATH", help="Folder for rows and logs. Runs with a row are not repeated.")
    ],
    seed: Annotated[str, typer.Option("--seeds", "--seed", help="Seeds of the methods: 3, 0-9 or 1,4,7.")] = "0",
    time_limit: Annotated[float, typer.Option(help="Seconds for each run.", min=0)] = 60.0,
    memory_limit: Annotated[float, typer.Option(help="GiB for each run.", min=0.25, max=1e6)] = 4.0,
    retry_errors: Annotated[bool, typer.Option("--retry-errors", help="Repeat runs that ended in an error.")] = False,
    parts: Annotated[
        int | None,
        typer.Option(help="Approximate number of parts into which the runs are split. Default: 12 per core.", min=1),
    ] = None,
    master: Master = None,
    memory: Memory = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run methods on instances, on all cores or a cluster. The rows are those of `relocbench bench`.

    Example: relocbench spark run small --methods 'nearest,reloc[k=auto],cfn' --seeds 0-2 --out runs
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.instance_source import read_all
    from relocbench.runs.isolation.supervisor import GIB
    from relocbench.runs.run_store import Store
    from relocbench.runs.selectors import parse_selectors, require_available
    from relocbench.runs.sweep import Limits, Task, announce_out_of_date
    from relocbench.spark.locations import local, location, require_writable
    from relocbench.spark.sweep import missing, sweep

    selectors = parse_selectors(method)
    if not selectors:
        raise InputError("--methods", "expected at least one")
    require_available(selectors)
    limits = Limits(time_limit, round(memory_limit * GIB))
    files = [local(location(text), "spark run reads instances from") for text in instances]
    folder = local(location(out), "spark run writes rows to")
    require_writable(folder)
    seeds = read_seeds("--seeds", seed) or [0]
    tasks = [Task(one, selector, n) for one in read_all(files) for selector in selectors for n in seeds]
    store = Store(folder)
    announce_out_of_date(tasks, store, limits)
    remaining = missing(tasks, store, limits, retry_errors)
    problems: list[str] = []
    if remaining:
        with resumable(folder), started(master, memory, conf=conf) as session:
            problems = sweep(session, remaining, store, limits, retry_errors=retry_errors, parts=parts)
    runs = dict.fromkeys(task.run(limits) for task in tasks)
    wrong = print_benchmark([row for run in runs if (row := store.find(run)) is not None], folder, as_json)
    for problem in problems[:20]:
        print(f"relocbench: no row: {problem}", file=sys.stderr)
    if problems:
        left = plural(len(problems), "run")
        print(f"relocbench: {left} left no row; run the same command to repeat them", file=sys.stderr)
    if problems or wrong:
        raise typer.Exit(1)
