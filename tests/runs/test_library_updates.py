"""Changes of the library by several processes at the same time."""

import dataclasses
import shutil

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import read_certificate, write_certificate
from relocbench.instances.errors import InputError
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Library
from relocbench.runs.library_updates import add, check
from tests.overlap import run_together

SHIPPED = Library()
NAME, OTHER = "small-scarce-m15-l4-0", "tiny-scarce-plain-0"

# Runs the command in a process that has read the library and verified its certificate before any process writes.
PROGRAM = """
import sys
from pathlib import Path
from relocbench import cli
from relocbench.runs import library_updates
from tests.overlap import meeting_first_time
library_updates._verified_entry = meeting_first_time(library_updates._verified_entry, Path("met"), {count})
sys.argv = ["relocbench", "library", *{arguments!r}, "--directory", "library"]
cli.main()
"""


def program(*arguments, count=2):
    return PROGRAM.format(count=count, arguments=list(arguments))


@pytest.fixture
def library(tmp_path):
    """Return a library with two entries that have worse homes and worse bounds than those of the package."""
    made = Library(tmp_path / "library")
    made.folder.mkdir()
    for name in (NAME, OTHER):
        best = read_certificate(SHIPPED.certificate_path(name))
        worse = dataclasses.replace(best, home=np.zeros_like(best.home), claim=best.claim * 9 // 10)
        add(made, SHIPPED.read(name), worse, by="an earlier run")
        write_certificate(best, tmp_path / f"{name}.json")
        write_certificate(dataclasses.replace(worse, home=best.home), tmp_path / f"{name}-homes.json")
        write_certificate(dataclasses.replace(best, home=worse.home), tmp_path / f"{name}-bound.json")
    return made


def assert_best(library):
    """Every entry must have the homes and the bound of the package, and its certificate must prove them."""
    now = Library(library.folder)
    for entry in now.entries.values():
        known = SHIPPED.entry(entry.name)
        assert (entry.exact_objective, entry.exact_bound) == (known.exact_objective, known.exact_bound)
        assert check(now, entry.name) == ""
    assert not list(library.folder.glob(".*"))


def test_improvements_at_the_same_time_are_all_kept_and_one_that_comes_too_late_is_refused(library, tmp_path):
    programs = [program("improve", name, f"{name}.json", count=3) for name in (NAME, OTHER, OTHER)]
    results = run_together(programs, tmp_path)
    assert results[0][0] == 0
    assert sorted(code for code, _, _ in results) == [0, 0, 1]
    assert "improves nothing" in "".join(err for _, _, err in results)
    assert Library(library.folder).version == 4  # two additions and two improvements
    assert_best(library)


def test_homes_and_bound_of_one_entry_that_are_improved_at_the_same_time_are_both_kept(library, tmp_path):
    programs = [program("improve", OTHER, f"{OTHER}-{part}.json", "--by", part) for part in ("homes", "bound")]
    results = run_together(programs, tmp_path)
    assert [(code, err) for code, _, err in results] == [(0, "")] * 2
    entry, known = Library(library.folder).entry(OTHER), SHIPPED.entry(OTHER)
    assert (entry.exact_objective, entry.exact_bound) == (known.exact_objective, known.exact_bound)
    assert (entry.homes_by, entry.bound_by) == ("homes", "bound")
    assert check(Library(library.folder), OTHER) == ""


def test_of_two_additions_of_one_instance_at_the_same_time_one_is_refused(library, tmp_path):
    new = "tiny-loose-plain-0"
    write_instance(SHIPPED.read(new), tmp_path / "new.json")
    shutil.copy(SHIPPED.certificate_path(new), tmp_path / "cert.json.gz")
    results = run_together(
        [program("add", "new.json", "cert.json.gz", "--name", name) for name in ("a", "b")], tmp_path
    )
    assert sorted(code for code, _, _ in results) == [0, 1]
    assert "is already in the library, as" in "".join(err for _, _, err in results)
    assert len(Library(library.folder).entries) == 3
    assert len(list(library.folder.glob("*.gz"))) == 6


def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(library, tmp_path, monkeypatch):
    def refuse(*_):
        raise AssertionError("the certificate was verified")

    monkeypatch.setattr("relocbench.runs.library_updates._verified_entry", refuse)
    certificate, instance = read_certificate(tmp_path / f"{OTHER}.json"), SHIPPED.read("tiny-loose-plain-0")
    with pytest.raises(InputError, match=r"^/sys/index\.json: cannot be written"):
        add(Library("/sys"), instance, certificate)
