import pytest

from relocbench.formulations.certificates.certificate import read_certificate
from relocbench.instances.errors import InputError
from relocbench.instances.files.homes_file import read_homes, read_solution
from relocbench.instances.library.library import Library
from relocbench.runs.certify import Certified
from relocbench.runs.read_write import read, write
from relocbench.runs.solve import solve_here as solve
from tests.instances.files.bad_files import run_command

NAME = "tiny-scarce-plain-0"


@pytest.mark.parametrize("ending", [".json", ".json.gz", ".parquet"])
def test_an_instance_is_written_and_read(tmp_path, ending):
    instance = read(f"library:{NAME}")
    write(instance, tmp_path / f"inst{ending}")
    assert read(tmp_path / f"inst{ending}").hash == instance.hash


def test_a_result_becomes_a_solution_file(tmp_path):
    result = solve(read(f"library:{NAME}"), "reloc", seed=3)
    write(result, tmp_path / "sol.json")
    stored = read_solution(tmp_path / "sol.json", result.instance)
    assert (stored.method, stored.seed, stored.objective) == ("reloc", 3, result.evaluation.objective)


def test_a_certificate_is_written_by_itself_or_with_its_result(tmp_path):
    certificate = read_certificate(Library().certificate_path(NAME))
    write(certificate, tmp_path / "a.json.gz")
    write(Certified(solution=None, certificate=certificate, verdict=None), tmp_path / "b.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert read_homes(tmp_path / "a.json.gz", Library().read(NAME)).tolist() == certificate.home.tolist()


def test_anything_else_is_refused(tmp_path):
    with pytest.raises(
        InputError, match=r"value: expected an instance, a timeline, a result or a certificate, got \[0, 1\]"
    ):
        write([0, 1], tmp_path / "homes.json")


def test_certify_starts_from_homes_in_any_form(tmp_path):
    path = tmp_path / "homes.csv"
    path.write_text("client,home\n0,9\n")
    code, _, err = run_command("certify", f"library:{NAME}", "--start", path, "--out", tmp_path / "cert.json")
    assert (code, err) == (
        2,
        f"relocbench: {path}: line 2: home: expected the index of a server from 0 to 3, got '9'\n",
    )
