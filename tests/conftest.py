import functools
import os
import sys

import pytest
import typer.main
from hypothesis import HealthCheck, settings

from relocbench.cli import main

# The same examples in every run and without a deadline, so that no result depends on the machine.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("repeatable")

# Lines of progress, and the notice that something is compiled, depend on the speed and the cache of the machine.
os.environ["RELOCBENCH_PROGRESS"] = "0"

# Typer builds the whole command anew at each call, which takes five times as long as a short command itself.
typer.main.get_command = functools.cache(typer.main.get_command)

# Tests that share an expensive fixture (a Spark session, a cluster, the runs of a study), by the start of their path.
# The first entry that matches counts.
SHARED_FIXTURES = {
    "tests/spark/test_cluster": "cluster",
    "tests/spark/": "spark",
    "tests/reports/study/test_study": "study",
    "tests/relocbench/test_paper_command": "paper",
}


def scope_of(nodeid):
    """Return the name of the group of tests that run in the same process; most tests are a group of their own."""
    return next((scope for start, scope in SHARED_FIXTURES.items() if nodeid.startswith(start)), nodeid)


def pytest_collection_modifyitems(items):
    """Run slow tests first, so that all processes end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run all tests that share an expensive fixture in one process.

    xdist starts the largest groups first. Its own marks for groups (``--dist loadgroup``) were tried and had no effect.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

    return Scheduling(config, log)


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs the command in this process and returns (exit code, stdout, stderr)."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["relocbench", *map(str, arguments)])
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call
