"""A study's runs on Spark; here, where the session is."""

import contextlib

from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import of_family
from relocbench.runs.run_store import read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits


def test_a_study_on_spark_has_the_rows_of_one_here(spark, tmp_path):
    subjects = of_family("tiny", [1], {"regime": "scarce", "shape": "plain"})
    designs = {
        where: Design([parse_selector("nearest")], [0, 1], Limits(20.0), 20.0, session=session)
        for where, session in (("there", lambda: contextlib.nullcontext(spark)), ("here", None))
    }
    results = {where: run(subjects, design, tmp_path / where) for where, design in designs.items()}
    assert results["there"].problems == []
    assert [row.objective for row in results["there"].rows] == [row.objective for row in results["here"].rows]
    assert [row.home for row in results["there"].proving] == [row.home for row in results["here"].proving]
    assert results["there"].references == results["here"].references
    assert len(read(tmp_path / "there" / "runs")[0]) == 3
