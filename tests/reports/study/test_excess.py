import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.study.excess import (
    FORMAT,
    best_known,
    comparisons,
    measure,
    read_measurements,
    summaries,
    write_measurements,
)
from relocbench.reports.study.references import BOUND, OPTIMUM, Reference
from relocbench.reports.study.subjects import Subject
from tests.reports.study.samples import library_instance, measurement, row

INSTANCE = library_instance()
SUBJECT = Subject(INSTANCE, "library:tiny-loose-plain-0")


def measured(objective, kind=OPTIMUM, best=10.0, **more):
    references = {INSTANCE.hash: Reference(kind, 10.0, 10.0, "a proof")}
    [found] = measure([SUBJECT], [row(INSTANCE, "reloc", objective, **more)], references, {INSTANCE.hash: best})
    return found


def test_the_excess_is_relative_to_the_reference():
    assert measured(12.0).excess == pytest.approx(0.2)
    assert measured(10.0 - 1e-7).excess == 0
    assert measured(None).excess is None
    assert measured(5.0, status="error").objective is None


def test_homes_count_as_optimal_only_with_a_proof():
    assert measured(10.000001).optimal is True
    assert measured(10.1).optimal is False
    assert measured(11.0, BOUND, best=11.0).optimal is None
    assert measured(11.1, BOUND, best=11.0).optimal is False


def test_the_best_known_objective_is_the_least_of_runs_and_library():
    rows = [row(INSTANCE, "reloc", 12.0), row(INSTANCE, "otos", 11.0), row(INSTANCE, "nearest", None)]
    assert best_known(rows, {}) == {INSTANCE.hash: 11.0}
    assert best_known(rows, {INSTANCE.hash: 10.5}) == {INSTANCE.hash: 10.5}


def test_a_summary_averages_the_seeds_of_an_instance_first():
    measurements = [
        measurement("a", "reloc", 0.1),
        measurement("a", "reloc", 0.3, seed=1),
        measurement("b", "reloc", 0.0),
        measurement("b", "reloc", 0.0, seed=1),
        measurement("c", "reloc", 0.7, kind=BOUND),
        measurement("c", "reloc", None, seed=1, kind=BOUND, status="error"),
    ]
    [summary] = summaries(measurements)
    assert (summary.instances, summary.runs, summary.failed, summary.optima, summary.bounds) == (3, 6, 1, 2, 1)
    assert summary.mean == pytest.approx((0.2 + 0.0 + 0.7) / 3)
    assert (summary.median, summary.worst) == (pytest.approx(0.2), 0.7)
    assert (summary.hits, summary.hits_of) == (2, 4)
    assert summary.low is None  # Three instances are too few for an interval.


def test_comparisons_are_paired_by_instance_and_corrected():
    numbers = range(12)
    measurements = [measurement(f"i{number}", "reloc", 0.3 + 0.01 * number) for number in numbers]
    measurements += [measurement(f"i{number}", "otos", 0.1 + 0.01 * number) for number in numbers]
    measurements += [
        measurement(f"i{number}", "nearest", 0.3 + 0.01 * number + (-1) ** number * 0.001) for number in numbers
    ]
    measurements += [measurement("alone", "reloc", 9.0)]
    found = {(one.first, one.second): one for one in comparisons(measurements)}
    assert found["reloc", "otos"].better == "otos"
    assert found["reloc", "otos"].paired.pairs == 12
    assert found["reloc", "nearest"].better is None
    assert {one.tests for one in found.values()} == {3}
    assert found["reloc", "nearest"].p == pytest.approx(found["reloc", "nearest"].paired.p)


def same_on_every_cell(seeds):
    """Return two methods on five cells of each seed. The first is better, by as much in all cells of a seed."""
    return [
        measurement(f"s{sigma}-{seed}", selector, 0.2 + sign * 0.1 * (seed - 1), block=f"paper, seed {seed}")
        for seed in range(seeds)
        for sigma in range(5)
        for selector, sign in (("reloc", 0.0), ("otos", 1.0))
    ]


def test_the_cells_of_one_seed_count_as_one_sample():
    [found] = comparisons(same_on_every_cell(6))
    assert (found.paired.pairs, found.paired.blocks, found.paired.wins, found.paired.losses) == (30, 6, 4, 1)
    assert found.paired.difference == pytest.approx(-0.15)
    assert found.better is None  # With 30 independent instances, p would be below 0.001.
    [_, otos] = summaries(same_on_every_cell(6))
    assert (otos.instances, otos.blocks) == (30, 6)
    assert otos.low < 0.25 < 0.45 < otos.high


def test_with_few_seeds_there_is_neither_a_test_nor_an_interval():
    [found] = comparisons(same_on_every_cell(4))
    assert (found.paired.blocks, found.p, found.better, found.tests) == (4, None, None, 0)
    assert [one.low for one in summaries(same_on_every_cell(4))] == [None, None]


def test_groups_with_a_row_of_the_same_name_stay_apart():
    measurements = [measurement("a", "reloc", 0.1, group="x"), measurement("b", "reloc", 0.3, group="y")]
    assert [(one.group, one.regime, one.mean) for one in summaries(measurements)] == [
        ("x", "paper-s1", 0.1),
        ("y", "paper-s1", 0.3),
    ]


def test_a_file_reads_back_and_states_its_format(tmp_path):
    measurements = [measurement("a", "reloc", 0.1), measurement("b", "reloc", None, status="error", sigma=None)]
    path = tmp_path / "excess.parquet"
    write_measurements(measurements, path)
    assert read_measurements(path) == measurements
    assert pq.read_table(path)["format"].to_pylist() == [FORMAT] * 2


@pytest.mark.parametrize("columns", [{"gap": [0.1]}, {"format": ["relocbench-excess/1"], "excess": [0.1]}])
def test_a_file_of_another_version_is_refused_in_one_line(tmp_path, columns):
    path = tmp_path / "gaps.parquet"
    pq.write_table(pa.table(columns), path)
    with pytest.raises(InputError, match=r'gaps\.parquet: expected format "relocbench-excess/2"') as caught:
        read_measurements(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_parquet_is_refused_in_one_line(tmp_path):
    path = tmp_path / "excess.parquet"
    path.write_text("no Parquet")
    with pytest.raises(InputError, match="expected a Parquet file") as caught:
        read_measurements(path)
    assert "\n" not in str(caught.value)
