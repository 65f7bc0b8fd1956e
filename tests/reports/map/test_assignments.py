import gzip
import json
from pathlib import Path

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.solution_file import write_solution
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.library.library import Library
from relocbench.reports.map.assignments import from_file, from_library, gather
from relocbench.runs.solve import solve_here as solve

NAME = "small-scarce-m10-l3-0"


@pytest.fixture(scope="module")
def instance():
    return Library().read(NAME)


def test_an_instance_of_the_library_has_its_certified_homes(instance):
    found, known = gather(instance, [], [], 0, 1.0)
    assert [one.label for one in found] == ["optimal (library)"]
    assert found[0].cost.objective == pytest.approx(Library().entry(NAME).objective)
    assert known.optimal
    assert known.bound == Library().entry(NAME).bound


def test_assignments_keep_the_given_order(instance, tmp_path):
    path = tmp_path / "sol.json"
    write_solution(solve(instance, "reloc", seed=3).stored(), path)
    certificate = Library().certificate_path(NAME)
    found, known = gather(instance, [path, certificate], ["nearest"], 0, 1.0)
    assert [one.label for one in found] == [
        "optimal (library)",
        "RELOC, seed 3 (sol.json)",
        f"certificate ({certificate.name})",
        "NS",
    ]
    assert (found[2].home == found[0].home).all()
    assert known.optimal


def test_without_other_homes_the_nearest_servers_are_shown():
    found, known = gather(FAMILIES["tiny"].cells()[0].build(100), [], [], 0, 1.0)
    assert [one.label for one in found] == ["NS"]
    assert known is None


def test_a_certificate_of_another_instance_or_without_a_valid_proof_gives_no_bound(instance, tmp_path):
    other = Library().certificate_path("small-scarce-m15-l4-0")
    with pytest.raises(InputError, match="expected a certificate of the instance given"):
        from_file(other, instance)
    content = json.loads(gzip.decompress(Library().certificate_path(NAME).read_bytes()))
    content["claim"] *= 2
    false = tmp_path / "false.json"
    false.write_text(json.dumps(content))
    assignment, known = from_file(false, instance)
    assert known is None
    assert assignment.label == "certificate (false.json), which proves nothing"


def test_plain_homes_are_labelled_with_their_file(instance, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([0] * instance.n_clients))
    assignment, known = from_file(path, instance)
    assert (assignment.label, known) == ("mine.json", None)


def test_a_file_that_is_no_solution_is_refused(instance, tmp_path):
    wrong = Path(tmp_path / "wrong.json")
    wrong.write_text("{}")
    with pytest.raises(InputError, match=r"wrong\.json"):
        from_file(wrong, instance)


def test_an_instance_outside_the_library_has_no_bound():
    assert from_library(FAMILIES["tiny"].cells()[0].build(100)) is None
