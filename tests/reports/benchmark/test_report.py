import json
import shlex

import pyarrow.parquet as pq
import pytest

from relocbench.reports.benchmark import report
from relocbench.reports.benchmark.assessment import assess
from relocbench.reports.benchmark.report import write_report
from relocbench.reports.benchmark.rerun_command import command_of
from relocbench.reports.pages import requirements
from relocbench.runs.cross_check import wrong_answers
from relocbench.runs.methods import METHODS
from tests.reports.benchmark.samples import FIRST, INSTANCES, race, row
from tests.reports.browser import browser
from tests.runs.fake_methods import fake


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def written(rows, folder):
    return write_report(rows, folder, command="relocbench bench", wrong=wrong_answers(rows))


def test_the_page_loads_with_all_plots_and_tables_sort(chromium, tmp_path):
    log = tmp_path / "logs" / "a.log"
    log.parent.mkdir()
    log.write_text("the solver's log\n")
    files = written([*race(), row("cpsat", log="logs/a.log")], tmp_path)
    assert chromium.open(files.page) == 9
    assert chromium.errors == []
    assert chromium.texts(".warning") == []
    assert "prove the optimum of 2 of 3 problems" in chromium.texts(".lead")[0]
    chromium.evaluate("document.querySelector('table').tHead.rows[0].cells[1].querySelector('button').click()")
    first = "[...document.querySelector('table').tBodies[0].rows].map((row) => row.cells[0].textContent)"
    assert chromium.evaluate(first) == ["milp-strong", "cfn", "virtual best", "cpsat", "NS"]
    assert chromium.evaluate("document.querySelector('a[href$=\".log\"]').href") == log.as_uri()


def test_the_page_starts_with_wrong_answers(chromium, tmp_path):
    rows = [*race(), row("cpsat", objective=13.0)]
    chromium.open(written(rows, tmp_path).page)
    assert chromium.texts(".warning")[0].startswith("This benchmark contains a wrong answer.")
    assert "cpsat claims that 13.0 is optimal" in chromium.texts(".warning + ul li")[0]
    assert chromium.evaluate("document.querySelector('main').children[1].className") == "warning"


SMALL_DATA = {
    "heuristics": [row("nearest", status="feasible"), row("reloc", status="feasible", objective=11.0)],
    "an error": [row("cfn", status="error", objective=None, failure="died", error="SIGSEGV")],
    "no memory": [row("cfn", status="memory_limit", objective=None)],
    "nothing to pay": [row("cfn", objective=0.0, bound=0.0, seconds=0.0)],
    "no time": [row("cfn", status="time_limit", bound=1.0, seconds=0.2, time_limit=0.0)],
    "nothing at all": [row("reloc", status="error", objective=None, failure="raised", error="no luck")],
}


@pytest.mark.parametrize("what", SMALL_DATA)
def test_a_page_can_have_almost_no_data(tmp_path, what):
    text = written(SMALL_DATA[what], tmp_path).page.read_text()
    assert "nan" not in text.partition("<main>")[2].partition("</main>")[0].lower().replace("nano", "")
    assert "None" not in text.partition("<header>")[2].partition("</main>")[0]


def test_a_page_with_almost_no_data_loads(chromium, tmp_path):
    for name in ("an error", "nothing to pay"):
        assert chromium.open(written(SMALL_DATA[name], tmp_path / name).page) >= 1
        assert chromium.errors == []


def test_the_data_has_one_row_per_run_with_its_assessment(tmp_path):
    table = pq.read_table(written(race(), tmp_path).data).to_pylist()
    assert len(table) == 9
    assert (table[0]["selector"], table[0]["variables"], table[0]["root_gap"]) == ("milp-strong", 100.0, 0.2)
    assert table[0]["primal_dual_integral"] == pytest.approx(0.1 + 0.4 * 0.75 + 0.5 * 0.1)
    assert (table[7]["outcome"], table[7]["best_cost"], table[7]["excess"]) == ("error", 11.0, None)
    assert len(table[0]["trace"]) == 2


def test_without_the_packages_there_is_the_data_and_a_message(tmp_path, monkeypatch):
    monkeypatch.setattr(requirements, "PACKAGES", ("no_such_package",))
    files = written(race(), tmp_path)
    assert files.page is None
    assert "install with: pip install 'relocbench[reports]'" in files.missing
    assert pq.read_table(files.data).num_rows == 9


def test_bench_writes_a_report_and_repeats_no_runs_to_write_it_again(run, tmp_path):
    out = tmp_path / "bench"
    family = ("--family", "tiny", "--regime", "scarce", "--set", "shape=plain", "--seeds", "0")
    command = ("bench", *family, "--method", "enumerate,nearest", "--time-limit", 20, "--out", out, "--json")
    code, text, err = run(*command)
    answer = json.loads(text)
    assert (code, err, answer["wrong"]) == (0, "", [])
    page = out / report.FOLDER / "report.html"
    assert (answer["report"], answer["data"]) == (str(page), str(out / report.FOLDER / "rows.parquet"))
    assert "relocbench bench --family tiny --regime scarce" in page.read_text()
    rows = {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")}
    page.unlink()
    assert run(*command)[0] == 0
    assert page.exists()
    assert {path: path.stat().st_mtime_ns for path in out.glob("*.parquet")} == rows


def test_bench_exits_with_1_on_a_wrong_answer_and_prints_it_first(run, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "nearest_is_optimal", fake("nearest_is_optimal").method)
    family = ("--family", "tiny", "--regime", "scarce", "--set", "shape=roles", "--seeds", "0")
    command = (
        "bench",
        *family,
        "--method",
        "nearest_is_optimal,enumerate",
        "--time-limit",
        20,
        "--out",
        tmp_path / "b",
    )
    code, text, _ = run(*command)
    assert code == 1
    assert text.startswith("WRONG: tiny-scarce-roles")
    assert "contains a wrong answer" in (tmp_path / "b" / report.FOLDER / "report.html").read_text()


def test_the_command_of_a_point_runs_the_same_instance(run, tmp_path):
    [assessed] = assess([row("nearest", 1, "feasible")], [])
    words = shlex.split(command_of(assessed))[1:]
    assert run(*words, "--out", tmp_path)[0] == 0
    assert pq.read_table(tmp_path / report.FOLDER / "rows.parquet")["hash"].to_pylist() == [
        INSTANCES.build(FIRST + 1).hash
    ]
