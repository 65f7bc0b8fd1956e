"""Solution files: what is wrong in a file is reported in one line that names the file and the field."""

from pathlib import Path
from typing import Any

import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.homes_file import read_solution
from relocbench.instances.instance import Instance
from tests.instances.files.bad_files import (
    DIGITS,
    check_mutations,
    error_of,
    json_text,
    mutated_bytes,
    mutated_json,
    with_field,
)

COMMANDS = [("evaluate", "SAMPLE", "FILE", "--json")]


def solution_of(instance: Instance) -> dict[str, Any]:
    """Return the content of a valid solution file."""
    home = [0, 0, 1, 1]
    return {
        "format": "relocbench-solution/1",
        "instance": instance.hash,
        "method": "by hand",
        "seed": 0,
        "status": "feasible",
        "home": home,
        "objective": evaluate(instance, home).objective,
        "bound": None,
    }


@pytest.mark.parametrize(
    ("field", "token", "problem"),
    [
        ("home", "[0, 0, 1]", "expected 4 servers, one per client, got 3"),
        ("home", "[]", "expected 4 servers, one per client, got 0"),
        ("home", "null", "expected a list, got None"),
        ("home", None, "is missing"),
        ("home[3]", '"1"', "expected a whole number, got '1'"),
        ("home[3]", "2", "expected a server from 0 to 1, got 2"),
        ("home[3]", "-1", "expected a server from 0 to 1, got -1"),
        ("home[3]", "1.5", "expected a whole number, got 1.5"),
        ("home[3]", "true", "expected a whole number, got True"),
        ("home[3]", "NaN", "expected a whole number, got nan"),
        ("home[3]", DIGITS[:20], f"expected a whole number that fits 64 bits, got {DIGITS[:20]}"),
        ("home[3]", "[1]", "expected a whole number, got [1]"),
        ("seed", "0.5", "expected a whole number, got 0.5"),
        ("seed", "true", "expected a whole number, got True"),
        ("seed", DIGITS, "expected a whole number, got inf"),
        ("seed", DIGITS[:20], f"expected a whole number that fits 64 bits, got {DIGITS[:20]}"),
        ("seed", '1, "seed": 2', "is given twice"),
        ("status", '"good"', "expected one of optimal, claimed, feasible, time_limit, memory_limit, error, got 'good'"),
        ("status", "5", "expected text, got 5"),
        ("method", "5", "expected text, got 5"),
        ("method", r'"\udfff"', r"expected Unicode text, got the surrogate '\udfff'"),
        ("objective", "NaN", "expected a finite number, got nan"),
        ("objective", '"51"', "expected a number, got '51'"),
        ("bound", "true", "expected a number, got True"),
        ("bound", "-1e999", "expected a finite number, got -inf"),
        ("format", '"relocbench-instance/1"', "expected \"relocbench-solution/1\", got 'relocbench-instance/1'"),
        ("format", '"relocbench-solution/2"', "expected \"relocbench-solution/1\", got 'relocbench-solution/2'"),
        (
            "homes",
            "[]",
            "unknown field; expected one of format, instance, method, seed, status, home, objective, bound",
        ),
    ],
)
def test_the_error_names_the_field_with_the_bad_value(
    tmp_path: Path, sample: Instance, field: str, token: str | None, problem: str
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(with_field(solution_of(sample), field, token))
    assert error_of(read_solution, path, sample) == f"{path}: {field}: {problem}"


def test_a_solution_of_another_instance_is_refused(tmp_path: Path, sample: Instance) -> None:
    path = tmp_path / "bad.json"
    path.write_text(with_field(solution_of(sample), "instance", '"0000000000000000000000"'))
    expected = f"expected the hash {sample.hash[:16]}… of the instance given, got '0000000000000000…"
    assert error_of(read_solution, path, sample) == f"{path}: instance: {expected}"


def test_a_path_without_a_file_is_refused(tmp_path: Path, sample: Instance) -> None:
    assert error_of(read_solution, tmp_path, sample) == f"{tmp_path}: cannot be read (Is a directory)"
    missing = tmp_path / "none.json"
    assert error_of(read_solution, missing, sample) == f"{missing}: cannot be read (No such file or directory)"


# The command exits with 1 if the file claims another objective than the evaluator's, or a bound above it.
@pytest.mark.slow
def test_no_change_to_the_tree_ends_in_a_traceback(tmp_path: Path, sample: Instance) -> None:
    check_mutations(mutated_json(solution_of(sample)), tmp_path / "mutated.json", 200, COMMANDS, failing=1)


@pytest.mark.slow
def test_no_change_to_the_bytes_ends_in_a_traceback(tmp_path: Path, sample: Instance) -> None:
    content = json_text(solution_of(sample)).encode()
    check_mutations(mutated_bytes(content), tmp_path / "mutated.json", 150, COMMANDS, failing=1)
