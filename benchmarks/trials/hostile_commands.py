"""The commands that take a method: how each is called with hostile methods, and how its answer is judged."""

import functools
import gzip
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.trials.commands import RELOCBENCH, Finished
from benchmarks.trials.hostile_methods import GOOD, HostileMethod
from benchmarks.trials.rational_cost import Case, cost, least_cost
from relocbench.instances.library.library import Library
from relocbench.runs.run_store import Row, read

# The limits of each run: seconds and GiB. Beyond the time limit a run has two seconds to end.
TIME_LIMIT, MEMORY_LIMIT, OVERTIME = 1, 0.5, 2
# Homes of the first instance are valid for the second one too, so that an answer to the wrong question is not refused.
ENTRIES = ("tiny-scarce-single-0", "tiny-scarce-near-cloud-0")
PATTERN = "tiny-scarce-[sn]*"
TOLERANCE = Fraction(1, 10**9)


@dataclass
class Scene:
    """A folder in which a command runs.

    Attributes
    ----------
    folder
        The folder, with the files of the methods and of the instances.
    methods
        The hostile methods of the command.
    problems
        What is wrong, one line each.
    """

    folder: Path
    methods: Sequence[HostileMethod]
    problems: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The selectors of all methods, the well-behaved one first."""
        return [f"{method.name}.py:method" for method in (GOOD, *self.methods)]

    @property
    def must_fail(self) -> bool:
        """Whether one of the methods cannot give an answer."""
        return not all(method.may_answer for method in self.methods)

    def reported(self, method: str, entry: str, value: Any, what: str) -> None:
        """Compare a reported cost with the exact one.

        Parameters
        ----------
        method, entry
            The selector and the name of the instance.
        value
            The reported cost.
        what
            Where it was reported.
        """
        exact = expected_cost(entry)
        if not isinstance(value, float | int) or abs(Fraction(value) - exact) > TOLERANCE * exact:
            self.problems.append(
                f"{what}: the cost of {method} on {entry} is {value!r}, its homes cost {float(exact)!r}"
            )


@functools.cache
def case_of(entry: str) -> Case:
    """Return the content of an instance file of the library.

    Parameters
    ----------
    entry
        The name of the instance.

    Returns
    -------
    dict
        The content.
    """
    case: Case = json.loads(gzip.decompress(Library().instance_path(entry).read_bytes()))
    return case


@functools.cache
def expected_homes(entry: str) -> tuple[int, ...]:
    """Return the homes that every method of the campaign returns.

    Parameters
    ----------
    entry
        The name of the instance.

    Returns
    -------
    tuple of int
        One server per client.
    """
    instance = Library().read(entry)
    return tuple(int(instance.hash[client % 60], 16) % instance.n_servers for client in range(instance.n_clients))


@functools.cache
def expected_cost(entry: str) -> Fraction:
    """Return the exact cost of these homes.

    Parameters
    ----------
    entry
        The name of the instance.

    Returns
    -------
    Fraction
        The cost.
    """
    return cost(case_of(entry), expected_homes(entry))


@functools.cache
def _is_optimal(entry: str) -> bool:
    return expected_cost(entry) == least_cost(case_of(entry))[0]


def _failure_expected(scene: Scene, done: Finished) -> None:
    if scene.must_fail and done.code == 0:
        scene.problems.append("exit code 0, although a method gave no valid answer")


def _solve(scene: Scene) -> list[str]:
    limits = ["--time-limit", str(TIME_LIMIT), "--memory-limit", str(MEMORY_LIMIT)]
    return [*RELOCBENCH, "solve", f"{ENTRIES[0]}.json", "--method", scene.names[-1], *limits, "--out", "sol.json"]


def _judge_solve(scene: Scene, done: Finished) -> None:
    _failure_expected(scene, done)
    file = scene.folder / "sol.json"
    if done.code == 0 and not file.exists():
        scene.problems.append("exit code 0, but no solution file")
    if file.exists():
        solution = json.loads(file.read_text(encoding="utf-8"))
        if solution["home"] != list(expected_homes(ENTRIES[0])):
            scene.problems.append("the solution file has other homes than the method returned")
        scene.reported(scene.names[-1], ENTRIES[0], solution["objective"], "solution file")
        if solution["status"] == "optimal" and not _is_optimal(ENTRIES[0]):
            scene.problems.append("the solution file calls homes optimal that are not, because the method says so")


def _judge_rows(scene: Scene, done: Finished, folder: str) -> None:
    rows, problems = read(scene.folder / folder)
    scene.problems += problems
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.selector, row.instance), []).append(row)
    for method, selector in zip((GOOD, *scene.methods), scene.names, strict=True):
        for entry in ENTRIES:
            own = found.get((selector, entry), [])
            if len(own) != 1:
                scene.problems.append(f"{len(own)} rows of {selector} on {entry}, expected 1")
            for row in own:
                if row.objective is not None:
                    scene.reported(selector, entry, row.objective, "row")
                if method is GOOD and row.error is not None:
                    scene.problems.append(f"the well-behaved method failed: {row.error}")
                if not method.may_answer and row.error is None:
                    scene.problems.append(f"a row of {selector} without an error, although it gave no valid answer")
                # The exit code 1 says that the claim contradicts a proof.
                if row.status == "optimal" and not _is_optimal(entry) and done.code == 0:
                    scene.problems.append(f"a row of {selector} is called optimal, because the method says so")


def _methods(scene: Scene) -> list[str]:
    return [word for name in scene.names for word in ("--method", name)]


def _bench(scene: Scene) -> list[str]:
    limits = ["--time-limit", str(TIME_LIMIT), "--memory-limit", str(MEMORY_LIMIT), "--out", "bench"]
    files = [f"{entry}.json" for entry in ENTRIES]
    return [*RELOCBENCH, "bench", *files, *_methods(scene), "--seed", "0", *limits]


def _judge_bench(scene: Scene, done: Finished) -> None:
    _judge_rows(scene, done, "bench")


def _study(scene: Scene) -> list[str]:
    limits = ["--time-limit", str(TIME_LIMIT), "--memory-limit", str(MEMORY_LIMIT), "--reference-time", "1"]
    files = [f"{entry}.json" for entry in ENTRIES]
    return [*RELOCBENCH, "study", *files, *_methods(scene), "--seed", "0", *limits, "--jobs", "1", "--out", "study"]


def _judge_study(scene: Scene, done: Finished) -> None:
    if not (scene.folder / "study" / "runs").is_dir():
        scene.problems.append(f"no runs were stored: {done.last_line}")
        return
    _judge_rows(scene, done, "study/runs")


def _show(scene: Scene) -> list[str]:
    options = ["--time-limit", str(TIME_LIMIT), "--out", "map.html", "--json"]
    return [*RELOCBENCH, "show", f"{ENTRIES[0]}.json", *_methods(scene), *options]


def _judge_show(scene: Scene, done: Finished) -> None:
    _failure_expected(scene, done)
    if done.code == 0:
        for shown in json.loads(done.out)["shown"]:
            if ".py" in shown["homes"]:
                scene.reported(shown["homes"], ENTRIES[0], shown["objective"], "map")


def _write_baseline(scene: Scene) -> None:
    """Write the baseline of the well-behaved method, without running it."""
    instances = [
        {
            "name": entry,
            "instance": Library().read(entry).hash,
            "costs": [float(expected_cost(entry))],
            "home": list(expected_homes(entry)),
        }
        for entry in ENTRIES
    ]
    record = {
        "method": scene.names[0],
        "seeds": [0],
        "time_limit": TIME_LIMIT,
        "pattern": PATTERN,
        "library": Library().version,
        "made": {},
        "instances": instances,
    }
    content = {"format": "relocbench-baseline/1", "methods": [record]}
    (scene.folder / "baseline.json").write_text(json.dumps(content), encoding="utf-8")


def _check(scene: Scene) -> list[str]:
    _write_baseline(scene)
    options = ["--baseline", "baseline.json", "--against", scene.names[0], "--memory-limit", str(MEMORY_LIMIT)]
    return [*RELOCBENCH, "check", *_methods(scene), *options, "--shrink-seconds", "0", "--json"]


def _judge_check(scene: Scene, done: Finished) -> None:
    _failure_expected(scene, done)
    _judge_verdict(scene, json.loads(done.out))


def _judge_verdict(scene: Scene, verdict: dict[str, Any]) -> None:
    failed = {run["method"] for run in verdict["failed"]}
    for method, selector in zip((GOOD, *scene.methods), scene.names, strict=True):
        if method is GOOD and selector in failed:
            scene.problems.append(f"the well-behaved method failed: {verdict['failed'][0]}")
        if not method.may_answer and selector not in failed:
            scene.problems.append(f"{selector} gave no valid answer, but none of its runs failed")
    for change in verdict["changes"]:
        # All methods return the same homes, so that nothing changes.
        if abs(change["change"]) > 1e-9:
            scene.problems.append(f"the cost of {change['method']} on {change['instance']} changed")


def _update(scene: Scene) -> list[str]:
    limits = ["--seed", "0", "--time-limit", str(TIME_LIMIT), "--memory-limit", str(MEMORY_LIMIT)]
    where = ["--baseline", "new.json", "--instances", PATTERN]
    return [*RELOCBENCH, "check", *_methods(scene), "--update-baseline", *where, *limits]


def _judge_update(scene: Scene, done: Finished) -> None:
    _failure_expected(scene, done)
    file = scene.folder / "new.json"
    if done.code == 0 and not file.exists():
        scene.problems.append("exit code 0, but no baseline")
    if done.code != 0 and file.exists():
        scene.problems.append(f"exit code {done.code}, but a baseline was written")
    if file.exists():
        for record in json.loads(file.read_text(encoding="utf-8"))["methods"]:
            for line in record["instances"]:
                for value in line["costs"]:
                    scene.reported(record["method"], line["name"], value, "baseline")


# Calls the functions of the package for one method after the other, and prints one line for each call.
DRIVER = """
import json, sys, relocbench
kind, entries, methods = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
def answer(method):
    if kind == "solve":
        results = [relocbench.solve(relocbench.read(e + ".json"), method, time_limit={limit}) for e in entries]
        return [[r.evaluation.objective, r.solution.status] for r in results]
    if kind == "study":
        problems = [relocbench.read(e + ".json") for e in entries]
        done = relocbench.study([methods[0], method], problems, seeds=[0], time_limit={limit}, reference_time=1,
                                out="study-" + method.partition(".")[0])
        if done.wrong or done.problems: raise RuntimeError("reported")
        own = [m for e in entries for m in done.measurements if m.selector == method and m.instance == e]
        if any(m.error for m in own): raise RuntimeError("reported")
        return [[m.objective, ""] for m in own]
    verdict = relocbench.check([methods[0], method], baseline="baseline.json", against=methods[0])
    if not verdict.passed: raise RuntimeError("reported")
    return []
for method in methods:
    try:
        print(json.dumps([method, answer(method), None]), flush=True)
    except Exception as error:
        print(json.dumps([method, None, type(error).__name__]), flush=True)
print(json.dumps(["end", None, None]), flush=True)
""".replace("{limit}", str(TIME_LIMIT))


def _python(kind: str, scene: Scene) -> list[str]:
    _write_baseline(scene)
    return [sys.executable, "-c", DRIVER, kind, ",".join(ENTRIES), *scene.names]


def _judge_python(scene: Scene, done: Finished) -> None:
    try:
        lines = [json.loads(line) for line in done.out.splitlines()]
    except ValueError:
        scene.problems.append("the output of the method is on the terminal")
        return
    answers = {method: (value, error) for method, value, error in lines}
    if done.code != 0 or "end" not in answers:
        scene.problems.append(f"the program that called it ended with the exit code {done.code}: {done.last_line}")
        return
    for method, selector in zip((GOOD, *scene.methods), scene.names, strict=True):
        values, error = answers[selector]
        if method is GOOD and error is not None:
            scene.problems.append(f"the well-behaved method failed: {error}")
        if not method.may_answer and error is None:
            scene.problems.append(f"{selector} gave no valid answer, but the call returned")
        for entry, (value, status) in zip(ENTRIES, values or (), strict=False):
            scene.reported(selector, entry, value, "result")
            if status == "optimal" and not _is_optimal(entry):
                scene.problems.append(f"the result of {selector} is called optimal, because the method says so")


def _spark(scene: Scene) -> list[str]:
    limits = ["--time-limit", str(TIME_LIMIT), "--memory-limit", str(MEMORY_LIMIT), "--out", "spark"]
    files = [f"{entry}.json" for entry in ENTRIES]
    return [*RELOCBENCH, "spark", "run", *files, *_methods(scene), *limits, "--master", "local[1]"]


def _judge_spark(scene: Scene, done: Finished) -> None:
    _judge_rows(scene, done, "spark")


Command = tuple[Callable[[Scene], list[str]], int, Callable[[Scene, Finished], None]]
# For each command: how it is called, how many runs of each method it makes, and how its answer is judged.
COMMANDS: dict[str, Command] = {
    "solve": (_solve, 1, _judge_solve),
    "python-solve": (functools.partial(_python, "solve"), 2, _judge_python),
    "check": (_check, 2, _judge_check),
    "update-baseline": (_update, 2, _judge_update),
    "bench": (_bench, 2, _judge_bench),
    "study": (_study, 4, _judge_study),
    "show": (_show, 1, _judge_show),
    "python-study": (functools.partial(_python, "study"), 8, _judge_python),
    "python-check": (functools.partial(_python, "check"), 4, _judge_python),
    "spark run": (_spark, 12, _judge_spark),
}
