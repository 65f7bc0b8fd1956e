"""The Markdown summary and the JUnit file of a check, with hostile names in them."""

from xml.etree import ElementTree

import pytest

from relocbench.reports.gate.comparison import Finding, Rule
from relocbench.reports.gate.junit_file import junit_of
from relocbench.reports.gate.markdown_summary import markdown_of
from relocbench.reports.gate.measurement import FailedRun
from relocbench.reports.gate.verdict import Change, Subject, Verdict, WrittenInstance
from relocbench.runs.sweep import EarlyStop
from tests.instances.files.bad_files import run_command

BAD, GOOD = "mine.py:f[a|b=`<x>`]", "nearest"
ERROR = "ValueError: <script>alert(1)</script> | @someone \x1b[31m\x00 [a](b)\nsecond line"
FINDINGS = (
    Finding(BAD, "all", "all", 9, 0.1, 0.001, True),
    Finding(BAD, "group", "tiny", 4, 0.2, None, False),
    Finding(BAD, "instance", "tiny-1", 5, 0.9, 0.002, True),
    Finding(BAD, "instance", "tiny-2", 5, 0.1, 0.3, False),
    Finding(BAD, "all", "all", 9, 0.4, 0.01, True, "time"),
    Finding(GOOD, "all", "all", 9, 0.0, None, False),
)
CHANGES = (Change(BAD, "tiny-1", 10.0, 19.0, 0.9, 8.0, True), Change(BAD, "tiny-2", 10.0, 11.0, 0.1, None, False))
VERDICT = Verdict(
    subjects=(Subject(BAD, GOOD, 9, 5), Subject(GOOD, GOOD, 9, 5)),
    baseline="baseline.json",
    rule=Rule(),
    findings=FINDINGS,
    changes=CHANGES,
    failed=tuple(FailedRun(BAD, f"i-{i}", 0, "raised", ERROR) for i in range(25)),
    stopped=(EarlyStop(BAD, 3, 45, ERROR),),
    smallest=(WrittenInstance(BAD, "tiny-1", 2, 1, "20 % worse", "check/small.json", None),),
    notes=("a note",),
)


def test_the_summary_names_everything_and_shows_hostile_text_as_it_is():
    found = markdown_of(VERDICT)
    assert found.startswith("## relocbench check FAILED: <code>mine.py:f")
    assert "<script>" not in found
    assert "\\@someone" in found
    assert found.count("**WORSE**") == 3
    for part in (
        "### ❌",
        "### ✅ <code>nearest</code>",
        "time: all",
        "25 runs without a valid assignment; the first 20",
    ):
        assert part in found
    assert "over the optimum" in found
    assert "| tiny-2 | +10.00% | 10 | now 11 |" in found
    assert "tiny-2 | 5 seeds" not in found  # the test of a single instance that is not worse
    # Every line of a table has the same number of cells.
    tables = [block for block in found.split("\n\n") if block.startswith("|")]
    assert len(tables) == 4
    for table in tables:
        assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1


def test_the_junit_file_is_valid_and_counts_right():
    root = ElementTree.fromstring(junit_of(VERDICT).encode())
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "30",
        "failures": "3",
        "errors": "25",
        "skipped": "1",
    }
    bad, good = root
    assert (bad.get("name"), good.get("failures")) == (BAD, "0")
    names = [case.get("name") for case in bad.iter("testcase")]
    assert names[:4] == ["cost, all instances", "cost, group tiny", "cost, instance tiny-1", "time, all instances"]
    assert "\N{REPLACEMENT CHARACTER}" in bad.find("testcase/error").get("message")


@pytest.mark.parametrize("option", ["--markdown", "--junit"])
def test_a_file_that_cannot_be_written_and_an_update_give_one_line(option):
    code, out, err = run_command("check", "--method", "nearest", option, "/sys/x/check.out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "/sys/x" in err
    code, _, err = run_command("check", "--method", "nearest", option, "x", "--update-baseline")
    assert (code, err.count("\n")) == (2, 1)
    assert f"{option}: cannot be combined with --update-baseline" in err
