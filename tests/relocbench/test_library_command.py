import dataclasses
import json
import shutil
from fractions import Fraction

import numpy as np
import pytest

from relocbench.formulations.certificates.certificate import read_certificate, write_certificate
from relocbench.formulations.certificates.verification import verify
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.solution_file import StoredSolution, write_solution
from relocbench.instances.instance_source import write_instance
from relocbench.instances.library.library import Library
from relocbench.runs.library_updates import check
from relocbench.runs.methods import METHODS
from relocbench.runs.solve import solve
from tests.instances.files.bad_files import run_command

LIBRARY = Library()
# `library check` goes through all of them; this one's proof alone takes half a minute.
SLOW = "small-overloaded-m15-l4-0"
QUICK = [*LIBRARY.names("tiny-*"), *LIBRARY.names("small-*"), "paper-s1-0", "paper-s10-3"]
QUICK.remove(SLOW)
# One that is proved optimal by several steps, so that there is something to take away.
NAME = "small-scarce-m15-l4-0"
OTHER = "tiny-scarce-plain-0"


@pytest.mark.parametrize("name", QUICK)
def test_certificates_are_proofs_and_give_the_lines_of_the_index(name):
    assert check(LIBRARY, name) == ""


@pytest.fixture
def shelf(tmp_path):
    """A library of two entries, which tests may change."""
    made = Library(tmp_path / "library")
    made.folder.mkdir()
    for name in (NAME, OTHER):
        for path in (LIBRARY.instance_path(name), LIBRARY.certificate_path(name)):
            shutil.copy(path, made.folder)
        made.put(LIBRARY.entry(name))
    return made


@pytest.fixture
def best(shelf):
    return read_certificate(shelf.certificate_path(NAME))


def with_worse_home(certificate):
    """The same proof, of everybody at one server."""
    return dataclasses.replace(certificate, home=np.zeros_like(certificate.home))


def with_worse_proof(certificate):
    """The same homes, and a claim of 9/10."""
    return dataclasses.replace(certificate, claim=certificate.claim * 9 // 10)


def store(shelf, certificate):
    """Make a certificate the one that the library has of the entry."""
    folder = shelf.folder.parent / "worse"
    folder.mkdir()
    write_certificate(certificate, folder / "cert.json")
    write_instance(LIBRARY.read(NAME), folder / "inst.json")
    code, _, err = run_command(
        "library", "add", folder / "inst.json", folder / "cert.json", "--directory", folder, "--by", "an older try"
    )
    assert (code, err) == (0, "")
    for name in (f"{NAME}.json.gz", f"{NAME}.certificate.json.gz"):
        shutil.copy(folder / name, shelf.folder)
    shelf.put(Library(folder).entry(NAME))


def improve(shelf, offer, *more):
    """Run ``library improve`` on a certificate; return code, answer, what was said, and whether files changed."""
    file = shelf.folder.parent / "offer.json"
    (write_certificate if hasattr(offer, "proof") else write_solution)(offer, file)
    before = {path.name: path.read_bytes() for path in shelf.folder.iterdir()}
    code, out, err = run_command("library", "improve", NAME, file, "--directory", shelf.folder, "--json", *more)
    after = {path.name: path.read_bytes() for path in shelf.folder.iterdir()}
    assert code == 0 or before == after
    return code, json.loads(out) if out else None, err


def is_whole(shelf):
    code, out, _ = run_command("library", "check", "--directory", shelf.folder)
    return (code, out) == (0, "2 entries checked, all proved\n")


def test_a_certificate_that_is_better_in_nothing_is_refused(shelf, best):
    for offer in (best, with_worse_home(best), with_worse_proof(best)):
        code, answer, err = improve(shelf, offer)
        assert (code, answer) == (1, None)
        assert "has nothing better than small-scarce-m15-l4-0 in the library: ΣD = " in err
        assert len(err.splitlines()) == 1
    assert is_whole(shelf)


def test_a_certificate_that_proves_nothing_is_refused(shelf, best):
    store(shelf, with_worse_proof(best))
    for change, reason in (
        ({"proof": ()}, "proves nothing: claim: is not proved"),
        ({"claim": best.claim * 2}, "proves nothing: claim: is above what the homes of the certificate cost"),
        ({"home": best.home[:-1]}, "proves nothing: home: expected one server for each of 15 clients, got 14"),
    ):
        code, _, err = improve(shelf, dataclasses.replace(best, **change))
        assert code == 1
        assert reason in err


def test_a_certificate_of_another_instance_is_refused(shelf):
    code, _, err = improve(shelf, read_certificate(shelf.certificate_path(OTHER)))
    assert code == 1
    assert "is not of small-scarce-m15-l4-0: expected the hash" in err


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (lambda it: with_worse_proof(with_worse_home(it)), ["homes", "bound"]),
        (with_worse_home, ["homes"]),
        (with_worse_proof, ["bound"]),
    ],
)
def test_what_is_better_replaces_the_entry(shelf, best, worse, better):
    store(shelf, worse(best))
    version = shelf.version
    code, answer, err = improve(shelf, best, "--by", "a new idea")
    assert (code, err) == (0, "")
    assert (answer["better"], answer["version"]) == (better, version + 1)
    known, now = LIBRARY.entry(NAME), Library(shelf.folder).entry(NAME)
    assert (now.exact_objective, now.exact_bound) == (known.exact_objective, known.exact_bound)
    assert (now.status, now.gap) == (known.status, known.gap)
    assert now.homes_by == ("a new idea" if "homes" in better else "an older try")
    assert now.bound_by == ("a new idea" if "bound" in better else "an older try")
    assert is_whole(Library(shelf.folder))


def test_the_better_half_of_each_side_is_kept(shelf, best):
    store(shelf, with_worse_home(best))
    code, answer, _ = improve(shelf, with_worse_proof(best))
    assert (code, answer["better"]) == (0, ["homes"])
    mixed = read_certificate(shelf.certificate_path(NAME))
    assert mixed.home.tolist() == best.home.tolist()
    assert mixed.bound == best.bound
    verdict = verify(LIBRARY.read(NAME), mixed)
    assert verdict.status == "optimal"
    assert is_whole(Library(shelf.folder))


def solution(certificate, bound=None):
    cost = evaluate(LIBRARY.read(NAME), certificate.home).objective
    return StoredSolution(certificate.instance, "branch-price", 3, "feasible", certificate.home, cost, bound)


def test_homes_of_a_solution_replace_worse_ones_and_its_bound_stays_a_claim(shelf, best):
    store(shelf, with_worse_proof(with_worse_home(best)))
    optimum = LIBRARY.entry(NAME).objective
    code, answer, _ = improve(shelf, solution(best, optimum))
    assert (code, answer["better"]) == (0, ["homes", "claim"])
    now = Library(shelf.folder).entry(NAME)
    assert now.exact_objective == LIBRARY.entry(NAME).exact_objective
    assert now.bound < optimum * 0.91
    assert (now.status, now.claimed.bound, now.claimed.by) == ("feasible", optimum, "branch-price, seed 3")
    assert is_whole(Library(shelf.folder))
    assert f"({optimum:.8g} claimed)" in run_command("library", "list", "--directory", shelf.folder)[1]
    assert (
        f"{optimum} (branch-price, seed 3; no certificate)"
        in run_command("library", "show", NAME, "--directory", shelf.folder)[1]
    )
    # A proof makes the claim superfluous.
    code, answer, _ = improve(shelf, best)
    assert (code, answer["better"], "claimed" in answer["entry"]) == (0, ["bound"], False)


def test_a_claim_that_cannot_be_is_refused_and_one_that_is_refuted_goes(shelf, best):
    worse = with_worse_proof(with_worse_home(best))
    store(shelf, worse)
    optimum = LIBRARY.entry(NAME).objective
    code, _, err = improve(shelf, solution(worse, optimum * 100))
    assert code == 1
    assert "claims the bound" in err
    assert improve(shelf, solution(worse, optimum * 1.01))[0] == 0
    code, answer, _ = improve(shelf, solution(best))
    assert (code, answer["better"], "claimed" in answer["entry"]) == (0, ["homes"], False)


def test_what_is_there_is_not_added_again(shelf, best, tmp_path):
    for name in (NAME, "another-name"):
        code, out, err = run_command(
            *("library", "add", f"library:{NAME}", shelf.certificate_path(NAME)),
            *("--name", name, "--directory", shelf.folder),
        )
        assert (code, out) == (1, "")
        assert "is in the library already, as small-scarce-m15-l4-0" in err
    code, _, err = run_command(
        *("library", "add", f"library:{NAME}", shelf.certificate_path(NAME)),
        *("--name", "No/Name", "--directory", tmp_path),
    )
    assert code == 2
    assert "name: expected lower-case letters and digits" in err


def test_check_finds_what_is_wrong(shelf, best):
    def wrong():
        code, out, _ = run_command("library", "check", "--directory", shelf.folder, "--json")
        assert code == 1
        return json.loads(out)["wrong"]

    entry = shelf.entry(NAME)
    for change in ({"objective": 1.0}, {"status": "feasible"}, {"homes_by": "me"}, {"clients": 14}):
        shelf.put(dataclasses.replace(entry, **change))
        assert wrong() == {NAME: f"{next(iter(change))}: the index and the files differ"}
    shelf.put(dataclasses.replace(entry, instance="f" * 64))
    assert "expected the instance with the hash ffff" in wrong()[NAME]
    shelf.put(entry)
    write_certificate(with_worse_home(best), shelf.certificate_path(NAME))
    assert wrong()[NAME] == "objective, exact_objective, gap, status: the index and the files differ"
    write_certificate(dataclasses.replace(best, proof=()), shelf.certificate_path(NAME))
    assert wrong()[NAME].startswith("proves nothing: claim: is not proved")
    shelf.certificate_path(NAME).unlink()
    (shelf.folder / "stray.json.gz").touch()
    assert wrong() == {
        NAME: f"{shelf.certificate_path(NAME)}: cannot be read (No such file or directory)",
        "stray.json.gz": "belongs to no entry",
    }


def test_every_command_that_takes_an_instance_takes_a_name_of_the_library(tmp_path):
    name = f"library:{OTHER}"
    solved, certified = tmp_path / "sol.json", tmp_path / "cert.json"
    certificate = LIBRARY.certificate_path(OTHER)
    for arguments in (
        ("describe", name),
        ("solve", name, "--method", "nearest", "--out", solved),
        ("evaluate", name, solved),
        ("certify", name, "--time-limit", 5, "--out", certified),
        ("verify", name, certified),
        ("verify", name, certificate),
        ("bench", name, "--method", "nearest", "--out", tmp_path / "bench"),
        ("library", "show", name),
        ("library", "check", name),
    ):
        code, out, err = run_command(*arguments)
        assert (code, err) == (0, ""), arguments
        assert out


def test_unknown_names_are_one_line_and_exit_2(tmp_path):
    for arguments in (
        ("describe", "library:tiny-scarce-plane-0"),
        ("library", "show", "tiny-scarce-plane-0"),
        ("library", "check", "tiny-scarce-plane-0"),
        ("library", "improve", "tiny-scarce-plane-0", tmp_path / "none.json"),
    ):
        code, out, err = run_command(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith(
            "relocbench: library:tiny-scarce-plane-0: expected an entry of the library; close to it: "
        )
        assert OTHER in err
        assert len(err.splitlines()) == 1
    code, _, err = run_command("library", "improve", OTHER, tmp_path / "none.json")
    assert code == 2
    assert err == f"relocbench: {tmp_path / 'none.json'}: cannot be read (No such file or directory)\n"


def test_the_list_is_for_people_and_programs():
    code, out, _ = run_command("library", "list", "--json")
    assert code == 0
    answer = json.loads(out)
    assert [line["name"] for line in answer["entries"]] == LIBRARY.names()
    assert answer["version"] == LIBRARY.version
    code, out, _ = run_command("library", "list", "small-*")
    assert code == 0
    assert NAME in out
    assert "paper" not in out
    for action in ("list", "show", "improve", "add", "check"):
        assert "Example: relocbench library" in " ".join(run_command("library", action, "--help")[1].split())


@pytest.mark.parametrize("name", ["tiny-overloaded-plain-0", "tiny-scarce-roles-0", "small-scarce-m10-l3-0"])
def test_no_method_is_below_the_certified_bound(name):
    bound = Fraction(LIBRARY.entry(name).exact_bound)
    instance = LIBRARY.read(name)
    for method in METHODS:
        if METHODS[method].unavailable() or (method == "enumerate" and instance.n_clients > 9):
            continue
        selector = f"{method}[moves=3000]" if method == "anneal" else method
        result = solve(instance, selector, time_limit=1.0)
        assert result.evaluation.objective >= float(bound) * (1 - 1e-12), method


@pytest.mark.parametrize("name", ["small-overloaded-m30-l6-0", "paper-s1-0", "paper-s10-3", "large-s10-m1000-0"])
def test_no_heuristic_is_below_the_certified_bound(name):
    entry, instance = LIBRARY.entry(name), LIBRARY.read(name)
    for selector in ("nearest", "otos", "reloc", "reloc[k=auto]", "anneal[moves=300000]"):
        assert solve(instance, selector).evaluation.objective >= entry.bound * (1 - 1e-12), selector
