"""The recipes of docs/develop.md: a heuristic, a formulation, a family and a report are one file and one line each.

A toy of each kind is added to the package, exactly as the recipes say, but in a temporary folder. Then every command
that should find it is called.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

HEURISTIC = '''"""A toy: all clients at one server."""

import numpy as np

from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float, server: int = 0) -> Solution:
    """Return the server as the home of every client."""
    return Solution(np.full(instance.n_clients, server, np.int32))
'''
FORMULATION = '''"""A toy: all assignments, one after the other."""

import itertools

import numpy as np

from relocbench.instances.evaluation import evaluate
from relocbench.instances.instance import Instance
from relocbench.instances.solution import Solution


def solve(instance: Instance, *, seed: int, time_limit: float) -> Solution:
    """Return the best of all assignments and its cost as the bound."""
    every = itertools.product(range(instance.n_servers), repeat=instance.n_clients)
    best = min((evaluate(instance, home).objective, home) for home in every)
    return Solution(np.array(best[1], np.int32), bound=best[0], status="optimal")
'''
GENERATOR = '''"""A toy: clients and servers on a line."""

from dataclasses import asdict, dataclass

import numpy as np

from relocbench.instances.files.follower_graph import FollowerGraph
from relocbench.instances.files.places import Places
from relocbench.instances.generators.generator import Generator, Streams
from relocbench.instances.instance import Instance
from relocbench.instances.kernels.ragged import Ragged


@dataclass(frozen=True, kw_only=True)
class LineParameters(Generator):
    """How many clients there are."""

    clients: int = 4

    def build(self, streams: Streams, graph: FollowerGraph | None = None, places: Places | None = None) -> Instance:
        """Build an instance with one topic and two servers."""
        members = Ragged.of([list(range(self.clients))])
        return Instance(
            name="",
            cloud_delay=5.0,
            delay_per_km=0.1,
            server_x=np.array([0.0, 10.0]),
            server_y=np.zeros(2),
            storage_capacity=np.full(2, 9.0),
            compute_capacity=np.full(2, 9.0),
            client_x=np.round(streams.of_cell("clients").uniform(0, 10, self.clients), 3),
            client_y=np.zeros(self.clients),
            spool=np.ones(1),
            publishers=members,
            subscribers=members,
            parameters=asdict(self),
        )
'''
REPORT = '''"""A toy: the sizes of instances as a page."""

from pathlib import Path
from typing import Annotated

import typer


def run(
    instances: Annotated[list[Path], typer.Argument(help="Instance files, or library:PATTERN.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("sizes.html"),
) -> None:
    """Report how large instances are."""
    from relocbench.instances.instance_source import read_all
    from relocbench.reports.pages.page import Page
    from relocbench.reports.pages.tables import Column, Table
    from relocbench.terminal import command_line

    found = read_all(instances)
    page = Page("Instance sizes", lead=f"**{len(found)}** instances.")
    rows = [[instance.name, instance.n_clients] for instance in found]
    page.table(Table([Column("instance"), Column("clients", "d")], rows, "One row per instance."))
    page.provenance(command_line())
    print(f"page: {page.write(out)}")
'''
# Each recipe: the new file, the file with the table, the line above, and the new line.
RECIPES = (
    (
        ("heuristics/one_server.py", HEURISTIC),
        ("runs/methods.py", "    for method in (\n"),
        '        Method("one-server", "a toy", "nothing", "relocbench.heuristics.one_server:solve"),\n',
    ),
    (
        ("formulations/every_one.py", FORMULATION),
        ("runs/methods.py", "    for method in (\n"),
        '        Method("every-one", "a toy", "optimality", "relocbench.formulations.every_one:solve"),\n',
    ),
    (
        ("instances/generators/line_generator.py", GENERATOR),
        ("instances/generators/families.py", "    for listed in (\n"),
        '        Family("line", "a toy", line_generator.LineParameters, {}, _grid(clients=(3, 4)), "m{clients}", 2),\n',
    ),
    (
        ("relocbench/commands/sizes.py", REPORT),
        ("relocbench/cli.py", "\nCOMMANDS = (\n"),
        '    "sizes",\n',
    ),
)


def overlaid(folder, name):
    """Return the path of a file in the package below ``folder``, whose packages also look into this checkout."""
    path = folder / "relocbench" / name.removeprefix("relocbench/")
    path.parent.mkdir(parents=True, exist_ok=True)
    for package in (path.parent, *path.parent.parents):
        if package == folder:
            break
        original = ROOT / package.relative_to(folder)
        text = (original / "__init__.py").read_text()
        (package / "__init__.py").write_text(f"{text}\n__path__.append({str(original)!r})\n")
    return path


@pytest.fixture(scope="module")
def call(tmp_path_factory):
    """Return a function that calls the command of a package to which the recipes have been applied.

    The package has only the new files and the changed tables. It finds everything else in this checkout, where the
    compiled kernels are cached.
    """
    folder = tmp_path_factory.mktemp("recipes")
    for (name, content), (table, above), line in RECIPES:
        overlaid(folder, name).write_text(content)
        changed = overlaid(folder, table)
        text = changed.read_text() if changed.exists() else (ROOT / table).read_text()
        assert text.count(above) == 1, table
        changed.write_text(text.replace(above, above + line))
    families = overlaid(folder, "instances/generators/families.py")
    first = "from relocbench.instances.generators.generator import"
    families.write_text(
        families.read_text().replace(first, f"from relocbench.instances.generators import line_generator\n{first}", 1)
    )

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "relocbench", *map(str, arguments)],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    run("generate", "--family", "line", "--out", "line.parquet")
    return run


def test_a_family_is_found_by_the_commands_that_take_a_family(call):
    assert "line" in {family["name"] for family in json.loads(call("families", "--json"))}
    assert json.loads(call("describe", "line.parquet#line-m3-1", "--json"))["clients"] == 3
    rows = json.loads(call("bench", "--family", "line", "--method", "nearest", "--out", "of-family", "--json"))
    assert rows["runs"] == 4


@pytest.mark.parametrize("name", ["one-server", "every-one"])
def test_a_method_is_found_by_the_commands_that_take_a_method(call, name):
    assert name in {method["name"] for method in json.loads(call("methods", "--json"))}
    solved = json.loads(call("solve", "line.parquet#line-m4-0", "--method", name, "--json"))
    assert solved["status"] == ("optimal" if name == "every-one" else "feasible")
    assert json.loads(call("bench", "line.parquet", "--method", name, "--out", f"bench-{name}", "--json"))["runs"] == 4
    call("show", "line.parquet#line-m4-0", "--method", name, "--out", f"{name}.html")


def test_a_parameter_of_a_method_is_set_by_a_selector(call):
    assert "method" in json.loads(call("solve", "line.parquet#line-m4-0", "--method", "one-server[server=1]", "--json"))


def test_an_exact_method_is_compared_with_the_others(call):
    options = ("--method", "every-one,enumerate", "--out", "compared", "--json")
    compared = json.loads(call("bench", "line.parquet", "--cross-check", *options))
    assert compared["optima"] == 8
    assert not compared["disagreements"]


@pytest.mark.slow
def test_a_heuristic_is_studied_and_gated(call):
    call("study", "line.parquet", "--method", "one-server,nearest", "--seed", "0", "--out", "study")
    chosen = ("--instances", "tiny-loose-*", "--seed", "0", "--baseline", "baseline.json")
    call("check", "--method", "one-server", *chosen, "--update-baseline")
    call("check", "--method", "one-server", "--baseline", "baseline.json")


@pytest.mark.slow
def test_a_method_runs_on_spark(call):
    done = json.loads(call("spark", "run", "line.parquet", "--method", "one-server", "--out", "on-spark", "--json"))
    assert done["runs"] == 4


def test_a_report_is_a_command(call):
    assert "sizes" in call("--help")
    call("sizes", "line.parquet", "--out", "sizes.html")
