import dataclasses

import pytest

from relocbench.reports.study.excess import Gap
from relocbench.reports.study.page import lead, write_page
from relocbench.reports.study.references import BOUND
from tests.reports.browser import browser
from tests.reports.study.samples import gap

LEVELS = {"random": 2.0, "nearest": 0.4, "otos": 0.3, "reloc": 0.5, "anneal[moves=200000]": 0.0}


@pytest.fixture(scope="module")
def gaps():
    return [
        gap(
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


def test_the_lead_says_what_was_measured_and_against_what(gaps):
    assert lead(gaps) == (
        "`paper`, 12 instances of 390 clients (6 proven optima, 6 certified bounds): RELOC is on average **63%** above "
        "what is proved, at worst 75%. The best, annealing [moves=2e5], is **0.00%** above, and optimal in 12 of 12 "
        "runs whose optimum is known."
    )
    alone = [one for one in gaps if one.sigma == 1 and one.selector == "otos"]
    assert "(6 proven optima): OTOS is on average" in lead(alone)
    few_servers = [dataclasses.replace(one, servers=4) for one in gaps]
    assert lead(few_servers).endswith("(With its K = 4 clusters and at most 4 servers RELOC is the same as NS here.)")


@pytest.mark.slow
def test_the_page_says_all_it_must_in_a_real_browser(gaps, tmp_path):
    warnings = ["**Something here is wrong:** a <b>.", "1 runs have no homes."]
    failed = dataclasses.replace(gaps[0], seed=9, gap=None, objective=None, status="error", error="died")
    path = write_page(
        [*gaps, failed], tmp_path / "report.html", command="relocbench study", facts={"x": 1}, warnings=warnings
    )
    with browser(tmp_path) as chromium:
        assert chromium.open(path) == 4
        assert chromium.errors == []
        assert chromium.texts(".warning")[-2:] == ["Something here is wrong: a <b>.", "1 runs have no homes."]
        assert chromium.texts("h2") == [
            "Regime by regime",
            "Gap against σ, paper",
            "How gaps are distributed",
            "Gap against time",
            "Where a method loses",
            "Method against method",
            "How it was made",
        ]
        assert len(chromium.texts("figcaption")) == 4 + 4
        assert all(len(caption) > 60 for caption in chromium.texts(".plot figcaption"))
        regimes = chromium.texts("details:first-of-type tbody tr td:nth-child(3)")
        assert "6 optima" in regimes
        assert "6 bounds" in regimes
        chromium.open(path, width=390, height=800, dark=True)
        assert chromium.evaluate("document.documentElement.scrollWidth") == 390


def test_one_regime_without_sigma_is_a_page_too(tmp_path):
    alone: list[Gap] = [gap("mine", "reloc", 0.25, sigma=None, regime="mine", group="mine")]
    path = write_page(alone, tmp_path / "report.html", command="", facts={}, warnings=[])
    text = path.read_text(encoding="utf-8")
    assert "<code>mine</code>, 1 instances of 390 clients" in text
    assert "Method against method" not in text
