import pyarrow.parquet as pq
import pytest

from reports.page import write_page
from reports.study import REFERENCE, mean_interval, run_study, table_rows


@pytest.fixture(scope="module")
def rows():
    return run_study(seeds=2)


def test_every_method_runs_on_every_instance(rows):
    for method in ("random", "nearest"):
        assert len({row.instance for row in rows if row.method == method}) == 10
    for row in rows:
        assert row.y == pytest.approx(row.y1 + row.y2)
        if row.method == REFERENCE:
            assert row.least_theta == 1


def test_nearest_is_never_beaten_on_distance(rows):
    least = {row.instance: row.y1 for row in rows if row.method == "nearest"}
    assert all(row.y1 >= least[row.instance] - 1e-12 for row in rows)


def test_the_page_holds_the_table_and_the_data_stands_beside_it(rows, tmp_path):
    page = write_page(rows, tmp_path / "study")
    text = page.read_text(encoding="utf-8")
    for line in table_rows(rows):
        for cell in line:
            assert cell in text
    assert "<script" not in text
    assert "http" not in text
    assert pq.read_table(tmp_path / "study" / "rows.parquet").num_rows == len(rows)


def test_the_interval_holds_the_mean():
    mean, low, high = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert low < mean == 2.5 < high
    assert mean_interval([2.0]) == (2.0, 2.0, 2.0)
