"""Locks between processes."""

import fcntl
import subprocess
import sys

import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.files import file_lock
from relocbench.instances.files.file_lock import locked

# Adds 1 to the number in a file, many times.
COUNTER = """
import sys, time
from pathlib import Path
from relocbench.instances.files.file_lock import locked
path = Path(sys.argv[1])
for _ in range(100):
    with locked(path):
        number = int(path.read_text())
        time.sleep(0.0005)
        path.write_text(str(number + 1))
"""
# Takes the lock, says so, and waits.
HOLDER = """
import sys, time
from relocbench.instances.files.file_lock import locked
with locked(sys.argv[1]):
    print("locked", flush=True)
    time.sleep(600)
"""


def test_no_change_is_lost_and_no_lock_stays(tmp_path):
    path = tmp_path / "number"
    path.write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", COUNTER, str(path)]) for _ in range(4)]
    assert [process.wait() for process in processes] == [0] * 4
    assert path.read_text() == "400"
    assert list(tmp_path.iterdir()) == [path]


def test_the_lock_of_a_killed_process_is_free(tmp_path, monkeypatch):
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "file")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        monkeypatch.setattr(file_lock, "PATIENCE", 0.1)
        with (
            pytest.raises(InputError, match=r"another process has held its lock for 0\.1 s"),
            locked(tmp_path / "file"),
        ):
            pass
        holder.kill()
    with locked(tmp_path / "file"):
        assert [path.name for path in tmp_path.iterdir()] == [".file.lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_file_system_without_locks_gives_one_line(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(InputError) as caught, locked(tmp_path / "file"):
        pass
    expected = "its folder has no locks (No locks available); copy the folder to a local disk"
    assert str(caught.value) == f"{tmp_path / 'file'}: {expected}"
