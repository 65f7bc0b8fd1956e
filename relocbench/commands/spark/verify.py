"""``relocbench spark verify``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import Conf, Master, Memory, Partitions, started
from relocbench.terminal import print_json


def run(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="Folder of the instance that `spark bound` bounded: a path or a URI."),
    ],
    bound: Annotated[
        str | None,
        typer.Option(
            metavar="PATH",
            help="Folder of the bound, such as study/results/spark-bound_seed-0. Default: `bound` in that of the "
            "instance.",
        ),
    ] = None,
    master: Master = None,
    memory: Memory = None,
    partitions: Partitions = None,
    conf: Conf = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Verify the bound of a full-scale instance again, in exact arithmetic. The exit code is 1 if it is not proved.

    Example: relocbench spark verify huge
    """
    from relocbench.instances.errors import InputError
    from relocbench.spark.bound import BOUND_ENTRIES, verify_folder
    from relocbench.spark.checkpoints import read_record, unwrap_input_errors
    from relocbench.spark.locations import location
    from relocbench.spark.progress import run_with_progress

    folder = location(instance)
    place = folder / "bound" if bound is None else location(bound)
    if isinstance(place, Path):  # report a missing folder before Java starts
        read_record(place, "spark bound", BOUND_ENTRIES)
    reason = ""
    found: float | None = None
    with started(master, memory, partitions, conf) as spark:
        try:
            with unwrap_input_errors():
                verified = run_with_progress(spark, lambda: verify_folder(spark, folder, place), "verifying")
            proved, record, found = verified
            if not proved:
                reason = f"the dual proves {found:.12g} only, the claim is {record['bound']:.12g}"
        except InputError as error:
            proved, reason = False, str(error)
    if as_json:
        print_json({"proved": proved, "bound": found, "reason": reason})
    else:
        print(f"proved: no assignment costs less than {found:.12g}" if proved else f"not proved: {reason}")
    if not proved:
        raise typer.Exit(1)
