"""Two commands at once that change the same file: no update may be lost."""

import contextlib
import gzip
import json
import shutil
import threading
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from benchmarks.trials.commands import RELOCBENCH, Finished, run_command
from benchmarks.trials.hostile_methods import HostileMethod
from benchmarks.trials.results import Verdict
from relocbench.instances.errors import InputError
from relocbench.instances.library.library import Library

METHODS = ("one", "two")
ENTRIES = ("tiny-scarce-single-0", "tiny-scarce-near-cloud-0")


def try_together(kind: str, folder: Path, seconds: float) -> tuple[Verdict, str]:
    """Run two commands at once.

    Parameters
    ----------
    kind
        One of ``KINDS``.
    folder
        An empty folder.
    seconds
        After this time a command has hung.

    Returns
    -------
    verdict
        What was found.
    note
        The reason of a failure.
    """
    prepare, command, has_update = KINDS[kind]
    prepare(folder)
    finished: dict[int, Finished] = {}

    def run(number: int) -> None:
        finished[number] = run_command([*RELOCBENCH, *command(number)], folder, seconds)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, done in sorted(finished.items()):
        if done.hung:
            return "hung", f"one of two commands did not end within {done.seconds:.0f} s"
        if done.code == 0 and not has_update(folder, number):
            return "wrong", f"the update of command {number} is lost, although its exit code is 0"
        if done.code != 0 and len(done.err.strip().splitlines()) != 1:
            return "wrong", f"exit code {done.code} without one line that says why: {done.last_line}"
    stray = sorted(path.name for path in folder.rglob("*.part"))
    return ("wrong", f"temporary files are left: {', '.join(stray)}") if stray else ("right", "")


def _write_methods(folder: Path) -> None:
    for name in METHODS:
        (folder / f"{name}.py").write_text(HostileMethod(name).source(), encoding="utf-8")


def _update_baseline(number: int) -> list[str]:
    options = ["--instances", ENTRIES[0], "--seed", "0", "--time-limit", "5", "--baseline", "baseline.json"]
    return ["check", "--update-baseline", "--method", f"{METHODS[number]}.py:method", *options]


def _in_baseline(folder: Path, number: int) -> bool:
    content = json.loads((folder / "baseline.json").read_text(encoding="utf-8"))
    return f"{METHODS[number]}.py:method" in [record["method"] for record in content["methods"]]


def write_weak_library(folder: Path, names: tuple[str, ...] = ENTRIES) -> None:
    """Write a library with weak entries, and for each a certificate that improves it.

    Parameters
    ----------
    folder
        The folder for ``library`` and for the certificates, ``NAME.json``.
    names
        The names of the entries.
    """
    library = Library()
    target = folder / "library"
    target.mkdir()
    index = json.loads((library.instance_path(names[0]).parent / "index.json").read_text(encoding="utf-8"))
    index["entries"] = [entry for entry in index["entries"] if entry["name"] in names]
    for entry in index["entries"]:
        name = entry["name"]
        shutil.copy(library.instance_path(name), target)
        content = json.loads(gzip.decompress(library.certificate_path(name).read_bytes()))
        (folder / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
        # A proof of a claim is also a proof of every lower claim.
        content["claim"] = content["claim"] * 9 // 10
        bound = Fraction(content["claim"], 2 ** content["bits"])
        file = target / library.certificate_path(name).name
        file.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))
        entry["bound"], entry["exact_bound"] = float(bound), f"{bound.numerator}/{bound.denominator}"
        entry["gap"], entry["status"] = 1 - float(bound) / entry["objective"], "feasible"
    (target / "index.json").write_text(json.dumps(index), encoding="utf-8")


def _improve(number: int) -> list[str]:
    return ["library", "improve", ENTRIES[number], f"{ENTRIES[number]}.json", "--directory", "library"]


def _in_library(folder: Path, number: int) -> bool:
    with contextlib.suppress(InputError):
        return Library(folder / "library").entry(ENTRIES[number]).status == "optimal"
    return False


Kind = tuple[Callable[[Path], None], Callable[[int], list[str]], Callable[[Path, int], bool]]
# How the folder is prepared, the two commands, and whether the result has the update of a command.
KINDS: dict[str, Kind] = {
    "two update-baseline": (_write_methods, _update_baseline, _in_baseline),
    "two library improve": (write_weak_library, _improve, _in_library),
}
