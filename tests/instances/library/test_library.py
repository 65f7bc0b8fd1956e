import dataclasses
import json
from fractions import Fraction

import pytest

from relocbench.formulations.certificates.certificate import KNOWN
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation_exact import evaluate_exact
from relocbench.instances.files.homes_file import CERTIFICATE_FIELDS
from relocbench.instances.instance_source import read_instance, read_instances
from relocbench.instances.library.library import Claim, Entry, Library

LIBRARY = Library()
NAMES = LIBRARY.names()
GROUPS = {"tiny": 9, "small": 18, "preliminary": 2, "paper": 20, "large": 5}


def test_every_group_has_its_entries():
    for group, least in GROUPS.items():
        assert len(LIBRARY.names(f"{group}-*")) >= least
    for regime in ("loose", "scarce", "overloaded"):
        assert len(LIBRARY.names(f"small-{regime}-*")) >= 6
    assert max(entry.clients for entry in LIBRARY.entries.values()) > 4900


@pytest.mark.parametrize("name", NAMES)
def test_the_index_agrees_with_the_files(name):
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


def test_the_files_are_small_and_each_belongs_to_an_entry():
    files = list(LIBRARY.folder.glob("*.gz"))
    assert len(files) == 2 * len(NAMES)
    assert sum(file.stat().st_size for file in files) < 15e6


def test_a_pattern_selects_all_matching_entries():
    found = [instance.name for instance in read_instances("library:tiny-loose-*")]
    assert found == [name for name in NAMES if name.startswith("tiny-loose-")]
    with pytest.raises(InputError, match=r"found several; name one: library:tiny-loose-"):
        read_instance("library:tiny-loose-*")


def test_the_error_for_an_unknown_name_suggests_similar_names():
    with pytest.raises(
        InputError, match=r"library:paper-s10-33: expected an entry of the library; close to it: paper-"
    ):
        read_instance("library:paper-s10-33")
    with pytest.raises(InputError, match=r"library:: expected an entry of the library; `relocbench library list`"):
        read_instance("library:")
    with pytest.raises(InputError, match=r"library:\.\./x"):
        read_instance("library:../x")


def test_a_file_with_a_library_name_has_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "library:x.json").write_text("{}")
    with pytest.raises(InputError, match="format: expected"):
        read_instance("library:x.json")


def entry(name="a-1", **changes):
    known = Entry(name, "f" * 64, 3, 2, 1, 1.5, "3/2", 1.0, "1/1", 1 / 3, "feasible", "x", "y")
    return dataclasses.replace(known, **changes)


def test_written_entries_are_read_back_unchanged(tmp_path):
    library = Library(tmp_path)
    assert (library.version, library.names()) == (0, [])
    for new in (entry(), entry("b", claimed=Claim(1.25, "z")), entry("c", gap=None)):
        library.put(new)
    assert library.version == Library(tmp_path).version == 3
    assert list(Library(tmp_path).entries.values()) == list(library.entries.values())
    library.put(entry(status="optimal"))
    assert Library(tmp_path).entry("a-1").status == "optimal"
    assert library.names() == ["a-1", "b", "c"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../a"}, r"index.json: name: expected lower-case letters and digits"),
        ({"clients": "3"}, r"index.json: entries\[0\].clients: expected a whole number"),
        ({"claimed": {"bound": 1}}, r"entries\[0\].claimed.by: is missing"),
        ({"better": 1}, r"entries\[0\].better: unknown field"),
    ],
)
def test_a_damaged_index_is_rejected_by_field(tmp_path, change, message):
    damaged = entry().to_json() | change
    content = {"format": "relocbench-library/1", "version": 1, "entries": [damaged]}
    (tmp_path / "index.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        Library(tmp_path).names()


def test_a_repeated_name_is_rejected(tmp_path):
    content = {"format": "relocbench-library/1", "version": 1, "entries": [entry().to_json()] * 2}
    (tmp_path / "index.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match="entries: expected each name once"):
        Library(tmp_path).names()


def test_a_missing_folder_is_rejected(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        Library(tmp_path / "none").names()


def test_the_reader_of_homes_knows_every_field_of_a_certificate():
    assert set(CERTIFICATE_FIELDS) == set(KNOWN)
