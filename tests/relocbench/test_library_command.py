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
from relocbench.runs.solve import solve_here as solve
from tests.instances.files.bad_files import run_command

LIBRARY = Library()
# The test below leaves this entry to `relocbench library check`, because its proof alone takes ten seconds.
SLOW = "small-overloaded-m30-l6-0"
QUICK = [*LIBRARY.names("tiny-*"), *LIBRARY.names("small-*"), "paper-s1-0", "paper-s10-3"]
QUICK.remove(SLOW)
# An entry whose proof of optimality has several steps, so that steps can be removed.
NAME = "small-scarce-m15-l4-0"
OTHER = "tiny-scarce-plain-0"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_certificates_are_proofs_and_agree_with_the_index(name):
    assert check(LIBRARY, name) == ""


@pytest.fixture
def library(tmp_path):
    """A library with two entries, which tests may change."""
    copy = Library(tmp_path / "library")
    copy.folder.mkdir()
    for name in (NAME, OTHER):
        for path in (LIBRARY.instance_path(name), LIBRARY.certificate_path(name)):
            shutil.copy(path, copy.folder)
        copy.put(LIBRARY.entry(name))
    return copy


@pytest.fixture
def best(library):
    return read_certificate(library.certificate_path(NAME))


def with_worse_home(certificate):
    """Return the certificate with all clients on one server."""
    return dataclasses.replace(certificate, home=np.zeros_like(certificate.home))


def with_worse_proof(certificate):
    """Return the certificate with 9/10 of its bound."""
    return dataclasses.replace(certificate, claim=certificate.claim * 9 // 10)


def store(library, certificate):
    """Replace the certificate of the entry by a worse one."""
    folder = library.folder.parent / "worse"
    folder.mkdir()
    write_certificate(certificate, folder / "cert.json")
    write_instance(LIBRARY.read(NAME), folder / "inst.json")
    code, _, err = run_command(
        "library", "add", folder / "inst.json", folder / "cert.json", "--directory", folder, "--by", "an earlier run"
    )
    assert (code, err) == (0, "")
    for name in (f"{NAME}.json.gz", f"{NAME}.certificate.json.gz"):
        shutil.copy(folder / name, library.folder)
    library.put(Library(folder).entry(NAME))


def improve(library, offer, *more):
    """Run ``library improve``; return the exit code, the answer and the standard error."""
    file = library.folder.parent / "offer.json"
    (write_certificate if hasattr(offer, "proof") else write_solution)(offer, file)
    before = {path.name: path.read_bytes() for path in library.folder.iterdir()}
    code, out, err = run_command("library", "improve", NAME, file, "--directory", library.folder, "--json", *more)
    after = {path.name: path.read_bytes() for path in library.folder.iterdir()}
    assert code == 0 or before == after
    return code, json.loads(out) if out else None, err


def is_valid(library):
    code, out, _ = run_command("library", "check", "--directory", library.folder)
    return (code, out) == (0, "2 entries checked, all proved\n")


def test_a_certificate_that_improves_nothing_is_refused(library, best):
    for offer in (best, with_worse_home(best), with_worse_proof(best)):
        code, answer, err = improve(library, offer)
        assert (code, answer) == (1, None)
        assert "improves nothing: the library has small-scarce-m15-l4-0 with ΣD = " in err
        assert len(err.splitlines()) == 1
    assert is_valid(library)


def test_a_certificate_that_proves_nothing_is_refused(library, best):
    store(library, with_worse_proof(best))
    for change, reason in (
        ({"proof": ()}, "proves nothing: claim: is not proved"),
        ({"claim": best.claim * 2}, "proves nothing: claim: is above what the homes of the certificate cost"),
        ({"home": best.home[:-1]}, "proves nothing: home: expected one server for each of 15 clients, got 14"),
    ):
        code, _, err = improve(library, dataclasses.replace(best, **change))
        assert code == 1
        assert reason in err


def test_a_certificate_of_another_instance_is_refused(library):
    code, _, err = improve(library, read_certificate(library.certificate_path(OTHER)))
    assert code == 1
    assert "is for another instance: expected the hash" in err


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        (lambda it: with_worse_proof(with_worse_home(it)), ["homes", "bound"]),
        (with_worse_home, ["homes"]),
        (with_worse_proof, ["bound"]),
    ],
)
def test_better_homes_or_bounds_replace_those_of_the_entry(library, best, worse, better):
    store(library, worse(best))
    version = library.version
    code, answer, err = improve(library, best, "--by", "a new idea")
    assert (code, err) == (0, "")
    assert (answer["better"], answer["version"]) == (better, version + 1)
    known, now = LIBRARY.entry(NAME), Library(library.folder).entry(NAME)
    assert (now.exact_objective, now.exact_bound) == (known.exact_objective, known.exact_bound)
    assert (now.status, now.gap) == (known.status, known.gap)
    assert now.homes_by == ("a new idea" if "homes" in better else "an earlier run")
    assert now.bound_by == ("a new idea" if "bound" in better else "an earlier run")
    assert is_valid(Library(library.folder))


def test_better_homes_are_combined_with_the_better_proof(library, best):
    store(library, with_worse_home(best))
    code, answer, _ = improve(library, with_worse_proof(best))
    assert (code, answer["better"]) == (0, ["homes"])
    mixed = read_certificate(library.certificate_path(NAME))
    assert mixed.home.tolist() == best.home.tolist()
    assert mixed.bound == best.bound
    verdict = verify(LIBRARY.read(NAME), mixed)
    assert verdict.status == "optimal"
    assert is_valid(Library(library.folder))


def solution(certificate, bound=None):
    cost = evaluate(LIBRARY.read(NAME), certificate.home).objective
    return StoredSolution(certificate.instance, "branch-price", 3, "feasible", certificate.home, cost, bound)


def test_the_homes_of_a_solution_are_used_and_its_bound_becomes_a_claim(library, best):
    store(library, with_worse_proof(with_worse_home(best)))
    optimum = LIBRARY.entry(NAME).objective
    code, answer, _ = improve(library, solution(best, optimum))
    assert (code, answer["better"]) == (0, ["homes", "claim"])
    now = Library(library.folder).entry(NAME)
    assert now.exact_objective == LIBRARY.entry(NAME).exact_objective
    assert now.bound < optimum * 0.91
    assert (now.status, now.claimed.bound, now.claimed.by) == ("feasible", optimum, "branch-price, seed 3")
    assert is_valid(Library(library.folder))
    assert "%*  \n" in run_command("library", "list", "--directory", library.folder)[1]
    assert (
        f"{optimum} (branch-price, seed 3; no certificate)"
        in run_command("library", "show", NAME, "--directory", library.folder)[1]
    )
    # A proof replaces the claim.
    code, answer, _ = improve(library, best)
    assert (code, answer["better"], "claimed" in answer["entry"]) == (0, ["bound"], False)


def test_impossible_claims_are_refused_and_refuted_claims_are_removed(library, best):
    worse = with_worse_proof(with_worse_home(best))
    store(library, worse)
    optimum = LIBRARY.entry(NAME).objective
    code, _, err = improve(library, solution(worse, optimum * 100))
    assert code == 1
    assert "claims the bound" in err
    assert improve(library, solution(worse, optimum * 1.01))[0] == 0
    code, answer, _ = improve(library, solution(best))
    assert (code, answer["better"], "claimed" in answer["entry"]) == (0, ["homes"], False)


def test_an_entry_is_not_added_twice(library, best, tmp_path):
    for name in (NAME, "another-name"):
        code, out, err = run_command(
            *("library", "add", f"library:{NAME}", library.certificate_path(NAME)),
            *("--name", name, "--directory", library.folder),
        )
        assert (code, out) == (1, "")
        assert "is already in the library, as small-scarce-m15-l4-0" in err
    code, _, err = run_command(
        *("library", "add", f"library:{NAME}", library.certificate_path(NAME)),
        *("--name", "No/Name", "--directory", tmp_path),
    )
    assert code == 2
    assert "name: expected lower-case letters and digits" in err


def test_check_finds_wrong_entries_and_files(library, best):
    def wrong():
        code, out, _ = run_command("library", "check", "--directory", library.folder, "--json")
        assert code == 1
        return json.loads(out)["wrong"]

    entry = library.entry(NAME)
    for change in ({"objective": 1.0}, {"status": "feasible"}, {"homes_by": "me"}, {"clients": 14}):
        library.put(dataclasses.replace(entry, **change))
        assert wrong() == {NAME: f"{next(iter(change))}: the index differs from the files"}
    library.put(dataclasses.replace(entry, instance="f" * 64))
    assert "expected the instance with the hash ffff" in wrong()[NAME]
    library.put(entry)
    write_certificate(with_worse_home(best), library.certificate_path(NAME))
    assert wrong()[NAME] == "objective, exact_objective, gap, status: the index differs from the files"
    write_certificate(dataclasses.replace(best, proof=()), library.certificate_path(NAME))
    assert wrong()[NAME].startswith("proves nothing: claim: is not proved")
    library.certificate_path(NAME).unlink()
    (library.folder / "stray.json.gz").touch()
    assert wrong() == {
        NAME: f"{library.certificate_path(NAME)}: cannot be read (No such file or directory)",
        "stray.json.gz": "belongs to no entry",
    }


def test_every_command_accepts_an_entry_of_the_library(tmp_path):
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


def test_unknown_names_are_one_line_and_exit_code_2(tmp_path):
    for arguments in (
        ("describe", "library:tiny-scarce-plane-0"),
        ("library", "show", "tiny-scarce-plane-0"),
        ("library", "check", "tiny-scarce-plane-0"),
        ("library", "improve", "tiny-scarce-plane-0", tmp_path / "none.json"),
    ):
        code, out, err = run_command(*arguments)
        assert (code, out) == (2, "")
        problem = "expected an entry of the library; did you mean 'tiny-scarce-plain-0'?"
        assert err == f"relocbench: library:tiny-scarce-plane-0: {problem}\n"
    code, _, err = run_command("library", "improve", OTHER, tmp_path / "none.json")
    assert code == 2
    assert err == f"relocbench: {tmp_path / 'none.json'}: cannot be read (No such file or directory)\n"


def test_the_list_is_printed_as_a_table_and_as_json():
    code, out, _ = run_command("library", "list", "--json")
    assert code == 0
    answer = json.loads(out)
    assert [line["name"] for line in answer["entries"]] == LIBRARY.names()
    assert answer["version"] == LIBRARY.version
    code, out, _ = run_command("library", "list", "small-*")
    assert code == 0
    assert NAME in out
    assert "paper" not in out


def test_the_list_fits_80_columns(monkeypatch):
    code, out, _ = run_command("library", "list")
    lines = out.splitlines()
    assert (code, max(map(len, lines)) <= 80) == (0, True)
    assert sum(line.split()[:1] == [name] for name in LIBRARY.names() for line in lines) == len(LIBRARY.names())
    monkeypatch.setenv("COLUMNS", "60")  # a pipe follows the variable too, and folds long cells
    assert max(map(len, run_command("library", "list")[1].splitlines()[:-2])) <= 60


def test_plain_homes_improve_an_entry(library, best, tmp_path):
    store(library, with_worse_home(best))
    (tmp_path / "homes.csv").write_text("client,home\n" + "".join(f"{m},{l}\n" for m, l in enumerate(best.home)))
    code, out, err = run_command(
        "library", "improve", NAME, tmp_path / "homes.csv", "--directory", library.folder, "--json"
    )
    assert (code, err) == (0, "")
    assert json.loads(out)["better"] == ["homes"]
    assert Library(library.folder).entry(NAME).homes_by == "not stated"


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
