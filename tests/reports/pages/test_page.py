import re
import textwrap
from pathlib import Path

import pytest

from relocbench.instances.errors import InputError
from relocbench.reports import pages
from relocbench.reports.pages import requirements
from relocbench.reports.pages.figures import banded_line, figure, points
from relocbench.reports.pages.markup import marked
from relocbench.reports.pages.method_style import COLOURS, colour_of, name_of, styles
from relocbench.reports.pages.page import Page
from relocbench.reports.pages.tables import Cell, Column, Table
from tests.reports.browser import browser

COMMAND = "relocbench solve library:a --method 'reloc[k=8]' --seed 0"


def sample_page():
    page = Page("A < title", lead="It is **strong**, says `</script>`.")
    page.section("Part", "a & b")
    plot = figure(x="σ, km", y="excess", yaxis_tickformat=".0%", height=300)
    data = points(["</script><b>one</b>", "two"], [COMMAND, None])
    banded_line(plot, "RELOC", styles(["reloc"])["reloc"], [1, 2], [0.1, 0.2], [0.05, 0.1], [0.15, 0.3], **data)
    page.figure(plot, "It rises.")
    rows = [[Cell.of_method("reloc"), 0.02], [Cell.of_method("otos"), 0.1], [Cell.of_method("nearest"), None]]
    page.table(Table([Column("method"), Column("excess", ".1%", "a hint")], rows, "Excess."))
    page.warning("A warning.")
    page.provenance("relocbench study", {"library": "version 95"})
    return page


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return sample_page().write(tmp_path_factory.mktemp("page") / "page.html")


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


def test_text_is_escaped_and_marks_are_not():
    assert marked("a < b **c** `d <e> **f**`") == "a &lt; b <strong>c</strong> <code>d &lt;e&gt; **f**</code>"


def test_methods_have_one_colour_and_variants_differ_by_dash():
    assert colour_of("reloc[k=8]") == colour_of("reloc") == COLOURS["reloc"]
    assert colour_of("mine.py:best") == colour_of("mine.py:best")
    chosen = styles(["reloc", "reloc[k=8]", "otos"])
    assert chosen["reloc"].dash != chosen["reloc[k=8]"].dash
    assert chosen["otos"].dash == chosen["reloc"].dash
    assert (name_of("nearest"), name_of("reloc[k=8]"), name_of("mine")) == ("NS", "RELOC [k=8]", "mine")


def test_a_row_of_the_wrong_length_is_refused():
    with pytest.raises(ValueError, match="expected 1 cells"):
        Table([Column("a")], [["b", "c"]], "")


def test_a_missing_package_gives_one_line(monkeypatch):
    monkeypatch.setattr(requirements, "PACKAGES", ("plotly", "no_such_package"))
    with pytest.raises(InputError, match=r"^reports: expected no_such_package; install with: pip install"):
        requirements.require()


def test_the_page_loads_without_errors_and_without_the_network(chromium, written):
    assert chromium.open(written) == 1
    assert chromium.errors == []
    assert chromium.texts("h1, .lead strong, .lead code") == ["A < title", "strong", "</script>"]
    assert chromium.evaluate("document.querySelectorAll('#figure-1 .scatterlayer .trace').length") == 2


@pytest.mark.parametrize(("dark", "ink"), [(False, "rgb(27, 33, 39)"), (True, "rgb(231, 233, 235)")])
def test_plots_follow_the_colour_scheme_of_the_reader(chromium, written, dark, ink):
    chromium.open(written, dark=dark)
    assert chromium.evaluate("getComputedStyle(document.querySelector('#figure-1 .xtick text')).fill") == ink
    assert chromium.evaluate("getComputedStyle(document.body).color") == ink


def test_the_page_fits_a_phone(chromium, written):
    chromium.open(written, width=390, height=800)
    assert chromium.evaluate("document.documentElement.scrollWidth") == 390
    assert chromium.evaluate("document.querySelector('#figure-1 svg').getBoundingClientRect().right") <= 390


def test_a_click_on_a_heading_sorts_by_number_and_keeps_empty_cells_last(chromium, written):
    chromium.open(written)
    click = "document.querySelectorAll('table.sortable th button')[{}].click()"
    chromium.evaluate(click.format(1))
    assert chromium.texts("tbody td:first-child") == ["OTOS", "RELOC", "NS"]
    chromium.evaluate(click.format(1))
    assert chromium.texts("tbody td:first-child") == ["RELOC", "OTOS", "NS"]
    chromium.evaluate(click.format(0))
    assert chromium.texts("tbody td:first-child") == ["NS", "OTOS", "RELOC"]


def test_a_click_on_a_point_shows_its_command(chromium, written):
    chromium.open(written)
    assert chromium.evaluate("document.querySelector('.command').hidden")
    place = "(() => { const box = document.querySelectorAll('#figure-1 path.point')[{}].getBoundingClientRect();"
    place += " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
    chromium.click(*chromium.evaluate(place.replace("{}", "0")))
    assert chromium.texts(".command:not([hidden]) code") == [COMMAND]
    assert "<b>one</b>" in "".join(chromium.texts(".hoverlayer .hovertext"))


def test_print_uses_light_colours(chromium, written):
    chromium.open(written, dark=True)
    assert chromium.printed().startswith(b"%PDF")
    chromium.open(written, dark=True, media="print")
    assert chromium.evaluate("getComputedStyle(document.body).color") == "rgb(27, 33, 39)"
    assert chromium.errors == []


def test_the_example_of_a_new_report_runs(tmp_path):
    [example] = re.findall(r"::\n\n(.*?)\nIn ``relocbench/cli.py``", pages.__doc__, re.DOTALL)
    names = {}
    exec(textwrap.dedent(example), names)
    names["run"]([Path("library:tiny-loose-*")], tmp_path / "sizes.html")
    text = (tmp_path / "sizes.html").read_text(encoding="utf-8")
    assert "<strong>5</strong> instances were read." in text
    assert "tiny-loose-plain-0" in text
