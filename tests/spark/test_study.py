"""A study on Spark. The test is in this folder because it uses the session of the folder."""

import contextlib

import pytest

from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import of_family
from relocbench.runs.run_store import read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits


@pytest.mark.slow
def test_a_study_on_spark_has_the_rows_of_a_local_one(spark, tmp_path):
    subjects = of_family("tiny", [1], {"regime": "scarce", "shape": "plain"})
    designs = {
        where: Design([parse_selector("nearest")], [0, 1], Limits(20.0), 20.0, session=session)
        for where, session in (("spark", lambda: contextlib.nullcontext(spark)), ("local", None))
    }
    results = {where: run(subjects, design, tmp_path / where) for where, design in designs.items()}
    assert results["spark"].problems == []
    assert [row.objective for row in results["spark"].rows] == [row.objective for row in results["local"].rows]
    assert [row.home for row in results["spark"].proving] == [row.home for row in results["local"].proving]
    assert results["spark"].references == results["local"].references
    assert len(read(tmp_path / "spark" / "runs")[0]) == 3
