import dataclasses

import pytest

from relocbench.instances.library.library import Library
from relocbench.runs import sweep as module
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import Store, row_of
from relocbench.runs.selectors import as_selector
from relocbench.runs.sweep import FIRST_RUNS, Limits, Task, early_stops, gives_nothing, has_failed, sweep

LIBRARY = Library()
LIMITS = Limits(60.0)
FAILED = Outcome("error", failure="raised", error="always")
FINE = Outcome("feasible")


@pytest.fixture
def outcomes(monkeypatch):
    """Replace the runs: a function of the task returns the outcome."""
    chosen = {}

    def execute(task, store, limits, stop=None, worker=None):
        row = row_of(task.instance, task.run(limits), chosen["of"](task), None)
        if store is not None:
            store.write(row)
        return row

    monkeypatch.setattr(module, "execute", execute)
    return chosen


def tasks_of(*methods):
    instances = [LIBRARY.read(name) for name in LIBRARY.names("tiny-*")]
    return [Task(instance, as_selector(method)) for method in methods for instance in reversed(instances)]


@pytest.mark.parametrize("reuse", [False, True])
def test_a_method_whose_first_runs_fail_is_not_run_again(outcomes, reuse):
    outcomes["of"] = lambda task: FAILED if task.selector.method.name == "nearest" else FINE
    tasks = tasks_of("nearest", "random")
    rows = list(sweep(tasks, None, LIMITS, reuse=reuse, counts_as_failed=has_failed))
    assert [sum(row.selector == name for row in rows) for name in ("nearest", "random")] == [FIRST_RUNS, 15]
    [stop] = early_stops(rows, tasks)
    assert str(stop) == "stopped after 3 of 15 runs, because the first 3 runs failed: always"
    sizes = [row.clients for row in rows if row.selector == "nearest"]
    every = sorted(task.instance.n_clients for task in tasks[:15])
    assert sizes == [every[0], every[3], every[7]]


def test_a_method_that_fails_later_is_run_to_the_end(outcomes):
    tasks = tasks_of("nearest")
    small = min(task.instance.n_clients for task in tasks)
    outcomes["of"] = lambda task: FINE if task.instance.n_clients == small else FAILED
    rows = list(sweep(tasks, None, LIMITS, counts_as_failed=has_failed))
    assert len(rows) == 15
    assert early_stops(rows, tasks) == []


def test_rows_of_the_store_count_as_first_runs(outcomes, tmp_path):
    outcomes["of"] = lambda task: FAILED
    tasks = tasks_of("nearest")
    assert len(list(sweep(tasks, Store(tmp_path), LIMITS, counts_as_failed=has_failed))) == FIRST_RUNS
    assert len(list(sweep(tasks, Store(tmp_path), LIMITS, counts_as_failed=has_failed))) == FIRST_RUNS
    outcomes["of"] = lambda task: FINE
    again = sweep(tasks, Store(tmp_path), LIMITS, counts_as_failed=has_failed, retry_errors=True)
    assert [row.failure for row in again] == [None] * 15


def test_a_study_stops_only_code_of_other_people_that_gives_no_homes():
    instance = LIBRARY.read("tiny-loose-plain-0")
    own, theirs = as_selector("nearest"), as_selector("tests.reports.gate.heuristics:nearest")
    rule = gives_nothing([own, theirs])

    def row(selector, outcome):
        return row_of(instance, Task(instance, selector).run(LIMITS), outcome, None)

    killed = Outcome("time_limit", failure="stopped", error="killed")
    assert rule(row(theirs, killed))
    assert not rule(row(own, killed))
    assert not rule(dataclasses.replace(row(theirs, killed), home=[0] * instance.n_clients))
    assert not rule(row(theirs, dataclasses.replace(killed, failure="refused")))
