"""Atomic writing: no half-written file, no loss of another file, and nothing left behind by killed processes."""

import contextlib
import errno
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files import atomic_write
from relocbench.instances.files.atomic_write import PREFIX, SUFFIX, folder_written_whole, written_whole

# Begins to write a file, says so, and waits to be killed.
WRITER = """
import sys, time
from relocbench.instances.files.atomic_write import folder_written_whole, written_whole
write = folder_written_whole if sys.argv[2] == "folder" else written_whole
with write(sys.argv[1]) as temporary:
    if sys.argv[2] == "folder":
        temporary.mkdir()
        temporary /= "part"
    temporary.write_text("half")
    print("begun", flush=True)
    time.sleep(600)
"""


@contextlib.contextmanager
def begun(path: Path, kind: str) -> Iterator[None]:
    """Start a process that writes; at the end it is killed."""
    command = [sys.executable, "-c", WRITER, str(path), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "begun\n"
            yield
        finally:
            process.kill()


def temporary_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{PREFIX}*{SUFFIX}"))


@pytest.fixture
def old_files_are_stray(monkeypatch):
    """Let every file count as old, and forget which folders were cleaned."""
    monkeypatch.setattr(atomic_write, "YOUNGEST_STRAY", -1e9)
    monkeypatch.setattr(atomic_write, "_cleaned", set())


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_write_removes_what_a_killed_process_left_and_nothing_of_a_living_one(tmp_path, old_files_are_stray, kind):
    with begun(tmp_path / "a", kind):
        with begun(tmp_path / "b", kind):
            assert len(temporary_files(tmp_path)) == 2
        assert len(temporary_files(tmp_path)) == 2
        with written_whole(tmp_path / "c") as temporary:
            temporary.write_text("whole")
        [left] = temporary_files(tmp_path)
        content = left / "new" / "part" if kind == "folder" else left
        assert content.read_text() == "half"
    assert (tmp_path / "c").read_text() == "whole"


def test_a_file_that_may_not_be_locked_yet_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(atomic_write, "_cleaned", set())
    stray = tmp_path / f"{PREFIX}abc{SUFFIX}"
    stray.write_text("half")
    with written_whole(tmp_path / "c") as temporary:
        temporary.write_text("whole")
    assert stray.exists()
    os.utime(stray, (time.time() - 3600,) * 2)
    monkeypatch.setattr(atomic_write, "_cleaned", set())
    with written_whole(tmp_path / "c") as temporary:
        temporary.write_text("whole")
    assert not stray.exists()


def test_files_of_other_programs_and_links_stay(tmp_path, old_files_are_stray):
    for name in ("film.mp4.part", ".film.part", ".x.json.12345678.part"):
        (tmp_path / name).write_text("other")
    (tmp_path / "precious").write_text("other")
    (tmp_path / f"{PREFIX}link{SUFFIX}").symlink_to(tmp_path / "precious")
    with written_whole(tmp_path / "c") as temporary:
        temporary.write_text("whole")
    assert len(list(tmp_path.iterdir())) == 6
    assert (tmp_path / "precious").read_text() == "other"


def test_a_name_of_the_largest_length_can_be_written(tmp_path):
    with written_whole(tmp_path / ("x" * 250)) as temporary:
        temporary.write_text("whole")
    assert (tmp_path / ("x" * 250)).read_text() == "whole"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), RuntimeError("no"), KeyboardInterrupt("stop")])
def test_a_failed_write_leaves_the_file_and_the_folder_as_they_were(tmp_path, error):
    path = tmp_path / "file"
    path.write_text("before")

    def fail():
        with written_whole(path) as temporary:
            temporary.write_text("half")
            raise error

    message = "cannot be written (No space left on device)" if isinstance(error, OSError) else str(error)
    with pytest.raises(InputError if isinstance(error, OSError) else type(error), match=re.escape(message)):
        fail()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("folder", "expected a file to write, got a folder"),
        ("x" * 5_000, "cannot be written (File name too long)"),
        ("a\0b", "cannot be written (the name contains a null character)"),
    ],
)
def test_a_path_that_cannot_be_written_gives_one_line(tmp_path, name, problem):
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as caught, written_whole(tmp_path / name) as temporary:
        temporary.write_text("whole")
    assert str(caught.value) == f"{tmp_path / name}: {problem}"


@pytest.mark.parametrize("write", [written_whole, folder_written_whole])
@pytest.mark.parametrize("inside", ["inside", "further/inside"])
def test_a_folder_that_is_a_file_gives_one_line(tmp_path, write, inside):
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as caught, write(tmp_path / "file" / inside):
        pass
    assert str(caught.value).startswith(f"{tmp_path / 'file'}")
    assert str(caught.value).endswith(": expected a folder to write to, got a file")


def test_a_full_device_gives_one_line():
    with pytest.raises(InputError) as caught, written_whole("/dev/full") as temporary:
        temporary.write_text("whole")
    assert str(caught.value) == "/dev/full: cannot be written (No space left on device)"


def test_a_link_keeps_pointing_to_the_file_that_is_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/file")
    with written_whole(tmp_path / "link") as temporary:
        temporary.write_text("whole")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "folder" / "file").read_text() == "whole"


def test_a_folder_is_replaced_as_a_whole_or_not_at_all(tmp_path):
    path = tmp_path / "data"
    for text in ("one", "two"):
        with folder_written_whole(path) as temporary:
            temporary.mkdir()
            (temporary / text).touch()
        assert [file.name for file in path.iterdir()] == [text]

    def fail():
        with folder_written_whole(path) as temporary:
            temporary.mkdir()
            raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        fail()
    assert [file.name for file in path.iterdir()] == ["two"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_standard_output_gives_one_line_and_exit_code_2():
    command = [sys.executable, "-m", "relocbench", "families"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    expected = "relocbench: standard output: cannot be written (No space left on device)\n"
    assert (done.returncode, done.stderr) == (2, expected)
