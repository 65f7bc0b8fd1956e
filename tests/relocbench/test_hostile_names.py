"""Names in files and options never decide in which folder a command writes."""

import ast
import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest

from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.instance_source import read_instance
from relocbench.instances.library.library import Library
from relocbench.reports.gate.check import _write
from relocbench.reports.gate.shrink_failure import SmallestInstance
from relocbench.runs import cross_check
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits
from tests.instances.files.bad_files import EUCLIDEAN

ROOT = Path(__file__).parents[2]
ROOMS = ("instances", "heuristics", "formulations", "runs", "spark", "reports", "relocbench")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the folder in which commands run. Afterwards no file may be outside of it, as hostile names ask for."""
    inner = tmp_path / "one" / "two" / "here"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    # A path of the system, because a name may be absolute.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    yield inner
    outside = [path for path in tmp_path.rglob("*") if path.is_file() and inner not in path.parents]
    assert outside == []


def hostile_names(place: Path) -> list[str]:
    elsewhere = place.parents[2] / "elsewhere"
    return [
        *(
            "../../x",
            "../x",
            f"{elsewhere}/x",
            "a/b",
            "..",
            "",
            "x" * 5_000,
            "a\nb",
            "CON",
            "名/前",
            ".x",
            "-o",
            "\u202ex",
        ),
        f"{elsewhere}/x.html\x00",
    ]


def instances(place: Path):
    """Return a different small instance for each hostile name."""
    path = place / "plain.json"
    path.write_text(json.dumps(EUCLIDEAN))
    instance = read_instance(path)
    path.unlink()
    return [
        dataclasses.replace(instance, name=name, client_x=instance.client_x + number)
        for number, name in enumerate(hostile_names(place))
    ]


def test_show_writes_one_page_in_the_current_folder(run, place):
    for number, name in enumerate(hostile_names(place)):
        (place / f"{number}.json").write_text(json.dumps({**EUCLIDEAN, "name": name}))
        code, text, err = run("show", f"{number}.json", "--method", "nearest", "--json")
        assert (code, err) == (0, "")
        [file] = json.loads(text)["files"]
        assert Path(file).name == file
        assert (place / file).is_file()
        assert not file.startswith((".", "-"))
    assert len(list(place.glob("*.html"))) == len(hostile_names(place))


def test_show_replaces_its_own_page_and_no_other_file(run, place):
    (place / "inst.json").write_text(json.dumps({**EUCLIDEAN, "name": "mine"}))
    page = place / "mine.html"
    page.write_text("<!doctype html><title>My thesis</title>")
    code, _, err = run("show", "inst.json", "--method", "nearest")
    assert code == 2
    assert (
        err
        == "relocbench: mine.html: exists and is not a page of `relocbench show`; name the file to write with --out\n"
    )
    assert "My thesis" in page.read_text()
    assert run("show", "inst.json", "--method", "nearest", "--out", "mine.html")[0] == 0
    assert run("show", "inst.json", "--method", "nearest")[0] == 0
    assert "My thesis" not in page.read_text()


def test_a_study_and_a_cross_check_write_in_their_folders(run, place):
    write_rows(instances(place)[1:3], place / "all.parquet")
    code, _, err = run("study", "all.parquet", "--method", "nearest", "--out", "study")
    assert (code, err) == (0, "")
    code, _, err = run("bench", "--cross-check", "all.parquet", "--method", "enumerate", "--out", "checked")
    assert (code, err) == (0, "")
    assert {path.name for path in place.iterdir()} == {"all.parquet", "study", "checked"}


def test_the_library_refuses_a_hostile_name(run, place):
    shipped = Library()
    known = min(shipped.entries.values(), key=lambda entry: entry.clients).name
    certificate = shipped.certificate_path(known)
    (place / "library").mkdir()
    for name in hostile_names(place):
        write_rows([dataclasses.replace(shipped.read(known), name=name)], place / "inst.parquet")
        for option in ((), ("--name", name or "..")):
            code, _, err = run("library", "add", "inst.parquet", certificate, "--directory", "library", *option)
            assert (code, err.count("\n")) == (2, 1)
    assert list((place / "library").iterdir()) == []


def test_small_instances_of_the_gate_and_of_the_cross_check_are_in_the_wanted_folder(place, monkeypatch):
    monkeypatch.setattr(cross_check, "_shrunk", lambda instance, *_: instance)
    for instance in instances(place):
        small = SmallestInstance(instance, "", np.zeros(4, np.int32), 1.0, 2.0)
        written = _write(small, f"{instance.name}:method[a=1]", instance.name, place / "gate")
        found = cross_check.Disagreement("kind", ("nearest",), instance.name, "", hash=instance.hash, seed=0)
        monkeypatch.setattr(cross_check, "compare", lambda rows, found=found: [found])
        monkeypatch.setattr(cross_check, "by_instance", lambda rows, key=instance.hash: {key: []})
        comparison = cross_check.conclude([], [instance], [parse_selector("nearest")], Limits(), out=place / "cross")
        folder = Path(comparison.disagreements[0].file).parent  # a folder for each disagreement
        for file in (written.file, written.before, folder):
            assert Path(file).resolve().parent in (place / "gate", place / "cross")
        assert all(Path(file).is_file() for file in (written.file, written.before, folder / "instance.json"))
    assert len(list((place / "gate").iterdir())) == 2 * len(instances(place))
    assert len(list((place / "cross").iterdir())) == len(instances(place))


# Words for texts that come from files and options.
NAMES = re.compile(r"name|selector|method|label|group|family|regime|instance|title|stem|text")
# The expressions with such words that may stand in the f-string of a path: hashes, and names that were checked.
SAFE_PARTS = (
    "instance.hash",
    "instance.hash[:16]",
    "checked_name(name)",
    "path.name",  # beside the file itself
    "path.stem",
)


def test_no_path_is_built_from_a_name_without_the_one_function():
    found = []
    for room in ROOMS:
        for file in (ROOT / room).rglob("*.py"):
            if file.is_symlink() or any(parent.is_symlink() for parent in file.parents):
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                for text in _texts_in_paths(node):
                    parts = [ast.unparse(part.value) for part in ast.walk(text) if isinstance(part, ast.FormattedValue)]
                    unsafe = [part for part in parts if NAMES.search(part) and part not in SAFE_PARTS]
                    found += [f"{file.relative_to(ROOT)}:{node.lineno}: {part}" for part in unsafe]
    assert found == []


def _texts_in_paths(node):
    """Yield the f-strings that a node joins to a path or makes a path of."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        candidates = [node.right]
    elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
        "Path",
        "with_name",
        "joinpath",
        "join",
        "open",
    ):
        candidates = node.args
    else:
        return
    yield from (one for one in candidates if isinstance(one, ast.JoinedStr))
