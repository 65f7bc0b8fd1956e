"""Every kind of page contains the glossary; tests/relocbench/test_paper_command.py tests the page of the paper."""

import pytest

from relocbench.instances.library.library import Library
from relocbench.reports.benchmark.report import write_report
from relocbench.reports.map.assignments import gather
from relocbench.reports.map.page import page_of
from relocbench.reports.pages.glossary import TERMS
from relocbench.reports.pages.page import Page
from relocbench.reports.study.page import write_page
from tests.reports.benchmark.samples import race
from tests.reports.study.samples import measurement

TOPICS = ("Y", "Y1", "Y2", "ΣD", "θ", "RA", "NS", "OTOS", "RELOC", "loose", "scarce", "overloaded", "gap", "excess")


def empty(folder):
    return Page("Empty").write(folder / "page.html")


def study(folder):
    return write_page([measurement("a", "reloc", 0.1)], folder / "page.html", command="", facts={}, warnings=[])


def benchmark(folder):
    return write_report(race(), folder, command="", wrong=[]).page


def show(folder):
    instance = Library().read("tiny-loose-plain-0")
    assignments, known = gather(instance, [], [], 0, 1.0)
    return page_of(instance, assignments, known, "").write(folder / "page.html")


@pytest.mark.parametrize("page", [empty, study, benchmark, show])
def test_every_kind_of_page_contains_the_glossary_and_links_to_it(tmp_path, page):
    text = page(tmp_path).read_text(encoding="utf-8")
    header, _, main = text.partition("</header>")
    assert '<a href="#glossary">Glossary</a>' in header
    section = main.partition('<section id="glossary">')[2].partition("</section>")[0]
    assert section.count("<dt>") == len(TERMS)


def test_the_glossary_defines_the_terms_of_pages():
    assert set(TOPICS) <= {term.name for term in TERMS}
    meaning = {term.name: term.meaning for term in TERMS}
    assert "(objective - bound) / objective" in meaning["gap"]
    assert "objective / reference - 1" in meaning["excess"]
