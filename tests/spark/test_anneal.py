import shutil

import numpy as np
import pytest

from relocbench.heuristics import anneal, nearest
from relocbench.instances.evaluation import evaluate
from relocbench.spark.anneal import AnnealOptions, anneal_folder
from relocbench.spark.compare_local import read_homes, read_local

OPTIONS = AnnealOptions(rounds=2, proposals=400, region_clients=150)


@pytest.fixture(scope="module")
def field(regions_field, tmp_path_factory):
    return shutil.copytree(regions_field, tmp_path_factory.mktemp("anneal") / "out")


@pytest.fixture(scope="module")
def annealed(spark, field):
    seen = []
    record, existed = anneal_folder(spark, field, OPTIONS, on_round=lambda number, y: seen.append((number, y)))
    assert not existed
    return record, seen


@pytest.mark.slow
def test_every_round_is_a_valid_assignment_and_the_best_one_is_the_result(field, annealed):
    record, seen = annealed
    instance, ids = read_local(field)
    costs = {}
    for name in ("start", "0001", "0002"):
        costs[name] = evaluate(instance, read_homes(field / "anneal" / "rounds" / name / "homes", ids)).objective
    assert [number for number, _ in seen] == [1, 2]
    assert costs["start"] == pytest.approx(
        evaluate(instance, nearest.solve(instance, seed=0, time_limit=0).home).objective
    )
    result = evaluate(instance, read_homes(field / "anneal" / "homes", ids))
    assert result.objective == pytest.approx(min(costs.values()), rel=1e-9)
    assert record["objective"] == pytest.approx(result.objective, rel=1e-9)
    assert costs[record["best"]] == min(costs.values())
    assert result.objective < 0.98 * costs["start"]


@pytest.mark.slow
def test_the_result_is_about_as_good_as_that_of_the_local_annealing(field, annealed):
    instance, _ = read_local(field)
    moves = OPTIONS.proposals * instance.n_clients
    local = evaluate(instance, anneal.solve(instance, seed=0, time_limit=1e9, moves=moves).home).objective
    assert annealed[0]["objective"] < 1.03 * local


@pytest.mark.slow
def test_homes_do_not_depend_on_partitions_and_a_stopped_run_continues(spark, field, annealed, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(field, copy)
    # As after a kill in the second round: its homes may be there, and its record is not.
    (copy / "anneal" / "rounds" / "0002" / "made.json").unlink()
    (copy / "anneal" / "made.json").unlink()
    first = (copy / "anneal" / "rounds" / "0001" / "made.json").stat().st_mtime_ns
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 7)
    record, existed = anneal_folder(spark, copy, OPTIONS)
    spark.conf.set("spark.sql.shuffle.partitions", before)
    assert not existed
    assert (copy / "anneal" / "rounds" / "0001" / "made.json").stat().st_mtime_ns == first
    assert record["objective"] == annealed[0]["objective"]
    _, ids = read_local(field)
    for name in ("rounds/0002/homes", "homes"):
        assert np.array_equal(read_homes(copy / "anneal" / name, ids), read_homes(field / "anneal" / name, ids))
