import dataclasses

import numpy as np
import pyarrow.parquet as pq
import pytest

from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.generate import generate
from relocbench.reports.paper.measures import BEST, Case, Measures, carry_bounds, measure, read_rows, write_rows


@pytest.fixture(scope="module")
def case():
    return Case("paper", "sigma", 5.0, 3, generate("paper", 3, sigma=5, topics=6, servers=4))


def test_the_measures_agree_with_the_evaluator(case):
    instance = case.instance
    home = np.zeros(instance.n_clients, np.int32)
    cost = evaluate(instance, home)
    row = measure(case, home, "mine", cost.objective)
    assert (row.group, row.study, row.x, row.seed, row.method) == ("paper", "sigma", 5.0, 3, "mine")
    assert row.storage_once == pytest.approx(instance.spool.sum() / instance.storage_capacity.sum())
    assert (row.y, row.y1, row.y2) == (cost.y, cost.y1, cost.y2)
    # All clients have the same home out of four servers.
    assert row.fullest_storage == pytest.approx(4 * row.storage_use) == cost.storage_load[0] / 640
    assert row.fullest_compute == pytest.approx(4 * row.compute_use) == cost.compute_load[0] / 3200
    distance = np.hypot(instance.client_x - instance.server_x[0], instance.client_y - instance.server_y[0]).mean()
    assert row.distance_km == pytest.approx(distance)
    assert row.proved
    assert not dataclasses.replace(row, bound=0.99 * row.y).proved
    assert not dataclasses.replace(row, bound=None).proved


def rows_of(case, **numbers):
    row = measure(case, np.zeros(case.instance.n_clients, np.int32), "mine")
    return dataclasses.replace(row, **numbers)


def test_differences_are_paired_and_to_the_best_of_the_others(case):
    rows = [
        rows_of(case, seed=seed, method=method, y=y)
        for seed, values in enumerate([(1.0, 3.0, 2.0), (5.0, 4.0, 9.0)])
        for method, y in zip("abc", values, strict=True)
    ]
    found = Measures([*rows, rows_of(case, seed=2, method="a")])
    assert found.differences("sigma", 5.0, "a", ["b", "c"]) == [-1.0, 1.0]
    assert found.mean("sigma", 5.0, "b", "y").mean == 3.5
    assert found.mean("sigma", 5.0, "b", "bound") is None
    assert found.mean("sigma", 1.0, "b", "y") is None


def test_bounds_are_carried_to_larger_spools_on_the_same_map():
    bounds = {(0, 3): 1.2, (0, 1): 1.0, (0, 2): 1.5, (0, 4): None, (1, 1): 9.0, (1, 4): None}
    instances = {key: generate("paper-spooler", key[0], spool_per_member=key[1]) for key in bounds}
    rows = [
        rows_of(Case("paper", "spool", float(p), seed, instances[seed, p]), bound=bound)
        for (seed, p), bound in bounds.items()
    ]
    by_hash = {instance.hash: instance for instance in instances.values()}
    found = {(row.seed, row.x): row.bound for row in carry_bounds(rows, by_hash)}
    assert found == {(0, 3): 1.5, (0, 1): 1.0, (0, 2): 1.5, (0, 4): 1.5, (1, 1): 9.0, (1, 4): 9.0}
    assert list(found) == list(bounds)


def test_bounds_are_not_carried_if_the_cloud_is_near():
    instances = [
        dataclasses.replace(generate("paper-spooler", 0, spool_per_member=p), cloud_delay=0.5) for p in (1, 2, 3)
    ]
    rows = [
        rows_of(Case("paper", "spool", float(p), 0, instance), bound=bound)
        for p, (instance, bound) in enumerate(zip(instances, (2.0, 1.0, None), strict=True), 1)
    ]
    by_hash = {instance.hash: instance for instance in instances}
    assert [row.bound for row in carry_bounds(rows, by_hash)] == [2.0, 1.0, None]


def test_larger_spools_never_cost_less():
    home = None
    costs = []
    for p in (1, 2, 4, 6):
        instance = generate("paper-spooler", 0, spool_per_member=p)
        home = np.arange(instance.n_clients) % 5 if home is None else home
        assert instance.cloud_is_far
        costs.append(evaluate(instance, home).objective)
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


def test_the_file_holds_every_row(case, tmp_path):
    rows = [rows_of(case, seed=seed, method=BEST) for seed in range(3)]
    write_rows(rows, tmp_path / "rows.parquet")
    assert read_rows(tmp_path / "rows.parquet") == rows
    table = pq.read_table(tmp_path / "rows.parquet")
    assert table.column("seed").to_pylist() == [0, 1, 2]
    assert table.column("proved").to_pylist() == [False] * 3
