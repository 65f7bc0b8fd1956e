import numpy as np
import pytest

from relocbench.reports.statistics import holm, mean_interval, paired


def test_the_interval_contains_the_mean():
    mean, low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert low < mean == 2.5 < high
    assert mean_interval([2.0]) == (2.0, 2.0, 2.0)


def test_the_interval_has_about_the_nominal_coverage():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(200):
        _, low, high = mean_interval(rng.normal(size=30).tolist())
        covered += low <= 0 <= high
    assert 0.88 <= covered / 200 <= 0.99


def test_holm_corrects_the_smallest_most_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_a_method_that_always_wins_has_the_largest_effect():
    found = paired([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    assert (found.pairs, found.wins, found.losses, found.effect, found.median_difference) == (5, 5, 0, -1.0, -3.0)
    assert found.p == pytest.approx(2 / 2**5)


def test_pairs_without_a_difference_are_left_out():
    found = paired([1.0, 1.0, 2.0], [1.0, 1.0 + 1e-9, 1.0], tie=1e-6)
    assert (found.wins, found.losses, found.effect, found.p) == (0, 1, 1.0, 1.0)
    assert paired([1.0], [1.0]).p == 1.0
    with pytest.raises(ValueError, match="at least one pair"):
        paired([], [])
