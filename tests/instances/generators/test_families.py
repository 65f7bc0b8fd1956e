import subprocess
import sys

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files.instance_json import to_json
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.generators.families import FAMILIES, family

PRINT_HASHES = """
import sys
from relocbench.instances.generators.families import FAMILIES
for name in sys.argv[1:]:
    for cell in reversed(FAMILIES[name].cells()):
        for seed in (2, 0):
            instance = cell.build(seed)
            print(instance.name, instance.hash)
"""


def test_the_registry_has_the_papers_families_and_the_small_ones():
    papers = ["paper", "paper-spooler", "paper-clusters", "paper-tightness", "preliminary"]
    assert list(FAMILIES) == [*papers, "tiny", "small"]
    assert [cell.varied["sigma"] for cell in FAMILIES["paper"].cells()] == [1, 5, 10, 15, 20]
    with pytest.raises(InputError, match=r"family: expected one of paper, .*, got 'papper'"):
        family("papper")


def test_instances_are_equal_in_another_process_and_order():
    names = list(FAMILIES)
    output = subprocess.run(
        [sys.executable, "-c", PRINT_HASHES, *names], capture_output=True, text=True, check=True
    ).stdout
    elsewhere = dict(line.split() for line in output.splitlines())
    here = {}
    for name in names:
        for cell in FAMILIES[name].cells():
            for seed in (0, 2):
                instance = cell.build(seed)
                here[instance.name] = instance.hash
    assert here == elsewhere


def test_equal_families_give_equal_files(tmp_path):
    for copy in ("a", "b"):
        instances = [cell.build(seed) for cell in FAMILIES["tiny"].cells() for seed in range(2)]
        write_rows(instances, tmp_path / f"{copy}.parquet")
        (tmp_path / f"{copy}.json").write_text("".join(map(to_json, instances)))
    for ending in ("parquet", "json"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("name", "overrides", "start"),
    [
        ("paper", {"sigma": 10}, "c3fecbf1c43360f4"),
        ("paper-spooler", {"spool_per_member": 3}, "6b6c6ee4e0f5c167"),
        ("paper-tightness", {"min_topic_size": 8, "sigma": 5}, "9d626f7ee97befba"),
        ("preliminary", {"storage": 7}, "e2e6dd4fdc8fb91d"),
        ("tiny", {"regime": "scarce", "shape": "roles"}, "fe2c57ebf05be402"),
        ("tiny", {"regime": "overloaded", "shape": "asymmetric"}, "90b9abb4ae4b8ffe"),
        ("small", {"regime": "scarce", "clients": 20}, "e3e7bc581b1a377a"),
    ],
)
def test_hashes_of_instances_never_change(name, overrides, start):
    # After a change here, published results can no longer be reproduced from family, cell and seed.
    cells = FAMILIES[name].cells(overrides)
    assert len(cells) == 1
    assert cells[0].build(3).hash[:16] == start


def test_seeds_and_cells_differ():
    hashes = [cell.build(seed).hash for cell in FAMILIES["paper"].cells() for seed in range(3)]
    assert len(set(hashes)) == len(hashes)


def test_a_new_cell_does_not_change_other_instances():
    alone = FAMILIES["paper"].cells({"sigma": 7})[0]
    assert alone.varied == {"sigma": 7.0}
    assert alone.name(3) == "paper-s7-3"
    on_grid = FAMILIES["paper"].cells({"sigma": 10})[0].build(3)
    assert on_grid.hash == FAMILIES["paper"].cells()[2].build(3).hash


def test_a_larger_least_size_makes_larger_topics_that_need_more_storage():
    cells = FAMILIES["paper-tightness"].cells({"sigma": 5})
    built = [cell.build(0) for cell in cells]
    least = [int(instance.members.sizes.min()) for instance in built]
    assert least == [cell.varied["min_topic_size"] for cell in cells] == [2, 4, 6, 8, 10, 12]
    assert {int(instance.members.sizes.max()) for instance in built} <= set(range(19, 22))
    once = [instance.total_spool / instance.storage_capacity.sum() for instance in built]
    assert once == sorted(once)
    assert once[-1] > 1.5 * once[0]


def test_topics_have_the_same_members_for_every_spread():
    first, last = (FAMILIES["paper"].cells({"sigma": sigma})[0].build(4) for sigma in (1, 20))
    assert first.publishers.item.tolist() == last.publishers.item.tolist()
    assert first.client_x.tolist() != last.client_x.tolist()


def test_the_number_of_clusters_changes_the_name_but_not_the_instance():
    cells = FAMILIES["paper-clusters"].cells({"sigma": 5})
    built = [cell.build(0) for cell in cells]
    assert [instance.parameters["clusters"] for instance in built] == [1, 2, 4, 8, 16]
    assert len({instance.hash for instance in built}) == 1
    assert len({instance.name for instance in built}) == 5


def test_preliminary_sizes_fit_the_papers_two_figures():
    for seed in range(5):
        tight, wide = (cell.build(seed) for cell in FAMILIES["preliminary"].cells())
        assert tight.members.sizes.tolist() == wide.members.sizes.tolist() == [7]
        assert (tight.storage_capacity[0], tight.compute_capacity[0]) == (7, 20)
        assert (wide.storage_capacity[0], wide.compute_capacity[0]) == (10, 50)
        assert tight.spool.tolist() == [7.0]


def test_tiny_is_enumerable_and_has_every_shape():
    for cell in FAMILIES["tiny"].cells():
        for seed in range(5):
            instance = cell.build(seed)
            assert instance.n_servers**instance.n_clients <= 4**7
            shape = cell.varied["shape"]
            assert instance.cloud_is_far == (shape != "near-cloud")
            assert (instance.server_server_delay is not None) == (shape == "asymmetric")
            if shape == "single":
                assert (instance.members.sizes == 1).any()
            if shape == "roles":
                assert instance.publishers.item.tolist() != instance.subscribers.item.tolist()


def test_overrides_replace_defaults_and_are_part_of_the_name():
    cell = FAMILIES["paper"].cells({"sigma": 5, "servers": 25, "cloud_delay": 3})[0]
    instance = cell.build(0)
    assert (instance.n_servers, instance.cloud_delay) == (25, 3)
    assert instance.name == "paper-s5-cloud-delay-3.0-servers-25-0"
    same = FAMILIES["paper"].cells({"sigma": 5, "servers": 16})[0].build(0)
    assert same.hash == FAMILIES["paper"].cells({"sigma": 5})[0].build(0).hash
    with pytest.raises(InputError, match="sigmas: expected one of topics, servers, "):
        FAMILIES["paper"].cells({"sigmas": 5})
    with pytest.raises(InputError, match="sigma: expected a number, got 'wide'"):
        FAMILIES["paper"].cells({"sigma": "wide"})
    with pytest.raises(InputError, match="family: tiny takes neither a follower graph nor places"):
        FAMILIES["tiny"].cells()[0].build(0, graph=object())


def test_cells_that_differ_in_no_position_parameter_share_the_map():
    first, last = (FAMILIES["paper-spooler"].cells({"spool_per_member": p})[0].build(1) for p in (1, 6))
    assert first.client_x.tolist() == last.client_x.tolist()
    assert last.spool.tolist() == (6 * first.spool).tolist()
    auto, grid = (FAMILIES["paper"].cells({"sigma": 5, "servers_at": at})[0].build(0).hash for at in ("auto", "grid"))
    assert auto == grid


def test_seeds_of_any_integer_type_are_equal_and_other_values_are_rejected():
    cell = FAMILIES["paper"].cells({"sigma": 5})[0]
    assert cell.build(np.int64(1)).hash == cell.build(1).hash
    for seed in (True, 1.0, -1, "1"):
        with pytest.raises(InputError, match="seed: expected a whole number from 0"):
            cell.build(seed)


def test_overrides_are_converted_to_the_types_of_their_parameters():
    unequal = FAMILIES["small"].cells({"regime": "loose", "clients": 10, "equal_servers": "false"})[0].build(0)
    assert len(set(unequal.storage_capacity.tolist())) > 1
    for name, value in (("topics", 10.7), ("topics", True), ("servers", "few")):
        with pytest.raises(InputError, match=f"{name}: expected a whole number, got"):
            FAMILIES["paper"].cells({name: value})


def test_an_instance_carries_its_parameters():
    found = FAMILIES["small"].cells({"regime": "overloaded", "clients": 15})[0].build(2).parameters
    assert (found["family"], found["seed"], found["regime"], found["clients"]) == ("small", 2, "overloaded", 15)
