"""``relocbench show``."""

from pathlib import Path
from typing import Annotated

import typer

from relocbench.commands.options import HOMES


def run(
    instance: Annotated[Path, typer.Argument(help="Instance file (or family.parquet#name, library:name).")],
    solutions: Annotated[
        list[Path] | None,
        typer.Argument(help=f"Files with {HOMES}.", metavar="[HOMES]..."),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Selectors of methods whose homes are shown too, separated by commas; repeatable. Default: nearest, "
            "if there are no other homes."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the methods.", min=0)] = 0,
    time_limit: Annotated[float, typer.Option(help="Time limit of each method in seconds.", min=0)] = 10.0,
    out: Annotated[
        list[Path] | None,
        typer.Option(
            help="File to write: a page (.html) or a picture (.png); repeatable. Default: NAME.html in "
            "the current folder, unless that file is something else than such a page."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Draw the homes of an instance's clients on a map, with the loads and θ of its servers.

    For an instance of the library, its certified homes come first. A picture needs Chromium, a page does not. The
    excess of homes is objective / reference - 1, where the reference is the proven optimum or a certified bound.

    Example: relocbench show library:paper-s10-3 --method reloc --out map.html --out map.png
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.gap import excess
    from relocbench.instances.instance_source import check_not_the_instance, read_instance
    from relocbench.reports.pages.chromium import require_chromium
    from relocbench.reports.pages.requirements import require
    from relocbench.runs.selectors import parse_selectors
    from relocbench.terminal import command_line, print_json, print_table

    problem = read_instance(instance)
    for path in out or ():
        if path.suffix not in (".html", ".png"):
            raise InputError(str(path), "expected a name ending in .html or .png")
        for file in (instance, *(solutions or ())):
            check_not_the_instance(path, file)
    require()
    from relocbench.reports.map.page import default_path, page_of

    files = out or [default_path(problem)]
    if any(path.suffix == ".png" for path in files):
        require_chromium()
    from relocbench.reports.map.assignments import gather

    found, known = gather(problem, solutions or [], parse_selectors(method or ()), seed, time_limit)
    for path in files:
        if path.suffix == ".png":
            from relocbench.reports.map.picture import write_picture

            write_picture(found, path)
        else:
            page_of(problem, found, known, command_line()).write(path)

    bound = None if known is None else known.bound
    excesses = [None if bound is None else excess(one.cost.objective, bound) for one in found]
    if as_json:
        lines = [
            {"homes": one.label, "Y": one.cost.y, "objective": one.cost.objective, "excess": above}
            for one, above in zip(found, excesses, strict=True)
        ]
        print_json({"instance": problem.hash, "shown": lines, "bound": bound, "files": list(map(str, files))})
        return
    columns = ("homes", "Y", "Y1", "Y2", "excess", "least θ")
    rows = [
        (
            one.label,
            f"{one.cost.y:.6g}",
            f"{one.cost.y1:.6g}",
            f"{one.cost.y2:.6g}",
            "-" if above is None else f"{above:.2%}",
            f"{one.cost.theta.min():.4g}",
        )
        for one, above in zip(found, excesses, strict=True)
    ]
    print_table(repr(problem).strip("<>"), columns, rows, columns[1:])
    if known is not None:
        kind = "proven optimum" if known.optimal else "certified bound"
        print(f"excess over the {kind} ({known.source})")
    for path in files:
        print(f"{'picture' if path.suffix == '.png' else 'page'}: {path}")
