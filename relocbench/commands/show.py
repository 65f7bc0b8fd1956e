"""``relocbench show``."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    instance: Annotated[Path, typer.Argument(help="Instance file (or family.parquet#name, library:name).")],
    solutions: Annotated[
        list[Path] | None, typer.Argument(help="Solution files or certificates of it.", metavar="[SOLUTION]...")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Selectors whose homes are shown as well, between commas or each with the option. Without any homes: "
            "nearest."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the methods.", min=0)] = 0,
    time_limit: Annotated[float, typer.Option(help="Seconds for each method.", min=0)] = 10.0,
    out: Annotated[
        list[Path] | None,
        typer.Option(help="Where to: a page (.html) or a picture (.png); repeatable. Default: the name, as a page."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show an instance and homes for its clients on a map, with the loads of servers and θ.

    An instance of the library is shown with its certified homes first. A picture needs Chromium, a page does not.

    Example: relocbench show library:paper-s10-3 --method reloc --out map.html --out map.png
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.instance_source import read_instance
    from relocbench.reports.pages.chromium import required
    from relocbench.reports.pages.requirements import require
    from relocbench.runs.outcome import above
    from relocbench.runs.selectors import parse_selectors
    from relocbench.terminal import command_line, print_json, print_table

    problem = read_instance(instance)
    files = out or [Path(f"{problem.name or problem.hash[:12]}.html")]
    for path in files:
        if path.suffix not in (".html", ".png"):
            raise InputError(str(path), "expected a name ending in .html or .png")
    require()
    if any(path.suffix == ".png" for path in files):
        required()
    from relocbench.reports.map.assignments import gather

    selectors = [str(selector) for selector in parse_selectors(method or ())]
    found, known = gather(problem, solutions or [], selectors, seed, time_limit)
    for path in files:
        if path.suffix == ".png":
            from relocbench.reports.map.picture import write_picture

            write_picture(found, path)
        else:
            from relocbench.reports.map.page import page_of

            page_of(problem, found, known, command_line()).write(path)

    bound = None if known is None else known.bound
    gaps = [None if bound is None else above(one.cost.objective, bound) for one in found]
    if as_json:
        shown = [
            {"homes": one.label, "Y": one.cost.y, "objective": one.cost.objective, "gap": missing}
            for one, missing in zip(found, gaps, strict=True)
        ]
        print_json({"instance": problem.hash, "shown": shown, "bound": bound, "files": list(map(str, files))})
        return
    columns = ("homes", "Y", "Y1", "Y2", "gap", "least θ")
    rows = [
        (
            one.label,
            f"{one.cost.y:.6g}",
            f"{one.cost.y1:.6g}",
            f"{one.cost.y2:.6g}",
            "-" if missing is None else f"{missing:.2%}",
            f"{one.cost.theta.min():.4g}",
        )
        for one, missing in zip(found, gaps, strict=True)
    ]
    print_table(repr(problem).strip("<>"), columns, rows, columns[1:])
    if known is not None:
        what = "proven optimum" if known.optimal else "certified bound"
        print(f"gaps are what homes cost above the {what} ({known.whom})")
    for path in files:
        print(f"{'picture' if path.suffix == '.png' else 'page'}: {path}")
