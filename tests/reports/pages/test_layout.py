"""Every kind of page is readable on a screen and a phone, light and dark, and the controls of its figures work.

``tests/relocbench/test_paper_command.py`` holds the same for the page of the paper.
"""

import csv

import pytest

from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.reports.benchmark.report import write_report
from relocbench.reports.map.assignments import Assignment, KnownBound
from relocbench.reports.map.page import page_of
from relocbench.reports.study.page import write_page
from tests.reports.benchmark.samples import race, row
from tests.reports.browser import browser
from tests.reports.study.samples import measurement

# The excess of each method: the best one is optimal in some runs, and three orders of magnitude below the others.
LEVELS = {"random": 2.0, "nearest": 0.4, "otos": 0.3, "reloc": 0.5, "reloc[k=auto]": 0.35}
LEVELS |= {"anneal[moves=200000]": 0.0004, "anneal[moves=2000000]": 0.0}
# The lower end of the first plot, in pixels.
FIRST = "document.querySelector('.canvas').getBoundingClientRect().bottom"
NS = "button[value='NS']"


def study(folder):
    found = [
        measurement(
            f"paper-s{sigma}-{number}",
            selector,
            level * (1 + 0.1 * number),
            regime=f"paper-s{sigma}",
            sigma=float(sigma),
            seconds=0.001 * len(selector) ** 2,
        )
        for sigma in (1, 5, 10, 15, 20)
        for number in range(6)
        for selector, level in LEVELS.items()
    ]
    return write_page(found, folder / "study.html", command="relocbench study", facts={}, warnings=[])


def benchmark(folder):
    # The root bounds of all methods are optimal up to rounding errors.
    exact = {"variables": 1e5, "constraints": 1e5, "nodes": 1.0, "root_bound": 10.0 - 1e-14}
    rows = [*race(), row("cpsat", facts=exact, log="logs/a.log"), row("branch-price", facts=exact, seconds=0.02)]
    return write_report(rows, folder, command="relocbench bench", wrong=[]).page


def exact_benchmark(folder):
    exact = {"root_bound": 10.0 - 1e-14, "nodes": 1.0}
    rows = [row(name, problem, facts=exact) for name in ("cfn", "milp-strong") for problem in range(3)]
    return write_report(rows, folder, command="relocbench bench", wrong=[]).page


def maps(folder):
    instance = FAMILIES["paper"].cells({"sigma": 10})[0].build(0)
    home = nearest_server(instance)
    both = [Assignment(instance, "NS", home), Assignment(instance, "one server", 0 * home)]
    page = page_of(instance, both, KnownBound(1.0, False, "a certificate"), "relocbench show")
    return page.write(folder / "map.html")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture(scope="module")
def study_page(tmp_path_factory):
    return study(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="module")
def benchmark_page(tmp_path_factory):
    return benchmark(tmp_path_factory.mktemp("benchmark"))


@pytest.mark.slow
def test_a_study_is_readable_and_starts_with_a_figure(chromium, study_page):
    chromium.assert_readable(study_page)
    assert chromium.evaluate(FIRST) < 900


@pytest.mark.slow
def test_a_benchmark_is_readable_and_starts_with_a_figure(chromium, benchmark_page):
    chromium.assert_readable(benchmark_page)
    assert chromium.evaluate(FIRST) < 900


@pytest.mark.slow
def test_maps_are_readable_and_side_by_side_on_the_first_screen(chromium, tmp_path):
    chromium.assert_readable(maps(tmp_path))
    assert chromium.evaluate(FIRST) < 900
    tops = "[...document.querySelectorAll('.canvas')].map((one) => one.getBoundingClientRect().top)"
    first, second = chromium.evaluate(tops)
    assert first == second


@pytest.mark.slow
def test_root_gaps_that_are_rounding_errors_have_an_axis_with_different_labels(chromium, tmp_path):
    chromium.open(exact_benchmark(tmp_path), width=1400)
    assert chromium.faults() == []
    labels = chromium.texts("#figure-9 .xtick text")
    assert labels[0] == "0%"
    assert len(labels) > 3


@pytest.mark.slow
def test_the_legend_hides_a_method_in_all_figures_also_with_the_keyboard(chromium, study_page):
    chromium.open(study_page)
    drawn = "[...document.querySelectorAll('.canvas')].map((plot) => plot.data.filter((trace) => "
    drawn += "(trace.legendgroup ?? trace.name) === 'NS' && trace.visible !== false).length)"
    before = chromium.evaluate(drawn)
    assert all(before)
    chromium.evaluate(f"document.querySelector({NS!r}).focus()")
    chromium.press("Enter")
    chromium.wait(f"{drawn}.every((count) => count === 0)")
    pressed = f"[...document.querySelectorAll({NS!r})].map((one) => one.ariaPressed)"
    assert set(chromium.evaluate(pressed)) == {"false"}
    chromium.press("Enter")
    chromium.wait(f"JSON.stringify({drawn}) === JSON.stringify({before})")
    assert set(chromium.evaluate(pressed)) == {"true"}
    assert chromium.errors == []


@pytest.mark.slow
def test_the_legend_hides_the_bars_of_a_method(chromium, benchmark_page):
    chromium.open(benchmark_page)
    bars = "document.querySelector('#figure-1').data[0].y"
    assert "NS" in chromium.evaluate(bars)
    chromium.evaluate(f"document.querySelector({NS!r}).click()")
    chromium.wait(f"!{bars}.includes('NS')")
    assert len(chromium.evaluate(bars)) == 4


@pytest.mark.slow
def test_a_double_click_shows_one_method_alone_and_then_all(chromium, study_page):
    chromium.open(study_page)
    shown = "[...document.querySelectorAll('figure.plot')].map((one) => "
    shown += "[...one.querySelectorAll('.legend [aria-pressed=true]')].map((one) => one.value).join())"
    everything = chromium.evaluate(shown)
    twice = f"document.querySelector({NS!r}).dispatchEvent(new MouseEvent('dblclick'))"
    chromium.evaluate(twice)
    assert set(chromium.evaluate(shown)) == {"NS"}
    chromium.evaluate(twice)
    assert chromium.evaluate(shown) == everything


@pytest.mark.slow
def test_a_switch_changes_the_axis_and_zero_is_labelled_on_both(chromium, study_page):
    chromium.open(study_page)
    axis = "document.querySelector('#figure-1').layout.yaxis.type"
    least = "Math.min(...document.querySelector('#figure-1').data.filter((one) => one.meta).flatMap((one) => one.y))"
    labels = "#figure-1 .ytick text"
    assert chromium.evaluate(axis) == "log"
    assert chromium.evaluate(least) == 1e-5
    assert "≤0.001%" in chromium.texts(labels)
    chromium.evaluate(
        "[...document.querySelectorAll('.switches button')].find((one) => /y/.test(one.textContent)).click()"
    )
    chromium.wait(f"{axis} === 'linear'")
    assert chromium.evaluate(least) == 0
    assert chromium.texts(labels)[0] == "0%"


@pytest.mark.slow
def test_the_data_of_a_figure_can_be_downloaded(chromium, study_page, tmp_path):
    chromium.open(study_page)
    button = "[...document.querySelectorAll('figure.plot')].find((one) => one.textContent.includes('Every run is'))"
    file = chromium.download(tmp_path, f"{button}.querySelector('.switches button:last-child').click()")
    assert file.name == "how-far-from-optimal-figure-4.csv"
    with file.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert list(rows[0]) == ["series", "instances", "excess", "instance", "seed", "command"]
    assert len(rows) == 5 * 6 * len(LEVELS)
    own = [one for one in rows if one["series"] == "annealing [moves=2e6]"]
    assert {float(one["excess"]) for one in own} == {0.0}
    assert own[0]["command"] == "relocbench solve paper-s1-0.json --method anneal[moves=2000000]"


@pytest.mark.slow
def test_the_controls_are_not_printed(chromium, study_page):
    chromium.open(study_page, media="print")
    hidden = "getComputedStyle(document.querySelector('.switches')).display === 'none'"
    assert chromium.evaluate(hidden)
