"""``relocbench spark compare``."""

from typing import Annotated

import typer

from relocbench.terminal import print_json


def run(
    instance: Annotated[
        str,
        typer.Argument(metavar="INSTANCE", help="Folder that `spark reloc` or `spark study` wrote: a path or a URI."),
    ],
    method: Annotated[
        str, typer.Option(help="The method: reloc, nearest or otos; or the folder of a result of `spark study`.")
    ] = "reloc",
    out: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Also write the instance as an ordinary local file (.json, .parquet)."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the method without Spark and compare homes and cost. The instance must fit into memory.

    The exit code is 1 if they differ.

    Example: relocbench spark compare huge --method reloc
    """
    from relocbench.instances.files.instance_parquet import write_rows
    from relocbench.instances.instance_source import write_instance
    from relocbench.spark.compare_local import compare, read_local
    from relocbench.spark.locations import local, location

    folder = location(instance)
    if out is not None:
        file = local(location(out), "spark compare writes an instance to")
        local_instance, _ = read_local(folder)
        if file.suffix == ".parquet":
            write_rows([local_instance], file)
        else:
            write_instance(local_instance, file)
    comparison = compare(folder, method)
    if as_json:
        print_json({**vars(comparison), "equal": comparison.equal})
    else:
        print(f"{comparison.clients - comparison.different:,} of {comparison.clients:,} homes are equal")
        print(f"ΣD = {comparison.objective:.15g} on Spark, {comparison.local_objective:.15g} locally")
    if not comparison.equal:
        raise typer.Exit(1)
