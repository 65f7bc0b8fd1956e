import dataclasses

import pytest

from relocbench.reports.study.excess import Measurement
from relocbench.reports.study.page import lead, write_page
from relocbench.reports.study.references import BOUND
from tests.reports.browser import browser
from tests.reports.study.samples import measurement

LEVELS = {"random": 2.0, "nearest": 0.4, "otos": 0.3, "reloc": 0.5, "anneal[moves=200000]": 0.0}


@pytest.fixture(scope="module")
def measurements():
    return [
        measurement(
            f"paper-s{sigma}-{number}",
            selector,
            level * (1 + 0.1 * number) + 0.001 * seed * (level > 0),
            seed=seed,
            regime=f"paper-s{sigma}",
            sigma=float(sigma),
            kind=BOUND if sigma == 20 else "proven optimum",
        )
        for sigma in (1, 20)
        for number in range(6)
        for selector, level in LEVELS.items()
        for seed in range(2)
    ]


def test_the_lead_states_the_mean_excess_and_the_references(measurements):
    assert lead(measurements) == (
        "`paper`, 12 instances of 390 clients (6 proven optima, 6 certified bounds): the mean excess of RELOC is "
        "**63%**, the largest 75%. The best method, annealing [moves=2e5], has a mean excess of **0.00%** and is "
        "optimal in 12 of 12 runs with a known optimum."
    )
    alone = [one for one in measurements if one.sigma == 1 and one.selector == "otos"]
    assert "(6 proven optima): the mean excess of OTOS is" in lead(alone)
    one_seed = [dataclasses.replace(one, block="paper, seed 0") for one in measurements]
    assert lead(one_seed).startswith("`paper`, 12 instances, n = 1 independent sample, of 390 clients")
    few_servers = [dataclasses.replace(one, servers=4) for one in measurements]
    assert lead(few_servers).endswith("(With K = 4 clusters and at most 4 servers, RELOC is the same as NS here.)")


def test_the_lead_of_a_study_with_many_groups_stays_short():
    many = [measurement(f"i{number}", "reloc", 0.1, group=f"g{number}", regime=f"g{number}") for number in range(9)]
    paragraphs = lead(many).split("\n\n")
    assert [one[:4] for one in paragraphs[:2]] == ["`g0`", "`g1`"]
    assert paragraphs[2:] == ["The results of the other 7 groups are in the table below."]


def test_the_page_says_what_is_compared_after_its_first_figure(tmp_path):
    some = [measurement("tiny-0", name, 0.1, sigma=None) for name in ("reloc", "reloc[k=8]", "mine.py:f", "anneal")]
    page = write_page(some, tmp_path / "report.html", command="", facts={}, warnings=[], families=["tiny"])
    text = page.read_text(encoding="utf-8")
    assert text.index('id="figure-1"') < text.index("What is compared</h2>") < text.index('id="figure-2"')
    assert "it clusters the servers" in text
    assert "Here with: default settings; k=8." in text
    assert "<strong>mine.py:f</strong> (<code>mine.py:f</code>): a method that does not belong to this project." in text
    assert "Family <code>tiny</code>: enumerable" in text


def test_too_few_samples_for_a_test_are_stated(tmp_path):
    some = [measurement(f"i{number}", name, 0.1) for number in range(3) for name in ("otos", "nearest")]
    text = write_page(some, tmp_path / "report.html", command="", facts={}, warnings=[]).read_text(encoding="utf-8")
    assert "Too few independent samples for a test: <code>paper</code> (n = 3); it needs 5." in text
    assert "too few (n = 3)" in text
    enough = [measurement(f"i{n}", name, v * n) for n in range(1, 7) for name, v in (("otos", 0.1), ("nearest", 0.2))]
    text = write_page(enough, tmp_path / "report.html", command="", facts={}, warnings=[]).read_text(encoding="utf-8")
    assert "1 of 1 tests are significant" in text
    assert "for the only test of this page" in text
    assert "-35.0" in text  # percentage points


@pytest.mark.slow
def test_the_page_is_complete_in_a_browser(measurements, tmp_path):
    warnings = ["**A run contradicts a proof:** a <b>.", "1 runs have no homes."]
    failed = dataclasses.replace(measurements[0], seed=9, excess=None, objective=None, status="error", error="died")
    path = write_page(
        [*measurements, failed], tmp_path / "report.html", command="relocbench study", facts={"x": 1}, warnings=warnings
    )
    with browser(tmp_path) as chromium:
        assert chromium.open(path) == 5
        assert chromium.errors == []
        assert chromium.texts(".warning")[-2:] == ["A run contradicts a proof: a <b>.", "1 runs have no homes."]
        assert chromium.texts("h2") == [
            "Excess against σ, paper",
            "What is compared",
            "Row by row",
            "Distribution of the excess",
            "Excess against time",
            "Every run",
            "Method against method",
            "Mean ranks",
            "Glossary",
            "How it was made",
        ]
        assert len(chromium.texts("figcaption")) == 5 + 4
        assert all(len(caption) > 60 for caption in chromium.texts(".plot figcaption"))
        regimes = chromium.texts("details:first-of-type tbody tr td:nth-child(3)")
        assert "6 optima" in regimes
        assert "6 bounds" in regimes
        chromium.open(path, width=390, height=800, dark=True)
        assert chromium.evaluate("document.documentElement.scrollWidth") == 390


def test_a_page_needs_only_one_regime_and_no_sigma(tmp_path):
    alone: list[Measurement] = [measurement("mine", "reloc", 0.25, sigma=None, regime="mine", group="mine")]
    path = write_page(alone, tmp_path / "report.html", command="", facts={}, warnings=[])
    text = path.read_text(encoding="utf-8")
    assert "<code>mine</code>, 1 instance of 390 clients" in text
    assert "Method against method" not in text
