import dataclasses

import pytest

from relocbench.instances.library.library import Library
from relocbench.reports.gate import shrink_failure
from relocbench.runs.outcome import Outcome
from relocbench.runs.run_store import row_of
from relocbench.runs.selectors import as_selector
from relocbench.runs.sweep import Limits, Task

INSTANCE = Library().read("tiny-loose-plain-0")
NEAREST = as_selector("nearest")
LIMITS = Limits(60.0)


@pytest.fixture
def trials(monkeypatch):
    """Let every run hang, and return the list of the trials with their time limits."""
    made = []

    def execute(task, store, limits, *, worker):
        made.append(limits.time)
        return row_of(task.instance, task.run(limits), Outcome("time_limit", failure="stopped", error="killed"), None)

    monkeypatch.setattr(shrink_failure, "execute", execute)
    return made


def failed_row(**changes):
    outcome = dataclasses.replace(Outcome("time_limit", failure="stopped", error="killed"), **changes)
    return row_of(INSTANCE, Task(INSTANCE, NEAREST).run(LIMITS), outcome, None)


def test_each_trial_of_a_method_that_hangs_is_short(trials):
    found = shrink_failure.smallest_failure(NEAREST, INSTANCE, failed_row(), LIMITS, 60.0)
    assert (found.instance.n_clients, found.instance.n_servers) == (1, 1)
    assert set(trials) == {shrink_failure.SHORTEST_RUN}


def test_trials_of_another_failure_do_not_count(trials):
    assert shrink_failure.smallest_failure(NEAREST, INSTANCE, failed_row(status="error"), LIMITS, 60.0) is None
    assert len(trials) == 1


def test_without_time_for_shrinking_the_instance_is_written_as_it_is(trials):
    found = shrink_failure.smallest_failure(NEAREST, INSTANCE, failed_row(), LIMITS, 0.0)
    assert (found.instance, found.says) == (INSTANCE, "killed")
    assert trials == []
