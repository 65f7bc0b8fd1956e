import gzip
import json
import os
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.files.atomic_write import written_whole
from relocbench.instances.files.homes_file import read_solution
from relocbench.instances.files.instance_json import to_json
from relocbench.instances.files.instance_parquet import write_rows
from relocbench.instances.files.solution_file import StoredSolution, write_solution
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.instance_source import instance_files, read_instance, read_instances, write_instance
from tests.samples import KINDS, random_home, random_instance, worked_example


@pytest.mark.parametrize("ending", ["json", "json.gz", "parquet"])
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_instances_are_read_back_unchanged(tmp_path, seed, ending):
    instance = random_instance(seed)
    path = tmp_path / f"instance.{ending}"
    write_instance(instance, path)
    again = read_instance(path)
    assert again.hash == instance.hash
    assert again.name == instance.name
    home = random_home(instance, seed)
    assert evaluate(again, home).objective == evaluate(instance, home).objective


@pytest.mark.parametrize("ending", ["json", "json.gz", "parquet"])
def test_parameters_are_read_back_unchanged(tmp_path, ending):
    instance = FAMILIES["paper"].cells({"sigma": 5})[0].build(0)
    write_instance(instance, tmp_path / f"instance.{ending}")
    assert read_instance(tmp_path / f"instance.{ending}").parameters == instance.parameters


def test_the_json_format_is_the_documented_one(tmp_path):
    # The content follows the documentation of the format and does not come from the writer.
    content = {
        "format": "relocbench-instance/1",
        "name": "by hand",
        "cloud_delay": 5,
        "delay_per_km": 0.1,
        "servers": {"x": [0, 10], "y": [0, 0], "storage": [10, 10], "compute": [20, 20]},
        "clients": {"x": [1, 2, 9, 11], "y": [0, 0, 0, 0]},
        "topics": [
            {"spool": 8, "publishers": [0, 1, 2], "subscribers": [3]},
            {"spool": 6.0, "publishers": [2], "subscribers": [3]},
        ],
    }
    path = tmp_path / "hand.json"
    path.write_text(json.dumps(content))
    assert read_instance(path).hash == worked_example().hash
    assert json.loads(to_json(worked_example())) == content | {"name": "worked-example"}
    content["client_server_delay"] = [[1, 2], [3, 4], [5, 6], [7, 8]]
    content["server_server_delay"] = [[0, 3], [4, 0]]
    content["parameters"] = {"anything": [1, {"goes": None}]}
    path.write_text(json.dumps(content))
    explicit = read_instance(path)
    assert explicit.client_delay(2, 1) == 6
    assert explicit.server_delay.tolist() == [[0, 3], [4, 0]]
    assert explicit.parameters["anything"] == [1, {"goes": None}]


def test_compressed_files_contain_neither_time_nor_name(tmp_path):
    instance = worked_example()
    for name in ("a", "b"):
        write_instance(instance, tmp_path / f"{name}.json.gz")
    assert (tmp_path / "a.json.gz").read_bytes() == (tmp_path / "b.json.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.json.gz").read_bytes()).decode() == to_json(instance)


def test_one_instance_of_a_parquet_file_is_read_by_name(tmp_path):
    instances = [cell.build(seed) for cell in FAMILIES["preliminary"].cells() for seed in range(3)]
    path = tmp_path / "family.parquet"
    assert write_rows(instances, path) == 6
    assert [instance.hash for instance in read_instances(path)] == [instance.hash for instance in instances]
    wanted = instances[4]
    assert read_instance(f"{path}#{wanted.name}").hash == wanted.hash
    with pytest.raises(InputError, match=r"expected one instance, found several; name one: .*#preliminary-a7-b20-0"):
        read_instance(path)
    with pytest.raises(InputError, match="expected one instance named 'nobody', found none"):
        read_instance(f"{path}#nobody")


def test_a_solution_is_read_back_for_its_own_instance_only(tmp_path):
    instance = worked_example()
    stored = StoredSolution(instance.hash, "by hand", 7, "feasible", np.array([0, 0, 1, 1], np.int32), 1.5, None)
    path = tmp_path / "solution.json"
    write_solution(stored, path)
    again = read_solution(path, instance)
    assert again.home.tolist() == [0, 0, 1, 1]
    assert (again.method, again.seed, again.status) == ("by hand", 7, "feasible")
    assert (again.objective, again.bound) == (1.5, None)
    with pytest.raises(InputError, match="of the instance given, got"):
        read_solution(path, random_instance(0))


def test_a_failed_write_leaves_only_the_old_file(tmp_path):
    path = tmp_path / "kept.json"
    path.write_text("old")

    def fail_half_way():
        with written_whole(path) as temporary:
            temporary.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["kept.json"]


def test_writing_follows_links_and_keeps_pipes(tmp_path):
    (tmp_path / "target.json").write_text("old")
    (tmp_path / "link.json").symlink_to("target.json")
    write_instance(worked_example(), tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert read_instance(tmp_path / "target.json").hash == worked_example().hash
    os.mkfifo(tmp_path / "pipe.json")
    reader = subprocess.Popen(["cat", tmp_path / "pipe.json"], stdout=subprocess.PIPE, text=True)
    write_instance(worked_example(), tmp_path / "pipe.json")
    assert reader.communicate()[0] == to_json(worked_example())
    assert not (tmp_path / "pipe.json").is_file()


def test_an_instance_name_is_found_after_a_folder_with_a_hash_sign(tmp_path):
    instances = [cell.build(0) for cell in FAMILIES["preliminary"].cells()]
    path = tmp_path / "a#b" / "family.parquet"
    write_rows(instances, path)
    assert read_instance(f"{path}#{instances[1].name}").hash == instances[1].hash


def test_written_files_have_ordinary_permissions(tmp_path):
    write_instance(worked_example(), tmp_path / "a.json")
    (tmp_path / "plain").write_text("")
    assert stat.S_IMODE((tmp_path / "a.json").stat().st_mode) == stat.S_IMODE((tmp_path / "plain").stat().st_mode)


def test_missing_folders_are_created_and_unwritable_paths_rejected(tmp_path):
    write_instance(worked_example(), tmp_path / "new" / "deep" / "a.json")
    assert read_instance(tmp_path / "new" / "deep" / "a.json").hash == worked_example().hash
    with pytest.raises(InputError, match=r"a\.json: expected a folder to write to, got a file"):
        write_instance(worked_example(), tmp_path / "new" / "deep" / "a.json" / "b.json")
    with pytest.raises(InputError, match="expected a name ending in"):
        write_instance(worked_example(), tmp_path / "a.txt")


def test_a_folder_gives_its_instance_files(tmp_path):
    for name in ("b.json", "a.parquet", "c.json.gz", "notes.txt"):
        (tmp_path / name).touch()
    (tmp_path / ".half.parquet.part").touch()
    assert [file.name for file in instance_files(tmp_path)] == ["a.parquet", "b.json", "c.json.gz"]
    assert instance_files("library:small-*") == [Path("library:small-*")]
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="expected instances in the folder"):
        instance_files(tmp_path / "empty")
