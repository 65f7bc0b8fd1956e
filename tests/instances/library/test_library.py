import dataclasses
import json
from fractions import Fraction

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.instance_source import read_instance, read_instances
from relocbench.instances.library.library import Claim, Entry, Library

LIBRARY = Library()
NAMES = LIBRARY.names()
GROUPS = {"tiny": 9, "small": 18, "preliminary": 2, "paper": 20, "large": 5}


def test_every_group_is_there():
    for group, least in GROUPS.items():
        assert len(LIBRARY.names(f"{group}-*")) >= least
    for regime in ("loose", "scarce", "overloaded"):
        assert len(LIBRARY.names(f"small-{regime}-*")) >= 6
    assert max(entry.clients for entry in LIBRARY.entries.values()) > 4900


@pytest.mark.parametrize("name", NAMES)
def test_the_index_says_what_the_files_say(name):
    entry, instance = LIBRARY.entry(name), read_instance(f"library:{name}")
    assert (instance.name, instance.hash) == (name, entry.instance)
    assert (instance.n_clients, instance.n_servers, instance.n_topics) == (entry.clients, entry.servers, entry.topics)
    objective = evaluate_exact(instance, LIBRARY.best_home(name)).objective
    bound = Fraction(entry.exact_bound)
    assert Fraction(entry.exact_objective) == objective >= bound >= Fraction(entry.bound)
    assert float(objective) == entry.objective
    assert entry.gap == float((objective - bound) / objective)
    assert (entry.status == "optimal") == (bound >= objective - max(1, objective) / 10**6)
    assert entry.homes_by
    assert entry.bound_by
    assert entry.claimed is None or entry.bound < entry.claimed.bound <= entry.objective * (1 + 1e-6)


def test_the_files_are_small_and_all_of_them_belong_to_an_entry():
    files = list(LIBRARY.folder.glob("*.gz"))
    assert len(files) == 2 * len(NAMES)
    assert sum(file.stat().st_size for file in files) < 15e6


def test_a_pattern_stands_for_all_that_match():
    found = [instance.name for instance in read_instances("library:tiny-loose-*")]
    assert found == [name for name in NAMES if name.startswith("tiny-loose-")]
    with pytest.raises(InputError, match=r"found several; name one: library:tiny-loose-"):
        read_instance("library:tiny-loose-*")


def test_an_unknown_name_is_told_what_is_close_to_it():
    with pytest.raises(
        InputError, match=r"library:paper-s10-33: expected an entry of the library; close to it: paper-"
    ):
        read_instance("library:paper-s10-33")
    with pytest.raises(InputError, match=r"library:: expected an entry of the library; `relocbench library list`"):
        read_instance("library:")
    with pytest.raises(InputError, match=r"library:\.\./x"):
        read_instance("library:../x")


def test_a_file_of_that_name_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "library:x.json").write_text("{}")
    with pytest.raises(InputError, match="format: expected"):
        read_instance("library:x.json")


def entry(name="a-1", **changes):
    known = Entry(name, "f" * 64, 3, 2, 1, 1.5, "3/2", 1.0, "1/1", 1 / 3, "feasible", "x", "y")
    return dataclasses.replace(known, **changes)


def test_a_line_reads_back_as_it_was_written(tmp_path):
    shelf = Library(tmp_path)
    assert (shelf.version, shelf.names()) == (0, [])
    for line in (entry(), entry("b", claimed=Claim(1.25, "z")), entry("c", gap=None)):
        shelf.put(line)
    assert shelf.version == Library(tmp_path).version == 3
    assert list(Library(tmp_path).entries.values()) == list(shelf.entries.values())
    shelf.put(entry(status="optimal"))
    assert Library(tmp_path).entry("a-1").status == "optimal"
    assert shelf.names() == ["a-1", "b", "c"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "../a"}, r"index.json: name: expected lower-case letters and digits"),
        ({"clients": "3"}, r"index.json: entries\[0\].clients: expected a whole number"),
        ({"claimed": {"bound": 1}}, r"entries\[0\].claimed.by: is missing"),
        ({"better": 1}, r"entries\[0\].better: unknown field"),
    ],
)
def test_a_damaged_index_is_one_line(tmp_path, change, complaint):
    line = entry().to_json() | change
    content = {"format": "relocbench-library/1", "version": 1, "entries": [line]}
    (tmp_path / "index.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=complaint):
        Library(tmp_path).names()


def test_no_name_is_there_twice(tmp_path):
    content = {"format": "relocbench-library/1", "version": 1, "entries": [entry().to_json()] * 2}
    (tmp_path / "index.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="entries: expected each name once"):
        Library(tmp_path).names()


def test_a_folder_that_is_not_there_is_no_library(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Library(tmp_path / "none").names()
