import pytest

from relocbench.reports.study.excess import best_known, comparisons, gaps_of, summaries
from relocbench.reports.study.references import BOUND, OPTIMUM, Reference
from relocbench.reports.study.subjects import Subject
from tests.reports.study.samples import gap, library_instance, row

INSTANCE = library_instance()
SUBJECT = Subject(INSTANCE, "library:tiny-loose-plain-0")


def gap_of(cost, kind=OPTIMUM, best=10.0, **more):
    told = {INSTANCE.hash: Reference(kind, 10.0, 10.0, "somebody")}
    [found] = gaps_of([SUBJECT], [row(INSTANCE, "reloc", cost, **more)], told, {INSTANCE.hash: best})
    return found


def test_a_gap_is_what_is_above_the_reference():
    assert gap_of(12.0).gap == pytest.approx(0.2)
    assert gap_of(10.0 - 1e-7).gap == 0
    assert gap_of(None).gap is None
    assert gap_of(5.0, status="error").objective is None


def test_optimal_is_said_only_where_it_is_proved():
    assert gap_of(10.000001).optimal is True
    assert gap_of(10.1).optimal is False
    assert gap_of(11.0, BOUND, best=11.0).optimal is None
    assert gap_of(11.1, BOUND, best=11.0).optimal is False


def test_the_best_known_is_the_least_of_runs_and_library():
    rows = [row(INSTANCE, "reloc", 12.0), row(INSTANCE, "otos", 11.0), row(INSTANCE, "nearest", None)]
    assert best_known(rows, {}) == {INSTANCE.hash: 11.0}
    assert best_known(rows, {INSTANCE.hash: 10.5}) == {INSTANCE.hash: 10.5}


def test_a_summary_takes_seeds_together_first():
    gaps = [
        gap("a", "reloc", 0.1),
        gap("a", "reloc", 0.3, seed=1),
        gap("b", "reloc", 0.0),
        gap("b", "reloc", 0.0, seed=1),
        gap("c", "reloc", 0.7, kind=BOUND),
        gap("c", "reloc", None, seed=1, kind=BOUND, status="error"),
    ]
    [told] = summaries(gaps)
    assert (told.instances, told.runs, told.failed, told.optima, told.bounds) == (3, 6, 1, 2, 1)
    assert told.mean == pytest.approx((0.2 + 0.0 + 0.7) / 3)
    assert (told.median, told.worst) == (pytest.approx(0.2), 0.7)
    assert (told.hits, told.hits_of) == (2, 4)
    assert told.low is None  # of three instances


def test_comparisons_are_paired_by_instance_and_corrected():
    gaps = [gap(f"i{number}", "reloc", 0.3 + 0.01 * number) for number in range(12)]
    gaps += [gap(f"i{number}", "otos", 0.1 + 0.01 * number) for number in range(12)]
    gaps += [gap(f"i{number}", "nearest", 0.3 + 0.01 * number + (-1) ** number * 0.001) for number in range(12)]
    gaps += [gap("alone", "reloc", 9.0)]
    told = {(one.first, one.second): one for one in comparisons(gaps)}
    assert told["reloc", "otos"].better == "otos"
    assert told["reloc", "otos"].paired.pairs == 12
    assert told["reloc", "otos"].p == pytest.approx(3 * told["reloc", "otos"].paired.p)
    assert told["reloc", "nearest"].better is None
