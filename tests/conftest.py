import sys

import pytest
from hypothesis import HealthCheck, settings

from relocbench.cli import main

# The same examples in every run, however slow the machine: what passes here passes there.
settings.register_profile(
    "repeatable", deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("repeatable")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Let one of the processes that run tests have all that share a Spark session, a cluster, or the runs of a study.

    The marks that xdist has for that (``--dist loadgroup``) were tried and had no effect.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith("tests/spark/test_cluster"):
                return "cluster"
            if nodeid.startswith("tests/reports/study/test_study"):
                return "study"
            if nodeid.startswith("tests/relocbench/test_paper_command"):
                return "paper"
            return "spark" if nodeid.startswith("tests/spark/") else nodeid

    return Scheduling(config, log)


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command in this process; returns (exit code, stdout, stderr)."""

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
