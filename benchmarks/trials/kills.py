"""Kills: signals at random moments of every command that writes files, and two such commands at once.

Afterwards every file must be whole, and no process may be left. The same command, run again, must end with the same
results as a run that nobody disturbed, and leave no temporary file.
"""

import contextlib
import functools
import gzip
import json
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.trials.commands import RELOCBENCH, Finished, run_command
from benchmarks.trials.hostile_methods import GOOD
from benchmarks.trials.parallel import results_of
from benchmarks.trials.results import Plan, Result, Verdict
from benchmarks.trials.together import KINDS as TOGETHER
from benchmarks.trials.together import try_together, write_weak_library
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.instance_source import read_instance
from relocbench.instances.library.library import Library

NAME = "kills"
QUICK, LONG = 9, 270
# Seconds after which a command has hung.
SECONDS = 180.0
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
ENTRY = "tiny-scarce-single-0"
# Columns of a row that do not depend on times and machines.
COLUMNS = ("instance", "hash", "selector", "seed", "status", "objective", "home", "failure", "error")


@dataclass(frozen=True)
class Scenario:
    """A command that writes files.

    Attributes
    ----------
    arguments
        Its arguments.
    prepare
        Writes the files that it needs.
    results
        Returns what must be the same after a disturbed run, from the folder in which it ran.
    codes
        The exit codes of a run that follows a disturbed one.
    """

    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    results: Callable[[Path], Any]
    codes: tuple[int, ...] = (0,)


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
    names = [*SCENARIOS, *TOGETHER]
    keys = [f"{names[n % len(names)]} {n // len(names)}" for n in range(plan.number(QUICK, LONG))]
    keys = [key for key in (plan.only or keys) if key not in finished]
    by_name: dict[str, list[str]] = {}
    for key in keys:
        by_name.setdefault(key.rpartition(" ")[0], []).append(key)
    yield from results_of(by_name.values(), functools.partial(_run_group, plan.seed), plan.jobs, plan.stop)


def _run_group(seed: int, keys: list[str]) -> Iterator[Result]:
    name = keys[0].rpartition(" ")[0]
    if name in TOGETHER:
        for key in keys:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
                yield Result(NAME, name, key, *try_together(name, Path(place), SECONDS))
        return
    scenario = SCENARIOS[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        undisturbed = Path(place, "undisturbed")
        undisturbed.mkdir()
        scenario.prepare(undisturbed)
        done = run_command([*RELOCBENCH, *scenario.arguments], undisturbed, SECONDS)
        if done.code != 0 or done.left:
            for key in keys:
                problem = f"left {done.left}" if done.left else f"exit code {done.code}: {done.last_line}"
                yield Result(NAME, name, key, "crashed", f"an undisturbed run ended with {problem}")
            return
        expected = scenario.results(undisturbed), _files(undisturbed)
        for key in keys:
            folder = Path(place, "disturbed")
            folder.mkdir()
            rng = random.Random(f"kill {seed} {key}")
            verdict, note = _try(scenario, folder, expected, done.seconds, rng)
            yield Result(NAME, name, key, verdict, note, {}, f"relocbench {' '.join(scenario.arguments)}")
            shutil.rmtree(folder)


def _try(
    scenario: Scenario, folder: Path, expected: tuple[Any, set[str]], seconds: float, rng: random.Random
) -> tuple[Verdict, str]:
    scenario.prepare(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    sent, moment = rng.choice(SIGNALS), rng.choice(["time", "file"])
    delay = rng.uniform(0.05, 1.0) * seconds
    # Most files are written at the end, within a moment that no random time meets; so half of the signals wait for one.
    wait = (
        functools.partial(time.sleep, delay) if moment == "time" else functools.partial(_wait_for_file, folder, seconds)
    )
    where = f"{sent.name} {f'after {delay:.2f} s' if moment == 'time' else 'at a temporary file'}"

    def interfere(pid: int) -> None:
        def send() -> None:
            wait()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, sent)

        threading.Thread(target=send, daemon=True).start()

    command = [*RELOCBENCH, *scenario.arguments]
    problem = _problem(run_command(command, folder, SECONDS, interfere))
    if problem:
        return problem[0], f"{where}: {problem[1]}"
    if damage := _damaged(folder, before):
        return "wrong", f"{where}: {damage}"
    _make_temporary_files_old(folder)
    again = run_command(command, folder, SECONDS)
    problem = _problem(again)
    if problem:
        return problem[0], f"{where}, the next run: {problem[1]}"
    if again.code not in scenario.codes:
        return "wrong", f"{where}, the next run ended with the exit code {again.code}: {again.last_line}"
    if damage := _damaged(folder, {}):
        return "wrong", f"{where}, after the next run: {damage}"
    results, files = scenario.results(folder), _files(folder)
    if results != expected[0]:
        return "wrong", f"{where}: the next run ends with other results than an undisturbed one"
    if files != expected[1]:
        difference = sorted(files ^ expected[1])
        return "wrong", f"{where}: after the next run these files are left or missing: {', '.join(difference[:5])}"
    return "right", ""


def _problem(done: Finished) -> tuple[Verdict, str] | None:
    if done.hung:
        return "hung", f"did not end within {done.seconds:.0f} s"
    if done.left:
        return "wrong", f"left processes running: {', '.join(done.left)}"
    return None


def _wait_for_file(folder: Path, seconds: float) -> None:
    """Wait until the command has begun to write a file, at most twice its usual time."""
    known, end = {path.name for path in folder.rglob("*")}, time.perf_counter() + 2 * seconds
    while time.perf_counter() < end:
        with contextlib.suppress(OSError):
            if any(path.suffix == ".part" and path.name not in known for path in folder.rglob("*.part")):
                return
        time.sleep(0.0005)


def _make_temporary_files_old(folder: Path) -> None:
    """Make temporary files an hour old, because a command may leave alone what another one has just begun to write."""
    for path in folder.rglob("*.part"):
        before = time.time() - 3600.0
        os.utime(path, (before, before))


def _files(folder: Path) -> set[str]:
    """Return the names of the files of a run; logs depend on what was run."""
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in names if not name.endswith((".log", ".pyc", ".lock"))}


def _damaged(folder: Path, before: dict[Path, bytes]) -> str:
    """Return the first file that is neither whole nor as it was; files under a temporary name may be anything."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.suffix == ".part" or before.get(path) == path.read_bytes():
            continue
        try:
            if path.suffix == ".parquet":
                pq.read_table(path)
            elif path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.name.endswith(".json.gz"):
                json.loads(gzip.decompress(path.read_bytes()))
            elif path.suffix == ".html" and not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
                raise ValueError("the page has no end")
        except Exception as error:  # whatever a reader raises, the file is not whole
            return f"{path.relative_to(folder)} is not whole ({type(error).__name__}: {error})"
    return ""


def _write_instances(folder: Path) -> None:
    for name in (ENTRY, "tiny-scarce-near-cloud-0"):
        (folder / f"{name}.json").write_bytes(gzip.decompress(Library().instance_path(name).read_bytes()))


def _write_old_solution(folder: Path) -> None:
    _write_instances(folder)
    (folder / "sol.json").write_text('{"old": true}', encoding="utf-8")


def _write_method(folder: Path) -> None:
    (folder / "good.py").write_text(GOOD.source(), encoding="utf-8")
    (folder / "baseline.json").write_text('{"format": "relocbench-baseline/1", "methods": []}', encoding="utf-8")


def _rows(place: str, folder: Path) -> Any:
    rows = [row for path in sorted((folder / place).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    kept = [tuple(json.dumps(row[name]) for name in COLUMNS) for row in rows if row["selector"] != "bound"]
    return sorted(kept)


def _solution(folder: Path) -> Any:
    content = json.loads((folder / "sol.json").read_text(encoding="utf-8"))
    return {name: content[name] for name in ("instance", "home", "objective", "status")}


def _baseline(folder: Path) -> Any:
    content = json.loads((folder / "baseline.json").read_text(encoding="utf-8"))
    return [(record["method"], record["seeds"], record["instances"]) for record in content["methods"]]


def _certificate(folder: Path) -> Any:
    verdict = verify(read_instance(folder / f"{ENTRY}.json"), folder / "cert.json")
    return verdict.proved, verdict.status


def _library(folder: Path) -> Any:
    library = Library(folder / "library")
    entry = library.entry(ENTRY)
    verdict = verify(library.read(ENTRY), library.certificate_path(ENTRY))
    return entry.bound, entry.objective, entry.status, verdict.proved, verdict.bound


def _generated(folder: Path) -> Any:
    return {path.name: path.read_bytes() for path in (folder / "small").iterdir() if path.suffix == ".json"}


SCENARIOS = {
    "solve": Scenario(
        ("solve", f"{ENTRY}.json", "--method", "enumerate", "--out", "sol.json"), _write_old_solution, _solution
    ),
    "bench": Scenario(
        ("bench", f"{ENTRY}.json", "--method", "nearest", "--seed", "0-3", "--time-limit", "5", "--out", "bench"),
        _write_instances,
        functools.partial(_rows, "bench"),
    ),
    "library improve": Scenario(
        ("library", "improve", ENTRY, f"{ENTRY}.json", "--directory", "library"), write_weak_library, _library, (0, 1)
    ),
    "update-baseline": Scenario(
        (
            *("check", "--method", "good.py:method", "--update-baseline", "--baseline", "baseline.json"),
            *("--instances", "tiny-scarce-[sn]*", "--seed", "0-1", "--time-limit", "5"),
        ),
        _write_method,
        _baseline,
    ),
    "generate": Scenario(("generate", "--family", "small", "--out", "small"), lambda folder: None, _generated),
    "certify": Scenario(
        ("certify", f"{ENTRY}.json", "--time-limit", "5", "--out", "cert.json"), _write_instances, _certificate
    ),
    "study": Scenario(
        (
            *("study", f"{ENTRY}.json", "tiny-scarce-near-cloud-0.json", "--method", "nearest", "--seed", "0-1"),
            *("--time-limit", "5", "--reference-time", "2", "--jobs", "2", "--out", "study"),
        ),
        _write_instances,
        functools.partial(_rows, "study/runs"),
    ),
}
