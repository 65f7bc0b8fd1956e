import pytest

from relocbench.instances.errors import did_you_mean, one_of, plural
from tests.instances.files.bad_files import run_command


def test_a_count_has_the_right_noun():
    assert [plural(count, "run") for count in (0, 1, 2, 1800)] == ["0 runs", "1 run", "2 runs", "1,800 runs"]
    assert plural(1, "optimum", "optima") == "1 optimum"
    assert plural(2, "optimum", "optima") == "2 optima"


def test_the_most_similar_name_is_suggested_if_there_is_one():
    assert one_of(["reloc", "otos"], "rleoc") == "expected one of reloc, otos, got 'rleoc'; did you mean 'reloc'?"
    assert one_of(["reloc", "otos"], "xyz") == "expected one of reloc, otos, got 'xyz'"
    assert did_you_mean([], "reloc") == ""


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("solve", "library:tiny-loose-plain-0", "--method", "rleoc"), "got 'rleoc'; did you mean 'reloc'?"),
        (
            ("solve", "library:tiny-loose-plain-0", "--method", "reloc[coperation=topic]"),
            "got 'coperation=topic'; did you mean 'cooperation'?",
        ),
        (("solve", "library:tiny-lose-plain-0", "--method", "reloc"), "; did you mean 'tiny-loose-plain-0'?"),
        (("generate", "--family", "papr", "--out", "x.json"), "got 'papr'; did you mean 'paper'?"),
        (("generate", "--family", "paper", "--set", "sgma=3", "--out", "x.json"), "; did you mean 'sigma'?"),
    ],
)
def test_a_misspelt_name_gets_a_suggestion(tmp_path, monkeypatch, arguments, suggestion):
    monkeypatch.chdir(tmp_path)
    code, _, err = run_command(*arguments)
    assert (code, err.count("\n")) == (2, 1)
    assert err.endswith(f"{suggestion}\n")
