import pytest

from relocbench.reports.study.excess import summaries
from relocbench.reports.study.virtual_best import times_best, virtual_best
from tests.reports.study.samples import measurement


def runs():
    return [
        measurement("a", "nearest", 0.1),
        measurement("a", "reloc", 0.3, seed=0),
        measurement("a", "reloc", 0.5, seed=1),
        measurement("b", "nearest", 0.2),
        measurement("b", "reloc", 0.0, seed=0),
        measurement("b", "reloc", 0.2, seed=1),
        measurement("c", "nearest", 0.4),
        measurement("c", "reloc", None),
    ]


def test_the_virtual_best_takes_the_best_method_of_each_instance_over_its_seeds():
    found = virtual_best(runs())
    assert {one.selector for one in found} == {"virtual best"}
    assert [(one.instance, one.excess) for one in found] == [("a", 0.1), ("b", 0.0), ("b", 0.2), ("c", 0.4)]
    [summary] = summaries(found)
    assert summary.mean == pytest.approx((0.1 + 0.1 + 0.4) / 3)


def test_of_equal_methods_the_faster_one_is_the_virtual_best():
    found = virtual_best([measurement("a", "nearest", 0.1, seconds=2.0), measurement("a", "reloc", 0.1, seconds=1.0)])
    assert [one.seconds for one in found] == [1.0]


def test_one_method_has_no_virtual_best():
    assert virtual_best([measurement("a", "nearest", 0.1)]) == []


def test_every_method_that_no_other_beats_counts_as_best():
    assert times_best(runs()) == {"nearest": 2, "reloc": 1}
    assert times_best([measurement("a", "nearest", 0.1), measurement("a", "reloc", 0.1)]) == {"nearest": 1, "reloc": 1}
