from relocbench.reports.paper.grid import run_grid
from relocbench.reports.paper.planner import Setup

READINGS = ["reading=prose", "reading=pseudocode,ties=placed"]


def test_the_readings_give_the_same_measures_on_spark(spark, tmp_path):
    setup = Setup(seeds=2, jobs=1, parameters={"sigma": 5, "spool_per_member": 2, "topics": 5, "max_topic_size": 6})
    here = run_grid(setup, READINGS, [1, 4], tmp_path / "here")
    there = run_grid(setup, READINGS, [1, 4], tmp_path / "there", spark)
    assert len(here["paper"].rows) > 40
    assert there["paper"].rows == here["paper"].rows
    assert len(list((tmp_path / "there").iterdir())) == 2
