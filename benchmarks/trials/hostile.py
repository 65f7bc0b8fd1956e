"""Hostile methods in every command that takes a method, and from Python.

Every command must end within its limits, leave no process, print nothing of the method, and report no success unless
the method gave a valid answer. A reported cost must be the exact cost of these homes on the right instance. A
well-behaved method in the same command must not be affected.
"""

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.trials.commands import Finished, run_command
from benchmarks.trials.hostile_commands import COMMANDS, ENTRIES, OVERTIME, TIME_LIMIT, Scene, case_of
from benchmarks.trials.hostile_methods import GOOD, HOSTILE, NOISE, HostileMethod
from benchmarks.trials.parallel import results_of
from benchmarks.trials.results import Plan, Result, Verdict

NAME = "hostile"
# Seconds for starting a command and its processes on a busy machine.
STARTUP = 40.0
# Seconds that importing a method may take.
IMPORT_LIMIT = 12
# Commands at the same time for each job: most of them wait for a limit.
PER_JOB = 2
# Methods that run together in one command.
TOGETHER = 15
# The quick form tries one of this many methods; each of the others is a trial of another seed.
QUICK_SHARE = 6
# Commands that end when one of their methods fails, so that the others would not be tried.
SINGLE = ("solve", "show")


def run(plan: Plan, finished: frozenset[str]) -> Iterator[Result]:
    """Run the trials.

    Parameters
    ----------
    plan
        What to do.
    finished
        The keys of trials that are not repeated.

    Yields
    ------
    Result
        The results.
    """
    every = {(command, method.name): method for command in COMMANDS for method in HOSTILE}
    chosen = every
    if plan.quick:
        # Some of the methods, each once, from Python or in a command; other seeds try the others.
        pair = ("python-solve", "check")
        some = HOSTILE[plan.seed % QUICK_SHARE :: QUICK_SHARE]
        chosen = {(pair[(n + plan.seed) % 2], method.name): method for n, method in enumerate(some)}
    elif plan.count is not None:
        chosen = dict(list(every.items())[: plan.count])
    if plan.only:
        chosen = {name: method for name, method in every.items() if " ".join(name) in plan.only}
    by_command: dict[str, list[HostileMethod]] = {}
    for (command, name), method in chosen.items():
        if f"{command} {name}" not in finished:
            by_command.setdefault(command, []).append(method)
    groups = []
    for command, methods in by_command.items():
        # A method that may end the command, or is refused when it is imported, cannot be tried together with others.
        refused = {method.name for method in methods if method.top and not method.may_answer}
        alone = [m for m in methods if m.may_end_command or m.name in refused or command in SINGLE]
        others = [method for method in methods if method not in alone]
        groups += [(command, [method]) for method in alone]
        groups += [(command, others[n : n + TOGETHER]) for n in range(0, len(others), TOGETHER)]
    yield from results_of(groups, _run_group, PER_JOB * plan.jobs, plan.stop)


def _run_group(group: tuple[str, list[HostileMethod]]) -> Iterator[Result]:
    """Try methods together; if anything is wrong, try them in two groups, and finally each by itself."""
    command, methods = group
    verdict, note, files = _try(command, methods)
    if len(methods) > 1 and verdict != "right":
        half = len(methods) // 2
        yield from _run_group((command, methods[:half]))
        yield from _run_group((command, methods[half:]))
        return
    for method in methods:
        shown = f"relocbench {command} ... --method {method.name}.py:method"
        yield Result(NAME, command, f"{command} {method.name}", verdict, note, files, shown)


def _try(command: str, methods: Sequence[HostileMethod]) -> tuple[Verdict, str, dict[str, bytes]]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for method in (GOOD, *methods):
            (folder / f"{method.name}.py").write_text(method.source(), encoding="utf-8")
        for entry in ENTRIES:
            (folder / f"{entry}.json").write_text(json.dumps(case_of(entry)), encoding="utf-8")
        scene = Scene(folder, methods)
        prepare, runs, judge = COMMANDS[command]
        count = runs * (len(methods) + 1)
        limit = STARTUP + count * (IMPORT_LIMIT + TIME_LIMIT + OVERTIME)
        variables = {"RELOCBENCH_IMPORT_LIMIT": str(IMPORT_LIMIT)}
        done = run_command(prepare(scene), folder, limit, shielded=True, variables=variables)
        verdict, note = _judged(scene, done, judge)
        files = {path.name: path.read_bytes() for path in folder.glob("*.py")}
        return verdict, note, files | {"stderr.txt": done.err.encode(), "stdout.txt": done.out.encode()}


def _judged(scene: Scene, done: Finished, judge: Callable[[Scene, Finished], None]) -> tuple[Verdict, str]:
    if done.hung:
        return "hung", f"did not end within {done.seconds:.0f} s"
    if done.left:
        return "wrong", f"left processes running: {', '.join(done.left)}"
    if done.code < 0:
        if any(method.may_end_command for method in scene.methods):
            return "right", ""
        return "crashed", f"the command was ended by signal {-done.code}"
    for stream in (done.out, done.err):
        if NOISE in stream:
            return "wrong", "the output of the method is on the terminal"
        if "Traceback (most recent call last)" in stream:
            return "crashed", f"a traceback on the terminal, the last line: {done.last_line}"
    if done.code not in (0, 1, 2):
        return "wrong", f"exit code {done.code}: {done.last_line}"
    if done.code == 2:
        lines = done.err.strip().splitlines()
        if len(scene.methods) > 1:
            return "wrong", "one of the methods was refused, so that the others were not run"
        return ("right", "") if len(lines) == 1 else ("wrong", f"exit code 2 with {len(lines)} lines: {done.last_line}")
    try:
        judge(scene, done)
    except (ValueError, KeyError, TypeError, OSError) as error:
        return (
            "wrong",
            f"the answer of the command cannot be read ({type(error).__name__}: {error}): {done.out[:100]!r}",
        )
    return ("wrong", "; ".join(scene.problems)) if scene.problems else ("right", "")
