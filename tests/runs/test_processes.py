"""Work in several processes."""

import os
import time

import pytest

from relocbench.runs.processes import in_processes, stop_is_requested


def square(number):
    return number * number, os.getpid()


def until_stopped(number):
    end = time.monotonic() + 60
    while number and not stop_is_requested() and time.monotonic() < end:
        time.sleep(0.01)
    return number


def fail(number):
    raise ValueError(number)


def test_results_come_from_other_processes():
    found = list(in_processes(square, [1, 2, 3], 2))
    assert sorted(result for result, _ in found) == [1, 4, 9]
    assert os.getpid() not in [process for _, process in found]


def test_one_job_needs_no_process():
    assert list(in_processes(square, [2], 1)) == [(4, os.getpid())]
    assert list(in_processes(square, [], 2)) == []


def test_work_under_way_ends_when_nobody_wants_it():
    begin = time.monotonic()
    running = in_processes(until_stopped, [0, 1, 2, 3], 2)
    assert next(running) == 0
    running.close()
    assert time.monotonic() - begin < 50
    assert not stop_is_requested()


def test_an_error_reaches_the_caller():
    with pytest.raises(ValueError, match="7"):
        list(in_processes(fail, [7], 2))
