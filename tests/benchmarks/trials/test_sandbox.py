import os
import time

import pytest

from benchmarks.trials.sandbox import Sandbox

MIB = 1 << 20


def doubled(number):
    return 2 * number


def holds(mebibytes):
    return len(bytearray(b"1") * (mebibytes * MIB))


def fails():
    raise ValueError("no luck")


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as one:
        yield one


def test_a_call_returns_its_value_and_its_memory(sandbox):
    assert sandbox.call(doubled, 21, seconds=30).value == 42
    answer = sandbox.call(holds, 200, seconds=30)
    assert answer.peak > 190 * MIB
    assert sandbox.call(holds, 1, seconds=30).peak < 100 * MIB


def test_an_exception_is_an_answer(sandbox):
    answer = sandbox.call(fails, seconds=30)
    assert answer.value is None
    assert answer.error.endswith("ValueError: no luck")


def test_too_much_memory_is_refused(sandbox):
    assert "MemoryError" in sandbox.call(holds, 4096, seconds=30).error


def test_a_process_that_ends_or_hangs_is_replaced(sandbox):
    assert sandbox.call(os._exit, 3, seconds=30).error == "the process ended with the exit code 3"
    assert sandbox.call(doubled, 1, seconds=30).value == 2
    answer = sandbox.call(time.sleep, 1000, seconds=0.2)
    assert answer.hung
    assert sandbox.call(doubled, 2, seconds=30).value == 4
