import io
import re
import sys
import time

import pytest

from relocbench.runs import progress as module
from relocbench.runs.progress import doing, live_line, progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setenv("RELOCBENCH_PROGRESS", "0.01")


def wait_for(text, capsys):
    """Wait until a text was printed to standard error; N stands for any number."""
    pattern = re.escape(text).replace("N", "[0-9]+")
    seen = ""
    end = time.monotonic() + 60
    while not re.search(pattern, seen) and time.monotonic() < end:
        time.sleep(0.005)
        seen += capsys.readouterr().err
    return bool(re.search(pattern, seen))


def test_without_a_terminal_a_line_names_the_phase_the_count_and_the_current_work(often, capsys):
    items = progress(iter("abc"), 3, "running methods")
    assert next(items) == "a"
    assert next(items) == "b"
    with doing("reloc on one"), doing("nearest on two"), doing("otos on three"):
        assert wait_for("running methods: 2/3, reloc on one, nearest on two, 1 more (N s, about N s left)\n", capsys)
    assert wait_for("running methods: 2/3 (N s, about N s left)\n", capsys)
    assert list(items) == ["c"]


def test_without_a_terminal_the_latest_text_of_a_live_line_is_printed(often, capsys):
    with live_line() as show:
        show("ΣD = 12")
        assert wait_for("ΣD = 12\n", capsys)


@pytest.mark.parametrize(("interval", "total"), [("0", 2), ("0.01", 1)])
def test_nothing_is_printed_if_it_is_silenced_or_there_is_one_item_only(monkeypatch, capsys, interval, total):
    monkeypatch.setenv("RELOCBENCH_PROGRESS", interval)
    for _ in progress(range(total), total, "running"):
        time.sleep(0.03)
    assert capsys.readouterr().err == ""


def test_short_work_prints_no_line(monkeypatch, capsys):
    monkeypatch.delenv("RELOCBENCH_PROGRESS")
    monkeypatch.setattr(module, "FIRST_LINE", 1000.0)
    assert list(progress(range(3), 3, "running")) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar_with_the_count_and_the_current_work(often, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with doing("reloc[k=8] on a long name"), doing("second " * 9):
        assert list(progress(range(3), 3, "certifying bounds")) == [0, 1, 2]
    shown = terminal.getvalue()
    for part in ("certifying bounds", "3/3", "reloc[k=8] "):
        assert part in shown
