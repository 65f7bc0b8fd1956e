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


@pytest.mark.slow
def test_the_page_is_complete_in_a_browser(measurements, tmp_path):
    warnings = ["**A run contradicts a proof:** a <b>.", "1 runs have no homes."]
    failed = dataclasses.replace(measurements[0], seed=9, excess=None, objective=None, status="error", error="died")
    path = write_page(
        [*measurements, failed], tmp_path / "report.html", command="relocbench study", facts={"x": 1}, warnings=warnings
    )
    with browser(tmp_path) as chromium:
        assert chromium.open(path) == 4
        assert chromium.errors == []
        assert chromium.texts(".warning")[-2:] == ["A run contradicts a proof: a <b>.", "1 runs have no homes."]
        assert chromium.texts("h2") == [
            "Excess against σ, paper",
            "What is compared",
            "Regime by regime",
            "Distribution of the excess",
            "Excess against time",
            "Every run",
            "Method against method",
            "Glossary",
            "How it was made",
        ]
        assert len(chromium.texts("figcaption")) == 4 + 4
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
