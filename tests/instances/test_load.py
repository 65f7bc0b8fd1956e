"""The load of an instance: what it measures, and that it can be set for every family."""

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.generators.generate import generate, generate_many
from relocbench.instances.instance import Instance
from relocbench.instances.load import load_of, with_load
from tests.instances.files.bad_files import run_command
from tests.samples import worked_example


def test_the_load_compares_nearest_homes_with_all_capacities():
    load = load_of(worked_example())  # nearest homes are those of the paper's example: a = (8, 14), v = (16, 14)
    assert (load.storage, load.compute, load.storage_once) == (22 / 20, 30 / 40, 14 / 20)
    assert load.largest == 22 / 20


def test_scaling_keeps_the_proportions_and_everything_else():
    before = generate("small", seed=0, regime="scarce", clients=15)
    after = with_load(before, 1.3)
    assert load_of(after).largest == pytest.approx(1.3)
    ratio = after.storage_capacity / before.storage_capacity
    assert ratio == pytest.approx(np.full(before.n_servers, ratio[0]))
    assert after.compute_capacity / before.compute_capacity == pytest.approx(ratio)
    assert after.client_x.tolist() == before.client_x.tolist()
    assert after.parameters["load"] == 1.3


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_can_be_generated_with_a_load(name):
    cell = FAMILIES[name].cells({"load": "0.83"})[0]
    assert cell.name(3).endswith("-load-0.83-3")
    instance, without = cell.build(3), FAMILIES[name].cells()[0].build(3)
    assert load_of(instance).largest == pytest.approx(0.83)
    assert instance.client_x.tolist() == without.client_x.tolist()
    assert instance.hash != without.hash


def test_real_places_can_be_generated_with_a_load(tmp_path):
    sites = tmp_path / "sites.csv"
    sites.write_text("lat,lon\n" + "".join(f"{50 + i / 100},{8 + i / 70}\n" for i in range(20)))
    _, instances = generate_many("paper", [0], {"sigma": 10, "topics": 8, "load": 1.1}, sites=sites)
    instance = next(instances)
    assert load_of(instance).largest == pytest.approx(1.1)
    assert (instance.parameters["load"], instance.parameters["sites"]) == (1.1, "sites.csv")


@pytest.mark.parametrize("load", [0, -1, float("nan"), float("inf"), "1.1", True])
def test_a_load_is_a_number_above_0(load):
    with pytest.raises(InputError, match="load: expected a number above 0"):
        with_load(worked_example(), load)


def test_a_load_needs_something_to_scale():
    tables = {"servers": [(0, 0)], "clients": [(0, 0)]}
    with pytest.raises(InputError, match="load: cannot be set, because the instance has no capacity"):
        with_load(Instance.of(**tables, topics=[[0]], storage=0, compute=1), 1.1)
    with pytest.raises(InputError, match="load: cannot be set, because the instance has no publisher with a spool"):
        with_load(Instance.of(**tables, topics=[{"members": [0], "spool": 0}], storage=1, compute=1), 1.1)


def test_describe_prints_the_load(tmp_path):
    path = tmp_path / "inst.json"
    assert (
        run_command("generate", "--family", "paper", "--sigma", "5", "--seed", "0", "--load", "1.1", "--out", path)[0]
        == 0
    )
    code, out, _ = run_command("describe", path)
    lines = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert code == 0
    assert float(lines["storage_load"]) == pytest.approx(1.1)
    assert lines["name"] == "paper-s5-load-1.1-0"
