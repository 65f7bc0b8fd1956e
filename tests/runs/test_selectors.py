import importlib.metadata
import os
import sys

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.selectors import as_selector
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
        result = solve(INSTANCE, as_selector(text))
        assert result.solution.home.tolist() == [0] * INSTANCE.n_clients
        assert result.evaluation.objective > 0
    # The name of the method does not depend on how the path is written.
    assert str(as_selector(f"{mine}:listed")) == str(as_selector("./mine.py:listed")) == "mine.py:listed"


def test_a_selector_sets_the_parameters_of_an_external_method(mine):
    for name in ("chosen", "bare"):
        selector = as_selector(f"mine.py:{name}[server=1]")
        assert str(selector) == f"mine.py:{name}[server=1]"
        assert solve(INSTANCE, selector).solution.home.tolist() == [1] * INSTANCE.n_clients
    with pytest.raises(InputError, match=r"method mine\.py:bare: server: expected a whole number, got 'x'"):
        as_selector("mine.py:bare[server=x]")
    with pytest.raises(InputError, match="expected parameter=value with one of: server, why; got 'x=1'"):
        as_selector("mine.py:chosen[x=1]")


def test_an_external_method_runs_in_a_worker_process(mine):
    with Worker() as worker:
        assert worker.run(INSTANCE, as_selector("mine.py:listed")).home.tolist() == [0] * INSTANCE.n_clients
        outcome = worker.run(INSTANCE, as_selector("mine.py:nothing"))
    assert (outcome.status, outcome.failure) == ("error", "raised")
    assert outcome.error == f"InputError: home: expected {INSTANCE.n_clients} servers, one per client, got shape ()"


def test_a_file_that_has_changed_is_read_again(mine):
    assert solve(INSTANCE, as_selector("mine.py:listed")).solution.home.max() == 0
    mine.write_text(MINE.replace("[first()]", "[1 + first()]"))
    os.utime(mine, ns=(1, 1))
    assert solve(INSTANCE, as_selector("mine.py:listed")).solution.home.min() == 1


def test_a_function_of_a_module_is_given_by_name_or_itself(mine):
    by_name = as_selector("tests.reports.gate.heuristics:nearest")
    given = as_selector(heuristics.nearest)
    assert by_name.method.where == given.method.where
    for selector in (by_name, given):
        assert np.array_equal(solve(INSTANCE, selector).solution.home, nearest_server(INSTANCE))
    with pytest.raises(InputError, match="expected a function at the top level of a module"):
        as_selector(lambda instance, *, seed, time_limit: None)


def test_a_package_may_register_methods(monkeypatch):
    point = importlib.metadata.EntryPoint("theirs", "tests.reports.gate.heuristics:worsened", "relocbench.methods")

    def points(group, name):
        return [point] if (group, name) == ("relocbench.methods", "theirs") else []

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    selector = as_selector("theirs[by=0.5]")
    assert str(selector) == "theirs[by=0.5]"
    assert solve(INSTANCE, selector).evaluation.objective > solve(INSTANCE, "nearest").evaluation.objective
    assert str(as_selector("reloc[k=2]")) == "reloc[k=2]"


@pytest.mark.parametrize(
    ("content", "text", "problem"),
    [
        (MINE, "other.py:f", "method other.py:f: expected a Python file, the file does not exist"),
        (MINE, "mine.py:f", "method mine.py:f: expected a function f in mine.py, it has none of that name"),
        (MINE, "mine.py:number", "method mine.py:number: expected a function, number is not callable"),
        (MINE, "mine.py:two", "method mine.py:two: expected f(instance, *, seed, time_limit) -> homes, got another"),
        ("x = = 1", "mine.py:f", "method mine.py:f: cannot be imported (SyntaxError: invalid syntax"),
        ("import nowhere_at_all", "mine.py:f", "cannot be imported (ModuleNotFoundError: No module named"),
        ("raise SystemExit(4)", "mine.py:f", "method mine.py:f: cannot be imported (SystemExit: 4)"),
        (MINE, "nowhere_at_all:f", "method nowhere_at_all:f: cannot be imported (ModuleNotFoundError"),
        (MINE, "nobody", "method: expected one of random, nearest"),
        (MINE, "mine.py:", "method: expected name or name[parameter=value,...], got 'mine.py:'"),
    ],
)
def test_unusable_methods_are_refused_in_one_line(mine, content, text, problem):
    mine.write_text(content)
    with pytest.raises(InputError) as caught:
        as_selector(text)
    assert problem in str(caught.value)


def test_the_command_solve_runs_an_external_method(mine):
    code, out, _ = run_command("solve", "library:tiny-loose-plain-0", "--method", "mine.py:listed")
    assert code == 0
    assert out.startswith("mine.py:listed: feasible, Y = ")
    code, _, err = run_command("solve", "library:tiny-loose-plain-0", "--method", "mine.py:f")
    assert (code, err) == (
        2,
        "relocbench: method mine.py:f: expected a function f in mine.py, it has none of that name\n",
    )
