"""A study of moving clients gives the same rows on Spark."""

from dataclasses import replace

from relocbench.reports.moving.plan import Plan
from relocbench.reports.moving.study import run_study

PLAN = Plan(
    speeds=(60.0,),
    seeds=(0, 1),
    parameters={"n_epochs": 3, "topics": 5, "servers": 4},
    periods=(1, 3),
    policies=("relocate[moves=2000]",),
    methods=("reloc", "nearest"),
    clusters=("2",),
    sizes=(),
)


def test_the_rows_are_the_same_on_spark(spark, tmp_path):
    here = run_study(PLAN, tmp_path / "here", jobs=1)
    there = run_study(PLAN, tmp_path / "there", spark=spark)
    assert there.bounds == here.bounds
    rows = [[replace(row, solve_seconds=0.0) for row in found.schedules] for found in (here, there)]
    assert len(rows[0]) == 2 * 6
    assert rows[1] == rows[0]
    assert there.summaries == here.summaries
