import contextlib
import io
import json
import sys
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest

from relocbench.cli import main
from relocbench.heuristics.reloc import STEPS
from relocbench.reports.paper.evaluation import ANNEAL
from relocbench.reports.paper.grid import SIZES
from relocbench.reports.paper.measures import BEST
from relocbench.reports.paper.readings import after, main_readings, otos, reloc
from tests.reports.browser import browser

pytestmark = pytest.mark.slow

# The smallest possible evaluation: one cell of each study, and two servers.
SMALL = ["--seeds", "1", "--time-limit", "1", "--jobs", "1", "--set", "sigma=5", "--set", "spool_per_member=2"]
SMALL += ["--set", "topics=4", "--set", "servers=2"]


def run(*arguments):
    """Run the command in this process and return (exit code, stdout, stderr)."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", ["relocbench", "paper", *map(str, arguments)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    return code, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    out = tmp_path_factory.mktemp("paper") / "out"
    code, text, err = run(*SMALL, "--out", out, "--json")
    assert code == 0, err
    return out, json.loads(text)


def test_every_method_is_measured_in_both_studies(done):
    _, answer = done
    assert answer["errors"] == []
    table = pq.read_table(answer["data"]).to_pylist()
    readings = main_readings()
    paper = {"random", "nearest", *map(otos, readings), *(after(step, one) for one in readings for step in STEPS)}
    for study in ("sigma", "spool"):
        rows = {row["method"]: row for row in table if (row["group"], row["study"]) == ("paper", study)}
        more = {reloc(reading, k) for reading in readings for k in (1, 2)} if study == "sigma" else set()
        assert rows.keys() == {*paper, *more, ANNEAL, BEST}
        least = min(row["y"] for row in rows.values())
        assert rows[BEST]["y"] == least
        assert rows[BEST]["bound"] <= least
    assert {row["group"] for row in table} == {"paper", *map(str, SIZES)}
    for size in SIZES:
        rows = {row["method"]: row for row in table if (row["group"], row["study"]) == (str(size), "sigma")}
        assert rows.keys() == {*paper, BEST} | {reloc(reading, k) for reading in readings for k in (1, 2)}
        assert rows[BEST]["bound"] <= min(row["y"] for row in rows.values())


def test_one_seed_is_too_few_for_a_verdict(done):
    _, answer = done
    assert len(answer["claims"]) == 12
    assert {claim["verdict"] for claim in answer["claims"]} == {"too few seeds to tell"}


def test_the_page_has_every_figure_and_tables_sort(done, tmp_path):
    out, _ = done
    with browser(tmp_path) as chromium:
        # Three studies of six panels, tightness against two measures, the agreement of readings, two maps of topics,
        # three steps and the optimum, five methods and the optimum, two maps of the evaluation, and one histogram.
        assert chromium.open(out / "paper.html") == 18 + 2 + 1 + 2 + 4 + 6 + 2 + 1
        assert chromium.errors == []
        assert "Glossary" in chromium.texts("#glossary h2")
        chromium.evaluate("document.querySelector('table.sortable th button').click()")
        assert chromium.texts("table.sortable")[0].count("too few seeds to tell") == 2 * 12
        assert chromium.evaluate("document.querySelector('table.sortable tbody td').textContent") == "12"
        place = "(() => { const box = document.querySelector('#figure-1 path.point').getBoundingClientRect();"
        place += " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        chromium.evaluate("document.querySelector('#figure-1').scrollIntoView({behavior: 'instant'})")
        chromium.click(*chromium.evaluate(place))
        [command] = chromium.texts(".command:not([hidden]) code")
        assert command.startswith("relocbench bench --family paper --set sigma=5")
        chromium.assert_readable(out / "paper.html")


def test_a_second_call_repeats_no_runs(done):
    out, _ = done
    stored = {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")}
    code, text, err = run(*SMALL, "--out", out)
    assert code == 0, err
    assert "too few seeds to tell" in text
    assert {path: path.stat().st_mtime_ns for path in (out / "runs").rglob("*.parquet")} == stored


def test_the_sizes_of_topics_are_varied_only_if_the_user_has_not_set_them(tmp_path):
    code, text, err = run(*SMALL, "--set", "max_topic_size=5", "--out", tmp_path / "out", "--json")
    assert code == 0, err
    answer = json.loads(text)
    assert {row["group"] for row in pq.read_table(answer["data"]).to_pylist()} == {"paper"}


def test_a_missing_file_gives_one_line(tmp_path):
    code, _, err = run("--social", tmp_path / "none.txt", "--out", tmp_path / "out")
    assert code == 2
    [line] = err.splitlines()
    assert "none.txt" in line
