import dataclasses

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.places import read_places
from relocbench.instances.generators.paper_generator import PaperParameters
from relocbench.instances.load import load_of, storage_once, with_load
from relocbench.spark.assign import RelocOptions
from relocbench.spark.compare_local import compare, read_local
from relocbench.spark.field_choices import FieldChoices, read_capacities
from relocbench.spark.pipeline import solve_field


def local(spark, topics, out, **choices):
    parameters = PaperParameters(servers=9, sigma=2.0)
    solve_field(spark, topics, out, "nearest", parameters, RelocOptions(), choices=FieldChoices(**choices))
    assert compare(out, "nearest").equal
    return read_local(out)[0]


def places(path, count, seed):
    rng = np.random.default_rng(seed)
    at = np.array([-37.8, 144.9]) + 0.05 * rng.random((count, 2))
    path.write_text("\n".join(["LATITUDE,LONGITUDE", *(f"{a:.6f},{b:.6f}" for a, b in at)]) + "\n")
    return path


@pytest.mark.slow
def test_load_scales_capacities_as_for_a_local_instance(spark, topics, tmp_path):
    loaded = local(spark, topics, tmp_path / "loaded", load=1.1)
    plain = local(spark, topics, tmp_path / "plain")
    expected = with_load(plain, 1.1)
    assert loaded.storage_capacity.tolist() == expected.storage_capacity.tolist()
    assert loaded.compute_capacity.tolist() == expected.compute_capacity.tolist()
    assert load_of(loaded).largest == pytest.approx(1.1, rel=1e-8)


@pytest.mark.slow
def test_capacities_in_proportion_to_demand_are_as_tight_as_those_of_the_paper(spark, topics, tmp_path):
    instance = local(spark, topics, tmp_path / "demand", rule="demand")
    # The paper's instances need 12 % of the storage with each topic on one server, and 31.5 % of the compute.
    assert storage_once(instance) == pytest.approx(0.1198, rel=1e-3)
    assert load_of(instance).compute == pytest.approx(0.3149, rel=1e-3)


@pytest.mark.slow
def test_capacities_of_a_file_are_those_of_the_servers(spark, topics, tmp_path):
    rows = [f"{100 + server},{900 - server}" for server in range(9)]
    (tmp_path / "capacities.csv").write_text("\n".join(["storage,compute", *rows]) + "\n")
    instance = local(spark, topics, tmp_path / "out", capacity_file=tmp_path / "capacities.csv")
    assert instance.storage_capacity.tolist() == [100.0 + server for server in range(9)]
    assert instance.compute_capacity.tolist() == [900.0 - server for server in range(9)]


@pytest.mark.slow
@pytest.mark.parametrize("people", [40, 4000])
def test_servers_and_clients_stand_at_real_places(spark, topics, tmp_path, people):
    sites, homes = places(tmp_path / "sites.csv", 20, 1), places(tmp_path / "people.csv", people, 2)
    instance = local(spark, topics, tmp_path / "out", sites=sites, people=homes)
    known = read_places(sites, homes)
    assert {*zip(instance.server_x, instance.server_y, strict=True)} <= {*map(tuple, known.sites)}
    at = list(zip(instance.client_x, instance.client_y, strict=True))
    assert {*at} <= {*map(tuple, known.clients)}
    # With enough places nobody shares one.
    assert (len({*at}) == len(at)) == (people > len(at))


def test_other_choices_are_other_inputs(tmp_path):
    sites = places(tmp_path / "sites.csv", 3, 1)
    assert FieldChoices().inputs() == {}
    before = FieldChoices(sites=sites, load=2.0, rule="demand").inputs()
    assert (before["load"], before["capacities"], len(before["sites"])) == (2.0, "demand", 64)
    places(sites, 3, 2)
    assert FieldChoices(sites=sites).inputs()["sites"] != before["sites"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("storage\n1\n", "expected a column named compute"),
        ("storage,compute\n1,2\n", "expected one row for each of 2 servers, got 1"),
        ("storage,compute\n1,2\n-3,4\n", "line 3: storage: expected a number of at least 0, got '-3'"),
        ("storage,compute\n1,2\n3\n", "line 3: compute: expected a number of at least 0, got ''"),
    ],
)
def test_a_wrong_file_of_capacities_is_refused(tmp_path, text, problem):
    (tmp_path / "capacities.csv").write_text(text)
    with pytest.raises(InputError, match=f"capacities.csv: {problem}"):
        read_capacities(tmp_path / "capacities.csv", 2)


def test_wrong_choices_are_refused(tmp_path):
    with pytest.raises(InputError, match="--load: expected a number above 0"):
        FieldChoices(load=0.0)
    with pytest.raises(InputError, match="--people: needs --sites"):
        FieldChoices(people=tmp_path / "people.csv")
    with pytest.raises(InputError, match="nowhere: cannot be read"):
        dataclasses.replace(FieldChoices(), capacity_file=tmp_path / "nowhere").inputs()
