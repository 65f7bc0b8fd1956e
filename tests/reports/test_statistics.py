import math

import numpy as np
import pytest
import scipy.stats

from relocbench.reports.statistics import (
    Ranks,
    blocked_interval,
    holm,
    mean_ranks,
    paired,
    shifted_geometric_mean,
)


def test_the_interval_contains_the_mean_and_needs_five_values():
    found = blocked_interval([1.0, 2.0, 3.0, 4.0, 5.0], range(5))
    assert found.low < found.mean == 3.0 < found.high
    assert blocked_interval([2.0], range(1)).limits == (2.0, 2.0)
    assert blocked_interval([1.0, 2.0, 3.0, 4.0], range(4)).low is None


def test_holm_corrects_the_smallest_most_and_keeps_the_order():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# Six seeds with five cells each, whose differences have a part in common.
SEEDS, CELLS = 6, 5
BLOCKS = np.repeat(np.arange(SEEDS), CELLS).tolist()


def two_equal_methods(rng):
    """Return the differences of two methods that are equally good on average; those of one seed are alike."""
    return (np.repeat(rng.normal(size=SEEDS), CELLS) + 0.5 * rng.normal(size=SEEDS * CELLS)).tolist()


def test_a_test_on_blocks_keeps_its_error_rate_and_a_test_on_instances_does_not():
    rng, nothing, times = np.random.default_rng(2), [0.0] * (SEEDS * CELLS), 1500
    samples = [two_equal_methods(rng) for _ in range(times)]
    blocked = sum(paired(one, nothing, BLOCKS).p <= 0.05 for one in samples) / times
    naive = sum(paired(one, nothing).p <= 0.05 for one in samples) / times
    assert 0.035 <= blocked <= 0.065
    assert naive > 0.3


def test_an_interval_over_blocks_covers_the_mean_and_one_over_instances_does_not():
    rng, times = np.random.default_rng(3), 300
    samples = [two_equal_methods(rng) for _ in range(times)]

    def covered(blocks):
        limits = [blocked_interval(one, blocks).limits for one in samples]
        return sum(low <= 0 <= high for low, high in limits) / times

    assert 0.9 <= covered(BLOCKS) <= 0.98
    assert covered(range(SEEDS * CELLS)) < 0.75


def test_the_mean_counts_every_instance_and_the_interval_every_block():
    found = blocked_interval([1.0, 1.0, 1.0, 5.0, 2.0, 2.0, 3.0], ["a", "a", "a", "b", "c", "d", "e"])
    assert (found.mean, found.blocks) == (pytest.approx(15 / 7), 5)
    assert found.low < found.mean < found.high
    few = blocked_interval([1.0, 2.0, 3.0], ["a", "a", "b"])
    assert (few.low, few.high, few.blocks, few.limits) == (None, None, 2, (2.0, 2.0))


def test_a_comparison_has_a_difference_with_an_interval_and_counts_blocks():
    found = paired([1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 4.0, 6.0, 8.0, 10.0])
    assert (found.pairs, found.blocks, found.wins, found.losses, found.difference) == (5, 5, 5, 0, -3.0)
    # The paired t-test: mean -3, standard error sqrt(2.5 / 5), 4 degrees of freedom.
    assert found.p == pytest.approx(0.013236, rel=1e-3)
    assert (found.low, found.high) == (pytest.approx(-4.9632, rel=1e-4), pytest.approx(-1.0368, rel=1e-4))
    two = paired([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2.0] * 6, ["a", "a", "b", "b", "c", "c"])
    assert (two.pairs, two.blocks, two.wins, two.losses) == (6, 3, 1, 2)


def test_with_too_few_blocks_there_is_no_p_value():
    found = paired([1.0] * 20, [2.0] * 20, [0, 1, 2, 3] * 5)
    assert (found.blocks, found.difference, found.p, found.low) == (4, -1.0, None, None)


def test_small_differences_count_as_none():
    found = paired([1.0, 1.0, 2.0, 1.0, 1.0], [1.0, 1.0 + 1e-9, 1.0, 1.0, 1.0], tie=1e-6)
    assert (found.wins, found.losses) == (0, 1)
    assert paired([1.0] * 5, [1.0] * 5).p == 1.0
    assert paired([1.0] * 5, [2.0] * 5).p == 0.0
    with pytest.raises(ValueError, match="at least one pair"):
        paired([], [])


def test_the_shifted_geometric_mean_follows_its_definition():
    assert shifted_geometric_mean([0.0, 30.0], 10.0) == pytest.approx(math.sqrt(10 * 40) - 10)
    assert shifted_geometric_mean([7.0], 10.0) == pytest.approx(7.0)
    assert shifted_geometric_mean([], 10.0) is None


def test_ranks_and_their_test_agree_with_scipy():
    table = np.random.default_rng(4).integers(0, 5, (12, 4)).astype(float)
    found = mean_ranks(table.tolist())
    assert found.mean == pytest.approx(scipy.stats.rankdata(table, axis=1).mean(axis=0))
    assert found.p == pytest.approx(scipy.stats.friedmanchisquare(*table.T).pvalue)


def test_the_critical_difference_is_that_of_the_published_tables():
    # Demšar (2006), table 5: q = 2.569 for four methods.
    assert mean_ranks(np.eye(4).tolist()).critical_difference == pytest.approx(2.569 * math.sqrt(20 / 24), rel=1e-3)


def test_values_within_the_tie_share_a_rank():
    assert mean_ranks([[1.0, 1.0 + 1e-9, 2.0]] * 2, tie=1e-6).mean == [1.5, 1.5, 3.0]


def test_cliques_are_the_largest_sets_without_a_significant_difference():
    ranks = Ranks(mean=[4.0, 1.0, 2.0, 2.5], samples=9, p=0.0, critical_difference=1.2)
    assert ranks.cliques() == [[1, 2], [2, 3]]
    assert Ranks([1.0, 3.0], 9, 0.0, 1.0).cliques() == []
