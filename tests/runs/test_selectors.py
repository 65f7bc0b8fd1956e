import functools
import importlib.metadata
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relocbench.instances.errors import InputError
from relocbench.instances.evaluation import evaluate
from relocbench.instances.generators.families import FAMILIES
from relocbench.instances.nearest_server import nearest_server
from relocbench.instances.solution import Solution
from relocbench.runs.cross_check import cross_check
from relocbench.runs.isolation.supervisor import Worker
from relocbench.runs.selectors import as_selector, as_selectors
from relocbench.runs.solve import solve
from relocbench.runs.sweep import Limits
from tests.instances.files.bad_files import run_command
from tests.reports.gate import heuristics

GOOD = "def f(instance, *, seed, time_limit):\n    return [0] * instance.n_clients\n"
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

def required(instance, *, seed, time_limit, depth):
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
    assert outcome.error == f"InputError: home: expected {INSTANCE.n_clients} servers, one per client, got None"


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
    assert by_name.version() == given.version()


def test_a_function_that_no_other_process_can_import_is_sent_by_value():
    server = 0

    def mine(instance, *, seed, time_limit, more: int = 0):
        return np.full(instance.n_clients, server + more)

    for method, expected in ((mine, 0), (functools.partial(mine, more=1), 1)):
        result = solve(INSTANCE, method)
        assert result.solution.home.tolist() == [expected] * INSTANCE.n_clients
    assert str(as_selector(mine)).endswith(
        "test_selectors.py:test_a_function_that_no_other_process_can_import_is_sent_by_value.mine"
    )
    assert str(as_selector(functools.partial(mine, more=1))).endswith(".mine[more=1]")
    assert solve(INSTANCE, lambda instance, *, seed, time_limit: [0] * instance.n_clients).solution.home.max() == 0


def test_a_partial_function_sets_known_parameters_by_name_only():
    for partial, problem in (
        (functools.partial(heuristics.worsened, by="x"), "by: expected a number, got 'x'"),
        (functools.partial(heuristics.worsened, more=1), "expected parameters among: by, spread; got 'more'"),
        (functools.partial(heuristics.worsened, INSTANCE), "a partial function may set parameters by name only"),
    ):
        with pytest.raises(InputError, match=problem):
            as_selector(partial)
    with pytest.raises(InputError, match="expected a selector as text or a function, got 3"):
        as_selector(3)


def test_a_function_that_holds_an_open_file_is_refused(tmp_path):
    with (tmp_path / "open").open("w") as file, pytest.raises(InputError, match="cannot be sent to another process"):
        as_selector(lambda instance, *, seed, time_limit: file)


def test_several_methods_are_given_as_texts_functions_or_both():
    found = as_selectors(["nearest,reloc[k=2]", heuristics.nearest, "nearest"])
    assert [str(selector) for selector in found] == [
        "nearest",
        "reloc[k=2]",
        "tests/reports/gate/heuristics.py:nearest",
    ]
    assert as_selectors(heuristics.nearest)[0].method.where == found[2].method.where

    def homes(of):
        return lambda instance, *, seed, time_limit: [of] * instance.n_clients

    with pytest.raises(InputError, match="two different functions have this name; rename one of them"):
        as_selectors([homes(0), homes(1)])


def test_the_version_of_code_changes_with_what_the_code_does(mine):
    def versions():
        return as_selector("mine.py:listed").version(), as_selector("nearest").version()

    first, ours = versions()
    assert first.startswith("mine.py (")
    assert ours.startswith("relocbench ")
    assert versions() == (first, ours)
    (mine.parent / "beside.py").write_text("def first():\n    return 1\n")  # imported by mine.py
    os.utime(mine.parent / "beside.py", ns=(1, 1))
    second, _ = versions()
    assert second != first
    (mine.parent / "unrelated.py").write_text("")
    assert versions()[0] == second

    def by_value(server, text="return [SERVER] * instance.n_clients"):
        names = {"SERVER": server}
        exec(f"def f(instance, *, seed, time_limit):\n    {text}", names)
        return as_selector(names["f"]).version()

    assert by_value(0) == by_value(0)
    assert len({by_value(0), by_value(1), by_value(0, "return [0] * instance.n_clients")}) == 3
    assert as_selector("anneal[start=mine.py:listed]").version().endswith(f", start {second}")


def test_the_version_of_a_function_by_value_is_the_same_in_every_process(tmp_path):
    text = (
        "import dataclasses, threading\n"
        "from relocbench.runs.selectors import as_selector\n"
        "names, n_clients, lock = {'a', 'b', 'c'}, NUMBER, threading.Lock()\n"
        "@dataclasses.dataclass(frozen=True)\nclass Rule:\n    depth: int = 2\n"
        "class Method:\n"
        "    def __call__(self, instance, *, seed, time_limit):\n        return [0] * instance.n_clients\n"
        "def f(instance, *, seed, time_limit, rule=Rule()):\n"
        "    instance.lock\n    return [0 if 'x' in {'x', 'y', 'z'} | names else 1] * instance.n_clients\n"
        "print(as_selector(f).version(), as_selector(Method()).version())\n"
    )
    found = set()
    # An attribute that is called like a variable, such as n_clients, is no use of the variable.
    for seed, number in (("1", "3"), ("2", "4")):
        (tmp_path / "script.py").write_text(text.replace("NUMBER", number))
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, str(tmp_path / "script.py")]
        found.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert len(found) == 1, found


def test_what_a_decorator_returns_is_run_and_not_what_it_wraps(mine):
    def tuned(instance, *, seed, time_limit):
        return np.ones(instance.n_clients, int)

    wrapped = functools.wraps(heuristics.nearest)(tuned)
    assert solve(INSTANCE, wrapped).solution.home.tolist() == [1] * INSTANCE.n_clients


def test_relative_imports_of_a_package_are_part_of_the_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [*sys.path, str(tmp_path)])
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "__init__.py").write_text("")
    (tmp_path / "theirs" / "main.py").write_text("from . import parts\nfrom .more import x\n\n" + GOOD)
    versions = set()
    for number, (first, second) in enumerate([(0, 0), (1, 0), (1, 1)]):
        for name, value in (("parts", first), ("more", second)):
            (tmp_path / "theirs" / f"{name}.py").write_text(f"x = {value}\n")
            os.utime(tmp_path / "theirs" / f"{name}.py", ns=(number, number))
        versions.add(as_selector("theirs.main:f").version())
    assert len(versions) == 3


def test_a_method_that_uses_all_its_time_may_say_that_it_returns_a_solution(mine):
    mine.write_text(
        "import time\nfrom relocbench import Solution\n"
        "def f(instance, *, seed, time_limit) -> Solution:\n"
        "    time.sleep(time_limit)\n    return Solution([0] * instance.n_clients)\n"
    )
    assert solve(INSTANCE, "mine.py:f", time_limit=1.0).stopped is None


def test_code_that_changes_while_a_command_runs_is_not_run(mine):
    selector = as_selector("mine.py:listed")
    mine.write_text(MINE + "\n")
    with pytest.raises(InputError, match=r"method mine\.py:listed: has changed since the command began"):
        solve(INSTANCE, selector)


def test_a_start_is_a_file_a_list_a_function_or_a_method(mine):
    ones = np.ones(INSTANCE.n_clients, int)
    (mine.parent / "homes.csv").write_text("client,home\n" + "".join(f"{m},1\n" for m in range(INSTANCE.n_clients)))
    (mine.parent / "given.py").write_text("def kept(instance, *, seed, time_limit, start=None):\n    return start\n")
    (mine.parent / "HOMES.CSV").write_text((mine.parent / "homes.csv").read_text())
    starts = ["homes.csv", "HOMES.CSV", Path("homes.csv"), ones, ones.tolist(), Solution(ones)]
    starts += ["mine.py:chosen[server=1]"]
    for start in [*starts, lambda instance, *, seed, time_limit: ones]:
        assert solve(INSTANCE, "given.py:kept", start=start).solution.home.tolist() == ones.tolist()
    assert solve(INSTANCE, "given.py:kept[start=homes.csv]").solution.home.tolist() == ones.tolist()
    improved = solve(INSTANCE, "anneal[moves=10,start=homes.csv]").evaluation.objective
    assert improved <= evaluate(INSTANCE, ones).objective
    first = as_selector("anneal[start=homes.csv]").version()
    (mine.parent / "homes.csv").write_text("client,home\n0,1\n")
    assert as_selector("anneal[start=homes.csv]").version() != first
    with pytest.raises(InputError, match=r"method anneal: start: .*homes\.csv"):
        solve(INSTANCE, "anneal[start=homes.csv]")
    with pytest.raises(InputError, match=r"start: none\.csv: cannot be read"):
        as_selector("anneal[start=none.csv]")
    with pytest.raises(InputError, match="method nearest: start: this method takes no start"):
        solve(INSTANCE, "nearest", start=ones)
    for wrong in ([0.5], [math.inf], [[0]]):
        with pytest.raises(InputError, match="start: expected one server per client as whole numbers"):
            solve(INSTANCE, "anneal", start=wrong)
    with pytest.raises(InputError, match=r"expected mine\.py:function, the name of a function in the file is missing"):
        as_selector("mine.py")
    with pytest.raises(InputError, match="got a function without a signature"):
        as_selector(max)
    with pytest.raises(InputError, match="method anneal: start: home: expected"):
        solve(INSTANCE, "anneal", start=[0])


def test_an_external_method_may_be_exact_and_says_so(mine, monkeypatch):
    mine.write_text(
        "from relocbench import Solution, evaluate\n"
        "def pair(instance, *, seed, time_limit):\n    return [0] * instance.n_clients, 0.5\n"
        "def whole(instance, *, seed, time_limit) -> Solution:\n"
        "    return Solution([0] * instance.n_clients, bound=0.5)\n"
        "def best(instance, *, seed, time_limit):\n"
        "    home = [0] * instance.n_clients\n"
        "    return Solution(home, bound=evaluate(instance, home).objective, status='optimal')\n"
        "best.proves = 'optimality'\n"
        "def wrong(instance, *, seed, time_limit):\n    return None\n"
        "wrong.proves = 'everything'\n"
    )
    for name, proves in (("pair", "nothing"), ("whole", "bound"), ("best", "optimality")):
        assert as_selector(f"mine.py:{name}").method.proves == proves
    assert [solve(INSTANCE, f"mine.py:{name}").solution.bound for name in ("pair", "whole")] == [0.5, 0.5]
    with pytest.raises(InputError, match="proves: expected one of nothing, bound, optimality, got 'everything'"):
        as_selector("mine.py:wrong")
    # Its claim is compared with ours, and found to be false.
    found = cross_check([INSTANCE], [as_selector("mine.py:best"), as_selector("enumerate")], Limits(20.0))
    assert [one.methods for one in found.disagreements] == [("mine.py:best", "enumerate")]


def test_a_package_may_register_methods(monkeypatch):
    point = importlib.metadata.EntryPoint("theirs", "tests.reports.gate.heuristics:worsened", "relocbench.methods")

    exact = importlib.metadata.EntryPoint("exact", "tests.reports.gate.heuristics:nearest", "relocbench.exact_methods")

    def points(group, name=None):
        return [one for one in (point, exact) if one.group == group and name in (None, one.name)]

    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    assert as_selector("exact").method.proves == "optimality"
    listed = {one["name"]: one for one in json.loads(run_command("methods", "--json")[1])}
    assert (listed["exact"]["proves"], listed["theirs"]["parameters"]["by"]["default"]) == ("optimality", "0.0")
    selector = as_selector("theirs[by=0.5]")
    assert str(selector) == "theirs[by=0.5]"
    assert solve(INSTANCE, selector).evaluation.objective > solve(INSTANCE, "nearest").evaluation.objective
    assert str(as_selector("reloc[k=2]")) == "reloc[k=2]"


@pytest.mark.parametrize(
    ("content", "text", "problem"),
    [
        (MINE, "other.py:f", "method other.py:f: expected a Python file, the file does not exist"),
        (MINE, "mine.py:f", "method mine.py:f: expected a function f in mine.py, it has none of that name"),
        (MINE, "mine.py:lited", "it has none of that name; did you mean 'listed'?"),
        (MINE, "mine.listed", "method: expected package.module:function, got mine.listed; did you mean mine:listed?"),
        (MINE, "mine.py:required", "every parameter needs a default value (missing a required argument: 'depth')"),
        ("from . import x", "mine.py:f", "package; name the function as package.module:function"),
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
