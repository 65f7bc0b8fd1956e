"""``relocbench check``."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from relocbench.commands.options import read_seeds
from relocbench.terminal import print_json

if TYPE_CHECKING:
    from relocbench.reports.gate.baseline_update import RenewedRecord, Update

RULE = "When a change counts"
BASELINE = "Making a baseline"
REPORTS = "Reports"


def run(
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="path/to/mine.py:function, package.module:function, a registered method, or a selector; repeatable. "
            "Default: every method of the baseline."
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            help="The baseline file. Default: relocbench-baseline.json if it exists, else that of this project."
        ),
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="The method of the baseline to compare with. Default: the same method.")
    ] = None,
    instances: Annotated[
        str | None,
        typer.Option(
            help="Pattern of instances, such as 'paper-*'. Default: those of the baseline. With --update-baseline a "
            "pattern of the library, or a folder with instance files of your own."
        ),
    ] = None,
    directory: Annotated[Path | None, typer.Option(help="Folder of a library. Default: that of this package.")] = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(
            help="What is compared besides the cost: time (processor time) or integral (primal integral); repeatable. "
            "With --update-baseline, both are stored.",
            rich_help_panel=RULE,
        ),
    ] = None,
    effect: Annotated[
        float,
        typer.Option(
            help="Least mean increase of the cost over all instances or a group that fails; 0.005 is 0.5 %.",
            rich_help_panel=RULE,
        ),
    ] = 0.005,
    instance_effect: Annotated[
        float, typer.Option(help="Least increase of the cost on a single instance that fails.", rich_help_panel=RULE)
    ] = 0.5,
    time_effect: Annotated[
        float, typer.Option(help="Least mean increase of the time that fails.", rich_help_panel=RULE)
    ] = 0.25,
    integral_effect: Annotated[
        float, typer.Option(help="Least mean increase of the primal integral that fails.", rich_help_panel=RULE)
    ] = 0.25,
    alpha: Annotated[
        float,
        typer.Option(
            help="Significance level: the largest probability of failing a method that is no worse.",
            min=0,
            max=1,
            rich_help_panel=RULE,
        ),
    ] = 0.05,
    update_baseline: Annotated[
        bool,
        typer.Option(
            "--update-baseline",
            help="Write the current costs to the baseline and print the changes.",
            rich_help_panel=BASELINE,
        ),
    ] = False,
    seed: Annotated[
        str | None,
        typer.Option(help="Seeds: 0-4 or 1,4,7. Default: those of the baseline, or 0-4.", rich_help_panel=BASELINE),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Time limit of each run in seconds. Default: that of the baseline, or 60.",
            min=0,
            rich_help_panel=BASELINE,
        ),
    ] = None,
    memory_limit: Annotated[float, typer.Option(help="Memory limit of each run in GiB.", min=0.25, max=1e6)] = 4.0,
    jobs: Annotated[int, typer.Option(help="Number of runs at the same time.", min=1, max=256)] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the smallest instances that show a failure.")] = Path("check"),
    shrink_seconds: Annotated[
        float, typer.Option(help="Time in seconds to shrink each of them; 0 writes the whole instance.", min=0)
    ] = 30.0,
    markdown: Annotated[
        Path | None, typer.Option(help="Write a summary in Markdown, for a pull request.", rich_help_panel=REPORTS)
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(help="Write a JUnit XML file, for a CI server.", rich_help_panel=REPORTS)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=REPORTS)] = False,
) -> None:
    """Check that heuristics did not get worse, on the library of certified instances or on instances of your own.

    Costs are paired with those of the baseline by instance and seed. The exit code is 1 if the costs increased
    significantly and by a relevant amount, over all instances, a group or one instance, or if a run gave no valid
    assignment. docs/gate.md gives the power of the check.

    Example: relocbench check --method 'path/to/mine.py:my_heuristic'

    Example: relocbench check --method 'path/to/mine.py:my_heuristic' --update-baseline
    """
    from relocbench.instances.errors import InputError
    from relocbench.instances.files.atomic_write import written_whole
    from relocbench.instances.files.file_lock import locked
    from relocbench.instances.library.library import FOLDER
    from relocbench.reports.gate.baseline_update import update
    from relocbench.reports.gate.check import check
    from relocbench.reports.gate.comparison import Rule
    from relocbench.reports.gate.junit_file import junit_of
    from relocbench.reports.gate.markdown_summary import markdown_of
    from relocbench.runs.isolation.supervisor import GIB

    memory = round(memory_limit * GIB)
    if not update_baseline and (seed is not None or time_limit is not None):
        name = "--seed" if seed is not None else "--time-limit"
        raise InputError(name, "needs --update-baseline: a check uses the seeds and the time limit of its baseline")
    for name, given in (("--against", against), ("--markdown", markdown), ("--junit", junit)):
        if update_baseline and given is not None:
            raise InputError(name, "cannot be combined with --update-baseline")
    for wanted in filter(None, (markdown, junit)):
        with locked(wanted):  # a folder that cannot be written is noticed before the runs, which take long
            pass
    try:
        if update_baseline:
            changed = update(
                method,
                baseline=baseline,
                instances=instances,
                seeds=read_seeds("--seed", seed) if seed is not None else None,
                time_limit=time_limit,
                library=directory or FOLDER,
                criteria=criterion or (),
                memory_limit=memory,
                jobs=jobs,
            )
        else:
            verdict = check(
                method,
                baseline=baseline,
                against=against,
                instances=instances or "*",
                library=directory or FOLDER,
                rule=Rule(alpha, effect, instance_effect, time_effect=time_effect, integral_effect=integral_effect),
                criteria=criterion or (),
                memory_limit=memory,
                jobs=jobs,
                out=out,
                shrink_seconds=shrink_seconds,
            )
    except KeyboardInterrupt:
        print("relocbench: interrupted; nothing was written", file=sys.stderr)
        raise typer.Exit(130) from None
    if update_baseline:
        _print_update(changed, as_json)
        if not changed.written:
            raise typer.Exit(1)
        return
    for path, content in ((markdown, markdown_of), (junit, junit_of)):
        if path is not None:
            with written_whole(path) as temporary:
                temporary.write_text(content(verdict), encoding="utf-8")
    if as_json:
        print_json(verdict.to_json())
    else:
        print(verdict)
    if not verdict.passed:
        raise typer.Exit(1)


def _print_update(changed: "Update", as_json: bool) -> None:
    from dataclasses import asdict

    if as_json:
        methods = [
            {
                "method": renewed.record.method,
                "is_new": renewed.is_new,
                "instances": len(renewed.record.lines),
                "seeds": renewed.record.seeds,
                "added": renewed.added,
                "gone": renewed.gone,
                "changes": list(map(asdict, renewed.changes)),
                "failed": list(map(asdict, renewed.failed)),
                "stopped": asdict(renewed.stopped) if renewed.stopped else None,
            }
            for renewed in changed.renewed
        ]
        answer = {"baseline": str(changed.path), "written": changed.written, "replaced": changed.replaced}
        print_json(answer | {"methods": methods})
        return
    for renewed in changed.renewed:
        print("\n".join(_lines(renewed)))
    for method in changed.replaced:
        print(f"{method}: another update wrote costs meanwhile; they were replaced")
    print(f"written: {changed.path}" if changed.written else f"not written, because runs failed: {changed.path}")


def _lines(renewed: "RenewedRecord") -> list[str]:
    from relocbench.instances.errors import plural
    from relocbench.reports.gate.verdict import change_counts, change_lines, failed_lines, finding_lines

    record = renewed.record
    lines = [f"{record.method}: {plural(len(record.lines), 'instance')}, {plural(len(record.seeds), 'seed')}"]
    lines[0] += ", new" if renewed.is_new else ""
    if renewed.stopped is not None:
        lines = [f"{record.method}: {renewed.stopped}"]
    elif not renewed.is_new:
        lines += [f"  added: {', '.join(renewed.added)}"] if renewed.added else []
        lines += [f"  removed: {', '.join(renewed.gone)}"] if renewed.gone else []
        lines.append(f"  {change_counts(renewed.changes)}")
        changed = sorted((change for change in renewed.changes if change.change), key=lambda c: -abs(c.change))
        if changed:
            lines += finding_lines([finding for finding in renewed.findings if finding.scope != "instance"])
            lines += change_lines(changed)
    return lines + failed_lines(renewed.failed)
