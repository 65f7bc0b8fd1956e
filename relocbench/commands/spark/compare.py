"""``relocbench spark compare``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.terminal import print_json


def run(
    instance: Annotated[Path, typer.Argument(help="Folder that `spark reloc` wrote.")],
    method: Annotated[str, typer.Option(help="Whose homes: reloc, nearest or otos.")] = "reloc",
    out: Annotated[Path | None, typer.Option(help="Write the ordinary instance (.json, .parquet) as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the method here, without Spark, and compare homes and cost; for sizes that fit into memory.

    Exit 1 if they differ.

    Example: relocbench spark compare huge --method reloc
    """
    from relocbench.instances.files.instance_parquet import write_rows
    from relocbench.instances.instance_source import write_instance
    from relocbench.spark.compare_local import compare, read_local

    if out is not None:
        written, _ = read_local(instance)
        if out.suffix == ".parquet":
            write_rows([written], out)
        else:
            write_instance(written, out)
    found = compare(instance, method)
    if as_json:
        print_json({**vars(found), "equal": found.equal})
    else:
        print(f"{found.clients - found.different:,} of {found.clients:,} homes are equal")
        print(f"ΣD = {found.objective:.15g} on Spark, {found.local_objective:.15g} here")
    if not found.equal:
        raise typer.Exit(1)
