"""Bounds that the library carries from easier to harder entries, in small libraries in which no own bound is higher."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import Certificate, read_certificate, write_certificate
from relocbench.formulations.certificates.verification import cost
from relocbench.instances.files.solution_file import StoredSolution
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Claim, Library
from relocbench.reports.library.page import write_page
from relocbench.runs import library_updates
from relocbench.runs.library_updates import RefusedError, add, check, improve
from tests.instances.files.bad_files import run_command

SHIPPED = Library()
# A tiny instance with scarce capacity, the cloud far, and a certificate that proves its optimum.
EASY = SHIPPED.read("tiny-scarce-plain-0")
BEST = read_certificate(SHIPPED.certificate_path("tiny-scarce-plain-0"))
HARD = dataclasses.replace(EASY, spool=1.5 * EASY.spool)
HARDEST = dataclasses.replace(EASY, spool=2 * EASY.spool, storage_capacity=EASY.storage_capacity / 2)


def weaker(numerator):
    """Return the certificate of the easy instance with this many tenths of its bound."""
    return dataclasses.replace(BEST, claim=BEST.claim * numerator // 10)


def proofless(instance, home=BEST.home):
    """Return a certificate that claims nothing, and so needs no proof."""
    return Certificate(instance=instance.hash, home=home, claim=0, bits=0, proof=(), made={"method": "none"})


@pytest.fixture
def library(tmp_path):
    made = Library(tmp_path / "library")
    made.folder.mkdir()
    return made


def bounds(library):
    return {entry.name: (Fraction(entry.exact_bound), entry.bound_from) for entry in library.entries.values()}


def problems(library):
    """Return what `library check` reports."""
    code, out, _ = run_command("library", "check", "--directory", library.folder, "--json")
    wrong = json.loads(out)["wrong"]
    assert code == (1 if wrong else 0)
    return wrong


def test_a_new_entry_gets_the_bound_of_an_easier_one(library):
    add(library, EASY, BEST, name="easy", by="certify")
    entry = add(library, HARD, proofless(HARD), name="hard", by="nothing")
    assert library.entry("hard") == entry
    assert bounds(library) == {"easy": (BEST.bound, None), "hard": (BEST.bound, "easy")}
    assert (entry.homes_by, entry.bound_by) == ("nothing", "certify")
    objective = cost(HARD, BEST.home.tolist())
    assert Fraction(entry.exact_objective) == objective > Fraction(library.entry("easy").exact_objective)
    assert entry.gap == float((objective - BEST.bound) / objective)
    assert entry.status == "feasible"
    assert library.version == 2
    assert read_certificate(library.certificate_path("hard")).bound == 0  # its own bound
    assert problems(library) == {}


def test_a_new_entry_gives_its_bound_to_all_harder_ones_in_one_change(library):
    for name, instance in (("hardest", HARDEST), ("hard", HARD)):
        add(library, instance, proofless(instance), name=name)
    add(library, EASY, BEST, name="easy")
    assert bounds(library) == {
        "hardest": (BEST.bound, "easy"),
        "hard": (BEST.bound, "easy"),
        "easy": (BEST.bound, None),
    }
    assert library.version == 3
    assert problems(library) == {}


def test_a_carried_bound_is_that_of_the_certificate_that_proves_it_also_over_several_entries(library):
    add(library, EASY, BEST, name="easy")
    add(library, HARD, proofless(HARD), name="hard")
    assert add(library, HARDEST, proofless(HARDEST), name="hardest").bound_from == "easy"
    assert problems(library) == {}


def test_a_better_bound_of_an_easier_entry_is_carried_too(library):
    add(library, EASY, weaker(8), name="easy", by="first")
    add(library, HARD, proofless(HARD), name="hard")
    improve(library, "easy", weaker(9), by="second")
    assert bounds(library)["hard"] == (weaker(9).bound, "easy")
    assert library.entry("hard").bound_by == "second"
    assert library.version == 3
    assert problems(library) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"spool": EASY.spool / 2},
        {"storage_capacity": 2 * EASY.storage_capacity},
        {"compute_capacity": 2 * EASY.compute_capacity},
        {"spool": 2 * EASY.spool, "storage_capacity": 2 * EASY.storage_capacity},
        {"spool": 2 * EASY.spool, "cloud_delay": 2 * EASY.cloud_delay},
        {"spool": 2 * EASY.spool, "client_x": EASY.client_x + 1e-6},
    ],
)
def test_no_bound_is_carried_to_an_instance_that_is_not_harder(library, changes):
    other = dataclasses.replace(EASY, **changes)
    add(library, EASY, BEST, name="easy")
    add(library, other, proofless(other), name="other")
    assert bounds(library) == {"easy": (BEST.bound, None), "other": (0, None)}
    assert problems(library) == {}


def test_no_bound_is_carried_if_the_cloud_is_near(library):
    near = dataclasses.replace(EASY, cloud_delay=float(EASY.server_delay.max()) * 0.49)
    hard = dataclasses.replace(near, spool=2 * EASY.spool)
    proof = dataclasses.replace(weaker(7), instance=near.hash)
    add(library, near, proof, name="near")
    add(library, hard, proofless(hard), name="near-hard")
    assert bounds(library) == {"near": (proof.bound, None), "near-hard": (0, None)}
    assert problems(library) == {}
    library.put(dataclasses.replace(library.entry("near-hard"), bound_from="near"))
    assert problems(library) == {"near-hard": "bound_from: near is not easier than near-hard"}


def test_the_own_bound_stays_if_it_is_at_least_as_high(library):
    for name, instance in (("hard", HARD), ("hardest", HARDEST)):
        add(library, instance, dataclasses.replace(BEST, instance=instance.hash), name=name, by="own")
    before = dict(library.entries)
    add(library, EASY, BEST, name="easy")
    assert {name: library.entry(name) for name in before} == before
    assert problems(library) == {}


@pytest.fixture
def carried(library):
    """A library in which the hard entry has the bound of the easy one, and the looser one has none."""
    add(library, EASY, BEST, name="easy", by="certify")
    add(library, HARD, proofless(HARD), name="hard", by="nothing")
    looser = dataclasses.replace(EASY, spool=EASY.spool / 2)
    add(library, looser, proofless(looser), name="looser", by="nothing")
    return library


def test_only_an_own_bound_above_the_carried_one_improves_an_entry(library):
    add(library, EASY, weaker(8), name="easy", by="certify")
    add(library, HARD, proofless(HARD), name="hard", by="nothing")
    with pytest.raises(RefusedError, match="is for another instance"):
        improve(library, "hard", BEST)
    lower, higher = (dataclasses.replace(weaker(tenths), instance=HARD.hash) for tenths in (7, 9))
    with pytest.raises(RefusedError, match="improves nothing"):
        improve(library, "hard", lower)
    assert bounds(library)["hard"] == (weaker(8).bound, "easy")
    change = improve(library, "hard", higher, by="own")
    assert change.better == ("bound",)
    assert bounds(library) == {"easy": (weaker(8).bound, None), "hard": (higher.bound, None)}
    assert library.entry("hard").bound_by == "own"
    assert problems(library) == {}


def test_better_homes_keep_the_carried_bound_and_the_origin_of_the_own_proof(library):
    add(library, EASY, BEST, name="easy", by="certify")
    add(library, HARD, proofless(HARD, np.zeros_like(BEST.home)), name="hard", by="nothing")
    better = StoredSolution(HARD.hash, "mine", 0, "feasible", BEST.home, 0.0, None)
    change = improve(library, "hard", better)
    assert change.better == ("homes",)
    assert (change.after.bound_from, change.after.bound_by) == ("easy", "certify")
    assert read_certificate(library.certificate_path("hard")).made == {
        "homes_by": "mine, seed 0",
        "bound_by": "nothing",
    }
    assert problems(library) == {}


def test_a_claim_that_a_carried_bound_reaches_is_removed(library):
    add(library, HARD, proofless(HARD), name="hard")
    improve(library, "hard", StoredSolution(HARD.hash, "mine", 0, "feasible", BEST.home, 0.0, float(BEST.bound) / 2))
    assert library.entry("hard").claimed is not None
    add(library, EASY, BEST, name="easy")
    assert library.entry("hard").claimed is None
    assert problems(library) == {}


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("looser", {"bound_from": "easy"}, "bound_from: easy is not easier than looser"),
        ("looser", {"bound_from": "hard"}, "bound_from: hard is not easier than looser"),
        ("hard", {"bound_from": "none"}, "library:none: expected an entry of the library"),
        ("hard", {"bound_from": "hard"}, "bound, exact_bound, gap, bound_by, bound_from: the index differs"),
        ("hard", {"bound_from": "looser"}, "bound, exact_bound, gap, bound_by, bound_from: the index differs"),
        ("hard", {"bound_from": None}, "bound, exact_bound, gap, bound_by: the index differs"),
        ("hard", {"bound": 1e3, "exact_bound": "1000/1"}, "bound, exact_bound: the index differs"),
        ("hard", {"bound_by": "me"}, "bound_by: the index differs"),
        ("easy", {"bound_from": "looser"}, "bound_from: the index differs"),
    ],
)
def test_a_tampered_index_is_refused(carried, name, change, problem):
    carried.put(dataclasses.replace(carried.entry(name), **change))
    assert problem in problems(carried)[name]


def test_an_index_that_carries_too_much_is_refused_with_consistent_numbers(carried):
    looser, easy = carried.entry("looser"), carried.entry("easy")
    objective, bound = Fraction(looser.exact_objective), Fraction(easy.exact_bound)
    carried.put(
        dataclasses.replace(
            looser,
            **library_updates._bound_fields(objective, bound),
            bound_by=easy.bound_by,
            bound_from="easy",
        )
    )
    assert problems(carried) == {"looser": "bound_from: easy is not easier than looser"}


def test_a_bound_that_could_be_carried_and_is_not_is_found(carried):
    own = library_updates._verified_entry(
        carried.read("hard"), read_certificate(carried.certificate_path("hard")), None
    )
    carried.put(own)
    assert problems(carried) == {
        "hard": "bound: that of easy is higher and can be carried, because its instance is easier"
    }


def test_the_proof_and_the_instance_of_the_easier_entry_are_checked_as_well(carried):
    write_certificate(dataclasses.replace(BEST, proof=()), carried.certificate_path("easy"))
    wrong = check(carried, "hard")
    assert wrong.startswith("bound_from: the certificate of easy proves nothing: claim: is not proved")
    with pytest.raises(RefusedError, match="the certificate of easy proves nothing"):
        add(carried, HARDEST, proofless(HARDEST), name="hardest")
    write_certificate(dataclasses.replace(weaker(5), made={"bound_by": "certify"}), carried.certificate_path("easy"))
    assert check(carried, "hard").startswith("bound, exact_bound, gap: the index differs")
    with pytest.raises(RefusedError, match="the certificate of easy does not prove the bound that the index states"):
        add(carried, HARDEST, proofless(HARDEST), name="hardest")
    easier = dataclasses.replace(EASY, spool=EASY.spool / 4)
    write_instance(easier, carried.instance_path("easy"))
    assert "expected the instance with the hash" in check(carried, "hard")
    carried.instance_path("easy").unlink()
    assert "cannot be read" in check(carried, "hard")
    assert "hardest" not in carried.entries
    assert not carried.instance_path("hardest").exists()


def test_a_bound_above_the_stated_cost_of_harder_homes_is_not_carried(library):
    add(library, HARD, proofless(HARD), name="hard")
    library.put(dataclasses.replace(library.entry("hard"), exact_objective="1/1"))
    with pytest.raises(RefusedError, match="the bound of easy is above what the homes of hard cost"):
        add(library, EASY, BEST, name="easy")
    assert not library.certificate_path("easy").exists()


def test_an_easier_entry_that_appears_meanwhile_is_not_missed(library, monkeypatch):
    """Another process adds the easy entry between the verification of the hard one and its writing."""
    real = library_updates._with_highest_bound
    calls = []

    def interrupted(*arguments):
        found = real(*arguments)
        calls.append(found.bound_from)
        if len(calls) == 1:
            monkeypatch.setattr(library_updates, "_with_highest_bound", real)
            add(Library(library.folder), EASY, BEST, name="easy")
            monkeypatch.setattr(library_updates, "_with_highest_bound", interrupted)
        return found

    monkeypatch.setattr(library_updates, "_with_highest_bound", interrupted)
    assert add(library, HARD, proofless(HARD), name="hard").bound_from == "easy"
    assert calls == [None, "easy"]
    assert problems(library) == {}


def test_commands_and_the_page_say_where_a_bound_comes_from(carried, tmp_path):
    directory = ("--directory", carried.folder)
    assert "\nbound_from        easy\n" in run_command("library", "show", "hard", *directory)[1]
    assert "bound_from" not in run_command("library", "show", "easy", *directory)[1]
    assert json.loads(run_command("library", "show", "hard", *directory, "--json")[1])["bound_from"] == "easy"
    listed = json.loads(run_command("library", "list", *directory, "--json")[1])["entries"]
    assert [entry.get("bound_from") for entry in listed] == [None, "easy", None]
    text = write_page(carried, tmp_path / "library.html", "command").read_text(encoding="utf-8")
    assert "certify (of easy)" in text
    assert "proved by the certificate of an easier entry" in text
    assert "proved by the certificate of an easier entry" not in write_page(
        SHIPPED, tmp_path / "shipped.html", "command"
    ).read_text(encoding="utf-8")


def test_adding_and_improving_say_which_bounds_are_carried(library, tmp_path):
    for name, instance, certificate in (("easy", EASY, weaker(9)), ("hard", HARD, proofless(HARD)), ("", EASY, BEST)):
        write_instance(instance, tmp_path / "inst.json")
        write_certificate(certificate, tmp_path / "cert.json")
        arguments = ("add", tmp_path / "inst.json", tmp_path / "cert.json", "--name", name)
        if not name:
            arguments = ("improve", "easy", tmp_path / "cert.json")
        code, out, err = run_command("library", *arguments, "--directory", library.folder)
        assert (code, err) == (0, "")
        assert (" of easy, gap" in out) == (name == "hard")
        assert ("its bound is also that of hard" in out) == (not name)


def test_a_carried_bound_is_written_to_the_index_and_read_back(carried):
    entry = carried.entry("hard")
    assert entry.to_json()["bound_from"] == "easy"
    assert Library(carried.folder).entry("hard") == entry
    claimed = dataclasses.replace(entry, claimed=Claim(entry.objective, "me"))
    carried.put(claimed)
    assert Library(carried.folder).entry("hard") == claimed
    assert problems(carried) == {}
