import pytest

from relocbench.reports.pages.figures import at_least, banded_line, count_axis, figure, log_axis, points, spread_axis
from relocbench.reports.pages.method_style import Style


@pytest.mark.parametrize(("largest", "step"), [(0, 1), (3, 1), (8, 1), (9, 2), (17, 5), (41, 10), (1800, 500)])
def test_an_axis_of_counts_has_ticks_at_whole_numbers(largest, step):
    assert count_axis(largest)["dtick"] == step


def test_a_short_logarithmic_axis_has_ticks_within_decades_and_a_long_one_at_decades():
    short, long = log_axis([1.0, 46.0]), log_axis([0.01, 46.0])
    assert {"1", "2", "5", "10", "20"} <= set(short["ticktext"])
    assert {"0.01", "0.1", "1", "10"} <= set(long["ticktext"])
    assert "2" not in long["ticktext"]
    assert "0.1%" in log_axis([1e-4, 1.0], percent=True)["ticktext"]


def test_the_label_of_the_floor_says_that_smaller_values_are_there():
    assert at_least(1e-5, [0.0, 0.2]) == [1e-5, 0.2]
    assert log_axis([1e-5, 0.2], percent=True, floor=1e-5)["ticktext"][0] == "≤0.001%"
    assert not any("≤" in text for text in log_axis([0.1, 0.2], percent=True, floor=1e-5)["ticktext"])


def test_an_axis_of_shares_is_logarithmic_only_if_they_span_a_decade():
    assert spread_axis([0.2, 0.7], 1e-5)["type"] == "linear"
    assert spread_axis([0.001, 0.7], 1e-5)["type"] == "log"
    assert spread_axis([0.0, 0.7], 1e-5)["type"] == "log"
    assert spread_axis([], 1e-5)["type"] == "linear"


def test_the_limits_of_a_band_are_columns_of_the_data():
    plot = figure(x="σ", y="excess")
    data = points(["a", "b"], columns={"seed": [1, 2]}, y=[0.0, 0.2])
    banded_line(plot, "RELOC", Style("#d9455f"), [1, 2], [0.1, 0.2], [0.05, 0.1], [0.15, 0.3], **data)
    band, middle = plot.data
    assert band.hoverinfo == "skip"
    assert middle.meta == {"y": [0.0, 0.2], "columns": {"low": [0.05, 0.1], "high": [0.15, 0.3], "seed": [1, 2]}}
