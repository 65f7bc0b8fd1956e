"""Baselines of instances in a folder of the user, with and without bounds."""

import dataclasses
import gzip
import json
import shutil

import pytest

from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Library
from relocbench.reports.gate.baseline import read_baseline
from relocbench.reports.gate.judged_instances import folder_instances
from tests.instances.files.bad_files import run_command

LIBRARY = Library()
PLACE = "tests.reports.gate.heuristics"
CERTIFIED, STATED, BARE = "tiny-loose-plain-0", "tiny-loose-roles-0", "tiny-loose-single-0"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with three instances: with a certificate beside it, with a stated bound, and without a bound."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "own"
    folder.mkdir()
    shutil.copy(LIBRARY.instance_path(CERTIFIED), folder / "site-a.json.gz")
    shutil.copy(LIBRARY.certificate_path(CERTIFIED), folder / "proof.json.gz")
    write_instance(dataclasses.replace(LIBRARY.read(STATED), parameters={"bound": 3.5}), folder / "site-b.json")
    write_instance(LIBRARY.read(BARE), folder / "site-c.json")
    (tmp_path / "mine.py").write_text(f"from {PLACE} import nearest as mine, bad_for_crowds\n")
    return tmp_path


def test_a_baseline_of_a_folder_can_be_moved_with_it_and_is_judged_by_costs_and_bounds(project, tmp_path):
    command = ("check", "--method", "mine.py:mine", "--update-baseline", "--instances", "own", "--seed", "0-1")
    code, out, err = run_command(*command)
    assert (code, out, err) == (0, "mine.py:mine: 3 instances, 2 seeds, new\nwritten: relocbench-baseline.json\n", "")
    record = read_baseline(project / "relocbench-baseline.json").records["mine.py:mine"]
    assert (record.folder, record.library, set(record.lines)) == ("own", 0, {"site-a", "site-b", "site-c"})
    bounds = {name: (line.bound, line.optimal, line.file) for name, line in record.lines.items()}
    assert bounds["site-a"] == (pytest.approx(LIBRARY.entry(CERTIFIED).bound), True, "site-a.json.gz")
    assert bounds["site-b"] == (3.5, False, "site-b.json")
    assert bounds["site-c"] == (None, False, "site-c.json")
    (project / "moved").mkdir()
    for name in ("own", "relocbench-baseline.json"):
        shutil.move(project / name, project / "moved" / name)
    again = ("check", "--baseline", "moved/relocbench-baseline.json")
    assert run_command(*again)[0] == 0
    assert run_command(*again, "--instances", "site-a")[0] == 0
    code, out, _ = run_command(*again, "--method", "mine.py:bad_for_crowds", "--against", "mine.py:mine", "--json")
    answer = json.loads(out)
    assert {change["instance"]: change["bound"] for change in answer["changes"]} == {
        name: bound for name, (bound, _, _) in bounds.items()
    }
    # A bound that is above the cost fails, and names its file.
    path = project / "moved" / "relocbench-baseline.json"
    path.write_text(path.read_text().replace('"bound": 3.5', '"bound": 1e9'))
    code, out, _ = run_command(*again)
    assert code == 1
    assert "nothing can cost less than 1000000000.0: the bound of site-b.json or the cost is wrong" in out
    # Another instance under the same name is refused.
    write_instance(LIBRARY.read("tiny-scarce-plain-0"), project / "moved" / "own" / "site-c.json")
    code, out, err = run_command(*again)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "site-c.json: is not the instance of relocbench-baseline.json" in err
    (project / "moved" / "own" / "site-c.json").unlink()
    code, _, err = run_command(*again)
    assert (code, err.count("\n")) == (2, 1)
    assert "site-c.json: cannot be read (No such file or directory)" in err


def twin(folder):
    shutil.copy(folder / "site-a.json.gz", folder / "twin.json.gz")


def same_name(folder):
    write_instance(LIBRARY.read("tiny-scarce-plain-0"), folder / "site-a.json")


def foreign_certificate(folder):
    shutil.copy(LIBRARY.certificate_path("paper-s1-0"), folder)


def false_certificate(folder):
    path = LIBRARY.certificate_path(CERTIFIED)
    value = json.loads(gzip.decompress(path.read_bytes()))
    value["home"] = value["home"][:-1]
    (folder / "proof.json.gz").unlink()
    (folder / "proof.json").write_text(json.dumps(value))


def solution(folder):
    (folder / "sol.json").write_text('{"format": "relocbench-solution/1"}')


def bad_bound(folder):
    write_instance(dataclasses.replace(LIBRARY.read(STATED), parameters={"bound": "low"}), folder / "site-b.json")


def certificates_only(folder):
    for path in folder.glob("site-*"):
        path.unlink()


def empty(folder):
    certificates_only(folder)
    (folder / "proof.json.gz").unlink()


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (twin, "twin.json.gz: has the same instance as site-a.json.gz; remove one"),
        (same_name, "site-a.json.gz: expected another name than 'site-a', which site-a.json has, too"),
        (foreign_certificate, "paper-s1-0.certificate.json.gz: is a certificate of no instance in the folder"),
        (false_certificate, "proof.json: does not prove its bound of site-a.json.gz: "),
        (solution, 'sol.json: format: expected "relocbench-instance/1"'),
        (bad_bound, "site-b.json: parameters.bound: expected a number of at least 0, got 'low'"),
        (certificates_only, "own: expected instances in the folder, found certificates only"),
        (empty, "own: expected instances in the folder (.parquet, .json, .json.gz), found none"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_folder_that_cannot_be_used_gives_one_line(project, damage, complaint):
    damage(project / "own")
    code, out, err = run_command("check", "--method", "nearest", "--update-baseline", "--instances", "own")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert complaint in err


def test_the_rows_of_a_parquet_file_are_instances(project):
    write_rows(
        [LIBRARY.read("tiny-scarce-plain-0"), LIBRARY.read("tiny-scarce-roles-0")], project / "own" / "f.parquet"
    )
    found = folder_instances(project / "own")
    assert found["tiny-scarce-roles-0"].file == "f.parquet#tiny-scarce-roles-0"
    assert len(found) == 5
