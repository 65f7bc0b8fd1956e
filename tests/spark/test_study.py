"""Studies on Spark: of many instances, and at full scale. They use the session of this folder."""

import contextlib
import dataclasses
import json

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from relocbench.cli import app
from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.reports.full_scale.page import lead
from relocbench.reports.full_scale.tables import read_study
from relocbench.reports.study.runner import Design, run
from relocbench.reports.study.subjects import of_family
from relocbench.runs.run_store import read
from relocbench.runs.selectors import parse_selector
from relocbench.runs.sweep import Limits
from relocbench.spark import factors
from relocbench.spark.bound import BoundOptions
from relocbench.spark.compare_local import compare, read_homes, read_local
from relocbench.spark.placement import read_field
from relocbench.spark.study import LocalLimits, jobs_at_scale
from relocbench.spark.study_jobs import plan_jobs
from tests.reports.browser import browser

REGIONS = "spark-anneal[proposals=200,region_clients=500,rounds=2]"
BLOCKS = "spark-bound[labels=3,region_clients=500,rounds=1,sweeps=5]"
REGIONS_FOLDER = "spark-anneal_proposals-200_region_clients-500_rounds-2_seed-0"
BLOCKS_FOLDER = "spark-bound_labels-3_region_clients-500_rounds-1_sweeps-5_seed-0"


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


@pytest.fixture(scope="module")
def full_scale(spark, topics, tmp_path_factory):
    out = tmp_path_factory.mktemp("full-scale-study") / "out"
    command = ["spark", "study", str(topics), "--servers", "4", "--load", "1.3", "--k", "auto", "--rounds", "2"]
    command += ["--methods", f"nearest,anneal,reloc,reloc[k=2,reading=pseudocode],{REGIONS},{BLOCKS}"]
    command += ["--time-limit", "0.3", "--bound-time", "2", "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factors, "DEGREE", 2)  # fewer stages, as in the other tests of this folder
        first = CliRunner().invoke(app, [*command, "--json"], catch_exceptions=False)
    return command, out, json.loads(first.stdout)


@pytest.mark.slow
def test_a_full_scale_study_has_the_homes_and_costs_of_the_local_methods(full_scale):
    _, out, found = full_scale
    rows = {row["result"]: row for row in pq.read_table(out / "results.parquet").to_pylist()}
    candidates = [f"reloc_k-{k}_seed-0" for k in (4, 2, 1)]
    svd, auto = "reloc_k-2_reading-pseudocode_seed-0", "reloc_k-auto_seed-0"
    for name in (*candidates, svd, auto, "nearest_seed-0"):
        assert compare(out, name).equal, name
    instance, ids = read_local(out)
    for name in (*candidates, svd, "anneal_seed-0_0.3-s", "certify_2-s", REGIONS_FOLDER):
        cost = evaluate(instance, read_homes(out / "results" / name / "homes", ids))
        row = rows[name]
        assert (row["y"], row["objective"]) == pytest.approx((cost.y, cost.objective), rel=1e-9)
        assert row["least_theta"] == pytest.approx(cost.theta.min(), rel=1e-9)
        assert row["overloaded_servers"] == (cost.theta < 1).sum()
    least = min(candidates, key=lambda name: rows[name]["objective"])
    assert (rows[auto]["chosen"], rows[auto]["k"]) == (least, rows[least]["k"])
    best = min(row["objective"] for row in rows.values())
    for row in rows.values():
        assert row["excess"] == pytest.approx(row["objective"] / best - 1, abs=1e-12)
        assert row["gap"] == pytest.approx((row["objective"] - found["bound"]) / row["objective"], abs=1e-12)
    assert 0 < found["bound"] <= best
    assert len(found["results"]) == len(rows)


@pytest.mark.slow
def test_the_tables_of_a_full_scale_study_add_up(full_scale):
    _, out, _ = full_scale
    clients = read_field(out / "field").clients
    servers, clusters = (pq.read_table(out / f"{name}.parquet").to_pandas() for name in ("servers", "clusters"))
    assert set(servers.groupby("result")["clients"].sum()) == {clients}
    assert set(clusters.groupby("result")["clients"].sum()) == {clients}
    assert set(clusters.groupby("result")["servers"].sum()) == {4}
    stages = pq.read_table(out / "stages.parquet").to_pandas().set_index(["step", "stage"])
    assert {"field", "homes", "evaluation", "factors", "bound"} == set(stages.index.get_level_values("stage"))
    assert (stages["seconds"] > 0).all()
    assert (stages["memory_mib"] > 10).all()


@pytest.mark.slow
def test_a_full_scale_study_is_continued_and_refuses_another_field(full_scale):
    command, out, _ = full_scale
    before = pq.read_table(out / "results.parquet")
    with pytest.MonkeyPatch.context() as patch:
        # A finished study needs no session.
        patch.setattr("relocbench.spark.study.place_field", None)
        patch.setattr("relocbench.commands.spark.study.started", None)
        again = CliRunner().invoke(app, command, catch_exceptions=False)
    # Each result, both bounds: that of `certify` has homes, too.
    assert again.stderr.count("(computed earlier)") == len(before) + 2
    assert pq.read_table(out / "results.parquet").equals(before)
    with pytest.raises(InputError, match=r"field: was written with load 1\.3"):
        CliRunner().invoke(app, [*command, "--load", "1.4"], catch_exceptions=False)


@pytest.mark.slow
def test_annealing_and_a_bound_on_spark_are_results_and_bounds_like_the_local_ones(spark, full_scale):
    _, out, found = full_scale
    results, bounds = (
        {row["result"]: row for row in pq.read_table(out / f"{name}.parquet").to_pylist()}
        for name in ("results", "bounds")
    )
    assert results[REGIONS_FOLDER]["objective"] < 0.99 * results["nearest_seed-0"]["objective"]
    assert (results[REGIONS_FOLDER]["computed_on"], results["anneal_seed-0_0.3-s"]["computed_on"]) == (
        "Spark",
        "one machine",
    )
    assert {name: row["computed_on"] for name, row in bounds.items()} == {
        BLOCKS_FOLDER: "Spark",
        "certify_2-s": "one machine",
    }
    best = min(row["objective"] for row in results.values())
    for row in bounds.values():
        assert 0 < row["bound"] <= found["bound"] == max(one["bound"] for one in bounds.values())
        assert row["gap"] == pytest.approx((best - row["bound"]) / best)
    # The bound started from the cheapest homes that existed, and can be verified again.
    assert results[bounds[BLOCKS_FOLDER]["homes"]]["objective"] == min(
        row["objective"] for name, row in results.items() if name != "certify_2-s"
    )
    command = ["spark", "verify", str(out), "--bound", str(out / "results" / BLOCKS_FOLDER)]
    assert "proved: no assignment costs less" in CliRunner().invoke(app, command, catch_exceptions=False).output


@pytest.mark.slow
def test_what_is_too_large_for_one_machine_goes_to_spark(full_scale):
    field = read_field(full_scale[1] / "field")
    jobs = plan_jobs(["nearest,anneal,reloc"], ["2"], [], [0, 1], servers=4, rounds=2)
    here, notes = jobs_at_scale(jobs, field, LocalLimits(bound_time=5.0, most_clients=field.clients))
    assert ([job.label for job in here], notes) == ([job.label for job in jobs], [])
    limits = LocalLimits(bound_time=5.0, most_clients=field.clients - 1)
    there, notes = jobs_at_scale([*jobs[::-1], *jobs], field, limits)
    assert sorted((job.label, job.seed) for job in there[:-1]) == sorted(
        (job.label.replace("anneal", "spark-anneal"), job.seed) for job in jobs
    )
    assert (there[-1].options, len(notes)) == (BoundOptions(), 3)
    assert all(f"more than --most-local-clients {field.clients - 1:,}" in note for note in notes)
    jobs = plan_jobs(["anneal[moves=5]"], [], [], [0], servers=4, rounds=2)
    with pytest.raises(InputError, match=r"method anneal\[moves=5\]: its settings are those of one machine"):
        jobs_at_scale(jobs, field, limits)
    with pytest.raises(InputError, match="cloud_delay: expected at least"):
        jobs_at_scale(there, dataclasses.replace(field, cloud_delay=0.1), limits)


@pytest.mark.slow
def test_the_page_of_a_full_scale_study_states_the_result_and_is_readable(full_scale, tmp_path):
    _, out, found = full_scale
    study = read_study(out)
    text = lead(study)
    assert f"Y = **{study.results[0].y:.4g} ms**" in text
    assert f"below **{found['bound'] / study.publications:.4g} ms**, by a verified certificate (" in text
    assert "against NS" in text
    with browser(tmp_path) as window:
        window.assert_readable(out / "index.html")
