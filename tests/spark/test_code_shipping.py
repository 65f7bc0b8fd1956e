import os
import subprocess
import sys
from pathlib import Path

from relocbench.spark.code_shipping import unpack_archive, write_archive


def imported(archive, caches, code):
    """Run code in a process that imports from the archive first."""
    environment = os.environ | {"PYTHONPATH": str(archive), "XDG_CACHE_HOME": str(caches)}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=os.sep, env=environment)
    return done.stdout.split()


def test_shipped_code_is_imported_from_a_folder_named_after_its_content(tmp_path):
    archive, caches = tmp_path / "relocbench.zip", tmp_path / "caches"
    write_archive(archive)
    code = "import relocbench.instances.errors as errors, relocbench.spark.code_shipping, relocbench"
    code += "; print(errors.__file__, relocbench.__file__)"
    code += "; import importlib.metadata as m; print(m.distribution('relocbench').locate_file(''))"
    files = imported(archive, caches, code)
    folder = unpack_archive(str(archive), caches / "relocbench" / "code")
    assert list(folder.parent.iterdir()) == [folder]
    assert all(Path(file).is_relative_to(folder) for file in files)
    assert imported(archive, caches, code) == files
    assert {entry.name for entry in folder.iterdir() if not entry.name.endswith(".dist-info")} == {"relocbench"}


def test_the_same_code_gives_the_same_archive(tmp_path):
    write_archive(tmp_path / "one.zip")
    write_archive(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


def test_processes_that_start_at_once_share_one_folder(tmp_path):
    archive, caches = tmp_path / "relocbench.zip", tmp_path / "caches"
    write_archive(archive)
    environment = os.environ | {"PYTHONPATH": str(archive), "XDG_CACHE_HOME": str(caches)}
    command = [sys.executable, "-c", "import relocbench.instances.errors as e; print(e.__file__)"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=os.sep, env=environment) for _ in range(4)
    ]
    assert len({process.communicate()[0] for process in running}) == 1
    assert [process.returncode for process in running] == [0] * 4
    assert len(list((caches / "relocbench" / "code").iterdir())) == 1
