"""Times and primal integrals from the command line: stored, compared, and refused where they are missing."""

import json
from dataclasses import replace

import pytest

from relocbench.reports.gate import check as check_module
from relocbench.reports.gate import times
from relocbench.reports.gate.baseline import read_baseline
from tests.instances.files.bad_files import run_command

METHOD = "anneal[moves=20000]"
CONDITIONS = ("--instances", "small-loose-*", "--seed", "0-1")


def slowed(factor, monkeypatch):
    """Let every run of a check take a multiple of its processor time."""
    measure = check_module.measure

    def slower(*arguments, **more):
        found = measure(*arguments, **more)
        return [
            replace(
                runs,
                rows={
                    name: [replace(row, cpu_seconds=factor * row.cpu_seconds) for row in part]
                    for name, part in runs.rows.items()
                },
            )
            for runs in found
        ]

    monkeypatch.setattr(check_module, "measure", slower)


@pytest.mark.slow
def test_times_and_integrals_are_stored_and_compared_if_wanted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(times, "LEAST_SECONDS", 0.0)  # the instances are small, so that the test is fast
    methods = ("--method", METHOD, "--method", "otos")
    command = ("check", *methods, "--update-baseline", *CONDITIONS)
    assert run_command(*command)[0] == 0
    path = tmp_path / "relocbench-baseline.json"
    assert not read_baseline(path).records[METHOD].is_timed
    code, out, err = run_command("check", "--criterion", "time")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"has no times of {METHOD}; --update-baseline --criterion time adds them" in err
    assert run_command(*command, "--criterion", "time")[0] == 0
    records = read_baseline(path).records
    assert all(len(line.times.seconds) == len(line.times.integrals) == 2 for line in records[METHOD].lines.values())
    assert all(line.times.integrals == () for line in records["otos"].lines.values())
    code, out, err = run_command("check", "--criterion", "integral")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "has no primal integrals of otos, because it reports no progress (on_progress)" in err
    # Cost alone is the default, also where times are stored.
    slowed(20.0, monkeypatch)
    assert run_command("check")[0] == 0
    both = ("check", "--method", METHOD, "--criterion", "time", "--criterion", "integral")
    code, out, _ = run_command(*both, "--json")
    found = {(one["criterion"], one["scope"]): one for one in json.loads(out)["findings"] if one["scope"] == "all"}
    assert code == 1
    assert {key[0] for key in found} == {"cost", "time", "integral"}
    assert not found["cost", "all"]["worse"]
    assert found["time", "all"]["worse"]
    assert found["integral", "all"]["worse"]
    code, out, _ = run_command(*both, "--time-effect", "1000", "--integral-effect", "1000")
    assert code == 0
    assert "time: all" in out
    # A later update without the option measures the times again.
    assert run_command("check", "--update-baseline", "--method", METHOD)[0] == 0
    assert read_baseline(path).records[METHOD].is_timed


def test_instances_that_are_solved_at_once_are_not_compared(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ("check", "--method", "nearest", "--instances", "tiny-loose-*", "--seed", "0", "--update-baseline")
    assert run_command(*command, "--criterion", "time")[0] == 0
    code, out, _ = run_command("check", "--criterion", "time")
    assert code == 0
    assert "note: nearest: time not compared, as fewer than 5 instances take 0.005 s" in out


def test_an_unknown_criterion_gives_one_line():
    code, out, err = run_command("check", "--criterion", "speed")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "criterion: expected cost, time or integral, got 'speed'" in err
