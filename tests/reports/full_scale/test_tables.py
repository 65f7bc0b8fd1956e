import json

import pyarrow.parquet as pq
import pytest

from relocbench.instances.errors import InputError
from relocbench.reports.full_scale.page import lead
from relocbench.reports.full_scale.plots import curves_of, short_name
from relocbench.reports.full_scale.tables import read_study, variant, write_tables

FIELD = {
    "asked": {"seed": 0, "proportional": True, "parameters": {}},
    "server_x": [0.0, 10.0, 20.0],
    "server_y": [0.0, 0.0, 0.0],
    "storage": [10.0, 10.0, 0.0],
    "compute": [20.0, 20.0, 5.0],
    "cloud_delay": 5.0,
    "delay_per_km": 0.1,
    "spool_per_member": 2.0,
    "clients": 6,
    "topics": 2,
    "memberships": 7,
}


def record(selector, objective, clients, theta=(1.0, 1.0, 1.0), **more):
    name, _, settings = selector.partition("[")
    asked = {"method": name, "seed": 0} | ({"k": int(settings.partition("k=")[2][:1])} if "k=" in settings else {})
    cost = {"Y": objective / 10, "Y1": objective / 10, "Y2": 0.0, "objective": objective, "publications": 10}
    servers = {"theta": theta, "storage": [5.0, 20.0, 0.0], "compute": [5.0, 10.0, 1.0], "sent": [4.0, 3.0, 0.0]}
    use = {"seconds": 2.0, "cpu_seconds": 1.5, "memory_mib": 100.0}
    return {
        "asked": asked,
        "selector": selector,
        **cost,
        **servers,
        "clients_by_server": clients,
        "stages": {"homes": use, "evaluation": use | {"memory_mib": 80.0}},
        **more,
    }


@pytest.fixture
def folder(tmp_path):
    results = {
        "nearest": record("nearest", 20.0, [2, 3, 1], theta=(1.0, 0.5, 1.0)),
        "reloc-2": record("reloc[k=2,relation=exact]", 25.0, [1, 1, 4]),
        "reloc-1": record("reloc[k=1,relation=exact]", 16.0, [6, 0, 0]),
        "certify": record("certify", 15.0, [0, 6, 0], bound=12.0),
    }
    for name, made in {"field": FIELD, **{f"results/{name}": made for name, made in results.items()}}.items():
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "made.json").write_text(json.dumps(made))
    return tmp_path


def test_results_are_compared_with_the_bound_and_with_the_cheapest(folder):
    study = read_study(folder)
    assert [one.folder for one in study.results] == ["certify", "reloc-1", "nearest", "reloc-2"]
    assert study.bound == 12.0
    assert [one.gap for one in study.results] == pytest.approx([3 / 15, 4 / 16, 8 / 20, 13 / 25])
    assert [one.excess for one in study.results] == pytest.approx([0.0, 16 / 15 - 1, 20 / 15 - 1, 25 / 15 - 1])
    assert [one.overloaded for one in study.results] == [0, 0, 1, 0]
    assert study.results[0].storage_use.tolist() == [0.5, 2.0, 0.0]
    assert [study.results[0].used(column) for column in ("seconds", "cpu_seconds", "memory_mib")] == [4.0, 3.0, 100.0]


def test_clients_of_a_cluster_are_those_of_its_servers(folder):
    write_tables(read_study(folder), folder)
    rows = pq.read_table(folder / "clusters.parquet").to_pylist()
    two = sorted((row["servers"], row["clients"]) for row in rows if row["result"] == "reloc-2")
    assert two in ([(1, 1), (2, 5)], [(1, 4), (2, 2)])  # the middle server is as far from one end as from the other
    assert [(row["servers"], row["clients"]) for row in rows if row["result"] == "reloc-1"] == [(3, 6)]


def test_a_bound_above_a_cost_is_an_error(folder):
    path = folder / "results" / "certify" / "made.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bound": 15.1}))
    with pytest.raises(InputError, match=r"has a bound of 15.1 above a cost of 15: one of them is wrong"):
        read_study(folder)


def test_the_lead_states_the_best_method_and_reloc_against_ns(folder):
    text = lead(read_study(folder))
    assert "**certify** with Y = **1.5 ms**" in text
    assert "RELOC exact, K = 1, with Y = 1.6 ms (-20.0% against NS)" in text
    assert "the worst is RELOC exact, K = 2, with Y = 2.5 ms (+25.0% against NS)" in text
    assert "below **1.2 ms**, by a verified certificate (of the whole instance on one machine)" in text
    assert "the gap of the best is 20.00%" in text
    assert "overload 0 to 1 of 3 servers" in text


def test_readings_are_curves_over_the_number_of_clusters(folder):
    (curve,) = curves_of(read_study(folder)).values()
    assert [one.k for one in curve] == [1, 2]
    assert variant("reloc[k=8]") == "reloc[]"
    assert short_name("reloc[k=8,reading=pseudocode,ties=placed]") == "RELOC pseudocode, ties=placed, K = 8"
    assert short_name("nearest") == "NS"


def test_a_folder_without_results_is_refused(folder):
    for path in (folder / "results").glob("*/made.json"):
        path.unlink()
    with pytest.raises(InputError, match="expected results of a study, found none"):
        read_study(folder)
