"""Files: damaged files of every format. A reader refuses them in one line or reads them, in little time and memory."""

import contextlib
import functools
import gzip
import io
import itertools
import json
import math
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trials.mutations import mutated_bytes, mutated_json
from benchmarks.trials.odd_instances import odd_case
from benchmarks.trials.parallel import results_of
from benchmarks.trials.rational_cost import cost
from benchmarks.trials.results import Plan, Result, Verdict
from benchmarks.trials.sandbox import Answer, Sandbox

NAME = "files"
QUICK, LONG = 300, 8_000
# Trials that share one child process.
GROUP = 100
# The limits of one trial: seconds, and bytes by which the memory grows.
SECONDS, MEMORY = 60.0, 1 << 30
LIBRARY_ENTRY = "tiny-scarce-single-0"


@dataclass(frozen=True)
class Target:
    """A kind of file.

    Attributes
    ----------
    name
        The name of the file.
    read
        How the file is read: the arguments of the command, or the name of a reader below. ``FILE``, ``FOLDER`` and
        ``INSTANCE`` stand for paths.
    is_json
        Whether it contains JSON.
    may_fail
        Whether the command may exit with 1 although the file can be read, because a claim in it is false.
    """

    name: str
    read: tuple[str, ...]
    is_json: bool = True
    may_fail: bool = False


TARGETS = (
    Target("instance.json", ("describe", "FILE", "--json")),
    Target("instance.json.gz", ("describe", "FILE", "--json")),
    Target("family.parquet", ("describe", "FILE", "--json"), is_json=False),
    Target("solution.json", ("evaluate", "INSTANCE", "FILE", "--json"), may_fail=True),
    Target("certificate.json", ("verify", "INSTANCE", "FILE", "--json"), may_fail=True),
    Target("certificate.json.gz", ("verify", "INSTANCE", "FILE", "--json"), may_fail=True),
    Target("baseline.json", ("baseline",)),
    Target("edges.tsv", ("edges",), is_json=False),
    Target("edges.tsv.gz", ("edges",), is_json=False),
    Target("places.csv", ("places",), is_json=False),
    Target("index.json", ("library", "list", "--directory", "FOLDER", "--json")),
    Target("row.parquet", ("rows",), is_json=False),
)


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
    count = plan.number(QUICK, LONG)
    bombs = QUICK_BOMBS if plan.quick else itertools.product(BOMBS, BOMB_PLACES)
    keys = [f"bomb {name} {place}" for name, place in bombs]
    keys += [f"{TARGETS[number % len(TARGETS)].name} {number}" for number in range(count)]
    keys = list(plan.only) or keys
    keys = [key for key in keys if key not in finished]
    groups = [keys[start : start + GROUP] for start in range(0, len(keys), GROUP)]
    yield from results_of(groups, functools.partial(_run_group, plan.seed), plan.jobs, plan.stop)


def _run_group(seed: int, keys: list[str]) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder, Sandbox() as sandbox:
        prepared = sandbox.call(originals_of, str(Path(folder, "originals")), seconds=SECONDS)
        if prepared.value is None:
            raise RuntimeError(f"the valid files cannot be written: {prepared.error}")
        originals = prepared.value
        for key in keys:
            trial = Path(folder, "trial")
            kind, target = _prepare(seed, key, originals, trial)
            answer = sandbox.call(read, target, str(trial), seconds=SECONDS)
            verdict, note = judged(target, answer)
            files = {}
            if verdict not in ("right", "refused") and (trial / target.name).is_file():
                with (trial / target.name).open("rb") as file:
                    files = {target.name: file.read(1 << 20), "instance.json": originals["instance.json"]}
            yield Result(NAME, kind, key, verdict, note, files, _command(target))
            shutil.rmtree(trial)


def _command(target: Target) -> str:
    places = {"FILE": target.name, "INSTANCE": "instance.json", "FOLDER": "."}
    return " ".join(["relocbench", *(places.get(word, word) for word in target.read)]) if len(target.read) > 1 else ""


def judged(target: Target, answer: Answer) -> tuple[Verdict, str]:
    """Judge what became of reading a file.

    Parameters
    ----------
    target
        The kind of file.
    answer
        What the sandbox observed; its value is the exit code, the standard output and the standard error.

    Returns
    -------
    verdict
        ``right`` if the file was read, ``refused`` if it was refused as it must be.
    note
        The reason of a failure.
    """
    if answer.value is None:
        return "hung" if answer.hung else "crashed", answer.error
    code, _, errors = answer.value
    lines = errors.splitlines()
    if answer.peak > MEMORY:
        return "wrong", f"used {answer.peak / (1 << 30):.1f} GiB ({lines[:1] or f'exit code {code}'})"
    if code == 0:
        return ("right", "") if not lines else ("wrong", f"exit code 0, but an error: {lines[0]}")
    allowed = (1, 2) if target.may_fail else (2,)
    if code not in allowed:
        return "wrong", f"exit code {code}: {lines[:1]}"
    if len(lines) != 1 or not lines[0].startswith("relocbench: "):
        return "wrong", f"exit code {code} with {len(lines)} lines: {lines[:3]}"
    if code == 2 and target.name not in lines[0]:
        return "wrong", f"the message does not name the file: {lines[0]}"
    return "refused", ""


def originals_of(folder: str) -> dict[str, bytes]:
    """Write one valid file of each kind; called in a child process.

    Parameters
    ----------
    folder
        A folder for them.

    Returns
    -------
    dict
        The content of each file by its name.
    """
    from relocbench.instances.files.instance_parquet import write_rows
    from relocbench.instances.library.library import Library
    from relocbench.reports.gate.baseline import SHIPPED
    from relocbench.runs.outcome import verified
    from relocbench.runs.run_store import Run, Store, row_of

    place = Path(folder)
    place.mkdir(parents=True)
    library = Library()
    instance = library.read(LIBRARY_ENTRY)
    case = json.loads(gzip.decompress(library.instance_path(LIBRARY_ENTRY).read_bytes()))
    certificate = gzip.decompress(library.certificate_path(LIBRARY_ENTRY).read_bytes())
    home = json.loads(certificate)["home"]
    solution = {
        "format": "relocbench-solution/1",
        "instance": instance.hash,
        "method": "nearest",
        "seed": 0,
        "status": "feasible",
        "home": home,
        "objective": float(cost(case, home)),
        "bound": None,
    }
    write_rows([instance], place / "family.parquet")
    store = Store(place / "store")
    run = Run(instance.hash, "nearest", 0, 1.0, 1 << 30)
    outcome = verified(instance, status="feasible", home=home, bound=-math.inf, trace=((0.0, 30.0, -math.inf),))
    store.write(row_of(instance, run, outcome))
    baseline = json.loads(SHIPPED.read_text(encoding="utf-8"))
    baseline["methods"] = [one | {"instances": one["instances"][:3]} for one in baseline["methods"][:2]]
    index = json.loads((library.instance_path(LIBRARY_ENTRY).parent / "index.json").read_text(encoding="utf-8"))
    index["entries"] = index["entries"][:3]
    rng = random.Random(0)
    edges = "# a comment\n" + "".join(f"{rng.randrange(60)}\t{rng.randrange(60)}\n" for _ in range(200))
    places = "name,latitude,longitude\n" + "".join(
        f"p{number},{52 + rng.random():.6f},{13 + rng.random():.6f}\n" for number in range(40)
    )
    (row,) = place.joinpath("store").rglob("*.parquet")
    content = {
        "instance.json": json.dumps(case).encode(),
        "family.parquet": (place / "family.parquet").read_bytes(),
        "solution.json": json.dumps(solution).encode(),
        "certificate.json": certificate,
        "baseline.json": json.dumps(baseline).encode(),
        "edges.tsv": edges.encode(),
        "places.csv": places.encode(),
        "index.json": json.dumps(index).encode(),
        "row.parquet": row.read_bytes(),
    }
    for name in ("instance.json", "certificate.json", "edges.tsv"):
        content[f"{name}.gz"] = gzip.compress(content[name], mtime=0)
    return content


def read(target: Target, folder: str) -> tuple[int, str, str]:
    """Read a file as the command does; called in a child process.

    Parameters
    ----------
    target
        The kind of file.
    folder
        Its folder.

    Returns
    -------
    code
        The exit code.
    out, err
        What was printed.
    """
    from relocbench.cli import main

    path = Path(folder, target.name)
    places = {"FILE": str(path), "FOLDER": folder, "INSTANCE": str(path.parent / "valid-instance.json")}
    out, err = io.StringIO(), io.StringIO()
    before = sys.argv
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            if target.read[0] in READERS:
                _read_directly(READERS[target.read[0]], path)
            else:
                sys.argv = ["relocbench", *(places.get(word, word) for word in target.read)]
                main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        finally:
            sys.argv = before
    return code, out.getvalue()[:2000], err.getvalue()[:2000]


def _read_directly(reader: Callable[[Path], object], path: Path) -> None:
    from relocbench.instances.errors import InputError

    try:
        reader(path)
    except InputError as error:
        print(f"relocbench: {error}", file=sys.stderr)
        sys.exit(2)


def _baseline(path: Path) -> object:
    from relocbench.reports.gate.baseline import read_baseline

    return read_baseline(path)


def _edges(path: Path) -> object:
    from relocbench.instances.files.follower_graph import read_follower_graph

    return read_follower_graph(path).rows


def _places(path: Path) -> object:
    from relocbench.instances.files.places import read_places

    return read_places(path)


def _rows(path: Path) -> object:
    from relocbench.instances.errors import InputError
    from relocbench.runs.run_store import read

    _, problems = read(path.parent)
    if problems:
        raise InputError("", problems[0])
    return problems


READERS = {"baseline": _baseline, "edges": _edges, "places": _places, "rows": _rows}


def _prepare(seed: int, key: str, originals: dict[str, bytes], folder: Path) -> tuple[str, Target]:
    """Write the file of a trial; return the kind of the trial and of the file."""
    folder.mkdir(exist_ok=True)
    (folder / "valid-instance.json").write_bytes(originals["instance.json"])
    if key.startswith("bomb "):
        _, bomb, place = key.split(" ")
        target = next(target for target in TARGETS if target.name == place)
        BOMBS[bomb](folder / place)
        return "bombs", target
    name, _, number = key.rpartition(" ")
    target = next(target for target in TARGETS if target.name == name)
    rng = random.Random(f"file {seed} {number}")
    content = originals[name]
    compressed = name.endswith(".gz")
    if name == "instance.json" and rng.random() < 0.5:
        content = json.dumps(odd_case(seed, int(number))[2]).encode()
    kind = rng.random()
    if kind < 0.03:
        content = rng.choice([b"", b"\n", b"null", b"{}", b"\xef\xbb\xbf", b"\x1f\x8b", b"PAR1PAR1", content[::-1]])
    elif target.is_json and kind < 0.6:
        plain = mutated_json(gzip.decompress(content) if compressed else content, rng)
        content = gzip.compress(plain, mtime=0) if compressed else plain
    elif compressed and kind < 0.8:
        content = gzip.compress(mutated_bytes(gzip.decompress(content), rng), mtime=0)
    else:
        content = mutated_bytes(content, rng)
    (folder / name).write_bytes(content)
    return name, target


def _repeated(piece: bytes, megabytes: int) -> bytes:
    return piece * ((megabytes << 20) // len(piece))


def _write_compressed(path: Path, content: Iterator[bytes]) -> None:
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as file:
        for piece in content:
            file.write(piece)


def _many(before: bytes, piece: bytes, after: bytes, megabytes: int = 70) -> Callable[[Path], None]:
    """Return what writes a compressed file that contains a piece very often."""
    return lambda path: _write_compressed(
        path, itertools.chain([before], itertools.repeat(_repeated(piece, 10), megabytes // 10), [after])
    )


BOMBS: dict[str, Callable[[Path], None]] = {
    "spaces": _many(b"", b" ", b"", 1500),
    "lists": _many(b"[", b"[],", b"[]]"),
    "numbers": _many(b'{"format": "relocbench-instance/1", "clients": {"x": [', b"0,", b"0]}}"),
    "objects": _many(b"[", b"{},", b"{}]"),
    "steps": _many(b'{"format": "relocbench-certificate/1", "proof": [', b'{"step":"split-share"},', b"{}]}"),
    "depth": _many(b"", b"[", b""),
    "text": _many(b'{"format": "', b"a", b'"}', 600),
    "line": _many(b"", b"1", b"\t2\n", 600),
    "zero": lambda path: os.symlink("/dev/zero", path),
}
BOMB_PLACES = ("instance.json.gz", "certificate.json.gz", "edges.tsv.gz")
QUICK_BOMBS = (("lists", "certificate.json.gz"), ("steps", "instance.json.gz"), ("zero", "instance.json.gz"))
