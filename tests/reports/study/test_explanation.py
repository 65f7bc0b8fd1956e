import csv

import numpy as np
import pyarrow.parquet as pq
import pytest

from relocbench.instances.features import FEATURES
from relocbench.reports.pages.page import Page
from relocbench.reports.study.explanation import explanations
from relocbench.reports.study.explanation_section import add_explanations
from relocbench.reports.study.instance_space import write_features, write_metadata
from tests.reports.study.samples import measurement

RNG = np.random.default_rng(0)
FEATURE_VALUES = {f"i{number}": {name: float(RNG.random()) for name in FEATURES} for number in range(40)}


def runs(excess):
    return [measurement(key, "reloc", excess(values)) for key, values in FEATURE_VALUES.items()]


@pytest.fixture(scope="module")
def explained():
    [found] = explanations(runs(lambda values: 1.0 if values["storage_load"] > 0.5 else 0.1), FEATURE_VALUES)
    return found


def test_the_feature_that_decides_is_found_on_blocks_not_seen(explained):
    assert next(iter(explained.importance)) == "storage_load"
    assert explained.predicted > 0.8
    others = [value for name, value in explained.importance.items() if name != "storage_load"]
    assert max(others) < 0.1 < explained.importance["storage_load"]


def test_the_rules_of_the_tree_say_where_the_excess_is_large(explained):
    least, *_, largest = explained.rules
    assert least[0].startswith("`storage_load` ≤ 0.")
    assert least[1] == pytest.approx(0.1)
    assert largest[1] == pytest.approx(1.0)
    assert sum(number for _, _, number in explained.rules) == 40


def test_noise_is_not_explained():
    noise = np.random.default_rng(1)
    [found] = explanations(runs(lambda values: float(noise.random())), FEATURE_VALUES)
    assert found.predicted < 0.1


def test_few_instances_or_blocks_or_no_variation_give_no_explanation():
    every = runs(lambda values: values["clients"])
    assert explanations(every[:19], FEATURE_VALUES) == []
    assert (
        explanations([measurement(one.instance, "reloc", one.excess, block="one") for one in every], FEATURE_VALUES)
        == []
    )
    assert explanations(runs(lambda values: 0.2), FEATURE_VALUES) == []


def test_the_page_says_when_there_are_too_few_instances():
    page = Page("A page")
    add_explanations(page, runs(lambda values: 0.2)[:3], FEATURE_VALUES)
    assert "Too few instances" in page.render()


def test_features_are_stored_with_one_row_per_instance(tmp_path):
    write_features(runs(lambda values: 0.1), FEATURE_VALUES, tmp_path / "features.parquet")
    table = pq.read_table(tmp_path / "features.parquet").to_pylist()
    assert len(table) == 40
    assert {name: table[0][name] for name in FEATURES} == FEATURE_VALUES["i0"]


def test_the_metadata_has_the_columns_of_instance_space_tools(tmp_path):
    every = [measurement("i0", "anneal[moves=2e4]", 0.25), measurement("i1", "anneal[moves=2e4]", None)]
    every += [measurement("i0", "anneal[moves=2;e4]", 0.5)]
    write_metadata(every, FEATURE_VALUES, tmp_path / "metadata.csv")
    with (tmp_path / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "Instances",
        "Source",
        *(f"feature_{name}" for name in FEATURES),
        "algo_anneal_moves_2e4",
        "algo_anneal_moves_2_e4",
    ]
    assert [row["algo_anneal_moves_2e4"] for row in rows] == ["0.25", ""]
