import importlib.metadata
import os
import sys

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.selectors import find_method
from relocbench.runs.solve import solve
from tests.instances.files.bad_files import run_command
from tests.reports.gate import heuristics

INSTANCE = FAMILIES["tiny"].cells({"regime": "scarce", "shape": "roles"})[0].build(0)
MINE = """
from __future__ import annotations
import numpy as np
from beside import first
from relocbench.instances.solution import Solution

def listed(instance, *, seed, time_limit):
    return [first()] * instance.n_clients

def chosen(instance, *, seed, time_limit, server: int = 0, why: Nothing = None):
    return np.full(instance.n_clients, server)

def bare(instance, *, seed, time_limit, server=0):
    return np.full(instance.n_clients, server)

def whole(instance, *, seed, time_limit):
    return Solution([0] * instance.n_clients, bound=0.0)

def two(instance, seed):
    return None

def nothing(instance, *, seed, time_limit):
    return None

number = 3
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "beside.py").write_text("def first():\n    return 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path])
    return tmp_path / "mine.py"


def test_a_function_in_a_file_is_a_method(mine):
    for text in ("mine.py:listed", f"{mine}:listed", "./mine.py:whole"):
        result = solve(INSTANCE, find_method(text))
        assert result.solution.home.tolist() == [0] * INSTANCE.n_clients
        assert result.evaluation.objective > 0
    # However the path is written, the method is called the same.
    assert str(find_method(f"{mine}:listed")) == str(find_method("./mine.py:listed")) == "mine.py:listed"


def test_its_parameters_are_set_as_in_any_selector(mine):
    for name in ("chosen", "bare"):
        selector = find_method(f"mine.py:{name}[server=1]")
        assert str(selector) == f"mine.py:{name}[server=1]"
        assert solve(INSTANCE, selector).solution.home.tolist() == [1] * INSTANCE.n_clients
    with pytest.raises(InputError, match=r"method mine\.py:bare: server: expected a whole number, got 'x'"):
        find_method("mine.py:bare[server=x]")
    with pytest.raises(InputError, match="expected parameter=value with one of: server, why; got 'x=1'"):
        find_method("mine.py:chosen[x=1]")


def test_it_runs_in_a_process_of_its_own_like_all_others(mine):
    with Worker() as worker:
        assert worker.run(INSTANCE, find_method("mine.py:listed")).home.tolist() == [0] * INSTANCE.n_clients
        outcome = worker.run(INSTANCE, find_method("mine.py:nothing"))
    assert (outcome.status, outcome.failure) == ("error", "raised")
    assert outcome.error == f"InputError: home: expected {INSTANCE.n_clients} servers, one per client, got shape ()"


def test_a_file_that_has_changed_is_read_again(mine):
    assert solve(INSTANCE, find_method("mine.py:listed")).solution.home.max() == 0
    mine.write_text(MINE.replace("[first()]", "[1 + first()]"))
    os.utime(mine, ns=(1, 1))
    assert solve(INSTANCE, find_method("mine.py:listed")).solution.home.min() == 1


def test_a_function_of_a_module_is_found_by_name_or_given_itself(mine):
    by_name = find_method("tests.reports.gate.heuristics:nearest")
    given = find_method(heuristics.nearest)
    assert by_name.method.where == given.method.where
    for selector in (by_name, given):
        assert np.array_equal(solve(INSTANCE, selector).solution.home, nearest_server(INSTANCE))
    with pytest.raises(InputError, match="expected a function at the top of a module"):
        find_method(lambda instance, *, seed, time_limit: None)


def test_a_package_may_register_methods(monkeypatch):
    point = importlib.metadata.EntryPoint("theirs", "tests.reports.gate.heuristics:worsened", "relocbench.methods")

    def points(group, name):
        return [point] if (group, name) == ("relocbench.methods", "theirs") else []

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    selector = find_method("theirs[by=0.5]")
    assert str(selector) == "theirs[by=0.5]"
    assert solve(INSTANCE, selector).evaluation.objective > solve(INSTANCE, "nearest").evaluation.objective
    assert str(find_method("reloc[k=2]")) == "reloc[k=2]"


@pytest.mark.parametrize(
    ("content", "text", "complaint"),
    [
        (MINE, "other.py:f", "method other.py:f: expected a Python file, there is none"),
        (MINE, "mine.py:f", "method mine.py:f: expected a function f in mine.py, there is none"),
        (MINE, "mine.py:number", "method mine.py:number: expected a function, number is none"),
        (MINE, "mine.py:two", "method mine.py:two: expected f(instance, *, seed, time_limit) -> homes, it cannot be"),
        ("x = = 1", "mine.py:f", "method mine.py:f: cannot be imported (SyntaxError: invalid syntax"),
        ("import nowhere_at_all", "mine.py:f", "cannot be imported (ModuleNotFoundError: No module named"),
        ("raise SystemExit(4)", "mine.py:f", "method mine.py:f: cannot be imported (SystemExit: 4)"),
        (MINE, "nowhere_at_all:f", "method nowhere_at_all:f: cannot be imported (ModuleNotFoundError"),
        (MINE, "nobody", "method: expected one of random, nearest"),
        (MINE, "mine.py:", "method: expected name or name[parameter=value,...], got 'mine.py:'"),
    ],
)
def test_what_cannot_be_used_is_one_line(mine, content, text, complaint):
    mine.write_text(content)
    with pytest.raises(InputError) as caught:
        find_method(text)
    assert complaint in str(caught.value)


def test_solve_takes_one_too(mine):
    code, out, _ = run_command("solve", "library:tiny-loose-plain-0", "--method", "mine.py:listed")
    assert code == 0
    assert out.startswith("mine.py:listed: feasible, Y = ")
    code, _, err = run_command("solve", "library:tiny-loose-plain-0", "--method", "mine.py:f")
    assert (code, err) == (2, "relocbench: method mine.py:f: expected a function f in mine.py, there is none\n")
