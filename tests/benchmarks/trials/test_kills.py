import gzip
import random
import signal
import sys

import pytest

from benchmarks.trials import kills
from benchmarks.trials.kills import Scenario


@pytest.mark.parametrize(
    ("name", "content", "whole"),
    [
        ("a.json", b'{"a": 1}', True),
        ("a.json", b'{"a": 1', False),
        ("a.json.gz", gzip.compress(b"[]", mtime=0), True),
        ("a.json.gz", gzip.compress(b"[]", mtime=0)[:-3], False),
        ("a.parquet", b"PAR1", False),
        ("a.html", b"<html></html>\n", True),
        ("a.html", b"<html>", False),
        (".a.json.x.part", b"{", True),
    ],
)
def test_a_file_that_is_not_whole_is_found(tmp_path, name, content, whole):
    (tmp_path / name).write_bytes(content)
    assert (kills._damaged(tmp_path, {}) == "") == whole
    assert kills._damaged(tmp_path, {tmp_path / name: content}) == ""


# A program that takes the place of the command.
WRITES = "open('a.json', 'w').write('[1]')"


def scenario(source):
    return Scenario((source,), lambda folder: None, lambda folder: (folder / "a.json").read_text())


@pytest.mark.parametrize(
    ("source", "verdict", "problem"),
    [
        (WRITES, "right", ""),
        ("open('a.json', 'w').write('[1')", "wrong", "not whole"),
        ("open('a.json', 'w').write('[2]')", "wrong", "other results"),
        (f"{WRITES}; open('stray', 'w').close()", "wrong", "left or missing: stray"),
        (f"{WRITES}; import sys; sys.exit(3)", "wrong", "exit code 3"),
        ("import time; time.sleep(60)", "hung", "did not end"),
    ],
)
def test_what_must_hold_after_a_signal(tmp_path, monkeypatch, source, verdict, problem):
    monkeypatch.setattr(kills, "RELOCBENCH", (sys.executable, "-c"))
    monkeypatch.setattr(kills, "SECONDS", 2.0)
    monkeypatch.setattr(kills, "SIGNALS", (signal.SIGCONT,))
    found, note = kills._try(scenario(source), tmp_path, ("[1]", {"a.json"}), 0.5, random.Random(0))
    assert (found, problem in note) == (verdict, True)


def test_a_next_run_may_remove_only_old_temporary_files(tmp_path, monkeypatch):
    source = (
        "import os, pathlib, time\n"
        "for path in pathlib.Path('.').glob('*.part'):\n"
        "    if time.time() - path.stat().st_mtime > 60: path.unlink()\n"
        "if not os.path.exists('begun'): open('.a.part', 'w').close()\n"
        "open('begun', 'w').close()\n" + WRITES
    )
    monkeypatch.setattr(kills, "RELOCBENCH", (sys.executable, "-c"))
    monkeypatch.setattr(kills, "SIGNALS", (signal.SIGCONT,))
    expected = "[1]", {"a.json", "begun"}
    assert kills._try(scenario(source), tmp_path, expected, 0.5, random.Random(0)) == ("right", "")
