"""A study as a table, as a frame and as figures, from measurements made up for the test."""

import importlib.util
from dataclasses import fields
from pathlib import Path

import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.study.excess import Measurement
from relocbench.reports.study.plots import KINDS
from relocbench.reports.study.study import Study
from tests.reports.study.samples import measurement

MEASUREMENTS = [
    measurement(f"paper-s{sigma}-{seed}", selector, value * sigma, regime=f"paper-s{sigma}", sigma=float(sigma))
    for sigma in (1, 5)
    for seed in range(2)
    for selector, value in (("nearest", 0.1), ("reloc", 0.2))
]


def study(measurements=MEASUREMENTS):
    return Study(list(measurements), [], [], [], Path("report.html"))


def test_a_table_and_a_frame_have_one_row_per_run():
    names = [field.name for field in fields(Measurement)]
    table, frame = study().to_arrow(), study().to_pandas()
    assert table.column_names == list(frame.columns) == names
    assert table["excess"].to_pylist() == frame["excess"].tolist() == [one.excess for one in MEASUREMENTS]


def test_a_summary_has_one_row_per_method_and_regime_or_group():
    found = study().summary()
    assert found[["regime", "selector"]].values.tolist() == [
        ["paper-s1", "nearest"],
        ["paper-s1", "reloc"],
        ["paper-s5", "nearest"],
        ["paper-s5", "reloc"],
    ]
    assert found["mean"].tolist() == pytest.approx([0.1, 0.2, 0.5, 1.0])
    grouped = study().summary(by="group")
    assert grouped[["group", "selector"]].values.tolist() == [["paper", "nearest"], ["paper", "reloc"]]
    assert len(study([]).summary()) == 0
    with pytest.raises(InputError, match="by: expected regime or group, got 'sigma'"):
        study().summary(by="sigma")


def test_without_pandas_the_error_says_how_to_install_it(monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pandas" else found(name))
    for call in (study().to_pandas, study().summary):
        with pytest.raises(InputError, match="expected pandas; install with: pip install pandas"):
            call()
    assert study().to_arrow().num_rows == len(MEASUREMENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_plot_shows_every_method(kind):
    figure = study().plot(kind)
    assert {"NS", "RELOC"} <= {trace.name for trace in figure.data}


def test_a_plot_shows_the_group_that_is_asked_for():
    other = [measurement("small-1", "otos", 0.3, group="small", sigma=None)]
    both = study([*MEASUREMENTS, *other])
    assert {trace.name for trace in both.plot("runs", group="small").data} == {"OTOS"}
    with pytest.raises(InputError, match="group: expected one of paper, small, got None"):
        both.plot("runs")
    with pytest.raises(InputError, match="sigma needs instances with two or more values"):
        both.plot("sigma", group="small")


def test_a_plot_that_cannot_be_drawn_is_refused():
    with pytest.raises(InputError, match=f"kind: expected one of {', '.join(KINDS)}, got 'pie'"):
        study().plot("pie")
    with pytest.raises(InputError, match="no run has one"):
        study([measurement("a", "nearest", None)]).plot()
